package outcome

import (
	"maps"

	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// deriveDistribution derives the family of metrics of a distribution of times.
func (t *trial) deriveDistribution(family string, h *sample.Histogram) {
	if h == nil || h.Count() == 0 {
		return
	}
	t.metrics[family+".min"] = float64(h.Min())
	t.metrics[family+".mean"] = h.Mean()
	t.metrics[family+".max"] = float64(h.Max())
	t.putMetric(family+".stddev", h.Stddev(), h.Count() > 1)
	for name, q := range metric.Percentiles(family) {
		t.deriveQuantile(name, h, q)
	}
}

// doubtful is the highest quantile whose absence causes a warning. A short window usually lacks the higher ones, and a
// warning on every cell would hide the important ones.
const doubtful = 0.99

// deriveQuantile derives one percentile. With too few values it adds the name to thin, unless the percentile is above
// doubtful or the workload usually has few values.
func (t *trial) deriveQuantile(name string, h *sample.Histogram, q float64) {
	ns, ok := h.Percentile(q)
	if !ok {
		if q <= doubtful && (q <= 0.5 || !t.is.NewPods() && t.is.Job.Members == 0) { // new pods and steps are few
			t.thin = append(t.thin, name)
		}
		return
	}
	t.metrics[name] = float64(ns)
}

// derivePercentiles derives the percentiles of a family that have enough values, without a warning about the others.
func (t *trial) derivePercentiles(family string, h *sample.Histogram) {
	maps.Insert(t.metrics, h.Percentiles(family))
}
