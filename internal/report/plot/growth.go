package plot

import (
	"math"

	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// Growth is values over a condition: for each name a line through its points with their intervals. Both axes are
// logarithmic, and the condition's begins at 0.
type Growth struct {
	Title, Desc string
	Unit        string
	// XName says what the condition is, Ticks are the values of it that the axis names, rising.
	XName string
	Ticks []GrowthTick
	Lines []GrowthLine
}

// GrowthTick is a value of the condition with its text.
type GrowthTick struct {
	X    float64
	Text string
}

// GrowthLine is one curve.
type GrowthLine struct {
	Name   string
	Series int
	Points []GrowthPoint
	// Law is the fitted curve as points; nil for none. (optional)
	Law []GrowthPoint
}

// GrowthPoint is a value at X with its interval, NaN where it is not known. Values must be positive to be drawn.
type GrowthPoint struct{ X, Value, Low, High float64 }

// Draw lays the plot out.
func (p Growth) Draw() Drawing {
	var values []float64
	most := 1.0
	for _, l := range p.Lines {
		for _, q := range l.Points {
			values = append(values, q.Value, q.Low, q.High)
			most = math.Max(most, q.X)
		}
	}
	names := each.Of(p.Lines, func(l GrowthLine) string { return l.Name })
	room := nameRoom(names)
	y, ticks := timeAxis(values)
	x := axis{low: 0, high: math.Log1p(most), from: frameLeft, to: plotWidth - room}
	var marks []Shape
	free := x.from - 20
	for _, t := range p.Ticks {
		at := x.at(math.Log1p(t.X))
		marks = append(marks, line(Grid, 1, Point{at, y.from}, Point{at, y.to}))
		if half := 1.17 * textWidth(t.Text, smallSize) / 2; at-half > free {
			marks = append(marks, small(text(Muted, Point{at, y.from + 16}, t.Text, Middle)))
			free = at + half + 4
		}
	}
	groups := make([]Group, len(p.Lines))
	for i, l := range p.Lines {
		groups[i] = l.draw(x, y)
	}
	height := nameLines(groups, names, room)
	groups = append([]Group{frame(x, y, ticks, marks, [2]string{p.Unit, p.XName})}, groups...)
	return Drawing{Width: plotWidth, Height: height, Title: p.Title, Desc: p.Desc, Groups: groups}
}

// draw draws one curve: a line through the points, their intervals, and the law as a faint line.
func (l GrowthLine) draw(x, y axis) Group {
	color, pattern := Series(l.Series)
	g := Group{Series: l.Series, Tip: l.Name}
	at := func(q GrowthPoint, v float64) Point { return Point{x.at(math.Log1p(q.X)), y.at(v)} }
	seen := func(v float64) bool { return v > 0 && number.Finite(v) }
	var points, law []Point
	var arms []Shape
	for _, q := range l.Points {
		if !seen(q.Value) || !(q.X >= 0) || !number.Finite(q.X) {
			continue
		}
		points = append(points, at(q, q.Value))
		if seen(q.Low) && seen(q.High) {
			arms = append(arms, faint(line(color, 2, at(q, q.Low), at(q, q.High)), 0.35))
		}
	}
	if len(points) == 0 {
		return g
	}
	for _, q := range l.Law {
		if seen(q.Value) && y.at(q.Value) >= y.to-1 && y.at(q.Value) <= y.from+1 {
			law = append(law, at(q, q.Value))
		}
	}
	g.Shapes = append(g.Shapes, dashed(line(color, 2, points...), pattern), dots(color, 6, points...))
	g.Shapes = append(g.Shapes, arms...)
	if len(law) > 1 {
		g.Shapes = append(g.Shapes, faint(line(color, 1, law...), 0.5))
	}
	return g
}
