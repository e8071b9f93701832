package raster

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"golang.org/x/image/vector"
)

// typeface is a TrueType font: outlines of quadratic curves, without hints, which at the sizes of a chart nobody misses.
// Tables and fields are those of the OpenType specification 1.9. The fonts are part of the binary, so a fault in one is
// a mistake of ours, found by a test; all the same nothing is read out of bounds.
type typeface struct {
	glyf, loca, hmtx []byte
	segments         []segment
	perEm            float64
	metrics          int // entries of hmtx with an advance of their own
	wide             bool
}

// segment is a range of characters of a cmap of format 4.
type segment struct{ first, last, delta, offset, at int }

// parseFont reads the tables that outlines need.
func parseFont(b []byte) (*typeface, error) {
	tables := map[string][]byte{}
	for i := range u16(b, 4) {
		at := 12 + 16*i
		if at+16 > len(b) {
			break
		}
		from, size := int(binary.BigEndian.Uint32(b[at+8:])), int(binary.BigEndian.Uint32(b[at+12:]))
		if from < 0 || size < 0 || from > len(b) || size > len(b)-from {
			return nil, fmt.Errorf("table %q lies outside the font", b[at:at+4])
		}
		tables[string(b[at:at+4])] = b[from : from+size]
	}
	f := &typeface{glyf: tables["glyf"], loca: tables["loca"], hmtx: tables["hmtx"]}
	f.perEm, f.wide = float64(u16(tables["head"], 18)), u16(tables["head"], 50) == 1
	f.metrics = u16(tables["hhea"], 34)
	f.segments = charMap(tables["cmap"])
	if f.perEm < 16 || f.perEm > 16384 || f.metrics == 0 || len(f.segments) == 0 || f.glyf == nil {
		return nil, errors.New("it is no TrueType font with a character map of format 4")
	}
	return f, nil
}

// u16 and i16 read a field, 0 beyond the end.
func u16(b []byte, at int) int {
	if at < 0 || at+2 > len(b) {
		return 0
	}
	return int(binary.BigEndian.Uint16(b[at:]))
}

func i16(b []byte, at int) int { return int(int16(u16(b, at))) }

// charMap reads the first subtable of format 4. offset is -1 where glyphs follow from delta alone.
func charMap(b []byte) []segment {
	for i := range u16(b, 2) {
		if 4+8*i+8 > len(b) {
			break
		}
		from := int(binary.BigEndian.Uint32(b[4+8*i+4:]))
		if from < 0 || from > len(b) || u16(b[from:], 0) != 4 {
			continue
		}
		t := b[from:]
		double := u16(t, 6) // twice the number of segments
		var out []segment
		for k := 0; k < double; k += 2 {
			s := segment{last: u16(t, 14+k), first: u16(t, 16+double+k), delta: u16(t, 16+2*double+k), offset: -1}
			if o := u16(t, 16+3*double+k); o != 0 {
				s.offset, s.at = o, 16+3*double+k
			}
			if s.offset >= 0 {
				// The glyphs of the range stand in the table: keep where, from the start of cmap.
				s.at += from
			}
			out = append(out, s)
		}
		for k := range out {
			out[k].resolve(b)
		}
		return out
	}
	return nil
}

// resolve turns a range whose glyphs are in a table into one with a delta, if they follow each other there; ranges of
// the Go fonts do or are one character long.
func (s *segment) resolve(cmap []byte) {
	if s.offset >= 0 {
		if g := u16(cmap, s.at+s.offset); g != 0 {
			s.delta = g + s.delta - s.first
		}
	}
}

// glyph returns the number of a character's glyph, 0 (an empty box) if the font has none.
func (f *typeface) glyph(r rune) int {
	for _, s := range f.segments {
		if int(r) >= s.first && int(r) <= s.last && r < 0xffff {
			return (int(r) + s.delta) & 0xffff
		}
	}
	return 0
}

// advance is the width of a glyph in units of the font.
func (f *typeface) advance(g int) float64 { return float64(u16(f.hmtx, 4*min(g, f.metrics-1))) }

// width is that of a text at a size in pixels.
func (f *typeface) width(s string, size float64) float64 {
	var w float64
	for _, r := range s {
		w += f.advance(f.glyph(r))
	}
	return w * size / f.perEm
}

// draw adds the outlines of a text to z, its baseline beginning at x, y.
func (f *typeface) draw(z *vector.Rasterizer, s string, size, x, y float64) {
	scale := size / f.perEm
	for _, r := range s {
		g := f.glyph(r)
		f.outline(z, g, transform{x: x, y: y, scale: scale}, 0)
		x += f.advance(g) * scale
	}
}

// transform maps units of the font, y upwards, to pixels, y downwards.
type transform struct{ x, y, scale float64 }

func (t transform) at(p vertex) (float32, float32) {
	return float32(t.x + p.x*t.scale), float32(t.y - p.y*t.scale)
}

// vertex is a point of an outline; a curve does not pass through one that is off.
type vertex struct {
	x, y float64
	on   bool
}

// data returns the description of a glyph, nil if it has no outline.
func (f *typeface) data(g int) []byte {
	var from, to int
	if f.wide {
		if 4*g+8 > len(f.loca) {
			return nil
		}
		from, to = int(binary.BigEndian.Uint32(f.loca[4*g:])), int(binary.BigEndian.Uint32(f.loca[4*g+4:]))
	} else {
		from, to = 2*u16(f.loca, 2*g), 2*u16(f.loca, 2*g+2)
	}
	if from < 0 || from >= to || to > len(f.glyf) {
		return nil
	}
	return f.glyf[from:to]
}

// outline adds one glyph to z. A part of a composite may be one in turn, and no more.
func (f *typeface) outline(z *vector.Rasterizer, g int, t transform, depth int) {
	b := f.data(g)
	if b == nil || depth > 2 {
		return
	}
	if n := i16(b, 0); n >= 0 {
		for _, c := range contours(b, n) {
			trace(z, c, t)
		}
		return
	}
	const words, values, scaled, more, xy, matrix = 0x1, 0x2, 0x8, 0x20, 0x40, 0x80
	for at := 10; at+4 <= len(b); {
		flags, part := u16(b, at), u16(b, at+2)
		at += 4
		var dx, dy int
		if flags&words != 0 {
			dx, dy, at = i16(b, at), i16(b, at+2), at+4
		} else {
			dx, dy, at = int(int8(u16(b, at)>>8)), int(int8(u16(b, at))), at+2
		}
		if flags&values == 0 {
			dx, dy = 0, 0 // anchored to points, which the Go fonts do not use
		}
		switch {
		case flags&scaled != 0:
			at += 2
		case flags&xy != 0:
			at += 4
		case flags&matrix != 0:
			at += 8
		}
		f.outline(z, part, transform{t.x + float64(dx)*t.scale, t.y - float64(dy)*t.scale, t.scale}, depth+1)
		if flags&more == 0 {
			return
		}
	}
}

// contours decodes the n closed curves of a simple glyph.
func contours(b []byte, n int) [][]vertex {
	if n == 0 {
		return nil
	}
	total := u16(b, 10+2*(n-1)) + 1
	at := 10 + 2*n
	at += 2 + u16(b, at) // instructions
	flags := make([]byte, 0, total)
	for len(flags) < total && at < len(b) {
		fl := b[at]
		at++
		again := 1
		if fl&8 != 0 && at < len(b) {
			again += int(b[at])
			at++
		}
		for ; again > 0 && len(flags) < total; again-- {
			flags = append(flags, fl)
		}
	}
	xs, at := coordinates(b, at, flags, 2, 16)
	ys, _ := coordinates(b, at, flags, 4, 32)
	var out [][]vertex
	first := 0
	for i := range n {
		last := min(u16(b, 10+2*i), len(flags)-1)
		var c []vertex
		for k := first; k <= last; k++ {
			c = append(c, vertex{xs[k], ys[k], flags[k]&1 != 0})
		}
		out = append(out, c)
		first = last + 1
	}
	return out
}

// coordinates decodes one coordinate of all points: a byte with its sign in the flag same, or two, or none if same.
func coordinates(b []byte, at int, flags []byte, short, same byte) ([]float64, int) {
	out := make([]float64, len(flags))
	v := 0
	for i, f := range flags {
		switch {
		case f&short != 0:
			if at < len(b) {
				d := int(b[at])
				if f&same == 0 {
					d = -d
				}
				v += d
			}
			at++
		case f&same == 0:
			v += i16(b, at)
			at += 2
		}
		v = int(int16(v)) // what a font may hold; more would keep the rasterizer busy for minutes
		out[i] = float64(v)
	}
	return out, at
}

// trace adds one closed curve to z. Between two points that are off the curve lies one that is on it.
func trace(z *vector.Rasterizer, c []vertex, t transform) {
	if len(c) < 2 {
		return
	}
	between := func(a, b vertex) vertex { return vertex{(a.x + b.x) / 2, (a.y + b.y) / 2, true} }
	start := c[0]
	if !start.on {
		start = c[len(c)-1]
		if !start.on {
			start = between(c[0], c[len(c)-1])
		}
	}
	z.MoveTo(t.at(start))
	control, have := vertex{x: math.NaN()}, false
	to := func(p vertex) {
		x, y := t.at(p)
		if !have {
			z.LineTo(x, y)
			return
		}
		cx, cy := t.at(control)
		z.QuadTo(cx, cy, x, y)
		have = false
	}
	for _, p := range c {
		if p.on {
			to(p)
			continue
		}
		if have {
			to(between(control, p))
		}
		control, have = p, true
	}
	to(start)
	z.ClosePath()
}
