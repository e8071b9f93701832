package plot

import (
	"math"

	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// Bars is a table that shows its values as bars. Each column has its own scale.
type Bars struct {
	Title, Desc string
	Columns     []BarColumn
	Rows        []BarRow
	// Stacked draws the columns one below the other, each with the names of the rows, for a narrow page.
	Stacked bool
	// Row is the height of a row in pixels. It is ignored if it is smaller than the default. (optional)
	Row float64
}

// BarColumn is the heading of a column: its name, and the unit of its values.
type BarColumn struct{ Name, Unit string }

// BarRow is a row with a bar for each column.
type BarRow struct {
	Name   string
	Series int
	Bars   []Bar
}

// Bar is a value with its interval.
type Bar struct {
	// Text is written after the bar.
	Text string
	// Share is the value, and Low to High is its interval. All are shares of the column's scale, from 0 to 1. Share is NaN
	// if there is no value. Low and High are NaN if there is no interval.
	Share, Low, High float64
	Color            Color
	// Strong writes Text in bold, for the best value.
	Strong bool
}

const (
	barRow, barHead, barName     = 24.0, 44.0, 118.0
	barColumn, barText, barSpace = 176.0, 52.0, 14.0
	barStacked                   = 360.0
)

// Draw draws the table.
func (b Bars) Draw() Drawing {
	name := namesWidth(barName, each.Of(b.Rows, func(r BarRow) string { return r.Name })...)
	high := math.Max(b.Row, barRow)
	d := Drawing{Title: b.Title, Desc: b.Desc, Width: name + barColumn*float64(len(b.Columns)), Height: barHead + high*float64(len(b.Rows))}
	if b.Stacked {
		d.Width, d.Height = barStacked, d.Height*float64(max(1, len(b.Columns)))
	}
	head := Group{}
	rows := make([]Group, len(b.Rows))
	for i, r := range b.Rows {
		rows[i] = Group{Series: r.Series, Tip: r.Name}
	}
	for j, c := range b.Columns {
		x, y, width := name+barColumn*float64(j), 0.0, barColumn-barSpace
		if b.Stacked {
			x, y, width = name, d.Height/float64(len(b.Columns))*float64(j), barStacked-name
		}
		head.Shapes = append(head.Shapes, bold(text(Ink, Point{x, y + 16}, fitText(c.Name, textSize, width), Start)),
			small(text(Muted, Point{x, y + 31}, fitText(c.Unit, smallSize, width), Start)))
		for i, r := range b.Rows {
			at := y + barHead + high*(float64(i)+0.5)
			if j == 0 || b.Stacked {
				rows[i].Shapes = append(rows[i].Shapes, text(Ink, Point{0, at + 4}, fitText(r.Name, textSize, name-6), Start))
			}
			rows[i].Shapes = append(rows[i].Shapes, r.Bars[j].draw(x, at, width, high/3)...)
		}
	}
	d.Groups = append([]Group{head}, rows...)
	return d
}

// draw draws a bar and its text from x, at most width pixels wide. y is the vertical centre of the bar, half is half its
// height.
func (b Bar) draw(x, y, width, half float64) []Shape {
	long := width - barText
	if !number.Finite(b.Share) {
		return []Shape{text(Muted, Point{x, y + 4}, fitText(b.Text, textSize, width), Start)}
	}
	at := func(share float64) float64 { return x + math.Min(1, math.Max(0, share))*long }
	end := math.Max(x+2, at(b.Share))
	shapes := []Shape{rect(b.Color, Point{x, y - half}, Point{end, y + half})}
	if number.Finite(b.Low) && number.Finite(b.High) && b.High > b.Low {
		low, high := Point{at(b.Low), y}, Point{at(b.High), y}
		shapes = append(shapes, line(Paper, 3.4, low, high), line(Ink, 1.4, low, high))
		end = math.Max(end, at(b.High))
	}
	value := text(Ink, Point{end + 5, y + 4}, fitText(b.Text, textSize, barText-5), Start)
	value.Bold = b.Strong
	return append(shapes, value)
}

// Card returns an image to share, of 1200 by 630 pixels: a title, a subtitle, the bars enlarged, and three lines below
// them.
func Card(title, sub string, foot [3]string, bars Bars) Drawing {
	const width, height, margin, top, bottom, tallest = 1200.0, 630.0, 48.0, 122.0, 98.0, 48.0
	sized := func(s Shape, size float64) Shape {
		s.Text, s.Size = fitText(s.Text, size, width-2*margin), size
		return s
	}
	picture := bars.Draw()
	scale := math.Min((width-2*margin)/picture.Width, (height-top-bottom)/picture.Height)
	bars.Row = math.Min(tallest, ((height-top-bottom)/scale-barHead)/float64(max(1, len(bars.Rows))))
	picture = bars.Draw()
	out := Drawing{Width: width, Height: height, Title: title, Desc: picture.Desc, Groups: []Group{{Shapes: []Shape{
		sized(bold(text(Ink, Point{margin, 66}, title, Start)), 32),
		sized(text(Muted, Point{margin, 98}, sub, Start), 18),
		sized(text(Muted, Point{margin, height - 70}, foot[0], Start), 16),
		sized(text(Muted, Point{margin, height - 46}, foot[1], Start), 16),
		sized(text(Muted, Point{margin, height - 22}, foot[2], Start), 14),
	}}}}
	out.Groups = append(out.Groups, transformGroups(picture.Groups, Point{margin, top}, scale)...)
	return out
}
