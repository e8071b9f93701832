package outcome

import (
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
)

func TestNewPods(t *testing.T) {
	w := plan.Workload{Spec: plan.TTFR{Rate: 2}}
	o := &sample.Observation{Side: "client", ElapsedNs: 10e9, Operations: 14, Errors: map[string]uint64{"timeout": 1},
		Schedule: &sample.Schedule{Due: 20, Sent: 15, Lag: sample.NewHistogram()},
		Pods:     &sample.Pods{First: sample.NewHistogram(), Waits: map[string]int64{"device": 14 * 600, "connect": 14 * 400}}}
	for range 14 {
		o.Pods.First.Record(1000)
	}
	m, warnings := Derive(w, o, nil, Conditions{})
	if m["ttfr_wait.device"]+m["ttfr_wait.connect"] != m["ttfr.mean"] || m["ttfr.mean"] != 1000 || m["ttfr.max"] != 1000 {
		t.Errorf("%v", m)
	}
	if _, ok := m["ttfr.p50"]; ok {
		t.Error("14 pods are too few for a median")
	}
	if m["error_rate"] != 1.0/15 || m["intended_rate"] != 2 || m["offered_rate"] != 1.5 {
		t.Errorf("%v", m)
	}
	said := false
	for _, x := range warnings {
		said = said || x.ID == OfferedLoad && strings.Contains(x.Message, "20 pods were due in the window and 15 were started")
	}
	if !said {
		t.Errorf("nothing says that the rate was not held: %v", warnings)
	}
}
