package check

import (
	"maps"
	"slices"

	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// trial is one finished trial as a rule sees it.
type trial struct {
	plan.Case
	view     *View
	metrics  map[string]float64
	warnings []sample.Warning
	// seconds is the length of its window, 0 if it is not known.
	seconds float64
}

func newTrial(v *View, c plan.Case, r result.Record) *trial {
	t := &trial{Case: c, view: v, metrics: maps.Clone(r.Metrics), warnings: r.Warnings, seconds: float64(r.WindowNs) / 1e9}
	if w := t.metrics[metric.Window]; w > 0 {
		t.seconds = w / 1e9
	}
	if t.has(metric.Datagrams, metric.DatagramsLost) && !t.has(metric.FrameLossRate) && t.metrics[metric.Datagrams] > 0 {
		t.metrics[metric.FrameLossRate] = t.metrics[metric.DatagramsLost] / t.metrics[metric.Datagrams]
	}
	return t
}

// has says whether all these metrics were measured.
func (t *trial) has(names ...string) bool {
	return !slices.ContainsFunc(names, func(n string) bool { _, ok := t.metrics[n]; return !ok })
}

// both returns two metrics; ok if both were measured.
func (t *trial) both(one, other string) (a, b float64, ok bool) {
	return t.metrics[one], t.metrics[other], t.has(one, other)
}

// show writes the value of a metric with its unit.
func (t *trial) show(name string, x float64) string { return show(Key{Case: t.Case, Metric: name}, x) }

// warned says whether the trial carries the warning.
func (t *trial) warned(id string) bool {
	return slices.ContainsFunc(t.warnings, func(w sample.Warning) bool { return w.ID == id })
}
