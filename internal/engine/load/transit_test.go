package load

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestTransitsAboveTheLeast: what the warm-up had is forgotten, and the least may come last.
func TestTransitsAboveTheLeast(t *testing.T) {
	s := newTransits(1)
	s.addPassage(0, -9000)
	s.openWindow()
	for i, transit := range []int64{-500, -400, -600} {
		s.addPassage(int64(i), transit)
	}
	h := s.excessHistogram(false)
	if h.Min() != 1 || h.Max() != 200 || h.Quantile(0.5) != 100 {
		t.Errorf("from %v to %v, median %v, want 1, which stands for 0, 200 and 100", h.Min(), h.Max(), h.Quantile(0.5))
	}
	s.openWindow()
	if s.excessHistogram(true) != nil {
		t.Error("a window without datagrams has a distribution")
	}
}

// TestTransitsOfTwoMachines: the delay variation is found although the clocks drift apart, by 40 us in a second here, and
// although there are more datagrams than are kept. Before, the drift of the whole window was in the variation.
func TestTransitsOfTwoMachines(t *testing.T) {
	for _, drift := range []float64{0, 40e-6, -40e-6} {
		random := rand.New(rand.NewPCG(1, 2))
		s := newTransits(1)
		s.openWindow()
		const n = 2 * mostPassages
		for i := range n {
			at := int64(i) * 20_000
			s.addPassage(at, 1_000_000_000+int64(drift*float64(at)+10_000*random.ExpFloat64()))
		}
		got, want := float64(s.excessHistogram(true).Quantile(0.999)), 10_000*math.Log(1000)
		if math.Abs(got/want-1) > 0.03 {
			t.Errorf("drift %g: 99.9th percentile %.0f ns, want %.0f", drift, got, want)
		}
	}
}

// FuzzTransits: whatever comes, nothing lies below the line.
func FuzzTransits(f *testing.F) {
	f.Add([]byte{1, 2, 3, 0, 0, 200, 4})
	f.Fuzz(func(t *testing.T, steps []byte) {
		s := newTransits(1)
		s.openWindow()
		at := int64(0)
		for _, b := range steps {
			at += int64(b % 4)
			s.addPassage(at, int64(int8(b)))
		}
		if len(s.kept) == 0 {
			return
		}
		a, b := s.lowestLine()
		if b.at <= a.at {
			t.Fatalf("a line from %v to %v", a, b)
		}
		for _, p := range s.kept {
			if isBelow(a, p, b) && p.at > a.at && p.at < b.at {
				t.Errorf("%v is below the line from %v to %v", p, a, b)
			}
		}
	})
}
