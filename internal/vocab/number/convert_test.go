package number

import (
	"math"
	"strings"
	"testing"
)

func TestConvert(t *testing.T) {
	for _, c := range []struct {
		v        float64
		from, to string
		want     float64
	}{
		{9.41, "Gbit/s", "bit/s", 9.41e9},
		{940, "Mbit/s", "bit/s", 940e6},
		{1, "Mibit/s", "bit/s", 1048576},
		{100, "MB/s", "bit/s", 800e6},
		{1, "MiB/s", "bit/s", 8388608},
		{12.5, "kbit/s", "bit/s", 12500},
		{55, "us", "ns", 55000},
		{55, "µs", "ns", 55000},
		{0.205, "ms", "ns", 205000},
		{2, "s", "ns", 2e9},
		{2, "%", "ratio", 0.02},
		{0.5, "ratio", "ratio", 0.5},
		{3, "k/s", "1/s", 3000},
		{160, "GB", "B", 160e9},
		{1, "GiB", "B", 1073741824},
		{1, "KiB", "B", 1024},
		{8, "bit", "B", 1},
		{2, "1/MB", "1/GB", 2000},
		{1.5, "us/transaction", "ns/transaction", 1500},
		{1, "s/GB", "ns/KB", 1000},
		{250, "ns/packet", "ns/packet", 250},
	} {
		got, err := Convert(c.v, c.from, c.to)
		if err != nil || math.Abs(got-c.want) > 1e-12*c.want {
			t.Errorf("Convert(%v, %q, %q) = %v, %v; want %v", c.v, c.from, c.to, got, err, c.want)
		}
	}
}

// TestConvertDecimalsStay: a decimal fraction in a usual unit becomes the whole number that it stands for.
func TestConvertDecimalsStay(t *testing.T) {
	for _, c := range []struct {
		v        float64
		from, to string
		want     float64
	}{{0.031, "ms", "ns", 31000}, {55.1, "us", "ns", 55100}, {9.39, "Gbit/s", "bit/s", 9.39e9}} {
		if got, err := Convert(c.v, c.from, c.to); err != nil || math.Round(got) != c.want {
			t.Errorf("Convert(%v, %q, %q) = %v, %v; want %v", c.v, c.from, c.to, got, err, c.want)
		}
	}
}

func TestConvertRefuses(t *testing.T) {
	for _, c := range []struct{ from, to, says string }{
		{"furlong", "ns", `unknown unit "furlong"`},
		{"", "ns", `unknown unit ""`},
		{"KB", "B", "say kB or KiB"},
		{"Gbit", "bit/s", "does not measure"},
		{"ms", "bit/s", "does not measure"},
		{"ns/packet", "ns/transaction", "does not measure"},
		{"1/furlong", "1/s", "unknown unit"},
		{"kns", "ns", "unknown unit"},
		{"s/1", "s", "unknown unit"},
	} {
		if got, err := Convert(1, c.from, c.to); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("Convert(1, %q, %q) = %v, %v; want an error with %q", c.from, c.to, got, err, c.says)
		}
	}
}
