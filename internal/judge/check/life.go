package check

import (
	"fmt"
	"time"

	"github.com/cnibench/cnibench/internal/external/adapter"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// A transfer lives while it carries a share of its best; rows over time are judged where there are enough of them.
const (
	// fewRows is how many rows over time say nothing, and leastTail how long the end of a window must be to be judged.
	fewRows   = 4
	leastTail = time.Second
	// tail is the share of the window that is its end. dead is the share of the best row below which a row is dead.
	tail = 0.25
	dead = 0.05
	// hardly is a rate in bit/s that no path between machines has unless packets are lost.
	hardly = 1e6
)

// transferDies finds TCP transfers that stop within their window, or never begin.
func (t *trial) transferDies() string {
	is := t.Workload.Traits()
	if !is.Bulk() || is.Rate > 0 || t.warned(adapter.Paced) {
		return ""
	}
	if said := t.fades(); said != "" {
		return said
	}
	goodput, ok := t.metrics[metric.Goodput]
	if ok && goodput > 0 && goodput < hardly {
		return fmt.Sprintf("%s of TCP, as fast as possible", t.show(metric.Goodput, goodput))
	}
	return ""
}

// fades says how the rows over time of a transfer go down, "" if they do not.
func (t *trial) fades() string {
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
		return fmt.Sprintf("no byte left the client in %d of %d rows over time, and %s in the best", idle, len(rates), t.show(metric.Goodput, best))
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
	return fmt.Sprintf("%s in its best row, and at most %s in the last quarter of %s", t.show(metric.Goodput, best), t.show(metric.Goodput, last), end.Round(time.Second))
}
