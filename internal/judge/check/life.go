package check

import (
	"fmt"
	"time"

	"github.com/cnibench/cnibench/internal/external/adapter"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// These constants decide whether a transfer has died: whether the rows at the end of its time series carry almost nothing.
const (
	// fewRows is the least number of rows of a time series that is judged, leastTail the least length of its end.
	fewRows   = 4
	leastTail = time.Second
	// tail is the share of the window that counts as its end.
	tail = 0.25
	// dead is a share of the best row's rate. A transfer is dead if every row of its end is below that share.
	dead = 0.05
	// hardly is a goodput in bit/s. Between machines, a TCP transfer falls below it only if packets are lost.
	hardly = 1e6
)

// deadTransferFault describes a TCP transfer that stops within its window or carries almost nothing. It returns "" for other
// transfers, and for those with a rate limit.
func (t *trial) deadTransferFault() string {
	is := t.Workload.Traits()
	if !is.Bulk() || is.Rate > 0 || t.hasWarning(adapter.Paced) {
		return ""
	}
	if said := t.describeDecline(); said != "" {
		return said
	}
	goodput, ok := t.metrics[metric.Goodput]
	if ok && goodput > 0 && goodput < hardly {
		return fmt.Sprintf("%s of TCP, as fast as possible", t.formatMetric(metric.Goodput, goodput))
	}
	return ""
}

// describeDecline describes how the rate of a transfer declines, "" if it does not.
func (t *trial) describeDecline() string {
	if t.client == nil {
		return ""
	}
	var rates []float64
	var ends []time.Duration
	var best, last float64
	idle := 0
	for _, row := range t.client.Intervals {
		if row.Warmup || row.EndNs <= row.StartNs {
			continue
		}
		rate := 8e9 * float64(row.Bytes) / float64(row.EndNs-row.StartNs)
		rates, ends = append(rates, rate), append(ends, time.Duration(row.EndNs))
		best = max(best, rate)
		if row.Bytes == 0 {
			idle++
		}
	}
	if len(rates) < fewRows || best == 0 {
		return ""
	}
	if end := ends[len(ends)-1]; 2*idle >= len(rates) && end >= leastTail {
		return fmt.Sprintf("no byte left the client in %d of %d rows over time, and %s in the best", idle, len(rates), t.formatMetric(metric.Goodput, best))
	}
	end := ends[len(ends)-1]
	from := time.Duration(float64(end) * (1 - tail))
	for i, rate := range rates {
		if ends[i] > from {
			last = max(last, rate)
		}
	}
	if end-from < leastTail || last > dead*best {
		return ""
	}
	return fmt.Sprintf("%s in its best row, and at most %s in the last quarter of %s", t.formatMetric(metric.Goodput, best), t.formatMetric(metric.Goodput, last), end.Round(time.Second))
}
