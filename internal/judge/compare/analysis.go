// Package compare turns the trials of a run into cells, comparisons and verdicts, and sets results side by side.
//
// The way through it is Analyse: a Collector gathers the trials of each case into one Cell per metric (collect.go,
// cell.go), in bounded memory; the baseline profile is set beside its twin (floor.go); every cell is set beside the
// baseline's (effect.go) and the difference is judged (verdict.go). Analysis holds the lot; Table cuts it by workload
// and metric for a report, and Rank orders the profiles of one row. Two analyses of results that were measured at
// different times are set side by side by NewPair (pair.go) and held to budgets (budget.go); many, in the order of
// time, are a History with its change points (history.go).
//
// # Many comparisons
//
// Better and worse stand on a p value that is corrected by Benjamini and Hochberg (stat.Adjust) for the family of a
// comparison: one profile under one workload in one metric, over its paths, which is the column of one table. Not in a
// family are metrics that are not judged, and comparisons with too few repetitions to reach the level whatever their
// values are: their number is known before the values and could only cost the others power. Same is a claim of
// equivalence, whose interval is not corrected. docs/explanation/statistics.md says why, and what it costs.
//
// Values are in the base units of package metric; ratios are profile over baseline. What could not be measured is
// absent or NaN with N = 0, never 0. Failed trials are counted and never averaged. Everything here is pure: records in,
// values out. How a number is written is the business of package report.
package compare

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/vocab/advice"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// Options choose what is compared; the zero value is right for a run's own report.
type Options struct {
	// Baseline is the profile to compare with; "" takes the plan's. (optional)
	Baseline plan.Variant
	// Confidence is that of intervals and verdicts, in (0,1); 0 means 0.95. (optional)
	Confidence float64
	// Margin is the share up to which a difference does not matter; 0 takes the plan's. (optional)
	Margin float64
}

// Analysis is a run, judged.
type Analysis struct {
	// Baseline is the profile that Comparisons stand on; Confidence what was asked of intervals and verdicts.
	Baseline   plan.Variant
	Confidence float64
	// Margin is the share within which the interval of a ratio means that two cells are the same.
	Margin float64
	// Profiles, Paths, Workloads and Metrics are the axes, in report order: those of the plan first, then whatever else
	// has trials. The twin is not among the profiles. Metrics are those that were seen at least once.
	Profiles  []plan.Variant
	Paths     []plan.Path
	Workloads []plan.Workload
	Metrics   []string
	// Cells are ordered by metric, workload, path, profile; so are Comparisons and Floors.
	Cells       []Cell
	Comparisons []Comparison
	Floors      []Floor
	// Facts are the conditions of the result.
	Facts facts.Facts
	// Unknown names metrics of the file that this version does not know; they are left out.
	Unknown []string

	index
}

// index finds what an analysis holds, the twin's cells included.
type index struct {
	cells  []Cell
	at     map[Key]*Cell
	served map[Key]bool  // by profile and path
	floor  map[Key]Floor // by table
	quiet  quiet
	// scatter is what the undisturbed values of all cells of a table scatter by.
	scatter map[Key]stat.Scatter
	// contrasts are undisturbed values without what their moments did to all cells, and residual is what those scatter by.
	contrasts contrasts
	residual  map[Key]stat.Scatter
}

// NIC returns the NIC model under which bulk data of a case was sent in the lab; "" for other workloads and other places.
func (a *Analysis) NIC(c plan.Case) plan.NIC {
	if !c.Workload.Traits().Bulk() {
		return ""
	}
	return c.NIC(plan.NIC(a.Facts[facts.NIC]))
}

// Analyse judges the trials among recs; records of other types are passed over. The error, about a baseline of which
// there is nothing, carries a hint.
func Analyse(h result.Header, recs []result.Record, o Options) (*Analysis, error) {
	var c Collector
	for i := range recs {
		if err := c.Add(&recs[i]); err != nil {
			return nil, err
		}
	}
	return c.Analyse(h, o)
}

// Analyse judges what was collected; h is the header of its result. The collector is not to be used afterwards.
func (c *Collector) Analyse(h result.Header, o Options) (*Analysis, error) {
	a := &Analysis{
		Baseline:   cmp.Or(o.Baseline, h.Plan.Baseline),
		Confidence: cmp.Or(o.Confidence, 0.95),
		Margin:     cmp.Or(o.Margin, h.Plan.Margin, plan.DefaultMargin),
		Facts:      h.Facts,
	}
	a.axes(h, c)
	if !o.Baseline.IsZero() && !slices.Contains(a.Profiles, o.Baseline) {
		return nil, advice.With(fmt.Errorf("baseline %q is not a profile of this result", o.Baseline),
			"choose one of: "+strings.Join(plan.Texts(a.Profiles), ", "))
	}
	twin := twinOf(h, c.cases)
	a.quiet = c.measureQuiet(func(p plan.Variant) bool {
		return p.Original() == plan.VariantOf(profile.Raw) || p.IsTwin() || !twin.IsZero() && p == twin
	})
	a.cells = c.gather(a)
	a.weigh()
	a.at = make(map[Key]*Cell, len(a.cells))
	a.served = map[Key]bool{}
	for i, c := range a.cells {
		a.at[c.Key] = &a.cells[i]
		a.served[placeOf(c.Profile, c.Path)] = true
	}
	a.measureFloors(twin)
	a.sortOut()
	a.compareAll()
	return a, nil
}

// compareAll sets every cell beside the baseline's and judges each family.
func (a *Analysis) compareAll() {
	var open []pending
	for i := range a.Cells {
		if p, ok := a.againstBaseline(&a.Cells[i]); ok {
			open = append(open, p)
		}
	}
	settle(open, a.rules(Key.column))
	for _, p := range open {
		a.Comparisons = append(a.Comparisons, *p.x)
	}
}

// Cell returns the cell of k, and whether anything was tried there.
func (a *Analysis) Cell(k Key) (Cell, bool) {
	c, ok := a.at[k]
	if !ok {
		return Cell{}, false
	}
	return *c, true
}

func placeOf(profile plan.Variant, path plan.Path) Key {
	return Key{Case: plan.Case{Profile: profile, Path: path}}
}

// axes collects what the plan names and the trials add.
func (a *Analysis) axes(h result.Header, c *Collector) {
	if !h.Plan.Baseline.IsZero() {
		a.Profiles = append(a.Profiles, h.Plan.Baseline)
	}
	a.Profiles = append(a.Profiles, h.Plan.Measured()...)
	for _, p := range h.Profiles {
		a.Profiles = append(a.Profiles, p.Name)
	}
	a.Paths = slices.Clone(h.Plan.Paths)
	for _, w := range h.Plan.Workloads {
		a.Workloads = append(a.Workloads, w.Normalize())
	}
	for _, k := range c.cases {
		a.Profiles = append(a.Profiles, k.Profile)
		a.Paths = append(a.Paths, k.Path)
		a.Workloads = append(a.Workloads, k.Workload)
	}
	seen := maps.Clone(c.names)
	if slices.Contains(a.Profiles, a.Baseline) {
		a.Profiles = slices.Insert(a.Profiles, 0, a.Baseline)
	}
	a.Profiles = slices.DeleteFunc(each.Once(a.Profiles), plan.Variant.IsTwin)
	a.Paths, a.Workloads = each.Once(a.Paths), each.Once(a.Workloads)
	order := func(p plan.Path) uint { return uint(slices.Index(plan.Paths, p)) } // unknown paths come last
	slices.SortStableFunc(a.Paths, func(p, q plan.Path) int { return cmp.Compare(order(p), order(q)) })
	for _, m := range metric.All() {
		if seen[m.Name] {
			a.Metrics = append(a.Metrics, m.Name)
			delete(seen, m.Name)
		}
	}
	a.Unknown = slices.Sorted(maps.Keys(seen))
}

// sortOut keeps the cells that are shown, all but the twin's, in report order.
func (a *Analysis) sortOut() {
	a.Cells = slices.DeleteFunc(slices.Clone(a.cells), func(c Cell) bool { return c.Profile.IsTwin() })
	metrics := places(each.Of(metric.All(), func(m metric.Metric) string { return m.Name }))
	workloads, paths, profiles := places(a.Workloads), places(a.Paths), places(a.Profiles)
	slices.SortStableFunc(a.Cells, func(c, d Cell) int {
		return cmp.Or(metrics[c.Metric]-metrics[d.Metric], workloads[c.Workload]-workloads[d.Workload],
			paths[c.Path]-paths[d.Path], profiles[c.Profile]-profiles[d.Profile])
	})
}

// places returns where each of xs stands.
func places[T comparable](xs []T) map[T]int {
	at := make(map[T]int, len(xs))
	for i, x := range xs {
		at[x] = i
	}
	return at
}
