package sample

import (
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// TestPodsWithoutAnAnswerHaveTheTimeout: the distribution has all pods, and the parts of all add up to their times.
func TestPodsWithoutAnAnswerHaveTheTimeout(t *testing.T) {
	const timeout = time.Second
	o := NewPods("client", timeout, AttachedInProcess)
	for range 18 {
		o.AddPod(NewPod{Whole: 20e6, Start: 15e6, Parts: map[string]int64{metric.WaitDevice: 5e6, metric.WaitConnect: 15e6}, Dials: 14, DialNs: 300})
	}
	o.FailPod("timeout", "no answer", NewPod{Whole: 999, Start: 99, Parts: map[string]int64{metric.WaitDevice: 7e6}, Dials: 300, DialNs: 5000})
	o.FailPod("not attached", "no luck", NewPod{})
	p := o.Pods
	if o.Operations != 18 || p.Unanswered != 2 || p.First.Count() != 20 || p.Start.Count() != 20 || p.Failure != "no answer" || p.Dials != 18*14+300 || p.DialNs != 18*300+5000 {
		t.Errorf("%+v: %+v", o, p)
	}
	for name, h := range map[string]*Histogram{"due": p.First, "start": p.Start} {
		if over := h.Max() - int64(timeout); over < 0 || over > int64(timeout)/1000 || h.Quantile(0.9) > 21e6 || h.Quantile(0.95) < int64(timeout) {
			t.Errorf("%s: max %d, p90 %d, p95 %d", name, h.Max(), h.Quantile(0.9), h.Quantile(0.95))
		}
	}
	var sum int64
	for _, ns := range p.Waits {
		sum += ns
	}
	if want := int64(18*20e6) + 2*int64(timeout); sum != want || p.Waits[metric.WaitUnanswered] != 2*int64(timeout)-7e6 {
		t.Errorf("the parts add up to %d, the times to %d: %v", sum, want, p.Waits)
	}
	if p.Slowest[metric.WaitUnanswered] == 0 {
		t.Errorf("the slowest pod waited for %v", p.Slowest)
	}
}
