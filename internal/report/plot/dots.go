package plot

import (
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// Dots is a dot plot: one row for each name, with every sample, the median and its interval on a common scale.
type Dots struct {
	Title, Desc string
	// Unit is written above the axis.
	Unit string
	Rows []DotRow
	// Reference is the value at which a line crosses all rows, with ReferenceName as its text. No line is drawn if the
	// name is empty or the value is not finite. (optional)
	Reference     float64
	ReferenceName string
	// Low and High are values that the axis must include, so that several plots have the same axis. They are ignored if
	// they are not finite. (optional)
	Low, High float64
}

// DotRow is one row of a dot plot. Its values are in the unit of the plot.
type DotRow struct {
	Name   string
	Series int
	// Median, Low and High are NaN without a measurement. Value then has the reason.
	Median, Low, High float64
	Samples           []float64
	// Value is the text at the right of the row.
	Value string
}

// Sizes of a dot plot.
const (
	plotWidth  = 400.0
	labelWidth = 126.0
	mostLabel  = 216.0
	valueWidth = 66.0
	rowHeight  = 23.0
	headHeight = 34.0
)

// Draw draws the plot. The axis includes 0.
func (p Dots) Draw() Drawing {
	var all []float64
	for _, r := range p.Rows {
		all = append(append(all, r.Median, r.Low, r.High), r.Samples...)
	}
	all = append(all, p.Low, p.High)
	if p.ReferenceName != "" {
		all = append(all, p.Reference)
	}
	low, high, ok := finiteBounds(all...)
	if !ok {
		low, high = 0, 1
	}
	a, ticks := linearAxis(min(0, low), high, 4)
	a.from = namesWidth(labelWidth, each.Of(p.Rows, func(r DotRow) string { return r.Name })...)
	a.to = plotWidth - valueWidth - 6
	d := Drawing{Width: plotWidth, Height: headHeight + rowHeight*float64(len(p.Rows)) + 8, Title: p.Title, Desc: p.Desc}
	d.Groups = append(d.Groups, p.drawAxis(a, ticks, d.Height))
	for i, r := range p.Rows {
		d.Groups = append(d.Groups, r.draw(a, headHeight+rowHeight*(float64(i)+0.5)))
	}
	return d
}

// drawAxis draws the axis above the rows, and the reference.
func (p Dots) drawAxis(a axis, ticks []float64, height float64) Group {
	g := Group{}
	for _, t := range ticks {
		x := a.pixel(t)
		g.Shapes = append(g.Shapes,
			line(Grid, 1, Point{x, headHeight - 6}, Point{x, height}),
			small(text(Muted, Point{x, headHeight - 11}, tickText(t), Middle)))
	}
	g.Shapes = append(g.Shapes, small(text(Muted, Point{0, headHeight - 11}, fitText(p.Unit, smallSize, a.from-20), Start)))
	if p.ReferenceName != "" && number.Finite(p.Reference) {
		x := a.pixel(p.Reference)
		g.Shapes = append(g.Shapes,
			dashed(line(Accent, 1.5, Point{x, headHeight - 6}, Point{x, height}), 1),
			small(text(Accent, Point{x, 9}, p.ReferenceName, labelAnchor(x, p.ReferenceName))))
	}
	return g
}

// labelAnchor returns the anchor that keeps a label at x within the drawing.
func labelAnchor(x float64, s string) Anchor {
	half := textWidth(s, smallSize) / 2
	switch {
	case x-half < 0:
		return Start
	case x+half > plotWidth:
		return End
	}
	return Middle
}

// draw draws a row whose centre is at the height y.
func (r DotRow) draw(a axis, y float64) Group {
	color, _ := Series(r.Series)
	g := Group{Series: r.Series, Row: rowHeight, Tip: r.Name + ": " + r.Value}
	g.Shapes = append(g.Shapes, text(Ink, Point{0, y + 4}, fitText(r.Name, textSize, a.from-8), Start))
	if number.Finite(r.Low) && number.Finite(r.High) {
		g.Shapes = append(g.Shapes, faint(line(color, 7, Point{a.pixel(r.Low), y}, Point{a.pixel(r.High), y}), 0.28))
	}
	var at []Point
	for i, v := range r.Samples {
		if number.Finite(v) {
			// Neighbours in time have different heights, so that equal values are all visible.
			at = append(at, Point{a.pixel(v), y + float64(i%3-1)*4})
		}
	}
	if len(at) > 0 {
		g.Shapes = append(g.Shapes, faint(dots(color, 4.4, at...), 0.75))
	}
	if number.Finite(r.Median) {
		x := a.pixel(r.Median)
		g.Shapes = append(g.Shapes, line(Ink, 2.2, Point{x, y - 8}, Point{x, y + 8}))
	}
	g.Shapes = append(g.Shapes, text(Ink, Point{plotWidth, y + 4}, fitText(r.Value, textSize, valueWidth), End))
	return g
}
