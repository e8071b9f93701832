package compare

import (
	"testing"

	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
)

// Within holds a change of 10 % to budgets, beside the baseline of the same run.
func TestWithin(t *testing.T) {
	const base, change = "canal", "canal(policies=50)"
	cross := plan.Path{From: plan.Pod, To: plan.Pod, Locality: plan.CrossNode}
	service := plan.Path{From: plan.Pod, To: plan.Service, Locality: plan.Remote}
	rr := plan.Workload{Spec: plan.RR{}}.Normalize()
	h := result.Header{Plan: plan.Plan{Baseline: plan.VariantOf(base), Profiles: plan.Variants(base, change), Paths: []plan.Path{cross, service}, Workloads: []plan.Workload{rr}}}
	var recs []result.Record
	add := func(p plan.Variant, path plan.Path, rep int, v float64) {
		recs = append(recs, result.Record{Type: result.TypeTrial, Status: result.OK, Instance: rep,
			Trial: plan.Trial{Case: plan.Case{Profile: p, Path: path, Workload: rr}, Repetition: rep}, Metrics: map[string]float64{"rtt.p99": v}})
	}
	for rep := 1; rep <= 10; rep++ {
		v := 20_000 * (1 + 0.002*float64(rep%4))
		add(plan.VariantOf(base), cross, rep, v)
		add(plan.VariantOf(change), cross, rep, 1.1*v)
		add(plan.VariantOf(change), service, rep, 1.1*v) // a path that the base lacks
	}
	a, err := Analyse(h, recs, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for budget, want := range map[string]State{
		"rr.p99 > +5%": Broken, "rr.p99 > +20%": Kept, "rr.p99 > +10%": Undecided, "rr.p99 > 30us": Kept, "rr.p99 > 21us": Broken,
		"profile=canal(policies=50) rr.p99 > +5%": Broken, "path=pod-to-service/* rr.p99 > 21us": Broken,
	} {
		b, err := ParseBudget(budget)
		if err != nil {
			t.Fatal(err)
		}
		held := Within(Side{Name: "r", Analysis: a}).Hold([]Budget{b}, func(Key) bool { return true })[0]
		if got := Outcome(held); got != want || len(held) == 0 {
			t.Errorf("%s: %s in %d cells, want %s", budget, got, len(held), want)
		}
	}
	for _, budget := range []string{"profile=canal rr.p99 > 1us", "path=pod-to-service/* rr.p99 > +5%"} {
		b, _ := ParseBudget(budget)
		if held := Within(Side{Analysis: a}).Hold([]Budget{b}, func(Key) bool { return true })[0]; len(held) != 0 {
			t.Errorf("%s: %d cells, want none", budget, len(held))
		}
	}
}
