// Package compare turns the trials of a run into cells, comparisons and verdicts, and sets results side by side.
//
// Start with Analyse. A Collector gathers the trials of each case into one Cell per metric (collect.go, cell.go), in
// bounded memory. The baseline profile is compared with its twin (floor.go). Every cell is compared with the baseline's
// (effect.go) and the difference is judged (verdict.go). Analysis has the results; Table selects one workload and
// metric for a report, and Rank orders the profiles of one row. NewPair compares two results that were measured at
// different times (pair.go) and judges them by budgets (budget.go). A History has many results in the order of time,
// with their change points (history.go).
//
// # Many comparisons
//
// Better and worse rest on a p value that is corrected by Benjamini and Hochberg (stat.Adjust) for the family of a
// comparison: one profile under one workload in one metric, over its paths, which is the column of one table. A family
// excludes metrics that are not judged, and comparisons with too few repetitions to reach the level whatever their
// values are: they are known before the values and could only reduce the power of the others. Same is a claim of
// equivalence, whose interval is not corrected. docs/explanation/statistics.md says why, and what it costs.
//
// Values are in the base units of package metric; ratios are profile over baseline. A missing number is absent or NaN
// with N = 0, never 0. Failed trials are counted and never averaged. The package is pure: records in, values out.
// Package report formats numbers.
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

// Options choose what is compared; the zero value is the default for a run's own report.
type Options struct {
	// Baseline is the profile to compare with; "" means the plan's. (optional)
	Baseline plan.Variant
	// Confidence is the confidence of intervals and verdicts, in (0,1); 0 means 0.95. (optional)
	Confidence float64
	// Margin is the share up to which a difference does not matter; 0 means the plan's. (optional)
	Margin float64
}

// Analysis has the cells, the comparisons and the verdicts of a run.
type Analysis struct {
	// Baseline is the profile that Comparisons compare with. Confidence is the requested confidence of intervals and
	// verdicts.
	Baseline   plan.Variant
	Confidence float64
	// Margin is the share up to which a difference does not matter. The verdict same needs an interval within it.
	Margin float64
	// Profiles, Paths, Workloads and Metrics are the axes, in report order: the plan's first, then others that have
	// trials. The twin is not among the profiles. Metrics are those with at least one value.
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
	// Unknown lists metrics of the file that this version does not know; they are left out.
	Unknown []string

	index
}

// index has the lookup tables of an analysis, the twin's cells included.
type index struct {
	cells  []Cell
	at     map[Key]*Cell
	served map[Key]bool  // by profile and path
	floor  map[Key]Floor // by table
	quiet  quiet
	// scatter is the pooled variance of the undisturbed values of all cells of a table.
	scatter map[Key]stat.Scatter
	// contrasts has the undisturbed values of each cell without the effect that the time of measurement had on all
	// cells.
	// residual is the pooled variance of the contrasts of a table.
	contrasts contrasts
	residual  map[Key]stat.Scatter
}

// NIC returns the lab's NIC model for the bulk data of a case; "" for other workloads and environments.
func (a *Analysis) NIC(c plan.Case) plan.NIC {
	if !c.Workload.Traits().Bulk() {
		return ""
	}
	return c.NIC(plan.NIC(a.Facts[facts.NIC]))
}

// Analyse judges the trials among recs; it ignores records of other types. It fails, with a hint, if o.Baseline is not a
// profile of the result, or if recs are more than any plan can make.
func Analyse(h result.Header, recs []result.Record, o Options) (*Analysis, error) {
	var c Collector
	for i := range recs {
		if err := c.Add(&recs[i]); err != nil {
			return nil, err
		}
	}
	return c.Analyse(h, o)
}

// Analyse judges the collected trials; h is the header of their result. It fails, with a hint, if o.Baseline is not a
// profile of the result. Trials may be added afterwards.
func (c *Collector) Analyse(h result.Header, o Options) (*Analysis, error) {
	a := &Analysis{
		Baseline:   cmp.Or(o.Baseline, h.Plan.Baseline),
		Confidence: cmp.Or(o.Confidence, 0.95),
		Margin:     cmp.Or(o.Margin, h.Plan.Margin, plan.DefaultMargin),
		Facts:      h.Facts,
	}
	a.setAxes(h, c)
	if !o.Baseline.IsZero() && !slices.Contains(a.Profiles, o.Baseline) {
		return nil, advice.With(fmt.Errorf("baseline %q is not a profile of this result", o.Baseline),
			"choose one of: "+strings.Join(plan.Texts(a.Profiles), ", "))
	}
	twin := profileWithTwin(h, c.cases)
	a.quiet = c.measureQuiet(func(p plan.Variant) bool {
		return p.Original() == plan.VariantOf(profile.Raw) || p.IsTwin() || !twin.IsZero() && p == twin
	})
	a.cells = c.gatherCells(a)
	a.weighCells()
	a.at = make(map[Key]*Cell, len(a.cells))
	a.served = map[Key]bool{}
	for i, c := range a.cells {
		a.at[c.Key] = &a.cells[i]
		a.served[servedKey(c.Profile, c.Path)] = true
	}
	a.measureFloors(twin)
	a.setCells()
	a.compareAll()
	return a, nil
}

// compareAll compares every cell with the baseline's and judges each family.
func (a *Analysis) compareAll() {
	var open []pending
	for i := range a.Cells {
		if p, ok := a.compareWithBaseline(&a.Cells[i]); ok {
			open = append(open, p)
		}
	}
	settleVerdicts(open, a.rulesFor(Key.columnKey))
	for _, p := range open {
		a.Comparisons = append(a.Comparisons, *p.x)
	}
}

// Cell returns the cell of k. ok is false if nothing was tried there.
func (a *Analysis) Cell(k Key) (Cell, bool) {
	c, ok := a.at[k]
	if !ok {
		return Cell{}, false
	}
	return *c, true
}

func servedKey(profile plan.Variant, path plan.Path) Key {
	return Key{Case: plan.Case{Profile: profile, Path: path}}
}

// setAxes sets Profiles, Paths, Workloads, Metrics and Unknown from the plan and from the trials.
func (a *Analysis) setAxes(h result.Header, c *Collector) {
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

// setCells sets Cells: all cells except the twin's, in report order.
func (a *Analysis) setCells() {
	a.Cells = slices.DeleteFunc(slices.Clone(a.cells), func(c Cell) bool { return c.Profile.IsTwin() })
	metrics := indexByElement(each.Of(metric.All(), func(m metric.Metric) string { return m.Name }))
	workloads, paths, profiles := indexByElement(a.Workloads), indexByElement(a.Paths), indexByElement(a.Profiles)
	slices.SortStableFunc(a.Cells, func(c, d Cell) int {
		return cmp.Or(metrics[c.Metric]-metrics[d.Metric], workloads[c.Workload]-workloads[d.Workload],
			paths[c.Path]-paths[d.Path], profiles[c.Profile]-profiles[d.Profile])
	})
}

// indexByElement returns the index of each element of xs.
func indexByElement[T comparable](xs []T) map[T]int {
	at := make(map[T]int, len(xs))
	for i, x := range xs {
		at[x] = i
	}
	return at
}
