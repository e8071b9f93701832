package run

import (
	"math"
	"testing"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// loadedPlan asks for two shares of the capacity of rr.
func loadedPlan() plan.Plan {
	p := testPlan("canal")
	p.Twin, p.Paths, p.Repetitions = false, p.Paths[:1], 5
	p.Workloads = nil
	for _, load := range []float64{0.1, 0.5} {
		p.Workloads = append(p.Workloads, plan.Workload{Spec: plan.RR{Load: load}}.Normalize())
	}
	return p.Settle()
}

// saturated is an agent whose capacity differs between trials and profiles.
func saturated(operations map[string][]uint64) func(string, control.Prepare) (*sample.Observation, *control.Error) {
	seen := map[string]int{}
	return func(name string, q control.Prepare) (*sample.Observation, *control.Error) {
		o, err := ordinary(q)
		if list := operations[name]; q.Workload.Traits().Arrival == plan.Saturate && list != nil {
			o.Operations = list[seen[name]%len(list)]
			seen[name]++
		}
		return o, err
	}
}

// TestLoadsAreSharesOfTheCapacity: capacity is measured three times before the first load, the median counts for every
// point under that profile, and the agents are asked for a rate.
func TestLoadsAreSharesOfTheCapacity(t *testing.T) {
	w, p := newWorld("host", "canal"), loadedPlan()
	// In windows of 10 ms: 100,000 to 900,000 per second.
	w.script = saturated(map[string][]uint64{"host/a": {4000, 2000, 3000, 9000, 9000}, "canal/a": {1000, 1000, 7000, 9000, 9000}})
	end, c, _ := perform(t, w, p, Options{})
	if end.Failed != 0 || end.Trials != 2*3*5 {
		t.Fatalf("end %+v", end)
	}
	capacity := map[string]float64{"host": 300_000, "canal": 100_000}
	for i, r := range trials(c) {
		saturates := r.Workload.Traits().Arrival == plan.Saturate
		if i < 6 != (saturates && r.Repetition <= 3) {
			t.Errorf("trial %d is %s, repetition %d", i, r.Key(), r.Repetition)
		}
		if saturates {
			continue
		}
		want := capacity[r.Profile.String()]
		if got := r.Metrics[metric.Capacity]; got != want {
			t.Errorf("%s: capacity %v, want %v", r.Key(), got, want)
		}
		if got := r.Metrics[metric.IntendedRate]; math.Abs(got-want*r.Workload.Traits().Load) > 1e-6 {
			t.Errorf("%s: intended %v of %v", r.Key(), got, want)
		}
	}
	for _, a := range append(w.asked["canal/a"], w.asked["canal/b"]...) {
		q := a.Workload
		if q.Traits().Load != 0 || q.Traits().Open() && q.Traits().Rate != 10_000 && q.Traits().Rate != 50_000 || q.Traits().Arrival == "" {
			t.Errorf("an agent was asked for %s at %v", q, q.Traits().Rate)
		}
	}
}

// TestNoCapacity: without it a load is a failure that says why, and other profiles are measured.
func TestNoCapacity(t *testing.T) {
	w, p := newWorld("host", "canal"), loadedPlan()
	p.Repetitions = 1
	w.script = func(name string, q control.Prepare) (*sample.Observation, *control.Error) {
		if name == "canal/a" && q.Workload.Traits().Arrival == plan.Saturate {
			return nil, &control.Error{Kind: "reset", Message: "by the script"}
		}
		return ordinary(q)
	}
	end, c, _ := perform(t, w, p, Options{})
	if end.Failed != 3 || end.Trials != 6 {
		t.Fatalf("end %+v", end)
	}
	for _, r := range trials(c) {
		if r.Profile == plan.VariantOf("canal") && r.Workload.Traits().Open() && (r.Status != result.Failed || r.Error.Kind != kindNoCapacity) {
			t.Errorf("%s: %s %+v", r.Key(), r.Status, r.Error)
		}
	}
}
