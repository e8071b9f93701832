// Package plot draws the figures of a report: typed data in, a Drawing out, and a Drawing as SVG.
//
// A plot (Dots, Lines, Heat, Bars, ...) is a struct of numbers and names; its Draw method draws it. A Drawing is a list
// of lines, rectangles, dots and texts in groups. Coordinates are in pixels at scale 1, from the upper left corner. SVG
// returns a drawing for a page, whose style sheet has the colours; WriteSVG writes it as a separate file. A Color is the
// name of a role, not a value, so that one drawing serves a light and a dark page. palette.go has the values; tests check
// that their contrast meets WCAG.
//
// This package does not know profiles or metrics. Texts may be untrusted: the code that writes a drawing escapes them.
package plot

import (
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// Drawing is a picture.
type Drawing struct {
	// Width and Height are in pixels at scale 1.
	Width, Height float64
	// Title names the picture. Desc describes it for readers who cannot see it.
	Title, Desc string
	Groups      []Group
}

// Group has the shapes of a series, a row or an axis.
type Group struct {
	// Series is the number of the series, from 1; 0 for other groups. A page may hide the groups of a series.
	Series int
	// Row is the height in pixels by which the drawing shrinks if a page hides the group; 0 if the group is not a row.
	Row float64
	// Tip is the text that a browser shows while the pointer is on the group. (optional)
	Tip    string
	Shapes []Shape
}

// Kind is the kind of a shape.
type Kind int

const (
	// Stroke is a line through Points.
	Stroke Kind = iota
	// Fill is a filled rectangle from Points[0] to Points[1].
	Fill
	// Spots are filled circles of diameter Width at each of Points.
	Spots
	// Label is Text whose baseline is at Points[0].
	Label
)

// Point is a position in a drawing.
type Point struct{ X, Y float64 }

// Shape is one element of a drawing.
type Shape struct {
	Kind   Kind
	Points []Point
	Color  Color
	// Width is the width of a line or the diameter of dots.
	Width float64
	// Dash is the index of the dash pattern of a line; 0 means a solid line.
	Dash int
	// Opacity is in (0,1); 0 means opaque.
	Opacity float64
	// Text, Size (of the font, in pixels), Anchor and Bold describe a text.
	Text   string
	Size   float64
	Anchor Anchor
	Bold   bool
}

// Anchor is the part of a text that is at its position.
type Anchor int

const (
	// Start means that the text begins at its position. Middle centres the text there, and End ends it there.
	Start Anchor = iota
	Middle
	End
)

// dashes are the dash patterns of lines: lengths drawn and omitted in turn, in pixels. The first is a solid line.
var dashes = [][]float64{nil, {6, 3}, {2, 3}, {9, 3, 2, 3}}

// textSize is the font size of texts, in pixels. smallSize is that of ticks and notes.
const (
	textSize  = 12.0
	smallSize = 11.0
)

// line, rect, dots and text return a shape of their kind.
func line(c Color, width float64, points ...Point) Shape {
	return Shape{Kind: Stroke, Points: points, Color: c, Width: width}
}

func rect(c Color, from, to Point) Shape {
	return Shape{Kind: Fill, Points: []Point{from, to}, Color: c}
}

func dots(c Color, diameter float64, points ...Point) Shape {
	return Shape{Kind: Spots, Points: points, Color: c, Width: diameter}
}

func text(c Color, at Point, s string, a Anchor) Shape {
	return Shape{Kind: Label, Points: []Point{at}, Color: c, Text: s, Size: textSize, Anchor: a}
}

// small returns the text s in the font size smallSize.
func small(s Shape) Shape {
	s.Size = smallSize
	return s
}

func bold(s Shape) Shape {
	s.Bold = true
	return s
}

// faint returns s with an opacity, in (0,1).
func faint(s Shape, opacity float64) Shape {
	s.Opacity = opacity
	return s
}

// dashed returns the line s with the dash pattern n, an index in dashes.
func dashed(s Shape, n int) Shape {
	s.Dash = n
	return s
}

// Framed returns d with its title above it and a margin around it, for a separate file.
func Framed(d Drawing) Drawing {
	const margin, lineHeight, titleSize = 14.0, 19.0, 14.0
	lines := number.Wrap(number.Clean(d.Title), int(d.Width/(titleSize*0.58)))
	down := margin + lineHeight*float64(len(lines)) + 6
	out := d
	out.Width, out.Height = d.Width+2*margin, d.Height+down+margin
	head := Group{}
	for i, l := range lines {
		s := bold(text(Ink, Point{margin, margin + lineHeight*float64(i) + titleSize}, l, Start))
		s.Size = titleSize
		head.Shapes = append(head.Shapes, s)
	}
	out.Groups = append([]Group{head}, transformGroups(d.Groups, Point{margin, down}, 1)...)
	return out
}

// transformGroups returns groups scaled by scale, then moved so that their origin is at the point at.
func transformGroups(groups []Group, at Point, scale float64) []Group {
	return each.Of(groups, func(g Group) Group {
		g.Shapes = each.Of(g.Shapes, func(s Shape) Shape {
			s.Points = each.Of(s.Points, func(p Point) Point { return Point{at.X + p.X*scale, at.Y + p.Y*scale} })
			s.Size, s.Width = s.Size*scale, s.Width*scale
			return s
		})
		return g
	})
}
