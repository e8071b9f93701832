package outcome

import (
	"github.com/cnibench/cnibench/internal/measure/sample"
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
	pods := float64(c.Pods.First.Count())
	for part, ns := range c.Pods.Waits {
		t.put(metric.TTFRWait+"."+part, float64(ns)/pods, pods > 0)
	}
	if c.Pods.TimeoutNs == 0 {
		t.distribution(metric.OneDial, c.Pods.First)
		return
	}
	t.censored(metric.FromDue, c.Pods.First)
	t.censored(metric.FromStart, c.Pods.Start)
	t.metrics[metric.TTFRUnanswered] = float64(c.Pods.Unanswered)
	t.put(metric.TTFRDials, float64(c.Pods.Dials)/pods, pods > 0)
	t.put(metric.TTFRDialCPU, float64(c.Pods.DialNs)/pods, pods > 0)
}

// censored derives the metrics of times that are cut off at the timeout. It limits their values to the timeout, because
// a histogram rounds up. A value of exactly the timeout means that the true value is at least that.
func (t *trial) censored(family string, h *sample.Histogram) {
	t.distribution(family, h)
	timeout := float64(t.client.Pods.TimeoutNs)
	for _, member := range metric.Statistics {
		if v, ok := t.metrics[family+"."+member]; ok && v > timeout { // a histogram rounds up
			t.metrics[family+"."+member] = timeout
		}
	}
}
