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

// resting is a world whose nodes can be read.
type resting struct{ *world }

func (w resting) At(plan.Variant) env.Site { return w }

func (resting) Rest(_ context.Context, v plan.Variant, _ plan.Path, window time.Duration) (*sample.Observation, error) {
	part := sample.RestPart{Name: "kube-system/" + v.String(), Network: true, Usage: sample.Usage{Cores: 0.02}}
	return &sample.Observation{Side: control.SideClient, ElapsedNs: int64(window),
		Rest: []sample.NodeRest{{Side: control.SideClient, Parts: []sample.RestPart{part}}, {Side: control.SideServer}}}, nil
}

func idlePlan() plan.Plan {
	p := podPlan()
	p.Paths = []plan.Path{{From: plan.Pod, To: plan.Pod, Locality: plan.CrossNode}}
	p.Workloads = []plan.Workload{plan.Workload{Spec: plan.Idle{}}.Normalize()}
	return p
}

// TestIdleIsReadByTheEnvironment: no agent is started, and the plan's window does not shorten that of idle.
func TestIdleIsReadByTheEnvironment(t *testing.T) {
	w := newWorld("canal")
	_, c, _ := perform(t, resting{w}, idlePlan(), Options{})
	all := trials(c)
	if len(all) != 1 || all[0].Status != result.OK || all[0].Metrics["idle_cpu.network"] != 0.01 || all[0].WindowNs != int64(time.Minute) {
		t.Fatalf("%+v", all)
	}
	if len(w.starts) != 0 {
		t.Errorf("agents %v", w.starts)
	}
}

func TestIdleNeedsNodesWithDaemons(t *testing.T) {
	_, _, err := begin(t, t.Context(), newWorld("canal"), idlePlan(), Options{})
	if err == nil || !strings.Contains(err.Error(), noRest) {
		t.Fatalf("%v", err)
	}
}
