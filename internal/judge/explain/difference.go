package explain

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// Change is what a part adds to a difference.
type Change struct {
	Part
	// By is how much more B spends on it than A: the measured change, drawn toward 0 as far as it may be an error. The interval
	// is that of the measured change.
	By Interval `json:"by"`
	// Noise means that the interval of By contains 0.
	Noise bool `json:"noise"`
	// A and B are the part on both sides.
	A float64 `json:"a"`
	B float64 `json:"b"`
}

// Difference is where the difference from A to B goes.
type Difference struct {
	A, B Side
	// Total is the service demand of B less that of A.
	Total Interval
	// Changes are the largest first. They add up to Total.
	Changes []Change
	// Families are the same by family, the largest first.
	Families []Change
	// Nothing means that there is nothing to explain: the two do not differ beyond the margin, or not beyond doubt. Margin is
	// true for the former.
	Nothing, Margin bool
	// Prediction is that of B from the parts of A, nil unless Predict was called.
	Prediction *Prediction
}

// Between explains the difference from A to B, two sides of one result. ok is false if one of them has no parts.
func Between(an *compare.Analysis, a, b Side) (d Difference, ok bool) {
	d = Difference{A: a, B: b}
	if len(a.Parts) == 0 || len(b.Parts) == 0 {
		return d, false
	}
	sd := math.Hypot(a.deviation, b.deviation)
	d.Total = around(b.Demand.Value-a.Demand.Value, sd, float64(max(2, a.Trials+b.Trials-2)))
	d.Nothing, d.Margin = nothing(an, a, b)
	ids := map[string]Part{}
	for _, s := range []Side{a, b} {
		for _, p := range s.Parts {
			ids[p.ID] = p.Part
		}
	}
	var variance []float64
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		c, v := change(ids[id], a, b, func(q Share) bool { return q.ID == id })
		d.Changes, variance = append(d.Changes, c), append(variance, v)
	}
	settle(d.Changes, variance)
	d.Families = families(d.Changes, a, b)
	order := func(x, y Change) int {
		return cmp.Or(cmp.Compare(math.Abs(y.By.Value), math.Abs(x.By.Value)), cmp.Compare(x.ID, y.ID))
	}
	slices.SortFunc(d.Changes, order)
	slices.SortFunc(d.Families, order)
	return d, true
}

// families sums up the changes of parts by family. The interval of a family is that of its samples.
func families(changes []Change, a, b Side) []Change {
	var all []Change
	for _, c := range changes {
		i := slices.IndexFunc(all, func(f Change) bool { return f.ID == c.Family })
		if i < 0 {
			i = len(all)
			f, _ := change(Part{c.Family, c.Family, c.Family}, a, b, func(q Share) bool { return q.Family == c.Family })
			f.A, f.B, f.By.Value = 0, 0, 0
			all = append(all, f)
		}
		f := &all[i]
		f.A, f.B, f.By.Value = f.A+c.A, f.B+c.B, f.By.Value+c.By.Value
	}
	for i := range all {
		all[i].By = all[i].By.extended()
	}
	return all
}

// change is the measured difference of the parts that are wanted, and the variance of its error.
func change(p Part, a, b Side, wanted func(Share) bool) (c Change, variance float64) {
	before, errA, freeA := a.sum(wanted)
	after, errB, freeB := b.sum(wanted)
	c = Change{Part: p, A: before, B: after}
	c.By = around(after-before, math.Sqrt(errA+errB), max(2, freeA+freeB))
	c.Noise = c.By.Low <= 0 && c.By.High >= 0
	return c, errA + errB
}

// sum adds up parts: their time, the variance of its error and its degrees of freedom.
func (s Side) sum(wanted func(Share) bool) (time, variance, free float64) {
	var share, shares float64
	for _, p := range s.Parts {
		if wanted(p) {
			share, shares, free = share+p.Share, shares+p.variance, max(free, p.free)
		}
	}
	d := s.Demand.Value
	return share * d, d*d*shares + share*share*s.deviation*s.deviation, free
}

// extended is an interval that contains its value.
func (i Interval) extended() Interval {
	return Interval{i.Value, min(i.Low, i.Value), max(i.High, i.Value)}
}

func around(value, deviation, free float64) Interval {
	half := deviation * stat.Reach(confidence, free)
	return Interval{value, value - half, value + half}
}

// nothing says whether two sides are equal: the same variant, within the margin, or not different beyond doubt.
func nothing(an *compare.Analysis, a, b Side) (equal, margin bool) {
	x, okX := an.Cell(compare.Key{Case: b.Case, Metric: metric.ServiceDemand})
	y, okY := an.Cell(compare.Key{Case: a.Case, Metric: metric.ServiceDemand})
	if !okX || !okY || a.Case == b.Case {
		return true, a.Case == b.Case
	}
	e := an.Between(&x, &y)
	margin = e.Low >= 1/(1+an.Margin) && e.High <= 1+an.Margin
	return margin || !(e.Low > 1 || e.High < 1), margin
}
