package compare

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// anew says of trials that every repetition had an instance of its own.
func anew(recs []result.Record) []result.Record {
	out := slices.Clone(recs)
	for i := range out {
		out[i].Instance = out[i].Repetition
	}
	return out
}

// lab draws runs of equal profiles, each raised anew in every repetition or block.
type lab struct {
	profiles, repetitions int
	// block is how many repetitions share an instance; 0 is one.
	block int
	// scatter is that of trials, tau that of instances, shift what the whole run is slower by.
	scatter, tau, shift float64
	// slow is by how much p0 is slower, stuck the share of trials that a neighbour makes 1.4 times as slow.
	slow, stuck float64
}

func (l lab) run(r *rand.Rand) []result.Record {
	var recs []result.Record
	own := map[string]float64{}
	for rep := 1; rep <= l.repetitions; rep++ {
		instance := (rep-1)/max(1, l.block) + 1
		add := func(profile string, path plan.Path, w plan.Workload, f float64) {
			// What an instance differs by is the same for all paths and workloads of a repetition.
			k := fmt.Sprint(profile, instance)
			if _, ok := own[k]; !ok {
				own[k] = l.tau * r.NormFloat64()
			}
			if r.Float64() < l.stuck {
				f *= 1.4
			}
			recs = append(recs, result.Record{
				Type: result.TypeTrial, Status: result.OK, Instance: instance,
				Metrics: map[string]float64{metric.ServiceDemand: 1e4 * f * (1 + l.shift) * math.Exp(own[k]+l.scatter*r.NormFloat64())},
				Trial:   plan.Trial{Case: plan.Case{Profile: plan.VariantOf(profile), Path: path, Workload: w}, Repetition: rep},
			})
		}
		for _, w := range []plan.Workload{rr, plan.Workload{Spec: plan.CRR{}}.Normalize()} {
			add("raw", plan.ZeroPath, w, 1)
			add("raw~twin", plan.ZeroPath, w, 1)
			for i := range l.profiles {
				for _, path := range plan.NinePaths[:4] {
					f := 1.0
					if i == 0 {
						f += l.slow
					}
					add(fmt.Sprintf("p%d", i), path, w, f)
				}
			}
		}
	}
	return recs
}

// Equal plans whose runs differ by what the moment does to everything: a gate of the whole comparison cries wolf for at
// most one in twenty pairs. Before, the drift was the median distance of the others, which half of all equal cells
// exceed.
func TestEqualFilesPass(t *testing.T) {
	for _, c := range []struct {
		name string
		lab  lab
	}{
		{"shift 5 %, instances 1 %", lab{repetitions: 10, scatter: 0.02, tau: 0.01, shift: 0.05}},
		{"shift 20 %, instances 2 %", lab{repetitions: 10, scatter: 0.02, tau: 0.02, shift: 0.20}},
		{"five repetitions", lab{repetitions: 5, scatter: 0.02, tau: 0.02, shift: 0.10}},
		{"three repetitions", lab{repetitions: 3, scatter: 0.02, tau: 0.02, shift: 0.10}},
		{"a neighbour in a fifth of the trials", lab{repetitions: 5, scatter: 0.02, tau: 0.01, shift: 0.10, stuck: 0.2}},
	} {
		r := rand.New(rand.NewPCG(71, 1))
		broken := 0
		const pairs = 150
		for range pairs {
			a, b := c.lab, c.lab
			a.profiles, b.profiles, a.shift = 4, 4, 0
			if pairOf(t, a.run(r), b.run(r)).Judge() == Broken {
				broken++
			}
		}
		t.Logf("%s: exit code 3 in %.1f %%", c.name, 100*float64(broken)/pairs)
		if float64(broken) > 0.05*pairs+3 { // one standard deviation
			t.Errorf("%s: exit code 3 in %d of %d pairs", c.name, broken, pairs)
		}
	}
}

// A profile that became 5 % slower is found, and by its name.
func TestPlantedFilesFail(t *testing.T) {
	r := rand.New(rand.NewPCG(72, 1))
	found, pairs, others := 0, 100, 0
	for range pairs {
		one := lab{profiles: 4, repetitions: 10, scatter: 0.02}
		two := one
		two.shift, two.slow = 0.10, 0.05
		hit := false
		for _, m := range pairOf(t, one.run(r), two.run(r)).Judged() {
			hit = hit || m.Verdict == Worse && m.Profile == plan.VariantOf("p0")
			if m.Verdict != Same && m.Verdict != Inconclusive && m.Profile != plan.VariantOf("p0") {
				others++
			}
		}
		if hit {
			found++
		}
	}
	t.Logf("found in %d of %d pairs; %d others called", found, pairs, others)
	if found < 90 || others > 5 {
		t.Errorf("found in %d of %d pairs; %d others called", found, pairs, others)
	}
}

// Where each repetition has an instance of its own, equal profiles are rarely called different within one run, however
// much instances differ; where trials share instances, the instances are what is counted.
func TestEqualInstances(t *testing.T) {
	for _, c := range []lab{
		{repetitions: 10, scatter: 0.02, tau: 0.02}, {repetitions: 30, scatter: 0.02, tau: 0.02}, {repetitions: 3, scatter: 0.02, tau: 0.01},
		{repetitions: 30, block: 6, scatter: 0.02, tau: 0.02},
	} {
		r := rand.New(rand.NewPCG(73, 1))
		c.profiles = 4
		calls, all, aa := 0, 0, 0
		for range 60 {
			a := analyse(t, header("raw"), c.run(r))
			for _, x := range a.Comparisons {
				all++
				if x.Verdict == Better || x.Verdict == Worse {
					calls++
				}
				if x.Widened != 0 {
					t.Fatalf("%+v: widened", x)
				}
			}
			if slices.ContainsFunc(a.Floors, func(f Floor) bool { v := f.Twins[0].Verdict; return v == Better || v == Worse }) {
				aa++
			}
		}
		t.Logf("%+v: %.1f %% of %d called different, twins in %.1f %% of runs", c, 100*float64(calls)/float64(all), all, 100*float64(aa)/60)
		if float64(calls) > 0.05*float64(all) || aa > 7 { // 3 are expected; 8 come by chance in 1 of 100
			t.Errorf("%+v: %d of %d called different, twins in %d of 60 runs", c, calls, all, aa)
		}
	}
}
