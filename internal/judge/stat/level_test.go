package stat

import (
	"math"
	"math/rand/v2"
	"testing"
)

// A value of weight 2 counts as two, and one of no weight not at all.
func TestLevel(t *testing.T) {
	a, b := LevelOf([]float64{2, 8}, []float64{2, 1}), LevelOf([]float64{2, 2, 8}, []float64{1, 1, 1})
	if math.Abs(a.Value()-b.Value()) > 1e-12 {
		t.Errorf("%v and %v", a.Value(), b.Value())
	}
	if v := LevelOf([]float64{3, 100}, []float64{1, 0}).Value(); math.Abs(v-3) > 1e-12 {
		t.Errorf("without weight: %v", v)
	}
	if e := Welch(LevelOf([]float64{3}, []float64{1}), b, 0.95); !math.IsNaN(e.Low) || e.P != 1 || math.Abs(e.Ratio-3/b.Value()) > 1e-12 {
		t.Errorf("one value: %+v", e)
	}
	if e := Welch(a.Times(3), a, 0.95); math.Abs(e.Ratio-3) > 1e-12 {
		t.Errorf("three times: %v", e.Ratio)
	}
	s := LevelOf([]float64{9, 10, 11, 10}, []float64{1, 1, 1, 1}).Around(Summary{N: 4, Min: 9, Max: 11}, 0.95)
	if s.N != 4 || s.Min != 9 || !(s.Low > 8.3 && s.Low < s.Median && s.Median < s.High && s.High < 12) || s.Confidence != 0.95 {
		t.Errorf("%+v", s)
	}
}

// Welch's test holds its level where what is disturbed has less weight and more scatter, also for quotients, and finds
// what equal weights hide.
func TestWelchLevel(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	draw := func(mean float64) (values, weights, even []float64) {
		for range 6 {
			w := math.Exp(-3 * r.Float64())
			off := 0.01 * r.NormFloat64()
			if w < 0.1 {
				off += 0.2 * r.Float64() // interference only adds
			}
			values, weights, even = append(values, mean*math.Exp(off)), append(weights, w), append(even, 1)
		}
		return values, weights, even
	}
	const times = 4000
	apart, found, evenly := 0.0, 0.0, 0.0
	for range times {
		a, wa, _ := draw(1)
		b, wb, eb := draw(1)
		c, wc, ec := draw(1.05)
		base, wbase, _ := draw(3)
		if e := Welch(LevelOf(a, wa).Over(LevelOf(base, wbase)), LevelOf(b, wb), 0.95); e.Low > 1.0/3 || e.High < 1.0/3 {
			apart++
		}
		if Welch(LevelOf(c, wc), LevelOf(a, wa), 0.95).P < 0.05 {
			found++
		}
		if Welch(LevelOf(c, ec), LevelOf(b, eb), 0.95).P < 0.05 {
			evenly++
		}
	}
	if apart/times > 0.06 || found < 1.5*evenly {
		t.Errorf("equal called different %v; 5 %% found %v, with even weights %v", apart/times, found/times, evenly/times)
	}
}
