package sample

import (
	"math"
	"testing"
)

// TestWindows: work from a moment on is counted in windows, a part of a slice by its length.
func TestWindows(t *testing.T) {
	all := []Interval{{StartNs: -10, Operations: 40, Warmup: true}, {EndNs: 50, Operations: 300}, {StartNs: 50, EndNs: 100, Operations: 100}}
	for ns, want := range map[int64]float64{-20: 1.1, -10: 1.1, -5: 1.05, 0: 1, 25: 0.625, 75: 0.125, 100: 0, 200: 0} {
		if got := Windows(all, ns); math.Abs(got-want) > 1e-12 {
			t.Errorf("from %d: %g windows, want %g", ns, got, want)
		}
	}
	if got := Windows(all[:1], -10); got != 0 {
		t.Errorf("without work in the window: %g", got)
	}
}
