package compare

import (
	"math"
	"slices"

	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// A machine may have two speeds, each for longer than a trial: its hypervisor changes the frequency, or a neighbour
// uses the core's other thread. Readings are compared within a cell. So for a cell that was never measured at the
// higher speed, the lower speed looks like full speed, and the cell is slower than its equals. In such a row whole
// windows are compared.

// slowMachine means that a profile of the row was measured only at the machine's lower speed.
const slowMachine = "slow-machine"

// otherSpeed is the least factor between the fastest readings of a workload and readings at another speed. A heavy path
// alone slows them by up to 5 %.
const otherSpeed = 1.08

// rowOfCase returns the case of a workload on a path, over all profiles.
func rowOfCase(c plan.Case) plan.Case { return plan.Case{Path: c.Path, Workload: c.Workload} }

// pace is the fastest reading of one side of a case, over all its trials and of each trial.
type pace struct {
	plan.Case
	fastest float64
	trials  []float64
}

// slowerTrials counts the trials that ran at a lower speed: their fastest reading exceeds the given reading by more than
// otherSpeed. Readings are logarithms.
func (p *pace) slowerTrials(than float64) int {
	return len(each.Where(p.trials, func(x float64) bool { return x > than+math.Log(otherSpeed) }))
}

// mixedRows finds the rows in which a profile was measured only at the lower speed. Readings of one side on one machine
// are compared over all paths of a workload, since a baseline may have another path.
func (c *Collector) mixedRows(q quiet) map[plan.Case]bool {
	paces, sides := map[place]*pace{}, map[place][]*pace{}
	for s := range c.allSides() {
		if len(s.slices) == 0 {
			continue
		}
		p := paces[s.place]
		if p == nil {
			p = &pace{Case: s.Case, fastest: q.fastest[s.place]}
			table := place{s.machine, plan.Case{Workload: s.Workload}, s.server}
			paces[s.place], sides[table] = p, append(sides[table], p)
		}
		p.trials = append(p.trials, fastestReading(slices.Sorted(slices.Values(each.Of(s.slices, func(x slice) float32 { return x.yard })))))
	}
	mixed := map[plan.Case]bool{}
	for _, of := range sides {
		for _, p := range slowCells(of) {
			mixed[rowOfCase(p.Case)] = true
		}
	}
	return mixed
}

// slowCells returns the cells of a workload whose trials all ran at the machine's lower speed. It leaves out profiles that
// slow the yardstick themselves: the lower speed is then too rare among the other cells to be chance.
func slowCells(cells []*pace) (slow []*pace) {
	if len(cells) < fewestRanked {
		return nil
	}
	full := slices.Min(each.Of(cells, func(p *pace) float64 { return p.fastest }))
	trials, slower := 0, 0
	for _, p := range cells {
		switch {
		case p.fastest <= full+math.Log(otherSpeed):
			trials, slower = trials+len(p.trials), slower+p.slowerTrials(full)
		case p.slowerTrials(p.fastest) == 0:
			slow = append(slow, p)
		}
	}
	share := float64(slower) / float64(trials)
	return slices.DeleteFunc(slow, func(p *pace) bool {
		return float64(len(cells))*math.Pow(share, float64(len(p.trials))) <= 1-surely
	})
}
