package raster

import (
	"fmt"

	"golang.org/x/image/font"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
	"golang.org/x/image/vector"
)

// typeface sets text in one font, without hints. It is not safe for concurrent use.
type typeface struct {
	font   *sfnt.Font
	buffer sfnt.Buffer
}

// parseFont reads a TrueType font.
func parseFont(b []byte) (*typeface, error) {
	f, err := sfnt.Parse(b)
	if err != nil {
		return nil, err
	}
	return &typeface{font: f}, nil
}

// glyph returns the number of a character's glyph, 0 (an empty box) if the font has none.
func (f *typeface) glyph(r rune) sfnt.GlyphIndex {
	g, err := f.font.GlyphIndex(&f.buffer, r)
	if err != nil {
		return 0
	}
	return g
}

// Lengths of a font are in 1/64 of a pixel.
func toFixed(v float64) fixed.Int26_6 { return fixed.Int26_6(v*64 + 0.5) }
func toFloat(v fixed.Int26_6) float64 { return float64(v) / 64 }

// width returns that of a text at a size in pixels.
func (f *typeface) width(s string, size float64) (float64, error) {
	var sum fixed.Int26_6
	for _, r := range s {
		w, err := f.font.GlyphAdvance(&f.buffer, f.glyph(r), toFixed(size), font.HintingNone)
		if err != nil {
			return 0, fmt.Errorf("width of %q: %w", r, err)
		}
		sum += w
	}
	return toFloat(sum), nil
}

// draw adds the outlines of a text to z, its baseline beginning at x, y.
func (f *typeface) draw(z *vector.Rasterizer, s string, size, x, y float64) error {
	for _, r := range s {
		g := f.glyph(r)
		outline, err := f.font.LoadGlyph(&f.buffer, g, toFixed(size), nil)
		if err != nil {
			return fmt.Errorf("outline of %q: %w", r, err)
		}
		trace(z, outline, x, y)
		w, err := f.font.GlyphAdvance(&f.buffer, g, toFixed(size), font.HintingNone)
		if err != nil {
			return fmt.Errorf("width of %q: %w", r, err)
		}
		x += toFloat(w)
	}
	return nil
}

// trace adds an outline to z, its origin at x, y.
func trace(z *vector.Rasterizer, outline sfnt.Segments, x, y float64) {
	at := func(p fixed.Point26_6) (float32, float32) {
		return float32(x + toFloat(p.X)), float32(y + toFloat(p.Y))
	}
	for _, s := range outline {
		ax, ay := at(s.Args[0])
		bx, by := at(s.Args[1])
		switch s.Op {
		case sfnt.SegmentOpMoveTo:
			z.ClosePath()
			z.MoveTo(ax, ay)
		case sfnt.SegmentOpLineTo:
			z.LineTo(ax, ay)
		case sfnt.SegmentOpQuadTo:
			z.QuadTo(ax, ay, bx, by)
		case sfnt.SegmentOpCubeTo:
			cx, cy := at(s.Args[2])
			z.CubeTo(ax, ay, bx, by, cx, cy)
		}
	}
	z.ClosePath()
}
