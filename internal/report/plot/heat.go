package plot

import (
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// Heat is a heat map with a row for each name. Each cell has texts and a shade.
type Heat struct {
	Title, Desc string
	Unit        string
	Columns     []string
	Rows        []HeatRow
	// Note is a line below the map. (optional)
	Note string
}

// HeatRow is the row of one name.
type HeatRow struct {
	Name   string
	Series int
	Cells  []HeatCell
}

// HeatCell is a cell with two lines of text, Value above Claim. Both may be empty.
type HeatCell struct {
	Value, Claim string
	Color        Color
}

const (
	heatCell   = 92.0
	heatHeight = 36.0
	noteHeight = 17.0
)

// Draw draws the map.
func (p Heat) Draw() Drawing {
	head := 46.0
	labels := namesWidth(labelWidth, each.Of(p.Rows, func(r HeatRow) string { return r.Name })...)
	d := Drawing{Width: labels + heatCell*float64(len(p.Columns)), Height: head + heatHeight*float64(len(p.Rows)), Title: p.Title, Desc: p.Desc}
	g := Group{Shapes: []Shape{small(text(Muted, Point{0, head - 8}, fitText(p.Unit, smallSize, labels-8), Start))}}
	for j, c := range p.Columns {
		x := labels + heatCell*(float64(j)+0.5)
		first, second := splitHeading(c)
		g.Shapes = append(g.Shapes,
			small(text(Muted, Point{x, head - 22}, fitText(first, smallSize, heatCell-4), Middle)),
			small(text(Muted, Point{x, head - 8}, fitText(second, smallSize, heatCell-4), Middle)))
	}
	d.Groups = append(d.Groups, g)
	for i, r := range p.Rows {
		y := head + heatHeight*float64(i)
		row := Group{Series: r.Series, Row: heatHeight, Tip: r.Name}
		row.Shapes = append(row.Shapes, text(Ink, Point{0, y + 22}, fitText(r.Name, textSize, labels-8), Start))
		for j, c := range r.Cells {
			x := labels + heatCell*float64(j)
			row.Shapes = append(row.Shapes,
				rect(c.Color, Point{x + 1, y + 1}, Point{x + heatCell - 1, y + heatHeight - 1}),
				bold(text(Ink, Point{x + heatCell/2, y + 16}, fitText(c.Value, textSize, heatCell-6), Middle)),
				small(text(Ink, Point{x + heatCell/2, y + 29}, fitText(c.Claim, smallSize, heatCell-6), Middle)))
		}
		d.Groups = append(d.Groups, row)
	}
	if p.Note != "" {
		note := Group{}
		for _, l := range number.Wrap(number.Clean(p.Note), int(d.Width/(smallSize*0.55))) {
			d.Height += noteHeight
			note.Shapes = append(note.Shapes, small(text(Muted, Point{0, d.Height - 4}, l, Start)))
		}
		d.Groups = append(d.Groups, note)
	}
	return d
}

// splitHeading splits a name at its last slash or space. Without a slash or space the first line is empty.
func splitHeading(s string) (string, string) {
	for i := len(s) - 1; i > 0; i-- {
		if s[i] == ' ' || s[i] == '/' {
			return s[:i], s[i+1:]
		}
	}
	return "", s
}
