package outcome

import (
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// newPods derives the metrics of ttfr from the client's account of its pods.
func (t *trial) newPods() {
	c := t.client
	if c == nil {
		return
	}
	t.failures(c)
	t.paced(c)
	if c.Pods == nil {
		return
	}
	t.distribution(metric.TTFR, c.Pods.First)
	for part, ns := range c.Pods.Waits {
		t.put(metric.TTFRWait+"."+part, float64(ns)/float64(c.Operations), c.Operations > 0)
	}
}
