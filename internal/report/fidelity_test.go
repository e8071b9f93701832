package report_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/judge/fidelity"
	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/tool/golden"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// TestFidelity: summary, rows and conditions are on the page; names of a cluster cannot become markup.
func TestFidelity(t *testing.T) {
	effect := func(ratio float64) stat.Effect {
		return stat.Effect{Ratio: ratio, Low: 0.999 * ratio, High: 1.001 * ratio, Confidence: 0.95, P: 0.001, N: 12, Test: stat.MannWhitney}
	}
	row := func(profile plan.Variant, lab, cluster float64, v fidelity.Verdict) fidelity.Row {
		return fidelity.Row{
			Profile: profile, Context: "a|b", Path: plan.Path{From: plan.Pod, To: plan.Pod, Locality: plan.CrossNode}, Workload: plan.Workload{Spec: plan.RR{}}.Normalize(),
			Metric: metric.ServiceDemand, Lab: lab, Cluster: cluster, Quotient: effect(cluster / lab), Verdict: v,
		}
	}
	kernel := 0.06
	d := report.BuildFidelity(&fidelity.Page{
		Header: result.Header{
			Created: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Plan: plan.Plan{Duration: 500 * time.Millisecond, Seed: 7},
			Facts: facts.Facts{facts.Kernel: "6.18", facts.KubeCNI: "a|b"},
		},
		Demand: []fidelity.Row{row("host", 5000, 5000, ""), row("flannel-vxlan", 10000, 12000, fidelity.Differs)}, Kernel: &kernel, Repetitions: 12,
		Failed: []fidelity.Failure{{Case: "host@a pod-to-pod/cross-node rr", Failed: 1, Tried: 13, Kind: "timeout"}},
	})
	for _, format := range []string{"md", "txt", "json"} {
		var b bytes.Buffer
		if err := renderers[format](&b, d); err != nil {
			t.Fatal(err)
		}
		golden.Check(t, "fidelity."+format, b.Bytes())
	}
}
