package plot

import (
	"math"

	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// Loads is times over load: for each name the tail as a strong line and the median as a faint one, with the knee of the
// tail marked. Times are on a log axis.
type Loads struct {
	Title, Desc string
	Unit        string
	// XName says what the loads are.
	XName string
	Lines []LoadLine
	// Low and High widen the axis of times, so that several plots share one; not positive for none. (optional)
	Low, High float64
}

// LoadLine is one curve.
type LoadLine struct {
	Name   string
	Series int
	// Points are by rising load.
	Points []LoadPoint
	// Knee is the load at which the tail leaves the ground; NaN for none.
	Knee float64
}

// LoadPoint is the times at one load, in percent. Tail and Half must be positive to be drawn; TailLow to TailHigh is the
// interval of the tail, NaN where it is not known.
type LoadPoint struct {
	Load, Half, Tail  float64
	TailLow, TailHigh float64
}

// Draw lays the plot out. Loads begin at 0.
func (p Loads) Draw() Drawing {
	var values []float64
	most := 10.0
	for _, l := range p.Lines {
		for _, q := range l.Points {
			if number.Finite(q.Load) {
				most = math.Max(most, q.Load)
			}
			values = append(values, q.Half, q.Tail)
		}
	}
	names := each.Of(p.Lines, func(l LoadLine) string { return l.Name })
	room := nameRoom(names)
	y, ticks := timeAxis(append(values, p.Low, p.High))
	x, xticks := linear(0, most, 6)
	x.from, x.to = frameLeft, plotWidth-room
	var marks []Shape
	for _, t := range xticks {
		marks = append(marks, line(Grid, 1, Point{x.at(t), y.from}, Point{x.at(t), y.to}),
			small(text(Muted, Point{x.at(t), y.from + 16}, tickText(t)+"%", Middle)))
	}
	groups := make([]Group, len(p.Lines))
	for i, l := range p.Lines {
		groups[i] = l.draw(x, y)
	}
	height := nameLines(groups, names, room)
	groups = append([]Group{frame(x, y, ticks, marks, [2]string{p.Unit, p.XName})}, groups...)
	return Drawing{Width: plotWidth, Height: height, Title: p.Title, Desc: p.Desc, Groups: groups}
}

// draw draws one curve: the tail with its intervals, the median, and a ring around the knee.
func (l LoadLine) draw(x, y axis) Group {
	color, pattern := Series(l.Series)
	g := Group{Series: l.Series, Tip: l.Name}
	var tail, half, knee []Point
	var arms []Shape
	for _, q := range l.Points {
		if !number.Finite(q.Load) {
			continue
		}
		at := x.at(q.Load)
		if q.Half > 0 && number.Finite(q.Half) {
			half = append(half, Point{at, y.at(q.Half)})
		}
		if !(q.Tail > 0) || !number.Finite(q.Tail) {
			continue
		}
		tail = append(tail, Point{at, y.at(q.Tail)})
		if q.TailLow > 0 && number.Finite(q.TailLow) && number.Finite(q.TailHigh) {
			arms = append(arms, faint(line(color, 2, Point{at, y.at(q.TailLow)}, Point{at, y.at(q.TailHigh)}), 0.35))
		}
		if q.Load == l.Knee {
			knee = append(knee, Point{at, y.at(q.Tail)})
		}
	}
	if len(tail) == 0 {
		tail, half = half, nil
	}
	if len(tail) == 0 {
		return g
	}
	g.Shapes = append(g.Shapes, dashed(line(color, 2, tail...), pattern))
	g.Shapes = append(g.Shapes, arms...)
	if len(half) > 0 {
		g.Shapes = append(g.Shapes, faint(dashed(line(color, 1, half...), pattern), 0.6))
	}
	if len(knee) > 0 {
		g.Shapes = append(g.Shapes, dots(color, 11, knee...), dots(Paper, 5, knee...))
	}
	return g
}
