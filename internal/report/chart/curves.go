package chart

import (
	"cmp"
	"math"
	"slices"

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

// nine is the place of share q on the axis of nines: 0 for 0, 1 for 90 %, 2 for 99 %.
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
	x := axis{low: 0, high: math.Min(most, 6), from: frameLeft, to: plotWidth - frameRight}
	g := frame(x, y, ticks, percentMarks(x, y), [2]string{p.Unit, "share that took at most so long"})
	return Drawing{Width: plotWidth, Height: frameHeight, Title: p.Title, Desc: p.Desc, Groups: append([]Group{g}, p.lines(x, y)...)}
}

// timeAxis is the upright logarithmic axis of a frame that holds all values above 0, with its ticks.
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

// percentMarks are the ticks of the axis of nines.
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

// lines draws the curves, each named at its end.
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
	nameEnds(groups, func(i int) string { return p.Lines[i].Name })
	return groups
}

// nameEnds writes the name of each group right of the plot, level with the end of its first shape as far as there is room.
func nameEnds(groups []Group, name func(i int) string) {
	type end struct {
		line int
		y    float64
	}
	var ends []end
	for i, g := range groups {
		if len(g.Shapes) > 0 {
			points := g.Shapes[0].Points
			ends = append(ends, end{i, points[len(points)-1].Y})
		}
	}
	slices.SortStableFunc(ends, func(a, b end) int { return cmp.Compare(a.y, b.y) })
	ys := make([]float64, len(ends))
	for i, e := range ends {
		ys[i] = e.y
	}
	gap := math.Min(14, (frameHeight-20)/math.Max(1, float64(len(ends))))
	for i, at := range spread(ys, gap, 12, frameHeight-8) {
		e := ends[i]
		g := &groups[e.line]
		color, pattern := Series(g.Series)
		last := g.Shapes[0].Points[len(g.Shapes[0].Points)-1]
		left := plotWidth - frameRight
		label := text(Ink, Point{left + 24, at + 4}, fit(name(e.line), smallSize, frameRight-24), Start)
		label.Size = math.Min(smallSize, math.Max(6, gap))
		g.Shapes = append(g.Shapes,
			faint(line(color, 1, last, Point{left + 6, at}), 0.45),
			dashed(line(color, 2, Point{left + 6, at}, Point{left + 20, at}), pattern), label)
	}
}
