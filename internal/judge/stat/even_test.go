package stat

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestGammaQ: where 2a is even the function has a closed form, exp(-x) times the first a terms of exp(x); where it is 1,
// it is the complement of the error function.
func TestGammaQ(t *testing.T) {
	for _, a := range []float64{1, 2, 3, 10, 50, 124, 500} {
		for _, share := range []float64{0, 0.01, 0.5, 0.9, 1, 1.05, 1.5, 3} {
			x := a * share
			term, want := math.Exp(-x), 0.0
			if x > 700 {
				continue // the terms themselves are out of range
			}
			for k := 1.0; k <= a; k++ {
				want += term
				term *= x / k
			}
			if got := gammaQ(a, x); math.Abs(got-want) > 1e-10 {
				t.Errorf("Q(%v, %v) = %v, want %v", a, x, got, want)
			}
		}
	}
	for _, x := range []float64{0.001, 0.3, 1, 1.6, 5, 20} {
		if got, want := gammaQ(0.5, x), math.Erfc(math.Sqrt(x)); math.Abs(got-want) > 1e-12 {
			t.Errorf("Q(1/2, %v) = %v, want %v", x, got, want)
		}
	}
}

func TestEvenP(t *testing.T) {
	for _, c := range []struct {
		counts []float64
		want   float64
		ok     bool
	}{
		{[]float64{20, 20, 20, 20, 20}, 1, true},
		{[]float64{60, 40}, 0.0455003, true},                  // chi-squared 4 of 1 degree of freedom
		{[]float64{30, 14, 34, 45, 57, 20}, 4.1773e-07, true}, // 37.78 of 5 degrees of freedom
		{[]float64{100, 0, 0, 0, 0}, 2.7815e-85, true},        // 400 of 4
		{[]float64{2, 2, 2, 2, 2}, 0, false},
		{[]float64{100}, 0, false},
		{[]float64{0, 0}, 0, false},
		{nil, 0, false},
	} {
		p, ok := EvenP(c.counts)
		if ok != c.ok || ok && math.Abs(p-c.want) > 0.001*c.want {
			t.Errorf("%v: p %v, %v; want %v, %v", c.counts, p, ok, c.want, c.ok)
		}
	}
}

// TestEvenPKeepsItsPromise: of even draws about 5 % have a p value below 0.05, of uneven ones far more.
func TestEvenPKeepsItsPromise(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	const draws = 4000
	below := func(skew float64) (n int) {
		for range draws {
			counts := make([]float64, 5)
			for range 100 {
				i := r.IntN(5)
				if r.Float64() < skew {
					i = 0
				}
				counts[i]++
			}
			if p, ok := EvenP(counts); ok && p < 0.05 {
				n++
			}
		}
		return n
	}
	if n := below(0); n < draws*35/1000 || n > draws*65/1000 {
		t.Errorf("%d of %d even draws are called uneven", n, draws)
	}
	if n := below(0.3); n < draws*9/10 {
		t.Errorf("%d of %d uneven draws are called uneven", n, draws)
	}
}
