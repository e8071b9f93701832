package compare

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/metric"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// Key identifies a cell by a case and a metric.
type Key struct {
	plan.Case
	Metric string `json:"metric"`
}

// String returns "profile path workload: metric".
func (k Key) String() string { return k.Case.Key() + ": " + k.Metric }

// caseKey returns the key of a whole case, without a metric.
func (k Key) caseKey() Key { return Key{Case: k.Case} }

// columnKey returns the key of a profile under a workload in a metric, over all paths: the family that p values are
// corrected for.
func (k Key) columnKey() Key {
	k.Path = plan.Path{}
	return k
}

// tableKey returns the key of a workload and a metric, over all profiles and paths.
func (k Key) tableKey() Key { return Key{plan.Case{Workload: k.Workload}, k.Metric} }

// Cell summarizes all repetitions of one case in one metric.
type Cell struct {
	Key
	// Unit is the base unit of the values.
	Unit string `json:"unit"`
	// Estimate is shown in tables and used in comparisons: the undisturbed estimate if there is one, otherwise the
	// typical one.
	Estimate
	// Typical is the estimate from whole windows if Estimate is undisturbed, nil otherwise. Slices is the number of
	// slices behind the undisturbed estimate.
	Typical *Estimate `json:"-"`
	Slices  int       `json:"-"`
	// Crowded means that all slices are of a disturbed machine, so that other processes affected the values.
	Crowded bool `json:"-"`
	// Failed counts the trials of the case that failed.
	Failed int `json:"failed"`
	// Lost is the share of failed work in the trials with a value; 0 for metrics that count failures.
	Lost float64 `json:"failed_share,omitempty"`
	// AtLeast means that the median is the timeout of new pods, so the true median is at least that.
	AtLeast bool `json:"at_least,omitempty"`
	// Attached is how the new pods were attached to the network; "" for other work.
	Attached string `json:"attached,omitempty"`
	// Instances is the number of instances of the profile that the values come from.
	Instances int `json:"instances"`
	// Warnings are the warnings of its trials and of their summary.
	Warnings []stat.Warning `json:"warnings"`
}

// Estimate is the summary of a case's trials in a metric.
type Estimate struct {
	// Summary has N, the median and its interval. If no trial finished, N is 0 and the others are NaN.
	stat.Summary
	// Samples are the values in the order of repetition.
	Samples []Sample `json:"samples"`
}

// Sample is one value with its repetition, counted from 1. Instance is the instance of its trial; 0 if the file has
// none.
type Sample struct {
	Repetition int
	Value      float64
	Instance   int
	session    int // number of earlier invocations: a resumed run measures at another time
	// weight is the share of an undisturbed value's window in which the machine ran at full speed; whole is the value
	// of the whole window. Both are 0 for other values.
	weight, whole float64
}

// moment returns when the value was measured: its invocation and repetition.
func (s Sample) moment() moment { return moment{s.session, s.Repetition, 0} }

// Warnings that this package adds to those of trials and of package stat.
const (
	// someFailed means that some trials failed and the median is of the rest.
	someFailed = "failed-trials"
	// missingValues means that some finished trials have no such number, so that the median is of the others. Usually
	// the slow trials lack it, because they have too few exchanges for a percentile.
	missingValues = "missing-values"
	// thinned means that only some of the values are kept, since the result is too large.
	thinned = "thinned"
	// manyFailed means that so much work failed that the cell is never called better.
	manyFailed = "many-failed"
	// notFinite means that a value was infinite or not a number and was left out.
	notFinite = "not-finite"
)

// Recorded returns the typical estimate, whose samples are the numbers in the result file.
func (c Cell) Recorded() Estimate { return c.wholeWindowCell().Estimate }

// Corrections returns for each trial its undisturbed value over the value of its whole window; nil without undisturbed
// values.
func (c Cell) Corrections() []float64 {
	if c.Typical == nil {
		return nil
	}
	return each.Of(c.Samples, func(s Sample) float64 { return s.Value / s.whole })
}

// wholeWindowCell returns the cell with only its estimates from whole windows.
func (c *Cell) wholeWindowCell() *Cell {
	if c.Typical == nil {
		return c
	}
	w := *c
	w.Estimate, w.Typical, w.Slices = *c.Typical, nil, 0
	return &w
}

// allUndisturbed reports whether all cells have an undisturbed estimate.
func allUndisturbed(cells ...*Cell) bool {
	return !slices.ContainsFunc(cells, func(c *Cell) bool { return c.Typical == nil })
}

// comparableCells returns the cells with estimates of one kind: undisturbed if all have one, whole windows otherwise.
func comparableCells(cells ...*Cell) []*Cell {
	if allUndisturbed(cells...) {
		return cells
	}
	return each.Of(cells, (*Cell).wholeWindowCell)
}

// countInstances counts the instances of the profile that samples come from.
func countInstances(samples []Sample) int {
	return len(each.Once(each.Of(samples, func(s Sample) int { return s.Instance })))
}

// comparisonUnits returns the values that comparisons count as one each: the trials. If several trials share one of
// several instances, it returns the mean of each instance instead, with the instance's number as the repetition.
// Undisturbed values count by their weight.
func (e Estimate) comparisonUnits() []Sample {
	n := countInstances(e.Samples)
	if n < 2 || n == len(e.Samples) {
		return e.Samples
	}
	groups := map[int][]Sample{}
	for _, s := range e.Samples {
		groups[s.Instance] = append(groups[s.Instance], s)
	}
	var out []Sample
	for instance, trials := range groups {
		u := Sample{Repetition: instance, Value: stat.Mean(valuesOf(trials)), Instance: instance, session: trials[0].session}
		for _, s := range trials {
			u.weight += s.weight
		}
		if u.weight > 0 {
			u.Value = levelOf(trials).Value()
		}
		out = append(out, u)
	}
	slices.SortFunc(out, func(x, y Sample) int { return cmp.Compare(x.Repetition, y.Repetition) })
	return out
}

// levelOf returns the level of undisturbed values by their weights.
func levelOf(samples []Sample) stat.Level {
	return stat.LevelOf(valuesOf(samples), each.Of(samples, func(s Sample) float64 { return s.weight }))
}

// mostLost is the largest share of failed work in the trials of a cell that may be called better than another.
const mostLost = 0.05

// Failing reports whether more trials failed than have a value, or too much work failed in trials with a value: the
// rest may be the lucky part. Such a cell is never better than another, and has no rank.
func (c Cell) Failing() bool { return c.Failed > c.N || c.Lost > mostLost }

// Unlike reports whether the new pods of two cells were attached in different ways, so that their numbers are not
// comparable.
func (c Cell) Unlike(other *Cell) bool { return c.Attached != other.Attached }

// Statistic returns the name of the statistic in Median: the weighted mean of undisturbed values, or the median of
// trials.
func (c Cell) Statistic() string {
	if c.Typical != nil {
		return "weighted mean of undisturbed values"
	}
	return "median of trials"
}

// Values returns the samples' values in the order of repetition.
func (e Estimate) Values() []float64 { return valuesOf(e.Samples) }

func valuesOf(samples []Sample) []float64 {
	return each.Of(samples, func(s Sample) float64 { return s.Value })
}

// estimateOf summarizes samples.
func estimateOf(samples []Sample, confidence float64) Estimate {
	e := Estimate{Samples: samples}
	e.Summary = stat.Summarize(e.Values(), confidence)
	return e
}

// weighCells summarizes each cell with undisturbed values by their weighted mean. The interval comes from the cell's
// instances and from the pooled scatter of all cells of its table. It sets scatter, residual and contrasts.
func (a *Analysis) weighCells() {
	tables := map[Key][]*Cell{}
	for i := range a.cells {
		if c := &a.cells[i]; c.Typical != nil {
			tables[c.tableKey()] = append(tables[c.tableKey()], c)
		}
	}
	for _, of := range tables {
		restoreOwnLoss(of, a.Confidence)
	}
	a.scatter, a.residual, a.contrasts = map[Key]stat.Scatter{}, map[Key]stat.Scatter{}, contrasts{}
	for k, of := range tables {
		free := contrastsOf(of)
		maps.Copy(a.contrasts, free)
		a.scatter[k] = stat.ScatterOf(each.Of(of, func(c *Cell) stat.Level { return levelOf(c.comparisonUnits()) }))
		a.residual[k] = stat.ScatterOf(each.Of(of, func(c *Cell) stat.Level { return free.level(c) }))
	}
	for i := range a.cells {
		if c := &a.cells[i]; c.Typical != nil {
			c.Summary = a.undisturbedLevel(c).Around(c.Summary, a.Confidence)
		}
	}
}

// undisturbedLevel returns the level of the undisturbed values of cells, taken together as one cell.
func (a *Analysis) undisturbedLevel(cells ...*Cell) stat.Level {
	all := slices.Concat(each.Of(cells, func(c *Cell) []Sample { return c.comparisonUnits() })...)
	return levelOf(all).Among(a.scatter[cells[0].tableKey()])
}

// contrastLevel returns the level of cells for a comparison with other cells of the run. The effect that the time of
// measurement had on all cells is removed.
func (a *Analysis) contrastLevel(cells ...*Cell) stat.Level {
	return a.contrasts.level(cells...).Among(a.residual[cells[0].tableKey()])
}

// cellOf summarizes one metric over the trials of a case.
func (a *attempts) cellOf(name string, confidence float64, q quiet) Cell {
	cell := Cell{Key: Key{a.Case, name}, Unit: metric.UnitFor(name, a.Workload.Traits().Work), Failed: a.failed}
	s := a.series[name]
	if s == nil {
		s = &series{}
	}
	slices.SortStableFunc(s.samples, func(x, y Sample) int { return cmp.Compare(x.Repetition, y.Repetition) })
	cell.Estimate, cell.Instances = estimateOf(s.samples, confidence), countInstances(s.samples)
	for _, w := range a.warnings {
		cell.Warnings = append(cell.Warnings, w.Warning)
	}
	add := func(id string, trials int, format string, args ...any) {
		cell.Warnings = append(cell.Warnings, stat.Warning{ID: id, Message: fmt.Sprintf(format, args...), Trials: trials})
	}
	if undisturbed, n := a.undisturbedSamples(q, name, s.samples); n > 0 {
		typical := cell.Estimate
		cell.Estimate, cell.Typical, cell.Slices = estimateOf(undisturbed, confidence), &typical, n
	} else if _, estimated := a.estimatorOf(name, len(s.samples)); estimated {
		if cell.Crowded = q.alwaysCrowded(a.pieces); q.mixed[rowOfCase(a.Case)] {
			add(slowMachine, 0, "the machine had two speeds, and some profiles of this row were measured at the lower one alone: values are of whole windows")
		}
	}
	if a.failed > 0 {
		why := ""
		if a.failure.text != "" {
			why = ": " + a.failure.text
		}
		add(someFailed, a.failed, "%d of %s failed%s", a.failed, number.Counted(a.trials, "trial"), why)
	}
	if missing := a.trials - a.failed - s.valued - s.odd; missing > 0 && !slices.Contains(metric.Counted, name) {
		add(missingValues, missing, "%d of %d finished trials have no such number and are not in the median", missing, a.trials-a.failed)
	}
	a.setFailures(&cell)
	if cell.Lost > mostLost {
		add(manyFailed, 0, "%.2g %% of its work failed: it is not ranked and never called better", 100*cell.Lost)
	}
	if s.odd > 0 {
		add(notFinite, s.odd, "a value that is not a finite number was left out")
	}
	if s.valued > len(s.samples) {
		add(thinned, 0, "the result is too large to be kept whole: %d repetitions, drawn without regard to their values, stand for %d", len(s.samples), s.valued)
	}
	cell.Warnings = append(cell.Warnings, stat.Examine(cell.Values(), cell.Summary)...)
	return cell
}

// setFailures sets Attached, Lost and AtLeast of c.
func (a *attempts) setFailures(c *Cell) {
	c.Attached = a.attached
	if failed := a.series[metric.ErrorRate]; failed != nil && len(failed.samples) > 0 && !slices.Contains(metric.Failures, c.Metric) {
		for _, s := range failed.samples {
			c.Lost += s.Value / float64(len(failed.samples))
		}
	}
	c.AtLeast = c.N > 0 && a.timeout > 0 && metric.EndsAtTimeout(c.Metric) && c.Median >= a.timeout
}
