package run

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/env"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// asleep is a workload that sends nothing.
const asleep = "asleep"

// quietly registers it, as what reads a site of type resting.
var quietly = sync.OnceFunc(func() {
	Rest{
		Quiet: plan.Quiet{Name: asleep, Window: time.Minute, Barred: func(plan.Path) string { return "" }, Unfit: func(time.Duration) string { return "" }},
		Unable: func(at env.Site) string {
			if _, ok := at.(resting); !ok {
				return "nothing to be read"
			}
			return ""
		},
		Read: func(_ context.Context, at env.Site, k plan.Case, window time.Duration) (*sample.Observation, error) {
			return at.(resting).rest(k, window)
		},
		Derive: func(o *sample.Observation) (map[string]float64, []sample.Warning) {
			return map[string]float64{metric.IdleCPU: o.Rest[0].Whole.Cores}, nil
		},
	}.Register()
})

// resting is a world whose nodes can be read.
type resting struct{ *world }

func (w resting) At(plan.Variant) env.Site { return w }

func (resting) rest(_ plan.Case, window time.Duration) (*sample.Observation, error) {
	return &sample.Observation{Side: control.SideClient, ElapsedNs: int64(window), Rest: []sample.NodeRest{{Whole: sample.Usage{Cores: 0.02}}}}, nil
}

func idlePlan() plan.Plan {
	quietly()
	p := podPlan()
	p.Paths = []plan.Path{{From: plan.Pod, To: plan.Pod, Locality: plan.CrossNode}}
	p.Workloads = []plan.Workload{plan.Kind(asleep).Default()}
	return p
}

// TestRestIsReadByTheEnvironment: no agent is started, and the plan's window does not shorten that of the workload.
func TestRestIsReadByTheEnvironment(t *testing.T) {
	w := newWorld("canal")
	_, c, _ := perform(t, resting{w}, idlePlan(), Options{})
	all := trials(c)
	if len(all) != 1 || all[0].Status != result.OK || all[0].Metrics[metric.IdleCPU] != 0.02 || all[0].WindowNs != int64(time.Minute) {
		t.Fatalf("%+v", all)
	}
	if len(w.starts) != 0 {
		t.Errorf("agents %v", w.starts)
	}
}

func TestRestNeedsASiteThatCanBeRead(t *testing.T) {
	_, _, err := begin(t, t.Context(), newWorld("canal"), idlePlan(), Options{})
	if err == nil || !strings.Contains(err.Error(), "nothing to be read") {
		t.Fatalf("%v", err)
	}
}
