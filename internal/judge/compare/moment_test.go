package compare

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/plan"
)

// turns are cells that are measured in turn: moments move all of them by so much, instances those of a profile, and each
// value has an error of 1 % of its own. In the last quarter of the repetitions only some of the profiles are measured.
type turns struct {
	profiles, paths, few int
	moments, instances   float64
}

func (m turns) draw(r *rand.Rand) []*Cell {
	const repetitions = 12
	out := make([]*Cell, m.profiles*m.paths)
	for i := range out {
		out[i] = &Cell{Key: Key{Case: plan.Case{Profile: plan.VariantOf(fmt.Sprint(i / m.paths)), Path: plan.NinePaths[i%m.paths]}}}
	}
	for rep := 1; rep <= repetitions; rep++ {
		at, instance := m.moments*r.NormFloat64(), 0.0
		for i, c := range out {
			if i%m.paths == 0 {
				instance = m.instances * r.NormFloat64()
			}
			if rep > repetitions*3/4 && i/m.paths >= m.few {
				break
			}
			weight := 0.2 + 0.8*r.Float64()
			value := 1e4 * math.Exp(float64(i/m.paths)+at+instance+0.01/math.Sqrt(weight)*r.NormFloat64())
			c.Samples = append(c.Samples, Sample{Repetition: rep, Instance: rep, Value: value, weight: weight})
		}
	}
	return out
}

// TestMomentless: intervals between two cells of a run hold the truth as often as they say, with moments and without, and
// where the paths of a profile share instances. With moments they are far shorter than those of cells by themselves.
func TestMomentless(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 5))
	for _, tt := range []struct {
		turns
		shorter, least float64
	}{
		{turns{13, 1, 13, 0.05, 0}, 0.3, 0.1}, {turns{13, 1, 13, 0, 0}, 1.1, 0.9}, {turns{4, 1, 4, 0.05, 0}, 0.35, 0.1}, {turns{4, 1, 4, 0, 0}, 1.15, 0.85},
		{turns{8, 1, 5, 0.03, 0}, 0.5, 0.2}, {turns{8, 1, 2, 0, 0}, 1.15, 0.85}, {turns{4, 5, 4, 0.05, 0.02}, 0.7, 0.3}, {turns{4, 5, 4, 0, 0.02}, 1.15, 0.85},
		{turns{2, 9, 2, 0.05, 0.02}, 0.8, 0.3}, {turns{2, 1, 2, 0.05, 0}, 0.4, 0.1}, {turns{2, 1, 2, 0, 0}, 1.2, 0.95}, {turns{3, 1, 3, 0.05, 0}, 0.4, 0.1},
	} {
		const runs = 500
		held, long, before := 0, 0.0, 0.0
		for range runs {
			cells := tt.draw(r)
			a, b := cells[tt.paths], cells[0]
			free := contrastsOf(cells)
			e := stat.Welch(free.level(a), free.level(b), 0.95)
			plain := stat.Welch(levelOf(a.comparisonUnits()), levelOf(b.comparisonUnits()), 0.95)
			if e.Low <= math.E && math.E <= e.High {
				held++
			}
			long, before = long+math.Log(e.High/e.Low), before+math.Log(plain.High/plain.Low)
		}
		if share := float64(held) / runs; share < 0.93 {
			t.Errorf("%+v: %g of the intervals hold", tt.turns, share)
		}
		if by := long / before; by > tt.shorter || by < tt.least {
			t.Errorf("%+v: intervals are %.2f times as long", tt.turns, by)
		}
	}
}

// TestMomentlessOrder: the same cells have the same levels to the last digit. A value without a logarithm leaves the other
// cells alone.
func TestMomentlessOrder(t *testing.T) {
	cells := turns{6, 2, 6, 0.05, 0.01}.draw(rand.New(rand.NewPCG(4, 4)))
	first := contrastsOf(cells)
	for range 20 {
		for k, c := range contrastsOf(cells) {
			if !slices.Equal(c.units, first[k].units) {
				t.Fatal("levels depend on the order of a map")
			}
		}
	}
	cells[0].Samples[3].Value = 0
	for k, c := range contrastsOf(cells) {
		for _, s := range c.units {
			if k != cells[0].Key && !(s.Value > 0) {
				t.Errorf("%v: %+v", k, s)
			}
		}
	}
}

// TestMomentlessBlocks: a cell that lost trials, so that one is left of each instance, has the moments of the others.
func TestMomentlessBlocks(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 4))
	cells := turns{6, 1, 6, 0, 0}.draw(r)
	for _, c := range cells {
		for i := range c.Samples {
			s := &c.Samples[i]
			s.Instance = 1 + i/3
			s.Value *= float64(s.Instance) // what the block's moment does
		}
	}
	lost := cells[1]
	lost.Samples = []Sample{lost.Samples[1], lost.Samples[4], lost.Samples[6], lost.Samples[11]}
	free := contrastsOf(cells)
	if e := stat.Welch(free.level(cells[1]), free.level(cells[0]), 0.95); e.High/e.Low > 1.1 || e.Low > math.E || e.High < math.E {
		t.Errorf("%+v", e)
	}
}
