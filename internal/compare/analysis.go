// Package compare turns the trials of a run into cells, comparisons and verdicts.
//
// The way through it is Analyse: it gathers the trials of each case into one Cell per metric (cell.go), measures the
// noise floor from the baseline profile and its twin (floor.go), sets every cell beside the baseline's (effect.go) and
// judges the difference (verdict.go). Analysis holds the lot; Table cuts it by workload and metric for a report, and
// Rank orders the profiles of one row.
//
// Values are in the base units of package metric; ratios are profile over baseline. What could not be measured is
// absent or NaN with N = 0, never 0. Failed trials are counted and never averaged. The p values are those of single
// comparisons: nothing corrects for their number. Everything here is pure: records in, values out. How a number is
// written is the business of package report.
package compare

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/hint"
	"github.com/cnibench/cnibench/internal/metric"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/result"
)

// Options choose what is compared; the zero value is right for a run's own report.
type Options struct {
	// Baseline is the profile to compare with; "" takes the plan's. (optional)
	Baseline string
	// Confidence is that of intervals and verdicts, in (0,1); 0 means 0.95. (optional)
	Confidence float64
}

// Analysis is a run, judged.
type Analysis struct {
	// Baseline is the profile that Comparisons stand on; Confidence what was asked of intervals and verdicts.
	Baseline   string
	Confidence float64
	// Profiles, Paths, Workloads and Metrics are the axes, in report order: those of the plan first, then whatever else
	// has trials. The twin is not among the profiles. Metrics are those that were seen at least once.
	Profiles  []string
	Paths     []plan.Path
	Workloads []plan.Workload
	Metrics   []string
	// Cells are ordered by metric, workload, path, profile; so are Comparisons and Floors.
	Cells       []Cell
	Comparisons []Comparison
	Floors      []Floor
	// Unknown names metrics of the file that this version does not know; they are left out.
	Unknown []string

	index
}

// index finds what an analysis holds, the twin's cells included.
type index struct {
	at     map[Key]*Cell
	served map[place]bool
	floor  map[floorKey]Floor
}

// place is a profile on a path.
type place struct {
	profile string
	path    plan.Path
}

// Analyse judges the trials among recs; records of other types are passed over. The error, about a baseline of which
// there is nothing, carries a hint.
func Analyse(h result.Header, recs []result.Record, o Options) (*Analysis, error) {
	trials := slices.DeleteFunc(slices.Clone(recs), func(r result.Record) bool { return r.Type != result.TypeTrial })
	for i := range trials {
		trials[i].Workload = trials[i].Workload.Normalize()
	}
	a := &Analysis{
		Baseline:   cmp.Or(o.Baseline, h.Plan.Baseline),
		Confidence: cmp.Or(o.Confidence, 0.95),
	}
	a.axes(h, trials)
	if o.Baseline != "" && !slices.Contains(a.Profiles, o.Baseline) {
		return nil, hint.With(fmt.Errorf("baseline %q is not a profile of this result", o.Baseline),
			"choose one of: "+strings.Join(a.Profiles, ", "))
	}
	cells := a.gather(trials)
	a.at = make(map[Key]*Cell, len(cells))
	a.served = map[place]bool{}
	for i, c := range cells {
		a.at[c.Key] = &cells[i]
		a.served[place{c.Profile, c.Path}] = true
	}
	a.measureFloors(twinOf(h, trials))
	a.sortOut(cells)
	for i := range a.Cells {
		if c, ok := a.againstBaseline(&a.Cells[i]); ok {
			a.Comparisons = append(a.Comparisons, c)
		}
	}
	return a, nil
}

// Cell returns the cell of k, and whether anything was tried there.
func (a *Analysis) Cell(k Key) (Cell, bool) {
	c, ok := a.at[k]
	if !ok {
		return Cell{}, false
	}
	return *c, true
}

// Served says whether profile has any trial on path, finished or failed.
func (a *Analysis) Served(profile string, path plan.Path) bool { return a.served[place{profile, path}] }

// axes collects what the plan names and the trials add.
func (a *Analysis) axes(h result.Header, trials []result.Record) {
	if h.Plan.Baseline != "" {
		a.Profiles = append(a.Profiles, h.Plan.Baseline)
	}
	a.Profiles = append(a.Profiles, h.Plan.Profiles...)
	for _, p := range h.Profiles {
		a.Profiles = append(a.Profiles, p.Name)
	}
	a.Paths = slices.Clone(h.Plan.Paths)
	for _, w := range h.Plan.Workloads {
		a.Workloads = append(a.Workloads, w.Normalize())
	}
	seen := map[string]bool{}
	for _, t := range trials {
		a.Profiles = append(a.Profiles, t.Profile)
		a.Paths = append(a.Paths, t.Path)
		a.Workloads = append(a.Workloads, t.Workload)
		for name := range t.Metrics {
			seen[name] = true
		}
	}
	if slices.Contains(a.Profiles, a.Baseline) {
		a.Profiles = slices.Insert(a.Profiles, 0, a.Baseline)
	}
	a.Profiles = slices.DeleteFunc(distinct(a.Profiles), func(p string) bool { return strings.HasSuffix(p, plan.TwinSuffix) })
	a.Paths, a.Workloads = distinct(a.Paths), distinct(a.Workloads)
	slices.SortStableFunc(a.Paths, func(p, q plan.Path) int { return cmp.Compare(pathOrder(p), pathOrder(q)) })
	for _, m := range metric.All() {
		if seen[m.Name] {
			a.Metrics = append(a.Metrics, m.Name)
			delete(seen, m.Name)
		}
	}
	for name := range seen {
		a.Unknown = append(a.Unknown, name)
	}
	slices.Sort(a.Unknown)
}

// pathOrder is the place of p in reports; unknown paths come last.
func pathOrder(p plan.Path) int {
	if i := slices.Index(plan.Paths, p); i >= 0 {
		return i
	}
	return len(plan.Paths)
}

// distinct returns xs without repetitions, first ones kept.
func distinct[T comparable](xs []T) []T {
	seen := make(map[T]bool, len(xs))
	var out []T
	for _, x := range xs {
		if !seen[x] {
			seen[x] = true
			out = append(out, x)
		}
	}
	return out
}

// sortOut keeps the cells that are shown, all but the twin's, in order.
func (a *Analysis) sortOut(cells []Cell) {
	metrics := metric.All()
	order := func(c Cell) []int {
		return []int{
			slices.IndexFunc(metrics, func(m metric.Metric) bool { return m.Name == c.Metric }),
			slices.Index(a.Workloads, c.Workload), slices.Index(a.Paths, c.Path), slices.Index(a.Profiles, c.Profile),
		}
	}
	for _, c := range cells {
		if !strings.HasSuffix(c.Profile, plan.TwinSuffix) {
			a.Cells = append(a.Cells, c)
		}
	}
	slices.SortStableFunc(a.Cells, func(c, d Cell) int { return slices.Compare(order(c), order(d)) })
}
