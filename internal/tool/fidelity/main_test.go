package main

import (
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/judge/fidelity"
	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// TestTable: bare nodes are set beside each other, and the farthest row is the one farthest from the lab in either direction.
func TestTable(t *testing.T) {
	row := func(profile string, lab, cluster, ratio float64) fidelity.Row {
		return fidelity.Row{
			Profile: plan.Variant(profile), Context: "a", Path: plan.Path{From: plan.Pod, To: plan.Pod, Locality: plan.CrossNode},
			Workload: plan.Workload{Spec: plan.RR{}}.Normalize(), Metric: metric.ServiceDemand,
			Lab: lab, Cluster: cluster, Quotient: stat.Effect{Ratio: ratio}, Verdict: fidelity.Near,
		}
	}
	bare := row("host", 5000, 5500, 1.1)
	bare.Verdict = ""
	got := table([]*fidelity.Page{{Demand: []fidelity.Row{
		bare, row("ptp", 10000, 10100, 1.02), row("ptp", 10000, 9000, 0.97), row("ptp", 10000, 10300, 1.01),
	}}})
	for _, want := range []string{
		"| ptp | 3 | +1.0 % | -10.0 % | +1.0 % | -3.0 % | +10.0 % | +10.0 % |",
		"| ptp | pod-to-pod/cross-node | rr | 10000 ns/transaction | 9000 | -10.0 % | -3.0 % | within 5 % |",
	} {
		if !strings.Contains(got, want+"\n") {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
}
