package compare

import (
	"math"
	"slices"

	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// minFloor is the least floor, as a share: no lab of this kind repeats itself more closely from one instance of a
// profile to the next, even if few repetitions suggest it.
const minFloor = 0.01

// Floor is the difference between two instances of the same profile, for one workload and metric. It is not the scatter
// of trials, which every interval already includes, but what remains after any number of repetitions, such as the
// effect of an instance's place in memory. If every repetition has its own instance, the intervals include that too,
// and the twin is a check: Verdict is the verdict on an equal pair. If there is one instance, the floor widens
// intervals.
//
// Each path that both instances have gives one estimate: the observed ratio between them, or the standard error of that
// ratio if it is larger, since a smaller difference could not be observed. The standard error is a quarter of the width
// of the interval. The floor is the largest of the estimates, and at least 1 %.
type Floor struct {
	Workload plan.Workload `json:"workload"`
	Metric   string        `json:"metric"`
	// Share is the floor: 0.02 means that ratios from 1/1.02 to 1.02 are noise.
	Share float64 `json:"floor"`
	// Measured is false if there was no twin with at least two values > 0. Share is then minFloor, an assumption.
	Measured bool `json:"measured"`
	// Twins are the estimates by path.
	Twins []Twin `json:"twins"`
}

// Twin compares the second instance of the baseline with the first, on one path.
type Twin struct {
	Path plan.Path `json:"path"`
	stat.Effect
	// Verdict is the verdict on the twin as on any other profile. It has the value None if there was one instance of each,
	// whose distance is the widening itself.
	Verdict Verdict `json:"verdict"`
}

// floorOf returns the floor of a workload and metric: minFloor if none was measured.
func (a *Analysis) floorOf(w plan.Workload, metric string) Floor {
	if f, ok := a.floor[Key{plan.Case{Workload: w}, metric}]; ok {
		return f
	}
	return Floor{Workload: w, Metric: metric, Share: minFloor}
}

// profileWithTwin returns the profile whose second instance (twin) is among cases. If there is no twin, it returns the
// plan's baseline.
func profileWithTwin(h result.Header, cases []*attempts) plan.Variant {
	if twin, ok := each.First(cases, func(k *attempts) bool { return k.Profile.IsTwin() }); ok {
		return twin.Profile.Original()
	}
	return h.Plan.Baseline
}

// measureFloors sets Floors for every workload and metric with values; original is the profile with a twin.
func (a *Analysis) measureFloors(original plan.Variant) {
	a.floor = map[Key]Floor{}
	seen := map[Key]bool{}
	for k := range a.at {
		seen[k.tableKey()] = true
	}
	for _, m := range a.Metrics {
		for _, w := range a.Workloads {
			if k := (Key{plan.Case{Workload: w}, m}); seen[k] {
				a.Floors = append(a.Floors, a.measureFloor(k, original))
			}
		}
	}
	a.judgeTwins(original)
	for _, f := range a.Floors {
		a.floor[Key{plan.Case{Workload: f.Workload}, f.Metric}] = f
	}
}

// judgeTwins sets the verdicts of all twins whose interval is not widened, as one family: whether a run finds differences
// between equals is one question.
func (a *Analysis) judgeTwins(original plan.Variant) {
	var all []pending
	var at []*Twin
	for i := range a.Floors {
		f := &a.Floors[i]
		for j := range f.Twins {
			first, second := a.twinCells(Key{plan.Case{Path: f.Twins[j].Path, Workload: f.Workload}, f.Metric}, original)
			if p := a.compareCells(second, first); p.x.Widened == 0 {
				all = append(all, p)
				at = append(at, &f.Twins[j])
			}
		}
	}
	settleVerdicts(all, a.rulesFor(oneFamily))
	for i, p := range all {
		at[i].Verdict = p.x.Verdict
	}
}

// twinCells returns the cells of a profile and of its second instance; nil for a cell that was not measured.
func (a *Analysis) twinCells(k Key, original plan.Variant) (first, second *Cell) {
	k.Profile = original
	first = a.at[k]
	k.Profile = original.Twin()
	return first, a.at[k]
}

func (a *Analysis) measureFloor(k Key, original plan.Variant) Floor {
	f := Floor{Workload: k.Workload, Metric: k.Metric, Share: minFloor}
	for _, k.Path = range a.Paths {
		first, second := a.twinCells(k, original)
		// One trial each cannot separate the effect of instances from the scatter of trials.
		if first == nil || second == nil || min(first.N, second.N) < 2 {
			continue
		}
		e := a.cellTest(second, first, a.Confidence)(1)
		if math.IsNaN(e.Ratio) {
			continue
		}
		f.Twins = append(f.Twins, Twin{Path: k.Path, Effect: e})
		f.Measured = true
		f.Share = max(f.Share, floorEstimate(e))
	}
	f.Twins = slices.Clip(f.Twins)
	return f
}

// floorEstimate returns the floor by one pair of twins, as a share.
func floorEstimate(e stat.Effect) float64 {
	distance := math.Abs(math.Log(e.Ratio))
	// It is NaN for an effect without an interval, and then the comparison is false.
	if standardError := math.Log(e.High/e.Low) / 4; standardError > distance {
		distance = standardError
	}
	return math.Expm1(distance)
}
