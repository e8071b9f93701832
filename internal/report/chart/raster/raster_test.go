package raster

import (
	"bytes"
	"errors"
	"image"
	"image/png"
	"math"
	"testing"

	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/vector"

	"github.com/cnibench/cnibench/internal/report/chart"
)

func imageOf(t *testing.T, d chart.Drawing, o Options) *image.RGBA {
	t.Helper()
	m, err := Image(d, o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func at(m *image.RGBA, x, y int) uint32 {
	c := m.RGBAAt(x, y)
	return uint32(c.R)<<16 | uint32(c.G)<<8 | uint32(c.B)
}

// Every kind of shape is where the drawing puts it, and nothing is elsewhere.
func TestShapes(t *testing.T) {
	d := chart.Drawing{Width: 100, Height: 60, Groups: []chart.Group{{Shapes: []chart.Shape{
		{Kind: chart.Fill, Color: "s1", Points: []chart.Point{{X: 10, Y: 10}, {X: 20, Y: 20}}},
		{Kind: chart.Spots, Color: "s2", Width: 10, Points: []chart.Point{{X: 40, Y: 15}, {X: 60, Y: 15}}},
		{Kind: chart.Stroke, Color: "s3", Width: 4, Points: []chart.Point{{X: 10, Y: 40}, {X: 50, Y: 40}, {X: 50, Y: 55}}},
		{Kind: chart.Stroke, Color: "s4", Width: 4, Dash: 1, Points: []chart.Point{{X: 60, Y: 40}, {X: 95, Y: 40}}},
	}}}}
	for _, theme := range []chart.Theme{chart.Light, chart.Dark} {
		m := imageOf(t, d, Options{Scale: 2, Theme: theme})
		if m.Bounds().Dx() != 200 || m.Bounds().Dy() != 120 {
			t.Fatalf("size %v", m.Bounds())
		}
		for _, c := range []struct {
			x, y int
			want chart.Color
		}{
			{30, 30, "s1"}, {80, 30, "s2"}, {120, 30, "s2"}, {60, 80, "s3"}, {100, 100, "s3"}, {124, 80, "s4"},
			{134, 80, chart.Paper}, // 6 drawn, 3 left out: the gap is at 66 to 69
			{50, 50, chart.Paper}, {100, 30, chart.Paper}, {190, 110, chart.Paper},
		} {
			if got, want := at(m, c.x, c.y), chart.Value(c.want, theme); got != want {
				t.Errorf("theme %d, pixel %d,%d: %06x, want %s %06x", theme, c.x, c.y, got, c.want, want)
			}
		}
	}
}

// inkBox is the smallest rectangle around what is not paper.
func inkBox(m *image.RGBA) image.Rectangle {
	var b image.Rectangle
	for y := range m.Bounds().Dy() {
		for x := range m.Bounds().Dx() {
			if at(m, x, y) != chart.Value(chart.Paper, chart.Light) {
				b = b.Union(image.Rect(x, y, x+1, y+1))
			}
		}
	}
	return b
}

// Text stands on its baseline, at the side of its point that the anchor says.
func TestText(t *testing.T) {
	label := func(a chart.Anchor, s string) image.Rectangle {
		return inkBox(imageOf(t, chart.Drawing{Width: 300, Height: 60, Groups: []chart.Group{{Shapes: []chart.Shape{
			{Kind: chart.Label, Color: chart.Ink, Text: s, Size: 20, Anchor: a, Points: []chart.Point{{X: 150, Y: 40}}},
		}}}}, Options{Scale: 1}))
	}
	start, middle, end := label(chart.Start, "calico"), label(chart.Middle, "calico"), label(chart.End, "calico")
	if start.Min.X < 149 || end.Max.X > 151 || middle.Min.X > 148 || middle.Max.X < 152 {
		t.Errorf("start %v, middle %v, end %v", start, middle, end)
	}
	if start.Max.Y < 39 || start.Max.Y > 42 || start.Dy() < 12 || start.Dy() > 20 {
		t.Errorf("letters without descenders stand on the baseline at 40: %v", start)
	}
	if g := label(chart.Start, "g"); g.Max.Y < 43 {
		t.Errorf("g has no descender: %v", g)
	}
	if label(chart.Start, "   ") != (image.Rectangle{}) {
		t.Error("spaces have ink")
	}
}

// Every character that reports are made of has a glyph of its own.
func TestGlyphs(t *testing.T) {
	both, err := fonts()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[sfnt.GlyphIndex]rune{}
	for _, r := range "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-–_./,:;%()[]<>=+~±×µé…" {
		g := both[0].glyph(r)
		if g == 0 || both[1].glyph(r) == 0 {
			t.Errorf("no glyph for %q", r)
		}
		if before, ok := seen[g]; ok {
			t.Errorf("%q and %q share a glyph", before, r)
		}
		seen[g] = r
		z := vector.NewRasterizer(40, 40)
		if err := both[0].draw(z, string(r), 24, 4, 30); err != nil {
			t.Error(err)
		}
		m := image.NewAlpha(image.Rect(0, 0, 40, 40))
		z.Draw(m, m.Bounds(), image.Opaque, image.Point{})
		if !bytes.ContainsFunc(m.Pix, func(r rune) bool { return r != 0 }) {
			t.Errorf("%q has no ink", r)
		}
	}
	// Digits are of one width, so that columns of numbers line up.
	for _, d := range "0123456789" {
		one, err := both[0].width(string(d), 12)
		zero, zeroErr := both[0].width("0", 12)
		if one != zero || one <= 0 || err != nil || zeroErr != nil {
			t.Errorf("%q has width %g, 0 has %g: %v, %v", d, one, zero, err, zeroErr)
		}
	}
}

func TestStrokeOfNoLengthAndHugeDrawings(t *testing.T) {
	d := chart.Drawing{Width: 1e6, Height: 10, Groups: []chart.Group{{Shapes: []chart.Shape{
		{Kind: chart.Stroke, Color: "s1", Width: 2, Points: []chart.Point{{X: 5, Y: 5}, {X: 5, Y: 5}}},
		{Kind: chart.Stroke, Color: "s1", Width: 2, Dash: 2, Points: []chart.Point{{X: 5, Y: 5}}},
		{Kind: chart.Stroke, Color: "s1", Width: 2},
		{Kind: chart.Spots, Color: "s1", Width: 2, Points: []chart.Point{{X: -1e9, Y: 1e9}}},
	}}}}
	m := imageOf(t, d, Options{})
	if m.Bounds().Dx() > most || inkBox(m) != (image.Rectangle{}) {
		t.Errorf("size %v, ink %v", m.Bounds(), inkBox(m))
	}
	for _, bad := range []chart.Drawing{{}, {Width: math.NaN(), Height: 1}, {Width: 1, Height: -1}} {
		if _, err := Image(bad, Options{}); err == nil {
			t.Errorf("a drawing of %v by %v", bad.Width, bad.Height)
		}
	}
}

// A dash pattern takes nothing away and adds nothing: drawn and left out add up to the line.
func TestDashedLength(t *testing.T) {
	line := []chart.Point{{X: 0, Y: 0}, {X: 30, Y: 0}, {X: 30, Y: 40}}
	var drawn float64
	for _, p := range dashed(line, []float64{6, 4}, 1) {
		for i := 1; i < len(p); i++ {
			drawn += math.Hypot(p[i].X-p[i-1].X, p[i].Y-p[i-1].Y)
		}
	}
	if math.Abs(drawn-42) > 1e-9 { // 70 is seven times 6 of 10
		t.Errorf("%v of 70 drawn, want 42", drawn)
	}
}

func TestPNG(t *testing.T) {
	var b bytes.Buffer
	d := chart.Framed(chart.Heat{Title: "map", Columns: []string{"a"}, Rows: []chart.HeatRow{{Name: "canal", Cells: []chart.HeatCell{{Value: "1", Color: chart.Level(-4)}}}}}.Draw())
	if err := PNG(&b, d, Options{}); err != nil {
		t.Fatal(err)
	}
	m, err := png.Decode(&b)
	if err != nil {
		t.Fatal(err)
	}
	if got := m.Bounds().Dx(); got != int(math.Ceil(2*d.Width)) {
		t.Errorf("width %d", got)
	}
	if err := PNG(full{}, d, Options{}); err == nil {
		t.Error("a write error is lost")
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("disk full") }
