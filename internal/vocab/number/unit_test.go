package number

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestCommon(t *testing.T) {
	for _, c := range []struct {
		base   string
		values []float64
		unit   string
		want   []string
	}{
		{"ns/transaction", []float64{9272, 41376, 900}, "µs/transaction", []string{"9.27", "41.4", "0.900"}},
		{"ns/KB", []float64{199, 216, 440}, "ns/KB", []string{"199", "216", "440"}},
		{"bit/s", []float64{39.04e9, 0, 21.9e9}, "Gbit/s", []string{"39.0", "0", "21.9"}},
		{"bit/s", []float64{999.7e6}, "Gbit/s", []string{"1.00"}},
		{"1/s", []float64{107340, 24048}, "k/s", []string{"107", "24.0"}},
		{"1/s", []float64{12}, "1/s", []string{"12.0"}},
		{"1/GB", []float64{4}, "1/GB", []string{"4.00"}},
		{"ratio", []float64{0.0123, 0}, "%", []string{"1.23", "0"}},
		{"B", []float64{12.3e6}, "MB", []string{"12.3"}},
		{"furlong", []float64{12345}, "furlong", []string{"12345"}},
		{"ns", []float64{0, math.NaN()}, "ns", []string{"0", Absent}},
		{"ns", nil, "ns", nil},
		{"", []float64{1}, "", []string{"1.00"}},
	} {
		s := Common(c.base, c.values...)
		var got []string
		for _, v := range c.values {
			got = append(got, s.Format(v))
		}
		if s.Unit != c.unit || !slices.Equal(got, c.want) {
			t.Errorf("%s %v: got %s %q, want %s %q", c.base, c.values, s.Unit, got, c.unit, c.want)
		}
	}
}

func TestNumbers(t *testing.T) {
	inf := math.Inf(1)
	check := func(got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	for v, want := range map[float64]string{
		0: "0", 1: "1.00", 9.994: "9.99", 9.996: "10.0", 99.96: "100", 123456: "123456", -1.5: "-1.50", 0.001234: "0.00123",
		0.0009996: "0.00100", 1.5e-9: "1.50e-09", 2.5e8: "2.50e+08", inf: Absent, -inf: Absent,
	} {
		check(Number(v), want)
	}
	check(Number(math.NaN()), Absent)
	for v, want := range map[float64]string{0: "0%", 0.0001: "<0.1%", 0.004: "0.4%", 0.0096: "1%", 0.034: "3%", 1.2: "120%", 9999: "999900%", 1e302: "1e+304%", inf: Absent} {
		check(Percent(v), want)
	}
	for v, want := range map[float64]string{1: "1.00x", 0.9949: "0.99x", 1.518: "1.52x", 9.996: "10.0x", 0.082: "0.0820x", 0.5: "0.50x", 123.4: "123x", inf: Absent} {
		check(Ratio(v), want)
	}
	for d, want := range map[time.Duration]string{
		0: "0ns", 300 * time.Millisecond: "300ms", 2500 * time.Millisecond: "2.5s", time.Second: "1s", 10 * time.Second: "10s",
		59900 * time.Millisecond: "1m0s", time.Hour - 400*time.Millisecond: "1h0m", time.Hour - time.Second: "59m59s", 252 * time.Second: "4m12s", 3900 * time.Second: "1h5m", -time.Second: "-1s", 100 * time.Nanosecond: "100ns",
	} {
		check(Duration(d), want)
	}
}

func TestText(t *testing.T) {
	if got := Clean("a\x1b[31mb\nc\x00\u202ed\xff"); got != "a\ufffd[31mb c\ufffd\ufffdd\ufffd" {
		t.Errorf("Clean: %q", got)
	}
	for s, want := range map[string]int{"": 0, "abc": 3, "µs": 2, "é": 1, "e\u0301": 1, "表": 2, "–": 1, "¹": 1} {
		if got := Width(s); got != want {
			t.Errorf("Width(%q) = %d, want %d", s, got, want)
		}
	}
	for _, c := range []struct{ got, want string }{
		{Left("ab", 4), "ab  "}, {Right("µs", 4), "  µs"}, {Left("abc", 2), "abc"},
		{Truncate("abcdef", 4), "abc…"}, {Truncate("abcd", 4), "abcd"}, {Truncate("表表表", 4), "表…"}, {Truncate("ab", 0), ""}, {Truncate("ab", 1), "…"},
		{strings.Join(Wrap("one two  three", 7), "|"), "one two|three"},
		{strings.Join(Wrap("unbreakable x", 4), "|"), "unbreakable|x"},
		{strings.Join(Wrap("", 4), "|"), ""},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

// TestMarkdown has what Markdown, HTML and hosts of Markdown act on.
func TestMarkdown(t *testing.T) {
	if got, want := Markdown("![a](https://x) @me <b>&amp; ~~x~~ a_b*c*"), `\!\[a\](https&#58;//x) &#64;me &lt;b&gt;&amp;amp; \~\~x\~\~ a\_b\*c\*`; got != want {
		t.Errorf("Markdown: got %s, want %s", got, want)
	}
	if got, want := Markdown("a\\|\n\x1b`"), "a\\\\\\| \ufffd\\`"; got != want {
		t.Errorf("Markdown: got %s, want %s", got, want)
	}
}

func TestFew(t *testing.T) {
	ten := strings.Split("a b c d e f g h i j", " ")
	for n, want := range map[int]string{0: "", 1: "a", 2: "a, b", 8: "a, b, c, d, e, f, g, h", 9: "a, b, c, d, e, f, g, h and 1 more", 10: "a, b, c, d, e, f, g, h and 2 more"} {
		if got := Few(ten[:n]); got != want {
			t.Errorf("Few of %d: got %q, want %q", n, got, want)
		}
	}
}

func TestHang(t *testing.T) {
	for _, c := range []struct {
		lead, rest, text string
		width            int
		want             string
	}{
		{"- ", "  ", "one two three", 9, "- one two|  three"},
		{"µ: ", "", "one two", 6, "µ: one|two"},
		{"- ", "  ", "", 9, ""},
		{"a long lead ", " ", "one two", 4, "a long lead one| two"},
	} {
		if got := strings.Join(Hang(c.lead, c.rest, c.text, c.width), "|"); got != c.want {
			t.Errorf("Hang(%q, %q, %q, %d) = %q, want %q", c.lead, c.rest, c.text, c.width, got, c.want)
		}
	}
}

func FuzzMarkdown(f *testing.F) {
	f.Add("a|b`c")
	f.Add(`\|`)
	f.Fuzz(func(t *testing.T, s string) {
		e := Markdown(s)
		for i, c := range []byte(e) {
			if strings.IndexByte("<>", c) >= 0 {
				t.Fatalf("%q: %q", s, e)
			}
			if strings.IndexByte("|`*_[]#!~", c) >= 0 {
				n := 0
				for j := i - 1; j >= 0 && e[j] == '\\'; j-- {
					n++
				}
				if e[i] == '#' && i > 0 && e[i-1] == '&' {
					continue // of an entity
				}
				if n%2 == 0 {
					t.Fatalf("%q is not escaped in %q", c, e)
				}
			}
		}
	})
}

func FuzzText(f *testing.F) {
	f.Add("calico-vxlan", 5)
	f.Add("\x1b]0;x\x07", 1)
	f.Fuzz(func(t *testing.T, s string, width int) {
		c := Clean(s)
		if !utf8.ValidString(c) || strings.ContainsAny(c, "\x1b\n\r\t\x00") {
			t.Fatalf("Clean(%q) = %q", s, c)
		}
		if got := Truncate(c, width); Width(got) > max(0, width) {
			t.Fatalf("Truncate(%q, %d) = %q", c, width, got)
		}
		if got := Left(c, width%500); Width(got) != max(Width(c), width%500) {
			t.Fatalf("Left(%q, %d) = %q", c, width%500, got)
		}
	})
}

func FuzzNumber(f *testing.F) {
	f.Add(1.0)
	f.Add(9.9999e-5)
	f.Fuzz(func(t *testing.T, v float64) {
		for _, s := range []string{Number(v), Ratio(v), Percent(v)} {
			if s == "" || Width(s) > 12 {
				t.Fatalf("%g: %q", v, s)
			}
		}
	})
}

func TestCounted(t *testing.T) {
	for n, want := range map[int]string{0: "0 trials", 1: "1 trial", 2: "2 trials"} {
		if got := Counted(n, "trial"); got != want {
			t.Errorf("%d: %q", n, got)
		}
	}
}

// TestWithin: digits end where a number is not known any more.
func TestWithin(t *testing.T) {
	us := Scale{"µs", 1e3}
	for _, c := range []struct {
		err, v float64
		want   string
	}{
		{1500, 6954, "7.0"}, {1500, 20.5, "0.0"}, {1500, 0, "0"}, {200, 1782, "1.78"}, {12, 1782.4, "1.782"}, {8000, 43_412, "43"}, {60_000, 43_412, "43"},
		{0, 1782, "1.78"}, {math.NaN(), 1782, "1.78"}, {200, math.NaN(), Absent},
	} {
		if got := us.Within(c.err)(c.v); got != c.want {
			t.Errorf("%v known to within %v is %q, want %q", c.v, c.err, got, c.want)
		}
	}
}

// TestRange: an interval that excludes 1 does not look as if it reached it.
func TestRange(t *testing.T) {
	for want, v := range map[string][3]float64{
		"1.04x (1.002x to 1.07x)": {1.04, 1.0021, 1.07}, "0.88x (0.78x to 0.997x)": {0.88, 0.78, 0.997}, "1.00x (1.00x to 1.00x)": {1, 1, 1}, "2.00x (1.01x to 12.0x)": {2, 1.0056, 12},
	} {
		if got := Range(v[0], v[1], v[2]); got != want {
			t.Errorf("Range%v = %s, want %s", v, got, want)
		}
	}
}
