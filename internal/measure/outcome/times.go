package outcome

import (
	"math"

	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// beyond is the least number of values beyond a reported percentile.
const beyond = 10

var quantiles = []struct {
	name string
	q    float64
}{{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p99.9", 0.999}}

// distribution derives the family of metrics of a distribution of times.
func (t *trial) distribution(family string, h *sample.Histogram) {
	if h == nil || h.Count() == 0 {
		return
	}
	t.metrics[family+".min"] = float64(h.Min())
	t.metrics[family+".mean"] = h.Mean()
	t.metrics[family+".max"] = float64(h.Max())
	t.put(family+".stddev", h.Stddev(), h.Count() > 1)
	for _, q := range quantiles {
		// Not every family reports every percentile; the catalogue decides.
		if name := family + "." + q.name; reported(name) {
			t.percentile(name, h, q.q)
		}
	}
}

func reported(name string) bool {
	_, ok := metric.Lookup(name)
	return ok
}

// doubtful is the highest quantile whose absence causes a warning. A short window usually lacks the higher ones, and a warning
// on every cell would hide the important ones.
const doubtful = 0.99

// percentile derives one percentile, or notes that it has too few values.
func (t *trial) percentile(name string, h *sample.Histogram, q float64) {
	if h.Count() < needed(q) {
		if q <= doubtful && (q <= 0.5 || !t.is.NewPods) { // the rate of new pods is given, and low
			t.thin = append(t.thin, name)
		}
		return
	}
	t.metrics[name] = float64(h.Quantile(q))
}

// percentiles derives those of a family that the catalogue has and that have enough values, without a word about others.
func (t *trial) percentiles(family string, h *sample.Histogram) {
	for _, q := range quantiles {
		name := family + "." + q.name
		t.put(name, float64(h.Quantile(q.q)), reported(name) && h.Count() >= needed(q.q))
	}
}

// needed returns how many values the quantile q needs: 20 for the median, 10,000 for the 99.9th percentile.
func needed(q float64) int64 { return int64(math.Round(beyond / (1 - q))) }
