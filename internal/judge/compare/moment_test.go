package compare

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/plan"
)

// moved draws cells that are measured in turn: moments move all of them by so much, and each value has an error of its own. In the
// last quarter of the repetitions only few of them are measured.
func moved(r *rand.Rand, cells, few int, moments float64) []*Cell {
	const repetitions, own = 12, 0.01
	out := make([]*Cell, cells)
	for i := range out {
		out[i] = &Cell{Key: Key{Case: plan.Case{Profile: plan.Variant(fmt.Sprint(i))}}}
	}
	for rep := 1; rep <= repetitions; rep++ {
		at := moments * r.NormFloat64()
		measured := out
		if rep > repetitions*3/4 {
			measured = out[:few]
		}
		for i, c := range measured {
			weight := 0.2 + 0.8*r.Float64()
			value := 1e4 * math.Exp(float64(i)+at+own/math.Sqrt(weight)*r.NormFloat64())
			c.Samples = append(c.Samples, Sample{Repetition: rep, Instance: rep, Value: value, weight: weight})
		}
	}
	return out
}

// TestMomentless: intervals between two cells of a run hold the truth as often as they say, with moments and without. With moments they
// are far shorter than those of cells by themselves, without them as long.
func TestMomentless(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 5))
	for _, tt := range []struct {
		cells, few     int
		moments        float64
		shorter, least float64
	}{
		{13, 13, 0.05, 0.3, 0.1}, {13, 13, 0, 1.1, 0.9}, {4, 4, 0.05, 0.35, 0.1}, {4, 4, 0, 1.15, 0.85}, {8, 5, 0.03, 0.5, 0.2}, {8, 2, 0, 1.15, 0.85},
		{3, 3, 0.05, 1, 1}, // too few to tell moments from errors
	} {
		const runs = 500
		held, long, before := 0, 0.0, 0.0
		for range runs {
			cells := moved(r, tt.cells, tt.few, tt.moments)
			free := momentless(cells)
			e := stat.Welch(free.level(cells[1]), free.level(cells[0]), 0.95)
			plain := stat.Welch(levelOf(cells[1].units()), levelOf(cells[0].units()), 0.95)
			if e.Low <= math.E && math.E <= e.High {
				held++
			}
			long, before = long+math.Log(e.High/e.Low), before+math.Log(plain.High/plain.Low)
		}
		// Without moments in common, pairs are taken for independent: their intervals are too long and hold more.
		if share := float64(held) / runs; share < 0.93 || tt.cells >= fewestTogether && share > 0.98 {
			t.Errorf("%d cells, moments of %g: %g of the intervals hold", tt.cells, tt.moments, share)
		}
		if by := long / before; by > tt.shorter || by < tt.least {
			t.Errorf("%d cells, moments of %g: intervals are %.2f times as long", tt.cells, tt.moments, by)
		}
	}
}
