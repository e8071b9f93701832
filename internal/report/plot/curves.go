package plot

import (
	"cmp"
	"math"
	"slices"

	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// Curves is distributions as percentile curves: how long the share of all values took at most, with each further nine
// of the share as wide as the one before, so that the tail is as plain to see as the middle. Values are on a log axis.
type Curves struct {
	Title, Desc string
	Unit        string
	Lines       []CurveLine
	// Low and High widen the axis, so that several plots share one; not positive for none. (optional)
	Low, High float64
}

// CurveLine is one distribution.
type CurveLine struct {
	Name   string
	Series int
	Points []CurvePoint
}

// CurvePoint says that the share Q, in [0,1), took at most Value, which must be positive to be drawn.
type CurvePoint struct{ Q, Value float64 }

// Sizes of a plot with two axes.
const (
	frameLeft   = 50.0 // six digits, in a wide font too
	frameRight  = 140.0
	frameTop    = 26.0
	frameBottom = 34.0
	frameHeight = 270.0
)

// nine returns the place of share q on the axis of nines: 0 for 0, 1 for 90 %, 2 for 99 %.
func nine(q float64) float64 { return -math.Log10(1 - q) }

// Draw lays the plot out.
func (p Curves) Draw() Drawing {
	var values []float64
	most := 2.0
	for _, l := range p.Lines {
		for _, c := range l.Points {
			if c.Value > 0 && c.Q < 1 {
				values = append(values, c.Value)
				most = math.Max(most, nine(c.Q))
			}
		}
	}
	y, ticks := timeAxis(append(values, p.Low, p.High))
	names := each.Of(p.Lines, func(l CurveLine) string { return l.Name })
	room := nameRoom(names)
	x := axis{low: 0, high: math.Min(most, 6), from: frameLeft, to: plotWidth - room}
	g := frame(x, y, ticks, percentMarks(x, y), [2]string{p.Unit, "share that took at most so long"})
	groups := p.lines(x, y)
	height := nameLines(groups, names, room)
	return Drawing{Width: plotWidth, Height: height, Title: p.Title, Desc: p.Desc, Groups: append([]Group{g}, groups...)}
}

// timeAxis returns the upright logarithmic axis of a frame that holds all values above 0, with its ticks.
func timeAxis(values []float64) (axis, []float64) {
	values = slices.DeleteFunc(values, func(v float64) bool { return !(v > 0) })
	low, high, ok := span(values...)
	if !ok {
		low, high = 1, 10
	}
	y, ticks := logarithmic(low, high, 7)
	y.from, y.to = frameHeight-frameBottom, frameTop
	return y, ticks
}

// percentTicks are the shares that the axis names.
var percentTicks = []struct {
	q    float64
	text string
}{{0, ""}, {0.5, "50%"}, {0.9, "90%"}, {0.99, "99%"}, {0.999, "99.9%"}, {0.9999, "99.99%"}, {0.99999, "99.999%"}}

// percentMarks returns the ticks of the axis of nines.
func percentMarks(x, y axis) []Shape {
	var marks []Shape
	free := x.from - 20 // what is left of it is taken
	for _, t := range percentTicks {
		if nine(t.q) > x.high+1e-9 {
			break
		}
		at := x.at(nine(t.q))
		marks = append(marks, line(Grid, 1, Point{at, y.from}, Point{at, y.to}))
		// Fonts differ: what is measured here may be drawn wider by a sixth.
		if half := 1.17 * textWidth(t.text, smallSize) / 2; t.text != "" && at-half > free {
			marks = append(marks, small(text(Muted, Point{at, y.from + 16}, t.text, Middle)))
			free = at + half + 4
		}
	}
	return marks
}

// lines draws the curves.
func (p Curves) lines(x, y axis) []Group {
	groups := make([]Group, len(p.Lines))
	for i, l := range p.Lines {
		color, pattern := Series(l.Series)
		var points []Point
		for _, c := range l.Points {
			if c.Value > 0 && number.Finite(c.Value) && c.Q >= 0 && c.Q < 1 {
				points = append(points, Point{x.at(nine(c.Q)), y.at(c.Value)})
			}
		}
		groups[i] = Group{Series: l.Series, Tip: l.Name}
		if len(points) == 0 {
			continue
		}
		groups[i].Shapes = append(groups[i].Shapes, dashed(line(color, 2, points...), pattern))
	}
	return groups
}

// nameRoom returns the room that a plot leaves right of it for the names of its lines: little when a name or their number needs
// more, for then the names are below.
func nameRoom(names []string) float64 {
	below := float64(len(names))*nameGap > frameHeight-20 || slices.ContainsFunc(names, func(name string) bool {
		return textWidth(name, smallSize) > frameRight-24
	})
	if below {
		return 14
	}
	return frameRight
}

// nameGap is the distance of two names.
const nameGap = 14.0

// nameLines writes the name of each group right of the plot, level with the end of its first shape as far as there is room,
// or below it, and returns the height of the drawing. room is that of nameRoom.
func nameLines(groups []Group, names []string, room float64) float64 {
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
			small(text(Ink, Point{x + 18, y + 4}, fit(names[e.line], smallSize, plotWidth-x-18), Start)))
	}
	if room < frameRight {
		for i, e := range ends {
			key(e, 0, frameHeight+10+float64(i)*nameGap)
		}
		return frameHeight + 10 + float64(len(ends))*nameGap
	}
	slices.SortStableFunc(ends, func(a, b end) int { return cmp.Compare(a.Y, b.Y) })
	left := plotWidth - room + 6
	for i, at := range spread(each.Of(ends, func(e end) float64 { return e.Y }), nameGap, 12, frameHeight-8) {
		g := &groups[ends[i].line]
		color, _ := Series(g.Series)
		g.Shapes = append(g.Shapes, faint(line(color, 1, ends[i].Point, Point{left, at}), 0.45))
		key(ends[i], left, at)
	}
	return frameHeight
}
