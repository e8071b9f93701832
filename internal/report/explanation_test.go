package report_test

import (
	"bytes"
	"testing"

	"github.com/cnibench/cnibench/internal/judge/explain"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/tool/golden"
)

// TestExplanation is the text of a difference that is in one part, and spread over many others, each within its error.
func TestExplanation(t *testing.T) {
	k := plan.Case{Path: plan.Path{From: plan.Pod, To: plan.Pod, Locality: plan.CrossNode}, Workload: plan.Workload{Spec: plan.RR{}}.Normalize()}
	side := func(name plan.Variant, demand float64) explain.Side {
		s := explain.Side{Case: k, Unit: "ns/transaction", Demand: explain.Interval{Value: demand, Low: demand - 100, High: demand + 100},
			Samples: 2500, Trials: 12, Event: "cpu-clock", Rate: 283}
		s.Profile = name
		return s
	}
	change := func(id, title string, a, b, half float64) explain.Change {
		by := explain.Interval{Value: b - a, Low: b - a - half, High: b - a + half}
		return explain.Change{Part: explain.Part{ID: id, Family: "netfilter", Title: title}, By: by, Noise: by.Low <= 0 && by.High >= 0, A: a, B: b}
	}
	d := explain.Difference{
		A: side(plan.VariantOf("bridge"), 16000), B: side(plan.VariantOf("canal"), 20000), Total: explain.Interval{Value: 4000, Low: 3800, High: 4200},
		Changes: []explain.Change{
			change("rules forward", "netfilter rules, forward", 1000, 3000, 400), change("memory", "memory of packets and sockets", 1500, 1900, 500),
			change("sched", "scheduling and wake-ups", 4000, 4350, 700), change("unexplained", "not explained", 100, 150, 120),
		},
		Families: []explain.Change{change("netfilter", "netfilter", 1000, 3000, 400)},
		Rest:     explain.Several{Change: change("", "", 14900, 16850, 600), Parts: 12},
		Spread:   explain.Several{Change: change("", "", 12000, 13550, 500), Parts: 10},
	}
	x := report.Explanation{A: plan.VariantOf("bridge"), B: plan.VariantOf("canal"), Differences: []explain.Difference{d}}
	for _, format := range []string{"txt", "md"} {
		var b bytes.Buffer
		if err := renderers[format](&b, report.BuildExplanation(x, report.Run{})); err != nil {
			t.Fatal(err)
		}
		golden.Check(t, "explanation."+format, b.Bytes())
	}
}
