package compare

import (
	"maps"
	"math"
	"slices"

	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// A machine may have two speeds, each for longer than a trial: its hypervisor changes the frequency, or a neighbour has the other
// thread of the core. Readings are compared with those of the same cell. So a cell that was never measured at the higher speed takes
// the lower one for its full speed, and is slower than its equals. In such a row whole windows are compared.

// slowMachine means that the profiles of a row were measured at different speeds of the machine.
const slowMachine = "slow-machine"

// otherSpeed is how much slower than the fastest readings of a row those of another speed are, at least. A heavy path alone makes
// them up to 5 % slower.
const otherSpeed = 1.08

// rowOfCase is the case of a workload on a path, over all profiles.
func rowOfCase(c plan.Case) plan.Case { return plan.Case{Path: c.Path, Workload: c.Workload} }

// pace is the fastest reading of one side of a case, of all its trials and of each.
type pace struct {
	fastest float64
	trials  []float64
}

// slower counts the trials that were measured at a lower speed than that of a reading.
func (p pace) slower(than float64) (n int) {
	for _, x := range p.trials {
		if x > than+math.Log(otherSpeed) {
			n++
		}
	}
	return n
}

// mixedRows finds the rows whose profiles were measured at different speeds. Readings of one side on one machine are compared.
func (c *Collector) mixedRows(q quiet) map[plan.Case]bool {
	sides := map[place]map[plan.Variant]pace{}
	for s := range c.sides() {
		if len(s.slices) == 0 {
			continue
		}
		row := s.place
		row.Case = rowOfCase(s.Case)
		if sides[row] == nil {
			sides[row] = map[plan.Variant]pace{}
		}
		trial := fastestOf(slices.Sorted(slices.Values(each.Of(s.slices, func(x slice) float32 { return x.yard }))))
		sides[row][s.Profile] = pace{q.fastest[s.place], append(sides[row][s.Profile].trials, trial)}
	}
	mixed := map[plan.Case]bool{}
	for at, paces := range sides {
		if apart(slices.Collect(maps.Values(paces))) {
			mixed[at.Case] = true
		}
	}
	return mixed
}

// apart says whether some cells of a row had a lower speed of the machine in all of their trials. What a profile does to the yardstick
// by itself is not that: its trials were at both speeds, or the others are at the lower one so rarely that chance does not explain it.
func apart(row []pace) bool {
	if len(row) < fewestRanked {
		return false
	}
	full := slices.Min(each.Of(row, func(p pace) float64 { return p.fastest }))
	var slow []pace
	trials, slower := 0, 0
	for _, p := range row {
		switch {
		case p.fastest <= full+math.Log(otherSpeed):
			trials, slower = trials+len(p.trials), slower+p.slower(full)
		case p.slower(p.fastest) == 0:
			slow = append(slow, p)
		}
	}
	share := float64(slower) / float64(trials)
	return slices.ContainsFunc(slow, func(p pace) bool {
		return float64(len(row))*math.Pow(share, float64(len(p.trials))) > 1-surely
	})
}
