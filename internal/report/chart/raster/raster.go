// Package raster makes an image of a drawing of package chart.
//
// It fills polygons with golang.org/x/image/vector and sets text in the Go fonts, which are part of the binary, so an
// image looks the same on every machine. Lines are widened here: a quadrilateral for each segment, a disc at each joint.
package raster

import (
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"math"

	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/vector"

	"github.com/cnibench/cnibench/internal/report/chart"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// Options choose how a drawing is made an image; the zero value is a light one at twice its size.
type Options struct {
	Theme chart.Theme
	// Scale is the number of image pixels per pixel of the drawing; 0 means 2. (optional)
	Scale float64
}

// most bounds an image in pixels along one side.
const most = 16384

// PNG writes d as a PNG image. A drawing that is too large at the wanted scale is made smaller.
func PNG(w io.Writer, d chart.Drawing, o Options) error {
	m, err := Image(d, o)
	if err != nil {
		return err
	}
	if err := png.Encode(w, m); err != nil {
		return fmt.Errorf("chart %q as PNG: %w", d.Title, err)
	}
	return nil
}

// Image draws d.
func Image(d chart.Drawing, o Options) (*image.RGBA, error) {
	if !(d.Width > 0) || !(d.Height > 0) {
		return nil, fmt.Errorf("chart %q has no size", d.Title)
	}
	if o.Scale <= 0 {
		o.Scale = 2
	}
	o.Scale = math.Min(o.Scale, most/(math.Max(d.Width, d.Height)))
	size := func(v float64) int { return max(1, int(math.Ceil(v*o.Scale))) }
	c := canvas{image: image.NewRGBA(image.Rect(0, 0, size(d.Width), size(d.Height))), scale: o.Scale, theme: o.Theme}
	var err error
	if c.fonts, err = fonts(); err != nil {
		return nil, err
	}
	draw.Draw(c.image, c.image.Bounds(), image.NewUniform(c.color(chart.Paper, 0)), image.Point{}, draw.Src)
	for _, g := range d.Groups {
		for _, s := range g.Shapes {
			if err := c.shape(s); err != nil {
				return nil, fmt.Errorf("chart %q: %w", d.Title, err)
			}
		}
	}
	return c.image, nil
}

// canvas is an image under way.
type canvas struct {
	image *image.RGBA
	scale float64
	theme chart.Theme
	fonts [2]*typeface
}

// color is the value of a colour; opacity 0 is opaque.
func (c *canvas) color(name chart.Color, opacity float64) color.NRGBA {
	v := chart.Value(name, c.theme)
	a := uint8(255)
	if opacity > 0 && opacity < 1 {
		a = uint8(opacity*255 + 0.5)
	}
	return color.NRGBA{uint8(v >> 16), uint8(v >> 8), uint8(v), a}
}

// at is where a point of the drawing lies in the image.
func (c *canvas) at(p chart.Point) chart.Point {
	return chart.Point{X: p.X * c.scale, Y: p.Y * c.scale}
}

func (c *canvas) shape(s chart.Shape) error {
	points := make([]chart.Point, len(s.Points))
	for i, p := range s.Points {
		points[i] = c.at(p)
	}
	reach := s.Width*c.scale/2 + 1
	switch s.Kind {
	case chart.Label:
		return c.label(s, points[0])
	case chart.Fill:
		p := c.begin(points, reach)
		a, b := points[0], points[1]
		p.polygon(a, chart.Point{X: b.X, Y: a.Y}, b, chart.Point{X: a.X, Y: b.Y})
		c.finish(p, s)
	case chart.Spots:
		p := c.begin(points, reach)
		for _, at := range points {
			p.disc(at, s.Width*c.scale/2)
		}
		c.finish(p, s)
	default:
		p := c.begin(points, reach)
		for _, part := range dashed(points, chart.Dashes(s.Dash), c.scale) {
			p.stroke(part, s.Width*c.scale/2)
		}
		c.finish(p, s)
	}
	return nil
}

// begin makes a pen for what lies within reach of points: an area no larger than need be, since the time that it takes
// to fill depends on that.
func (c *canvas) begin(points []chart.Point, reach float64) pen {
	low, high := chart.Point{X: math.Inf(1), Y: math.Inf(1)}, chart.Point{X: math.Inf(-1), Y: math.Inf(-1)}
	for _, p := range points {
		low.X, low.Y = math.Min(low.X, p.X-reach), math.Min(low.Y, p.Y-reach)
		high.X, high.Y = math.Max(high.X, p.X+reach), math.Max(high.Y, p.Y+reach)
	}
	b := c.image.Bounds()
	within := func(v float64, most int) int { return int(math.Max(0, math.Min(float64(most), v))) }
	area := image.Rect(within(math.Floor(low.X), b.Max.X), within(math.Floor(low.Y), b.Max.Y), within(math.Ceil(high.X), b.Max.X), within(math.Ceil(high.Y), b.Max.Y))
	return pen{z: vector.NewRasterizer(area.Dx(), area.Dy()), area: area}
}

// finish fills what a pen has drawn with the colour of s.
func (c *canvas) finish(p pen, s chart.Shape) {
	if !p.area.Empty() {
		p.z.Draw(c.image, p.area, image.NewUniform(c.color(s.Color, s.Opacity)), image.Point{})
	}
}

// fonts returns the regular and the bold one.
func fonts() (both [2]*typeface, err error) {
	for i, text := range [][]byte{goregular.TTF, gobold.TTF} {
		if both[i], err = parseFont(text); err != nil {
			return both, fmt.Errorf("font: %w", err)
		}
	}
	return both, nil
}

// label sets the text of s at a place.
func (c *canvas) label(s chart.Shape, at chart.Point) error {
	f := c.fonts[0]
	if s.Bold {
		f = c.fonts[1]
	}
	text, size := number.Clean(s.Text), s.Size*c.scale
	width, err := f.width(text, size)
	if err != nil {
		return err
	}
	switch s.Anchor {
	case chart.Middle:
		at.X -= width / 2
	case chart.End:
		at.X -= width
	}
	end := chart.Point{X: at.X + width, Y: at.Y}
	p := c.begin([]chart.Point{at, end}, 1.2*size)
	if err := f.draw(p.z, text, size, at.X-float64(p.area.Min.X), at.Y-float64(p.area.Min.Y)); err != nil {
		return err
	}
	c.finish(p, s)
	return nil
}
