package outcome

import (
	"testing"

	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
)

func TestChurn(t *testing.T) {
	w := plan.Workload{Spec: plan.RR{}}
	client := &sample.Observation{Side: "client", ElapsedNs: 2e9, Operations: 100, CPU: sample.CPUTime{ThreadsNs: 1000}}
	quiet, _ := Derive(w, client, nil, Conditions{})
	seen := &sample.Churn{Due: 40, Made: 8, AppliedNs: 8000, CPUNs: 4000, Enforced: sample.NewHistogram()}
	for i := range 8 {
		seen.Enforced.Record(int64(100 * (i + 1)))
	}
	m, warnings := Derive(w, client, nil, Conditions{Churn: seen})
	for name, want := range map[string]float64{"change_rate": 4, "change_time": 1000, "change_cpu": 500, "enforcement.mean": 450, "enforcement.max": 800} {
		if m[name] != want {
			t.Errorf("%s is %v, want %v", name, m[name], want)
		}
	}
	if _, ok := m["enforcement.p50"]; ok {
		t.Error("8 changes are too few for a median")
	}
	if m["cpu.client"] != quiet["cpu.client"] {
		t.Error("the CPU time of changes is in that of the path")
	}
	ids := map[string]bool{}
	for _, x := range warnings {
		ids[x.ID] = true
	}
	if !ids[churnBehind] {
		t.Errorf("8 of 40 changes are no doubt: %v", warnings)
	}
	seen.Due = 9
	if _, warnings := Derive(w, client, nil, Conditions{Churn: seen}); len(warnings) > 0 && warnings[0].ID == churnBehind {
		t.Error("one change at the edge is a doubt")
	}
	if m, _ := Derive(w, client, nil, Conditions{Churn: &sample.Churn{Due: 1}}); m["change_rate"] != 0 || m["enforcement.max"] != 0 {
		t.Errorf("no change has %v", m)
	}
}
