package raster

import (
	"image"
	"math"

	"golang.org/x/image/vector"

	"github.com/cnibench/cnibench/internal/report/chart"
)

// pen adds closed figures to a rasterizer. All go round the same way, so that those which overlap stay filled.
type pen struct {
	z *vector.Rasterizer
	// area is the part of the image that z covers.
	area image.Rectangle
}

func (p pen) polygon(points ...chart.Point) {
	var area float64
	for i, a := range points {
		b := points[(i+1)%len(points)]
		area += a.X*b.Y - b.X*a.Y
	}
	if area < 0 {
		for i, j := 0, len(points)-1; i < j; i, j = i+1, j-1 {
			points[i], points[j] = points[j], points[i]
		}
	}
	for i, a := range points {
		x, y := float32(a.X-float64(p.area.Min.X)), float32(a.Y-float64(p.area.Min.Y))
		if i == 0 {
			p.z.MoveTo(x, y)
			continue
		}
		p.z.LineTo(x, y)
	}
	p.z.ClosePath()
}

// disc is a polygon fine enough to look round.
func (p pen) disc(c chart.Point, radius float64) {
	n := max(8, min(64, int(radius*4)))
	points := make([]chart.Point, n)
	for i := range points {
		s, t := math.Sincos(2 * math.Pi * float64(i) / float64(n))
		points[i] = chart.Point{X: c.X + radius*t, Y: c.Y + radius*s}
	}
	p.polygon(points...)
}

// stroke widens a line to both sides.
func (p pen) stroke(points []chart.Point, half float64) {
	for i := 1; i < len(points); i++ {
		a, b := points[i-1], points[i]
		length := math.Hypot(b.X-a.X, b.Y-a.Y)
		if length == 0 {
			continue
		}
		dx, dy := (b.Y-a.Y)/length*half, (a.X-b.X)/length*half
		p.polygon(chart.Point{X: a.X + dx, Y: a.Y + dy}, chart.Point{X: b.X + dx, Y: b.Y + dy}, chart.Point{X: b.X - dx, Y: b.Y - dy}, chart.Point{X: a.X - dx, Y: a.Y - dy})
		if i > 1 {
			p.disc(a, half)
		}
	}
}

// dashed cuts a line by a pattern of lengths, drawn and left out in turn; all of it if there is no pattern.
func dashed(points []chart.Point, pattern []float64, scale float64) [][]chart.Point {
	if len(pattern) == 0 || len(points) < 2 {
		return [][]chart.Point{points}
	}
	var out [][]chart.Point
	part := []chart.Point{points[0]}
	k, left := 0, pattern[0]*scale
	for i := 1; i < len(points); i++ {
		a, b := points[i-1], points[i]
		for {
			length := math.Hypot(b.X-a.X, b.Y-a.Y)
			if length <= left {
				left -= length
				part = append(part, b)
				break
			}
			a = chart.Point{X: a.X + (b.X-a.X)*left/length, Y: a.Y + (b.Y-a.Y)*left/length}
			if k%2 == 0 {
				out = append(out, append(part, a))
			}
			part = []chart.Point{a}
			k++
			left = pattern[k%len(pattern)] * scale
		}
	}
	if k%2 == 0 && len(part) > 1 {
		out = append(out, part)
	}
	return out
}
