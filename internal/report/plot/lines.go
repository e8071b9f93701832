package plot

import (
	"cmp"
	"math"
	"slices"

	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// Lines is a plot with a line for each name, through points with intervals. The horizontal axis begins at 0. The vertical
// axis is logarithmic.
type Lines struct {
	Title, Desc string
	// Unit is the text at the vertical axis. XName is the text at the horizontal axis.
	Unit, XName string
	// XHigh is the end of the horizontal axis. Ticks are the ticks of this axis, in ascending order.
	XHigh float64
	Ticks []Tick
	Lines []Line
	// Low and High are values that the vertical axis must include. They are ignored if they are not positive. (optional)
	Low, High float64
}

// Tick is a position on an axis. Its text is drawn if there is room.
type Tick struct {
	At   float64
	Text string
}

// Line is the line of one name.
type Line struct {
	Name   string
	Series int
	Points []LinePoint
	// Faint is a second line in the same colour. (optional)
	Faint []LinePoint
	// Fitted means that Faint is a curve fitted to Points, and that Points are also drawn as dots. (optional)
	Fitted bool
}

// LinePoint is a point with its interval. The point is drawn only if Value is positive. The interval is drawn only if Low
// and High are also positive. Ring means that a ring is drawn around the point.
type LinePoint struct {
	X, Value, Low, High float64
	Ring                bool
}

// isDrawable reports whether a point can be drawn.
func (p LinePoint) isDrawable() bool { return p.X >= 0 && number.Finite(p.X) && isPositive(p.Value) }

func isPositive(v float64) bool { return v > 0 && number.Finite(v) }

// Sizes of a plot with two axes.
const (
	frameLeft   = 50.0 // six digits, in a wide font too
	frameRight  = 140.0
	frameTop    = 26.0
	frameBottom = 34.0
	frameHeight = 270.0
)

// Draw draws the plot.
func (p Lines) Draw() Drawing {
	values := []float64{p.Low, p.High}
	for _, l := range p.Lines {
		for _, q := range l.Points {
			values = append(values, q.Value)
		}
		for _, q := range l.Faint {
			if !l.Fitted {
				values = append(values, q.Value)
			}
		}
	}
	names := each.Of(p.Lines, func(l Line) string { return l.Name })
	room := nameRoom(names)
	y, ticks := verticalAxis(values)
	x := axis{low: 0, high: p.XHigh, from: frameLeft, to: plotWidth - room}
	groups := each.Of(p.Lines, func(l Line) Group { return l.draw(x, y) })
	height := addLineNames(groups, names, room)
	groups = append([]Group{drawAxes(x, y, ticks, p.drawTicks(x, y), [2]string{p.Unit, p.XName})}, groups...)
	return Drawing{Width: plotWidth, Height: height, Title: p.Title, Desc: p.Desc, Groups: groups}
}

// drawTicks draws the ticks of the horizontal axis.
func (p Lines) drawTicks(x, y axis) []Shape {
	var marks []Shape
	free := x.from - 20 // the space to the left is used
	for _, t := range p.Ticks {
		at := x.pixel(t.At)
		marks = append(marks, line(Grid, 1, Point{at, y.from}, Point{at, y.to}))
		// Fonts differ: a text may be drawn wider than estimated by a sixth.
		if half := 1.17 * textWidth(t.Text, smallSize) / 2; t.Text != "" && at-half > free {
			marks = append(marks, small(text(Muted, Point{at, y.from + 16}, t.Text, Middle)))
			free = at + half + 4
		}
	}
	return marks
}

// draw draws a line with its intervals, its faint line and its rings. If no point can be drawn, it draws the faint line in
// place of the line, unless the faint line is a fitted curve.
func (l Line) draw(x, y axis) Group {
	color, pattern := Series(l.Series)
	g := Group{Series: l.Series, Tip: l.Name}
	var points, rings, second []Point
	var arms []Shape
	for _, q := range l.Points {
		if !q.isDrawable() {
			continue
		}
		at := Point{x.pixel(q.X), y.pixel(q.Value)}
		points = append(points, at)
		if isPositive(q.Low) && isPositive(q.High) {
			arms = append(arms, faint(line(color, 2, Point{at.X, y.pixel(q.Low)}, Point{at.X, y.pixel(q.High)}), 0.35))
		}
		if q.Ring {
			rings = append(rings, at)
		}
	}
	for _, q := range l.Faint {
		if q.isDrawable() {
			second = append(second, Point{x.pixel(q.X), y.pixel(q.Value)})
		}
	}
	if len(points) == 0 && !l.Fitted {
		points, second = second, nil
	}
	if len(points) == 0 {
		return g
	}
	g.Shapes = append(g.Shapes, dashed(line(color, 2, points...), pattern))
	if l.Fitted {
		g.Shapes = append(g.Shapes, dots(color, 6, points...))
	}
	g.Shapes = append(g.Shapes, arms...)
	switch {
	case len(second) == 0:
	case l.Fitted:
		g.Shapes = append(g.Shapes, faint(line(color, 1, second...), 0.5))
	default:
		g.Shapes = append(g.Shapes, faint(dashed(line(color, 1, second...), pattern), 0.6))
	}
	if len(rings) > 0 {
		g.Shapes = append(g.Shapes, dots(color, 11, rings...), dots(Paper, 5, rings...))
	}
	return g
}

// PercentTicks returns the ticks of an axis that begins at 0 and includes most, both in percent. It also returns the end of
// the axis.
func PercentTicks(most float64) ([]Tick, float64) {
	x, at := linearAxis(0, most, 6)
	return each.Of(at, func(v float64) Tick { return Tick{v, tickText(v) + "%"} }), x.high
}

// Nine returns the position of the share q, in [0,1), on an axis that gives each further nine the same width: 0 for 0 %,
// 1 for 90 %, 2 for 99 %.
func Nine(q float64) float64 { return -math.Log10(1 - q) }

// NineTicks returns the ticks of an axis of nines from 0 to high.
func NineTicks(high float64) []Tick {
	var ticks []Tick
	for _, t := range []Tick{{0, ""}, {0.5, "50%"}, {0.9, "90%"}, {0.99, "99%"}, {0.999, "99.9%"}, {0.9999, "99.99%"}, {0.99999, "99.999%"}} {
		if at := Nine(t.At); at <= high+1e-9 {
			ticks = append(ticks, Tick{at, t.Text})
		}
	}
	return ticks
}

// verticalAxis returns the vertical axis of a plot, which is logarithmic, and its ticks. It ignores values that are not
// positive.
func verticalAxis(values []float64) (axis, []float64) {
	values = slices.DeleteFunc(values, func(v float64) bool { return !(v > 0) })
	low, high, ok := finiteBounds(values...)
	if !ok {
		low, high = 1, 10
	}
	y, ticks := logarithmicAxis(low, high, 7)
	y.from, y.to = frameHeight-frameBottom, frameTop
	return y, ticks
}

// nameRoom returns the width for the names of lines at the right of a plot. If a name is too long or there are too many
// names, all names are written below the plot, and the width is only a margin.
func nameRoom(names []string) float64 {
	below := float64(len(names))*nameGap > frameHeight-20 || slices.ContainsFunc(names, func(name string) bool {
		return textWidth(name, smallSize) > frameRight-24
	})
	if below {
		return 14
	}
	return frameRight
}

// nameGap is the vertical distance of two names.
const nameGap = 14.0

// addLineNames adds the name of each line to its group. room is the result of nameRoom. Names are at the right of the plot
// near the ends of the lines, or below the plot if room is too small. It returns the height of the drawing.
func addLineNames(groups []Group, names []string, room float64) float64 {
	type end struct {
		line int
		Point
	}
	var ends []end
	for i, g := range groups {
		if len(g.Shapes) > 0 {
			points := g.Shapes[0].Points
			ends = append(ends, end{i, points[len(points)-1]})
		}
	}
	key := func(e end, x, y float64) {
		g := &groups[e.line]
		color, pattern := Series(g.Series)
		g.Shapes = append(g.Shapes, dashed(line(color, 2, Point{x, y}, Point{x + 14, y}), pattern),
			small(text(Ink, Point{x + 18, y + 4}, fitText(names[e.line], smallSize, plotWidth-x-18), Start)))
	}
	if room < frameRight {
		for i, e := range ends {
			key(e, 0, frameHeight+10+float64(i)*nameGap)
		}
		return frameHeight + 10 + float64(len(ends))*nameGap
	}
	slices.SortStableFunc(ends, func(a, b end) int { return cmp.Compare(a.Y, b.Y) })
	left := plotWidth - room + 6
	for i, at := range spreadPositions(each.Of(ends, func(e end) float64 { return e.Y }), nameGap, 12, frameHeight-8) {
		g := &groups[ends[i].line]
		color, _ := Series(g.Series)
		g.Shapes = append(g.Shapes, faint(line(color, 1, ends[i].Point, Point{left, at}), 0.45))
		key(ends[i], left, at)
	}
	return frameHeight
}
