package compare

import (
	"math"

	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/plan"
)

// Two results of one and the same thing differ by more than their trials show: another hour on a busy machine makes
// everything a few percent slower. Where nothing that is recorded differs, what moves the profiles that one does not ask
// about is such a drift, and it moves the one that one asks about too. No twin within one run can show it.

// mostApart bounds the profiles for each of which the others are looked at apart.
const mostApart = 64

// measureDrift fills in Drift: the median distance between the two results of the other profiles' cells, under the same
// workload and by the same metric. Profiles that are compared with one of another name tell nothing of the moment.
func (p *Pair) measureDrift() {
	if len(p.Differences) > 0 {
		return
	}
	moved := map[Key]map[plan.Variant][]float64{} // by table
	for _, m := range p.Matches {
		if m.Profile != m.Baseline || math.IsNaN(m.Ratio) {
			continue
		}
		k := m.table()
		if moved[k] == nil {
			moved[k] = map[plan.Variant][]float64{}
		}
		moved[k][m.Profile] = append(moved[k][m.Profile], math.Abs(math.Log(m.Ratio)))
	}
	known := map[Key]float64{}
	for i := range p.Matches {
		m := &p.Matches[i]
		k, others := m.table(), moved[m.table()]
		if len(others) <= mostApart { // one among so many makes no difference
			k.Profile = m.Baseline
		}
		drift, ok := known[k]
		if !ok {
			drift = medianOfOthers(others, k.Profile)
			known[k] = drift
		}
		m.Drift = drift
	}
}

// medianOfOthers is the median distance of all profiles but one as a share, 0 if there are none.
func medianOfOthers(moved map[plan.Variant][]float64, one plan.Variant) float64 {
	var others []float64
	for name, xs := range moved {
		if name != one {
			others = append(others, xs...)
		}
	}
	if len(others) == 0 {
		return 0
	}
	return math.Expm1(stat.Summarize(others, 0.95).Median)
}

// drifted says that a ratio lies beyond the floor, and not beyond what the drift adds to it.
func (m Match) drifted(ratio float64) bool {
	size := math.Abs(math.Log(ratio))
	return size > math.Log1p(m.Floor) && size <= math.Log1p(m.Band())
}
