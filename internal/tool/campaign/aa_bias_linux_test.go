package main

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// A correction that grows with the cost is found within its error, and none of cells that are corrected alike; a cell that is
// known badly hardly counts.
func TestBias(t *testing.T) {
	r := rand.New(rand.NewPCG(32, 9))
	for _, grows := range []float64{0, -0.013} {
		within := 0
		const tries = 200
		for range tries {
			var all []corrected
			for i := range 40 {
				c := corrected{workload: "rr", doublings: float64(i%5) / 2, error: []float64{0.001, 0.004}[i%2]}
				c.log = -0.02 + grows*c.doublings + c.error*r.NormFloat64()
				all = append(all, c)
			}
			all = append(all, corrected{workload: "rr", doublings: 3, log: 0.3, error: 0.5})
			per, error := bias(all)
			if error > 0.0006 {
				t.Fatalf("%g: error %g", grows, error)
			}
			if math.Abs(per-grows) < 1.96*error {
				within++
			}
		}
		if share := float64(within) / tries; share < 0.91 || share > 0.99 {
			t.Errorf("%g: %g of the intervals have it", grows, share)
		}
	}
	if _, error := bias(make([]corrected, 2)); !math.IsInf(error, 1) {
		t.Errorf("two cells: %g", error)
	}
	if text := renderBias(1, []corrected{{workload: "rr", error: 1}, {workload: "crr", error: 1}}); strings.Contains(text, "corrected") {
		t.Errorf("a cell alone says %q", text)
	}
}
