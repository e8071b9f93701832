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
)

// nursery is a world that makes pods.
type nursery struct {
	*world
	make func(control.Arrivals) (*sample.Observation, error)
}

func (n nursery) At(plan.Variant) env.Site { return n }
func (n nursery) LatePods() bool           { return false }

func (n nursery) NewPods(_ context.Context, a control.Arrivals) (*sample.Observation, error) {
	return n.make(a)
}

func podPlan() plan.Plan {
	p := testPlan("canal")
	p.Baseline, p.Twin, p.Repetitions = plan.VariantOf("canal"), false, 1
	p.Paths = p.Paths[:1]
	p.Workloads = []plan.Workload{plan.Workload{Spec: plan.TTFR{Rate: 200}}.Normalize()}
	return p
}

func TestNewPodsAreMadeByTheEnvironment(t *testing.T) {
	w := newWorld("canal")
	n := nursery{world: w, make: func(a control.Arrivals) (*sample.Observation, error) {
		if a.Rate != 200 || a.Window != 10*time.Millisecond || a.Timeout != 5*time.Second || a.To.Address != "10.0.0.2" {
			t.Errorf("asked for %+v", a)
		}
		if err := a.Opens(); err != nil {
			return nil, err
		}
		first := sample.NewHistogram()
		first.Record(500)
		return &sample.Observation{Side: control.SideClient, ElapsedNs: int64(a.Window), Operations: 1, Pods: &sample.Pods{First: first}}, nil
	}}
	_, c, _ := perform(t, n, podPlan(), Options{})
	all := trials(c)
	if len(all) != 1 || all[0].Status != result.OK || all[0].Metrics["ttfr.max"] == 0 {
		t.Fatalf("%+v", all)
	}
	if w.starts["canal/a"] != 0 || w.starts["canal/b"] != 1 {
		t.Errorf("agents %v: want one, the server", w.starts)
	}
}

func TestNewPodsThatFailAreRecorded(t *testing.T) {
	n := nursery{world: newWorld("canal"), make: func(a control.Arrivals) (*sample.Observation, error) {
		if err := a.Opens(); err != nil {
			return nil, err
		}
		return nil, &control.Error{Kind: "not attached", Message: "no room"}
	}}
	_, c, _ := perform(t, n, podPlan(), Options{})
	all := trials(c)
	if len(all) != 1 || all[0].Status != result.Failed || all[0].Error.Kind != "not attached" || all[0].Error.Side != control.SideClient {
		t.Fatalf("%+v", all)
	}
}

func TestNewPodsNeedAnEnvironmentThatMakesThem(t *testing.T) {
	_, _, err := begin(t, t.Context(), newWorld("canal"), podPlan(), Options{})
	if err == nil || !strings.Contains(err.Error(), noNewPods) {
		t.Fatalf("%v", err)
	}
}
