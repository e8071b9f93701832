package stat

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestStudentQuantiles(t *testing.T) {
	for free, want := range map[float64]float64{1: 12.7062, 2: 4.3027, 3: 3.1824, 4: 2.7764, 8: 2.3060, 18: 2.1009, 1.5: 6.0167, 2.5: 3.5747, 1000: 1.9623} {
		if got := studentQuantile(0.95, free); math.Abs(got-want) > 1e-4 {
			t.Errorf("%v degrees of freedom: %v, want %v", free, got, want)
		}
	}
}

// Three repetitions that scatter by 10 % tell 25.4 from 9.11 Gbit/s; samples without scatter claim nothing.
func TestFewRepetitionsAreTold(t *testing.T) {
	e := Unpaired([]float64{25.4, 23.0, 27.8}, []float64{9.11, 8.2, 9.9}, 0.95)
	if e.Test != StudentT || e.P > 0.01 || e.Low < 2 || e.Confidence != 0.95 {
		t.Errorf("%+v", e)
	}
	if e := Unpaired([]float64{9, 9, 9}, []float64{1, 1, 1}, 0.95); e.P != 1 || !math.IsNaN(e.Low) || math.Abs(e.Ratio-9) > 1e-9 {
		t.Errorf("without scatter: %+v", e)
	}
	if e := Unpaired([]float64{9, 9, 9, 9}, []float64{1, 1, 1, 1}, 0.95); e.Test != MannWhitney {
		t.Errorf("four a side: %s", e.Test)
	}
}

// The level holds for two and three repetitions of equal things.
func TestStudentLevel(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{2, 3} {
		apart := 0
		for range 4000 {
			var a, b []float64
			for range n {
				a, b = append(a, math.Exp(0.05*r.NormFloat64())), append(b, math.Exp(0.05*r.NormFloat64()))
			}
			if e := Unpaired(a, b, 0.95); e.Low > 1 || e.High < 1 {
				apart++
			}
		}
		if share := float64(apart) / 4000; share > 0.06 {
			t.Errorf("n=%d: %v called different", n, share)
		}
	}
}

// 2^-1075 is 0 in float64, and the interval of a median must not shrink to a point there.
func TestMedianOfThousands(t *testing.T) {
	for _, n := range []int{999, 1001, 1075, 3000, 100000} {
		xs := make([]float64, n)
		for i := range xs {
			xs[i] = float64(i)
		}
		s := Summarize(xs, 0.95)
		if half := (s.High - s.Low) / 2; math.Abs(half/(0.98*math.Sqrt(float64(n)))-1) > 0.05 || s.Confidence < 0.95 || s.Confidence > 0.97 {
			t.Errorf("n=%d: %v to %v, coverage %v", n, s.Low, s.High, s.Confidence)
		}
	}
}

func TestHolm(t *testing.T) {
	got := Holm([]float64{0.01, 0.04, 0.03, 0.5})
	if want := []float64{0.04, 0.09, 0.09, 0.5}; !slices.EqualFunc(got, want, func(a, b float64) bool { return math.Abs(a-b) < 1e-12 }) {
		t.Errorf("%v, want %v", got, want)
	}
}
