package compare

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/cnibench/cnibench/internal/metric"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/stat"
)

// Key says which cell: a case and a metric.
type Key struct {
	Profile  string
	Path     plan.Path
	Workload plan.Workload
	Metric   string
}

// Cell is what all repetitions of one case say about one metric.
type Cell struct {
	Key
	// Unit is the base unit of the values.
	Unit string
	// Summary has N, the median and its interval; all NaN if no trial finished.
	stat.Summary
	// Samples are the values in the order of repetition.
	Samples []Sample
	// Failed counts the trials of the case that failed.
	Failed int
	// Warnings are the doubts of its trials and of their sum.
	Warnings []Warning
}

// Sample is one value and the repetition that gave it, counted from 1.
type Sample struct {
	Repetition int
	Value      float64
}

// Warning is a doubt about a cell.
type Warning struct {
	// ID names the check, Message says what was seen (in the first trial, if several raised it).
	ID, Message string
	// Trials is how many trials raised it; 0 for a doubt about the cell as a whole.
	Trials int
}

// Doubts that this package adds to those of trials and of package stat.
const (
	// SomeFailed means that the median stands on the survivors of failed trials.
	SomeFailed = "failed-trials"
	// Missing means that finished trials have no such number, so that the median stands on the others: as a rule the
	// slow ones, whose exchanges are too few for a percentile, are the ones that lack it.
	Missing = "missing-values"
	// NotFinite means that a value was infinite or not a number and was left out.
	NotFinite = "not-finite"
)

// Values returns the samples' values in the order of repetition.
func (c Cell) Values() []float64 {
	vs := make([]float64, len(c.Samples))
	for i, s := range c.Samples {
		vs[i] = s.Value
	}
	return vs
}

// attempts is a case and its trials in the order of repetition.
type attempts struct {
	plan.Case
	trials []result.Record
}

// gather makes one cell per case and metric. A case of which every trial failed has a cell for each metric that its
// workload shows elsewhere, so that the failure is seen wherever the number is missed.
func (a *Analysis) gather(trials []result.Record) []Cell {
	var cases []*attempts
	byCase := map[plan.Case]*attempts{}
	metricsOf := map[plan.Workload]map[string]bool{}
	for _, t := range trials {
		if byCase[t.Case] == nil {
			byCase[t.Case] = &attempts{Case: t.Case}
			cases = append(cases, byCase[t.Case])
		}
		byCase[t.Case].trials = append(byCase[t.Case].trials, t)
		if metricsOf[t.Workload] == nil {
			metricsOf[t.Workload] = map[string]bool{}
		}
		for name := range t.Metrics {
			metricsOf[t.Workload][name] = t.Status == result.OK || metricsOf[t.Workload][name]
		}
	}
	var cells []Cell
	for _, c := range cases {
		slices.SortStableFunc(c.trials, func(x, y result.Record) int { return cmp.Compare(x.Repetition, y.Repetition) })
		cells = append(cells, a.cellsOf(c, metricsOf[c.Workload])...)
	}
	return cells
}

// cellsOf makes the cells of one case; shown are the metrics of its workload.
func (a *Analysis) cellsOf(c *attempts, shown map[string]bool) []Cell {
	failed := 0
	for _, t := range c.trials {
		if t.Status != result.OK {
			failed++
		}
	}
	names := a.Metrics
	if !slices.ContainsFunc(names, func(n string) bool { return shown[n] }) {
		names, shown = []string{metric.ServiceDemand}, map[string]bool{metric.ServiceDemand: true}
	}
	var cells []Cell
	for _, name := range names {
		if !shown[name] {
			continue
		}
		cell := a.cell(c, name, failed)
		tried := slices.ContainsFunc(c.trials, func(t result.Record) bool { _, ok := t.Metrics[name]; return ok })
		if tried || failed == len(c.trials) {
			cells = append(cells, cell)
		}
	}
	return cells
}

// cell summarizes one metric over the trials of a case, of which so many failed.
func (a *Analysis) cell(c *attempts, name string, failed int) Cell {
	cell := Cell{
		Key:    Key{c.Profile, c.Path, c.Workload, name},
		Unit:   metric.UnitFor(name, c.Workload.Work()),
		Failed: failed,
	}
	var odd, missing int
	for _, t := range c.trials {
		v, ok := t.Metrics[name]
		switch {
		case t.Status != result.OK:
		case !ok:
			missing++
		case math.IsNaN(v) || math.IsInf(v, 0):
			odd++
		default:
			cell.Samples = append(cell.Samples, Sample{t.Repetition, v})
		}
	}
	values := cell.Values()
	cell.Summary = stat.Summarize(values, a.Confidence)
	cell.Warnings = trialWarnings(c.trials)
	if failed > 0 {
		cell.Warnings = append(cell.Warnings, Warning{SomeFailed, failureMessage(c.trials, failed), failed})
	}
	if missing > 0 {
		m := fmt.Sprintf("%d of %d finished trials have no such number and are not in the median", missing, len(c.trials)-failed)
		cell.Warnings = append(cell.Warnings, Warning{Missing, m, missing})
	}
	if odd > 0 {
		cell.Warnings = append(cell.Warnings, Warning{NotFinite, "a value that is not a finite number was left out", odd})
	}
	for _, w := range stat.Examine(values, cell.Summary) {
		cell.Warnings = append(cell.Warnings, Warning{ID: w.ID, Message: w.Message})
	}
	return cell
}

// trialWarnings sums up the warnings of the finished trials by id.
func trialWarnings(trials []result.Record) []Warning {
	var ws []Warning
	for _, t := range trials {
		if t.Status != result.OK {
			continue
		}
		for _, w := range t.Warnings {
			i := slices.IndexFunc(ws, func(x Warning) bool { return x.ID == w.ID })
			if i < 0 {
				ws = append(ws, Warning{ID: w.ID, Message: w.Message})
				i = len(ws) - 1
			}
			ws[i].Trials++
		}
	}
	return ws
}

// failureMessage says how many trials failed and why the first did.
func failureMessage(trials []result.Record, failed int) string {
	m := fmt.Sprintf("%d of %d trials failed", failed, len(trials))
	for _, t := range trials {
		if t.Status != result.OK && t.Error != nil {
			return m + ": " + t.Error.Kind + ": " + t.Error.Message
		}
	}
	return m
}
