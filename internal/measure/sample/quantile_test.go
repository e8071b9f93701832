package sample

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestQuantileError holds the error of a quantile to what docs/reference/numbers.md says, against the exact one of the same
// values, from tens of nanoseconds to tens of seconds.
func TestQuantileError(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 9))
	worst := 0.0
	for range 50 {
		h := NewHistogram()
		low, span := 1+3*r.Float64(), 1+6*r.Float64()
		values := make([]int64, 20_001)
		for i := range values {
			values[i] = min(int64(math.Pow(10, low+span*r.Float64())), int64(time.Minute))
			h.Record(values[i])
		}
		slices.Sort(values)
		for _, q := range []float64{0, 0.1, 0.5, 0.9, 0.99, 0.999, 1} {
			exact := float64(values[int(q*20_000)])
			if off := math.Abs(float64(h.Quantile(q))-exact) / exact; off > worst {
				// A neighbouring value may be meant where the rank lies between two: take the nearer.
				rank := int(q * 20_000)
				for _, v := range values[max(rank-1, 0):min(rank+2, len(values))] {
					off = min(off, math.Abs(float64(h.Quantile(q))-float64(v))/float64(v))
				}
				worst = max(worst, off)
			}
		}
	}
	t.Logf("the worst quantile is %.4f %% off", 100*worst)
	if worst > 0.001 {
		t.Errorf("a quantile is %.3f %% off, more than 0.1 %%", 100*worst)
	}
}
