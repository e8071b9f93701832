package explain

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// Change is a part's contribution to a difference.
type Change struct {
	Part
	// By is the measured additional time of B over A.
	By Interval `json:"by"`
	// Noise means that the interval of By contains 0.
	Noise bool `json:"noise"`
	// A and B are the time of the part on either side.
	A float64 `json:"a"`
	B float64 `json:"b"`
}

// Difference attributes the difference from A to B.
type Difference struct {
	A, B Side
	// Total is the service demand of B minus A's.
	Total Interval
	// Changes has one change for each part, the largest first. They add up to Total.
	Changes []Change
	// Families are the sums by family, the largest first.
	Families []Change
	// Rest is the sum of the parts that are not Named. Spread is the sum of those parts of Rest whose family Findings does not
	// name.
	Rest, Spread Several
	// Nothing means that there is nothing to explain: A and B do not differ significantly, or only within the margin.
	// Margin is true if they differ only within the margin.
	Nothing, Margin bool
	// Prediction predicts B from the parts of A, nil unless Predict was called.
	Prediction *Prediction
}

// Several is the change of a number of parts together.
type Several struct {
	Change
	Parts int
}

// Between explains the difference from A to B, two sides of one result. ok is false if one of them has no parts.
func Between(an *compare.Analysis, a, b Side) (d Difference, ok bool) {
	d = Difference{A: a, B: b}
	if len(a.Parts) == 0 || len(b.Parts) == 0 {
		return d, false
	}
	sd := math.Hypot(a.deviation, b.deviation)
	d.Total = intervalAround(b.Demand.Value-a.Demand.Value, sd, float64(max(2, a.Trials+b.Trials-2)))
	d.Nothing, d.Margin = nothingToExplain(an, a, b)
	ids := map[string]Part{}
	for _, p := range slices.Concat(a.Parts, b.Parts) {
		ids[p.ID] = p.Part
	}
	d.Changes = each.Of(slices.Sorted(maps.Keys(ids)), func(id string) Change { return measuredChange(ids[id], a, b, id) })
	d.Families = familyChanges(d.Changes, a, b)
	order := func(x, y Change) int {
		return cmp.Or(cmp.Compare(math.Abs(y.By.Value), math.Abs(x.By.Value)), cmp.Compare(x.ID, y.ID))
	}
	slices.SortFunc(d.Changes, order)
	slices.SortFunc(d.Families, order)
	said, _ := d.largestFamilies()
	d.Rest = d.sumChanges(func(c Change) bool { return !d.Named(c) })
	d.Spread = d.sumChanges(func(c Change) bool {
		return !d.Named(c) && !slices.ContainsFunc(said, func(f Change) bool { return f.ID == c.Family })
	})
	return d, true
}

// sumChanges sums up the changes that chosen selects.
func (d Difference) sumChanges(chosen func(Change) bool) Several {
	parts := each.Of(each.Where(d.Changes, chosen), func(c Change) string { return c.ID })
	return Several{d.Of(parts...), len(parts)}
}

// Of returns the measured change of several parts together. Its interval is narrower than the sum of the parts'
// intervals: a sample that is not in one of them is in another.
func (d Difference) Of(parts ...string) Change {
	return measuredChange(Part{}, d.A, d.B, parts...)
}

// familyChanges sums up the changes of parts by family.
func familyChanges(changes []Change, a, b Side) []Change {
	of := map[string][]string{}
	for _, c := range changes {
		of[c.Family] = append(of[c.Family], c.ID)
	}
	return each.Of(slices.Sorted(maps.Keys(of)), func(family string) Change { return measuredChange(Part{family, family, family}, a, b, of[family]...) })
}

// measuredChange returns the measured difference of parts from a to b.
func measuredChange(p Part, a, b Side, parts ...string) Change {
	before, after := a.sumParts(parts), b.sumParts(parts)
	c := Change{Part: p, A: before.time, B: after.time}
	c.By = intervalAround(c.B-c.A, math.Sqrt(before.variance+after.variance), max(2, before.free+after.free))
	c.Noise = c.By.Low <= 0 && c.By.High >= 0
	return c
}

// sum is the time of some parts of a side, the variance of its error and its degrees of freedom.
type sum struct{ time, variance, free float64 }

// sumParts returns the time of parts together.
func (s Side) sumParts(parts []string) sum {
	var p Share
	switch {
	case len(parts) == 1:
		p = s.Part(parts[0])
	case len(parts) > 1:
		p = sharesByGroup(s.sampled.weightedUnits(s.weigh), func(id string) string { return fmt.Sprint(slices.Contains(parts, id)) })["true"]
	}
	d := s.Demand.Value
	return sum{p.Share * d, d*d*p.variance + p.Share*p.Share*s.deviation*s.deviation, p.free}
}

func intervalAround(value, deviation, free float64) Interval {
	half := deviation * stat.Reach(confidence, free)
	return Interval{value, value - half, value + half}
}

// nothingToExplain reports whether there is no difference to explain. That is so for the same case, for a difference
// within the margin or not significant, and without a service demand. margin is true for the same case and within the
// margin.
func nothingToExplain(an *compare.Analysis, a, b Side) (equal, margin bool) {
	x, okX := an.Cell(compare.Key{Case: b.Case, Metric: metric.ServiceDemand})
	y, okY := an.Cell(compare.Key{Case: a.Case, Metric: metric.ServiceDemand})
	if !okX || !okY || a.Case == b.Case {
		return true, a.Case == b.Case
	}
	e := an.Between(&x, &y)
	margin = e.Low >= 1/(1+an.Margin) && e.High <= 1+an.Margin
	return margin || !(e.Low > 1 || e.High < 1), margin
}
