package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/tool/golden"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

var nan = math.NaN()

// drawings are one of each plot, whole, without data, and with what no file should hold.
func drawings() map[string]Drawing {
	odd := []float64{nan, math.Inf(1), math.Inf(-1), 0, -3, 5}
	var points []LinePoint
	for i, v := range odd {
		points = append(points, LinePoint{X: Nine(float64(i) / 5), Value: v})
	}
	percents, end := PercentTicks(95)
	return map[string]Drawing{
		"dots": Dots{Title: "service demand, rr", Desc: "two profiles", Unit: "µs", Reference: 4, ReferenceName: "raw", Rows: []DotRow{
			{Name: "canal", Series: 1, Median: 8.1, Low: 7.9, High: 8.6, Samples: []float64{7.9, 8.1, 8.6}, Value: "8.10"},
			{Name: "cilium-native", Series: 2, Median: 5.2, Low: nan, High: nan, Samples: []float64{5.2}, Value: "5.20"},
			{Name: "macvlan", Series: 3, Median: nan, Low: nan, High: nan, Value: "–"},
		}}.Draw(),
		"curves": Lines{Title: "round-trip times", Desc: "two profiles", Unit: "µs", XName: "share that took at most so long", XHigh: 4, Ticks: NineTicks(4), Lines: []Line{
			{Name: "canal", Series: 1, Points: shares(0, 6, 0.5, 8, 0.9, 10, 0.99, 40, 0.999, 900)},
			{Name: "raw", Series: 10, Points: shares(0, 3, 0.5, 4, 0.9, 5, 0.99, 9, 0.9999, 1000)},
		}}.Draw(),
		"loads": Lines{Title: "latency against load", Desc: "two profiles", Unit: "µs", XName: "load", XHigh: end, Ticks: percents, Lines: []Line{
			{Name: "canal", Series: 1, Points: []LinePoint{{10, 20, 19, 22, false}, {50, 30, 28, 35, true}, {95, 700, 500, 900, false}},
				Faint: []LinePoint{{X: 10, Value: 8}, {X: 50, Value: 11}, {X: 95, Value: 90}}},
			{Name: "raw", Series: 2, Points: []LinePoint{{10, 9, nan, nan, false}, {50, nan, nan, nan, false}, {95, 14, 12, 15, false}},
				Faint: []LinePoint{{X: 10, Value: 4}, {X: 50, Value: 5}, {X: 95, Value: 9}}},
		}}.Draw(),
		"growth": Lines{Title: "CPU time over Services", Desc: "two profiles", Unit: "µs", XName: "services", XHigh: math.Log1p(30000), Low: 86, High: 1232,
			Ticks: []Tick{{0, "0"}, {math.Log1p(1000), "1K"}, {math.Log1p(30000), "30K"}}, Lines: []Line{
				{Name: "iptables", Series: 1, Fitted: true, Points: []LinePoint{{0, 153, 150, 156, false}, {math.Log1p(1000), 179, 176, 182, false}, {math.Log1p(30000), 1210, 1188, 1232, false}},
					Faint: []LinePoint{{X: 0, Value: 150}, {X: math.Log1p(30000), Value: 1200}}},
				{Name: "eBPF", Series: 2, Fitted: true, Points: []LinePoint{{0, 86, nan, nan, false}, {math.Log1p(1000), 87, 86, 88, false}, {math.Log1p(30000), 87, 86, 88, false}}},
			}}.Draw(),
		"heat": Heat{Title: "service demand", Desc: "map", Unit: "µs", Columns: []string{"pod-pod cross", "hairpin"}, Rows: []HeatRow{
			{Name: "canal", Series: 1, Cells: []HeatCell{{"8.1", "2.00x worse", Level(-3)}, {"–", "", Neutral}}},
		}}.Draw(),
		"trips": Trips{Title: "where a packet is, when", Desc: "two profiles", Unit: "µs", Finish: 6, FinishName: "macvlan has its response",
			Kinds: []TripKind{{"socket", "s1"}, {"netfilter", "s2"}, {"queue", "s8"}}, Lanes: []Trip{
				{Name: "canal", Note: "12 µs", Rows: []string{"client", "node-1", "server"},
					Spans:  []TripSpan{{0, 0, 1, 0, "send"}, {1, 1, 4, 1, "FORWARD"}, {1, 4, 5, 1, "POSTROUTING"}, {2, 5, 7, 0, "TCP"}, {1, 7, 11, 1, "FORWARD"}, {0, 11, 12, 0, "TCP"}},
					Labels: []TripLabel{{1, 5, []string{"flannel.1; netfilter 4.0 µs, which is too long for this place", "flannel.1"}}, {1, 11, []string{"netfilter"}}}},
				{Name: "macvlan", Rows: []string{"client", "server"}, Spans: []TripSpan{{0, 0, 2, 0, ""}, {1, 2, 4, 0, ""}, {0, 4, 6, 0, ""}}},
			}}.Draw(),
		"bars":       someBars(false).Draw(),
		"cards":      Card("cnibench quick, lab", "CPU cores for the loads", [3]string{"Green: best.", "10 repetitions.", "cnibench v1, run 0123"}, someBars(false)),
		"stacked":    someBars(true).Draw(),
		"empty-bars": Bars{Stacked: true}.Draw(),
		"odd-bars": Bars{Columns: []BarColumn{{"c", "u"}}, Rows: []BarRow{
			{Name: "a", Bars: []Bar{{"1", math.Inf(1), 0, 0, Neutral, false}}}, {Name: "b", Bars: []Bar{{"1", 3, -2, math.Inf(1), Neutral, false}}},
			{Name: "c", Bars: []Bar{{"1", 2, -2, 9, Neutral, false}}},
		}}.Draw(),
		"empty-trips": Trips{}.Draw(),
		"odd-trips": Trips{Finish: math.Inf(1), FinishName: "x", Kinds: []TripKind{{"k", "s1"}}, Lanes: []Trip{{Rows: []string{"r"}, Spans: []TripSpan{
			{0, nan, math.Inf(1), 0, ""}, {0, -3, nan, 0, ""},
		}, Labels: []TripLabel{{0, nan, []string{"x"}}, {0, 0, nil}}}}}.Draw(),
		"empty-dots":  Dots{Low: nan, High: nan}.Draw(),
		"empty-lines": Lines{}.Draw(),
		"empty-heat":  Heat{}.Draw(),
		"odd-dots":    Dots{Reference: math.Inf(1), ReferenceName: "x", Rows: []DotRow{{Median: math.Inf(1), Low: nan, High: -1, Samples: odd}}}.Draw(),
		"odd-curves":  Lines{Low: nan, High: math.Inf(1), XHigh: nan, Ticks: NineTicks(9), Lines: []Line{{Points: points}}}.Draw(),
		"odd-loads": Lines{Low: nan, High: math.Inf(1), XHigh: 30, Lines: []Line{{Faint: points, Fitted: true, Points: []LinePoint{
			{nan, 2, 3, 4, true}, {10, math.Inf(1), 0, 1, false}, {20, 0, nan, nan, true}, {math.Inf(1), 1, 1, 1, true}, {30, 7, -1, math.Inf(1), true}, {-5, 3, 1, 9, true},
		}}}}.Draw(),
	}
}

// shares are points of a percentile curve, of shares and values in turn.
func shares(of ...float64) (points []LinePoint) {
	for i := 0; i < len(of); i += 2 {
		points = append(points, LinePoint{X: Nine(of[i]), Value: of[i+1]})
	}
	return points
}

func someBars(stacked bool) Bars {
	return Bars{Title: "cores", Desc: "two profiles", Stacked: stacked, Columns: []BarColumn{{"requests", "100k/s"}, {"bulk", "10 Gbit/s"}}, Rows: []BarRow{
		{Name: "cilium-native", Series: 1, Bars: []Bar{{"2.09", 0.5, 0.48, 0.52, BarBest, true}, {"3.41", 0.3, nan, nan, BarBest, true}}},
		{Name: "canal", Series: 2, Bars: []Bar{{"4.38", 0.97, 0.9, 1, BarWorse(2), false}, {"failed 2/5", nan, nan, nan, BarOther, false}}},
	}}
}

func TestGolden(t *testing.T) {
	for name, d := range drawings() {
		if strings.Contains(name, "-") {
			continue
		}
		var b bytes.Buffer
		if err := WriteSVG(&b, Framed(d)); err != nil {
			t.Fatal(err)
		}
		golden.Check(t, name+".svg", b.Bytes())
	}
}

// texts are the character data of an XML document; the error says where it is not one.
func texts(svg []byte) (string, error) {
	dec := xml.NewDecoder(bytes.NewReader(svg))
	var b strings.Builder
	for {
		tok, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return b.String(), nil
		}
		if err != nil {
			return "", err
		}
		if c, ok := tok.(xml.CharData); ok {
			b.Write(c)
		}
	}
}

// Every drawing is well-formed, and no coordinate is infinite, not a number or far outside.
func TestEveryDrawingIsSound(t *testing.T) {
	for name, d := range drawings() {
		if !(d.Width > 0) || !(d.Height > 0) {
			t.Errorf("%s: %v by %v", name, d.Width, d.Height)
		}
		for _, g := range d.Groups {
			for _, s := range g.Shapes {
				for _, p := range s.Points {
					if !number.Finite(p.X) || !number.Finite(p.Y) || p.X < -1 || p.X > d.Width+1 || p.Y < -1 || p.Y > d.Height+1 {
						t.Errorf("%s: %q has a point at %v in %v by %v", name, s.Text, p, d.Width, d.Height)
					}
				}
			}
		}
		svg, err := SVG(d, "x")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := texts([]byte(svg)); err != nil {
			t.Errorf("%s: %v\n%s", name, err, svg)
		}
	}
}

func TestNamesStayText(t *testing.T) {
	evil := `"><script>alert(1)</script><a href="javascript:x">` + "\x00\x1b\u202e&amp;'"
	d := Dots{Title: evil, Desc: evil, Unit: evil, Reference: 1, ReferenceName: evil, Rows: []DotRow{{Name: evil, Median: 1, Value: evil}}}.Draw()
	var b bytes.Buffer
	if err := WriteSVG(&b, Framed(d)); err != nil {
		t.Fatal(err)
	}
	got, err := texts(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(b.Bytes(), []byte("<script")) || bytes.Contains(b.Bytes(), []byte("<a ")) || bytes.ContainsAny(b.Bytes(), "\x00\x1b\u202e") {
		t.Errorf("a name became markup: %s", b.Bytes())
	}
	if !strings.Contains(got, `"><script>alert(1)</script>`) {
		t.Errorf("the name is lost in %q", got)
	}
}

func FuzzSVG(f *testing.F) {
	f.Add("a<b>", 1.0, 2.0)
	f.Add("\xff]]>", math.Inf(1), -1.0)
	f.Fuzz(func(t *testing.T, name string, a, b float64) {
		for _, d := range []Drawing{
			Dots{Title: name, Rows: []DotRow{{Name: name, Median: a, Low: a, High: b, Samples: []float64{a, b}, Value: name}}, Low: b, High: a}.Draw(),
			Lines{Title: name, XHigh: a, Ticks: []Tick{{b, name}}, Lines: []Line{{Name: name, Points: []LinePoint{{0, a, b, a, true}, {0.9, b, a, b, false}, {b, a, a, a, false}}}}}.Draw(),
			Heat{Title: name, Columns: []string{name}, Rows: []HeatRow{{Name: name, Cells: []HeatCell{{name, name, Level(3)}}}}}.Draw(),
		} {
			svg, err := SVG(Framed(d), "x")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := texts([]byte(svg)); err != nil {
				t.Fatalf("%v: %s", err, svg)
			}
			if strings.Contains(string(svg), "NaN") && !strings.Contains(name, "NaN") {
				t.Fatalf("not a number in %s", svg)
			}
		}
	})
}

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		low, high float64
		n         int
		log       bool
		want      string
	}{
		{0, 9.3, 4, false, "[0 5 10]"},
		{0, 0.037, 4, false, "[0 0.01 0.02 0.03 0.04]"},
		{-3, 12, 5, false, "[-5 0 5 10 15]"},
		{7, 7, 4, false, "[6 6.5 7 7.5 8]"},
		{0, 1, 4, false, "[0 0.5 1]"},
		{3, 40, 7, true, "[2 5 10 20 50]"},
		{1, 1e6, 7, true, "[1 10 100 1000 10000 100000 1e+06]"},
		{5, 5, 7, true, "[5 10]"},
		{0, 10, 7, true, "[1e-05 0.0001 0.001 0.01 0.1 1 10]"},
	} {
		_, ticks := linearAxis(c.low, c.high, c.n)
		if c.log {
			_, ticks = logarithmicAxis(c.low, c.high, c.n)
		}
		var texts []string
		for _, v := range ticks {
			texts = append(texts, tickText(v))
		}
		if got := fmt.Sprint(texts); got != c.want {
			t.Errorf("%g to %g: got %s, want %s", c.low, c.high, got, c.want)
		}
	}
}

// An axis spans what it was asked to, in order, with at least two ticks and not many more than wanted.
func TestAxisSpans(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		a, b := math.Exp(40*r.Float64()-20), math.Exp(40*r.Float64()-20)
		low, high := min(a, b), max(a, b)
		for name, made := range map[string]func(float64, float64, int) (axis, []float64){"linear": linearAxis, "log": logarithmicAxis} {
			x, ticks := made(low, high, 5)
			x.from, x.to = 10, 90
			if x.low > low*(1+1e-9) || x.high < high*(1-1e-9) {
				t.Fatalf("%s %g to %g: axis %g to %g", name, low, high, x.low, x.high)
			}
			if len(ticks) < 1 || len(ticks) > 9 || !slices.IsSorted(ticks) {
				t.Fatalf("%s %g to %g: ticks %v", name, low, high, ticks)
			}
			if p, q := x.pixel(low), x.pixel(high); p < 10 || q > 90 || p > q {
				t.Fatalf("%s %g to %g: at %g and %g", name, low, high, p, q)
			}
		}
	}
}

// Labels that are moved apart keep their order and their distance, and stay inside as long as there is room.
func TestSpread(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 1000 {
		n := 1 + r.IntN(12)
		ys := make([]float64, n)
		for i := range ys {
			ys[i] = 300 * r.Float64()
		}
		slices.Sort(ys)
		got := spreadPositions(ys, 14, 10, 290)
		for i := range got {
			if got[i] < 10-1e-9 || got[i] > 290+1e-9 || i > 0 && got[i]-got[i-1] < 14-1e-9 {
				t.Fatalf("%v became %v", ys, got)
			}
		}
	}
	if got := spreadPositions([]float64{50, 100}, 14, 10, 290); got[0] != 50 || got[1] != 100 {
		t.Errorf("moved without need: %v", got)
	}
}

// luminance and contrast are those of WCAG 2.2.
func luminance(v uint32) float64 {
	part := func(shift uint) float64 {
		c := float64(v>>shift&255) / 255
		if c <= 0.04045 {
			return c / 12.92
		}
		return math.Pow((c+0.055)/1.055, 2.4)
	}
	return 0.2126*part(16) + 0.7152*part(8) + 0.0722*part(0)
}

func contrast(a, b uint32) float64 {
	x, y := luminance(a), luminance(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

// Text stands out by 4.5 to 1 from whatever it is on, lines and dots by 3 to 1 from the paper.
func TestContrast(t *testing.T) {
	for _, theme := range []Theme{Light, Dark} {
		paper := palette[Paper][theme]
		under := []Color{Paper, Neutral, Same}
		for n := 1; n <= Levels; n++ {
			under = append(under, Level(n), Level(-n))
		}
		for _, c := range under {
			if got := contrast(palette[Ink][theme], palette[c][theme]); got < 4.5 {
				t.Errorf("theme %d: ink on %s has %.2f", theme, c, got)
			}
		}
		for _, c := range []Color{Muted, Accent} {
			if got := contrast(palette[c][theme], paper); got < 4.5 {
				t.Errorf("theme %d: %s has %.2f", theme, c, got)
			}
		}
		bars := []Color{BarBest, BarSame, BarOther}
		for n := 1; n <= Levels; n++ {
			bars = append(bars, BarWorse(n))
			if n > 1 {
				if got := contrast(palette[BarWorse(n)][theme], palette[BarWorse(n-1)][theme]); got < 1.25 {
					t.Errorf("theme %d: %s and the shade before have %.2f", theme, BarWorse(n), got)
				}
			}
		}
		for _, c := range bars {
			if got := contrast(palette[c][theme], paper); got < 3 {
				t.Errorf("theme %d: a bar of %s has %.2f", theme, c, got)
			}
		}
		for n := 1; n <= seriesColors; n++ {
			c, _ := Series(n)
			if got := contrast(palette[c][theme], paper); got < 3 {
				t.Errorf("theme %d: %s has %.2f", theme, c, got)
			}
		}
	}
}

// deuteranopia is what a reader without green cones sees of a colour (Viénot, Brettel and Mollon 1999), in linear light.
func deuteranopia(v uint32) [3]float64 {
	lin := func(shift uint) float64 { return math.Pow(float64(v>>shift&255)/255, 2.2) }
	r, g, b := lin(16), lin(8), lin(0)
	l, s := 17.8824*r+43.5161*g+4.11935*b, 0.0299566*r+0.184309*g+1.46709*b
	m := 0.494207*l + 1.24827*s // which this reader does not have of its own
	return [3]float64{
		0.0809444479*l - 0.130504409*m + 0.116721066*s,
		-0.0102485335*l + 0.0540193266*m - 0.113614708*s,
		-0.000365296938*l - 0.00412161469*m + 0.693511405*s,
	}
}

// Better and worse are told apart without green cones: one is bluer than it is yellow, the other the opposite.
func TestBetterAndWorseForTheColourBlind(t *testing.T) {
	for _, theme := range []Theme{Light, Dark} {
		for n := 2; n <= Levels; n++ {
			b, w := deuteranopia(palette[Level(n)][theme]), deuteranopia(palette[Level(-n)][theme])
			if !(b[2] > b[0]) || !(w[0] > w[2]) {
				t.Errorf("theme %d, level %d: better %v, worse %v", theme, n, b, w)
			}
		}
	}
}

func TestSeriesRepeatWithAnotherDash(t *testing.T) {
	seen := map[string]int{}
	for n := 1; n <= 4*seriesColors; n++ {
		c, d := Series(n)
		if _, ok := palette[c]; !ok {
			t.Errorf("series %d has the unknown colour %s", n, c)
		}
		key := fmt.Sprint(c, dashes[d%len(dashes)])
		if before, ok := seen[key]; ok {
			t.Errorf("series %d and %d look the same", before, n)
		}
		seen[key] = n
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestWriteError(t *testing.T) {
	if err := WriteSVG(full{}, Heat{}.Draw()); err == nil {
		t.Error("a write error is lost")
	}
}
