package adapter

import (
	"math"
	"slices"
	"time"

	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// percentiles has the percentiles that metrics exist for: the value that tools print, and the suffix in the name of a
// metric.
var percentiles = []struct {
	share float64
	name  string
}{{50, "p50"}, {90, "p90"}, {99, "p99"}, {99.9, "p99.9"}}

// Beyond is how many values must lie above a percentile that is computed from single times, as for our own trials.
const Beyond = 10

// Distribution sets the metrics of a family from the times of all transactions, in ns. It sets min, mean, max, stddev,
// and each percentile with at least Beyond times above it. It sorts times. A metric that would be 0 is not set, since the
// tool printed too few digits.
func (r *Reading) Distribution(family string, times []float64) {
	if len(times) == 0 {
		return
	}
	slices.Sort(times)
	sum, squares := 0.0, 0.0
	for _, t := range times {
		sum += t
	}
	n := float64(len(times))
	for _, t := range times {
		squares += (t - sum/n) * (t - sum/n)
	}
	r.Time(family, "min", times[0])
	r.Time(family, "mean", sum/n)
	r.Time(family, "max", times[len(times)-1])
	if len(times) > 1 {
		r.Time(family, "stddev", math.Sqrt(squares/n))
	}
	for _, p := range percentiles {
		if n*(1-p.share/100) >= Beyond*(1-1e-9) {
			r.Time(family, p.name, times[int(math.Ceil(n*p.share/100-1e-9))-1])
		}
	}
}

// Time sets the metric "family.member", a time in ns, unless ns is 0 or there is no such metric.
func (r *Reading) Time(family, member string, ns float64) {
	name := family + "." + member
	if _, ok := metric.Lookup(name); ok && ns > 0 {
		r.Put(name, ns)
	}
}

// Percentile sets a percentile in ns that a tool printed, if there is a metric for it. share is in percent, such as 99.9.
func (r *Reading) Percentile(family string, share, ns float64) {
	for _, p := range percentiles {
		if p.share == share {
			r.Time(family, p.name, ns)
		}
	}
}

// Longest bounds a time in an input: no trial lasts a year.
const Longest = 365 * 24 * time.Hour

// Seconds converts a number of seconds into a duration, 0 if it is out of range.
func Seconds(s float64) time.Duration {
	if !(s > 0 && s < Longest.Seconds()) {
		return 0
	}
	return time.Duration(math.Round(s * 1e9))
}
