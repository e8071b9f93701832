package run

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/env"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// narrow is a world whose paths carry 300 Mbit/s, of which the switch drops the rest, and whose senders offer 1 Gbit/s.
type narrow struct {
	*world
	dropped uint64
}

const narrowest, fastest = 300e6, 1e9

func newNarrow(profiles ...string) *narrow {
	n := &narrow{world: newWorld(profiles...)}
	n.use(func(_ string, p control.Prepare) (*sample.Observation, *control.Error) {
		return n.stream(p, narrowest), nil
	})
	return n
}

// stream is what a side of a UDP stream sees.
func (n *narrow) stream(p control.Prepare, capacity float64) *sample.Observation {
	offered := p.Workload.Traits().Rate
	if offered == 0 || offered > fastest {
		offered = fastest
	}
	datagrams := func(rate float64) uint64 {
		return uint64(rate * p.Window.Seconds() / 8 / float64(p.Workload.Traits().Message))
	}
	o := &sample.Observation{Side: p.Side, ElapsedNs: int64(p.Window), CPU: sample.CPUTime{ThreadsNs: 1000, ProcessNs: 1000}}
	sent, got := datagrams(offered), datagrams(min(offered, capacity))
	size := uint64(p.Workload.Traits().Message)
	if p.Side == control.SideClient {
		o.Operations, o.BytesSent = sent, sent*size
		return o
	}
	o.Operations, o.BytesReceived = got, got*size
	o.Datagrams = &sample.Datagrams{Expected: sent, Received: got, Lost: sent - got}
	return o
}

func (n *narrow) At(plan.Variant) env.Site { return n }

// Drops grow by more than any probe loses from one reading to the next.
func (n *narrow) Drops(r plan.Route) ([]sample.Drop, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dropped += 1e9
	return []sample.Drop{{Host: r.Variant.String(), Device: "eth0", Kind: sample.DropQdisc, What: "tbf", Packets: n.dropped}}, nil
}

func throughputPlan() plan.Plan {
	p := testPlan("host")
	p.Twin, p.Repetitions = false, 1
	p.Paths = p.Paths[:1]
	p.Workloads = []plan.Workload{plan.Workload{Spec: plan.Throughput{}}.Normalize()}
	return p
}

func TestThroughputIsSearched(t *testing.T) {
	_, c, _ := perform(t, newNarrow("host"), throughputPlan(), Options{})
	r := trials(c)[0]
	if r.Status != result.OK {
		t.Fatalf("failed: %+v", r.Error)
	}
	got := r.Metrics[metric.Throughput]
	if got > narrowest*1.001 || got < narrowest*0.98 {
		t.Errorf("throughput %g, want %g", got, narrowest)
	}
	if f := r.Metrics[metric.FirstFailing]; f <= got || f > 1.03*narrowest {
		t.Errorf("the lowest rate that failed is %g", f)
	}
	if r.Metrics["loss.qdisc"] <= 0 || r.Metrics["loss.path"] != 0 {
		t.Errorf("loss is not located: %v", r.Metrics)
	}
	if _, ok := r.Metrics[metric.Goodput]; ok {
		t.Error("a search has a goodput of its own")
	}
	if first := r.Probes[0]; first.Held || !strings.Contains(first.Where, "host eth0 tbf") {
		t.Errorf("the first probe says %+v", first)
	}
	if last := r.Probes[len(r.Probes)-1]; !last.Confirming || !last.Held || r.Metrics[metric.FrameLossRate] != 0 {
		t.Errorf("the last probe is %+v", last)
	}
	if r.WindowNs != int64(len(r.Probes))*int64(shortestProbe) {
		t.Errorf("%d probes measured for %s", len(r.Probes), time.Duration(r.WindowNs))
	}
}

// TestNoThroughput has a path on which everything is lost: first of some streams nothing arrives at all.
func TestNoThroughput(t *testing.T) {
	w := newNarrow("host")
	w.use(func(_ string, p control.Prepare) (*sample.Observation, *control.Error) {
		if p.Side == control.SideServer && p.Workload.Traits().Rate == 0 {
			return nil, &control.Error{Kind: control.KindNoTraffic, Message: "nothing came"}
		}
		return w.stream(p, 0), nil
	})
	_, c, _ := perform(t, w, throughputPlan(), Options{})
	r := trials(c)[0]
	if r.Status != result.Failed || r.Error.Kind != kindNoThroughput {
		t.Fatalf("status %s, %+v", r.Status, r.Error)
	}
	if len(r.Probes) == 0 || r.Metrics != nil {
		t.Errorf("%d probes, metrics %v", len(r.Probes), r.Metrics)
	}
}

func TestWatchWithoutWindow(t *testing.T) {
	read := func() ([]sample.Drop, error) { return nil, context.Canceled }
	never := &watch{read: read, warmup: time.Hour, opened: make(chan struct{})}
	never.begin()
	broken := &watch{read: read, opened: make(chan struct{})}
	broken.begin()
	for name, w := range map[string]*watch{"nothing to watch": {}, "never begun": {read: read}, "never opened": never, "unreadable": broken} {
		if got := w.end(); got != nil {
			t.Errorf("%s: %v", name, got)
		}
	}
}
