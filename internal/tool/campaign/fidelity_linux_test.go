package main

import (
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/judge/fidelity"
	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// TestDistances: bare nodes are set beside each other, the farthest row is the one farthest from the lab in either
// direction, and the rows of a dataplane that was measured again go while those of others stay.
func TestDistances(t *testing.T) {
	row := func(name string, lab, cluster, ratio float64) fidelity.Row {
		return fidelity.Row{
			Profile: plan.VariantOf(name), Context: "a", Path: plan.Path{From: plan.Pod, To: plan.Pod, Locality: plan.CrossNode},
			Workload: plan.Workload{Spec: plan.RR{}}.Normalize(), Metric: metric.ServiceDemand,
			Lab: lab, Cluster: cluster, Quotient: stat.Effect{Ratio: ratio}, Verdict: fidelity.Near,
		}
	}
	bare := row("host", 5000, 5500, 1.1)
	bare.Verdict = ""
	old := []profile.Comparison{{Dataplane: "ptp", Lab: 1, Cluster: 9}, {Dataplane: "bridge", Measured: "2026-01-02", Repetitions: "10", Window: "1s", Lab: 1, Cluster: 1.5, Quotient: 1}}
	rows := merge(old, comparisons(&fidelity.Page{Repetitions: 4, Demand: []fidelity.Row{
		bare, row("ptp", 10000, 10100, 1.02), row("ptp", 10000, 9000, 0.97), row("ptp", 10000, 10300, 1.01),
	}}))
	got := distances(rows)
	for _, want := range []string{
		"| bridge | 2026-01-02, 10 of 1s | 0 of 1 | 0 | +50.0 % | +50.0 % | +0.0 % | +0.0 % | +0.0 % | +0.0 % |",
		"| ptp | 0001-01-01, 4 of 0s | 3 of 3 | 0 | +1.0 % | -10.0 % | +1.0 % | -3.0 % | +10.0 % | +10.0 % |",
	} {
		if !strings.Contains(got, want+"\n") {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
	if n := strings.Count(got, "\n"); n != 4 {
		t.Errorf("%d lines:\n%s", n, got)
	}
}
