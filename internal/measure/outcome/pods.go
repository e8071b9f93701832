package outcome

import (
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// deriveNewPods derives the metrics of ttfr from the client's account of its pods.
func (t *trial) deriveNewPods() {
	c := t.client
	if c == nil {
		return
	}
	t.deriveErrorRate(c)
	t.deriveOpenLoop(c)
	if c.Pods == nil {
		return
	}
	pods := float64(c.Pods.First.Count())
	for part, ns := range c.Pods.Waits {
		t.putMetric(metric.TTFRWait+"."+part, float64(ns)/pods, pods > 0)
	}
	if c.Pods.TimeoutNs == 0 {
		t.deriveDistribution(metric.OneDial, c.Pods.First)
		return
	}
	t.deriveCensored(metric.FromDue, c.Pods.First)
	t.deriveCensored(metric.FromStart, c.Pods.Start)
	t.metrics[metric.TTFRUnanswered] = float64(c.Pods.Unanswered)
	t.putMetric(metric.TTFRDials, float64(c.Pods.Dials)/pods, pods > 0)
	t.putMetric(metric.TTFRDialCPU, float64(c.Pods.DialNs)/pods, pods > 0)
}

// deriveCensored derives the metrics of times that are cut off at the timeout. It limits their values to the timeout,
// because a histogram rounds up. A value of exactly the timeout means that the true value is at least that.
func (t *trial) deriveCensored(family string, h *sample.Histogram) {
	t.deriveDistribution(family, h)
	timeout := float64(t.client.Pods.TimeoutNs)
	for _, member := range metric.Statistics {
		if v, ok := t.metrics[family+"."+member]; ok && v > timeout { // a histogram rounds up
			t.metrics[family+"."+member] = timeout
		}
	}
}
