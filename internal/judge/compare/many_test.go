package compare

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// page is a run of equal profiles, of which one may be slower than the rest.
type page struct {
	profiles, repetitions int
	// noise is the coefficient of variation of a trial, drift that from one repetition to the next.
	noise, drift float64
	// slow is by how much the CPU time of profile "p0" is longer on the paths that slowed says.
	slow   float64
	slowed func(plan.Path) bool
	// anew is true if every repetition has an instance of its own.
	anew bool
}

// run draws the page: the baseline is on one path and stands in for the others, as raw does.
func (p page) run(r *rand.Rand) (result.Header, []result.Record) {
	paths := plan.NinePaths
	h := result.Header{Plan: plan.Plan{Baseline: plan.VariantOf("raw"), Paths: paths}}
	var recs []result.Record
	level := 0.0
	for rep := 1; rep <= p.repetitions; rep++ {
		level += p.drift * r.NormFloat64()
		add := func(profile string, path plan.Path, f float64) {
			instance := 0
			if p.anew {
				instance = rep
			}
			recs = append(recs, result.Record{
				Type: result.TypeTrial, Status: result.OK, Instance: instance,
				Metrics: map[string]float64{metric.ServiceDemand: 1e4 * f * math.Exp(level+p.noise*r.NormFloat64())},
				Trial:   plan.Trial{Case: plan.Case{Profile: plan.VariantOf(profile), Path: path, Workload: rr}, Repetition: rep},
			})
		}
		add("raw", plan.ZeroPath, 1)
		add("raw~twin", plan.ZeroPath, 1)
		for i := range p.profiles {
			for _, path := range paths {
				f := 1.0
				if i == 0 && p.slowed != nil && p.slowed(path) {
					f = 1 + p.slow
				}
				add(fmt.Sprintf("p%d", i), path, f)
			}
		}
	}
	return h, recs
}

// Pages of equal profiles on a busy machine: few comparisons are called different, and few columns have any that is.
func TestEqualProfiles(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 1))
	for _, n := range []int{5, 7, 10} {
		var calls, comparisons, columns, wrong int
		for range 40 {
			h, recs := page{profiles: 22, repetitions: n, noise: 0.08, drift: 0.05}.run(r)
			a := analyse(t, h, recs)
			called := map[string]bool{}
			for _, x := range a.Comparisons {
				comparisons++
				if x.Verdict == Better || x.Verdict == Worse {
					calls++
					called[x.Profile.String()] = true
				}
			}
			columns += 22
			wrong += len(called)
		}
		c, w := float64(calls)/float64(comparisons), float64(wrong)/float64(columns)
		t.Logf("n=%d: %d comparisons, %.2f %% called different; %.2f %% of the columns have such a call", n, comparisons, 100*c, 100*w)
		if comparisons < 40*22*5 || c > 0.05 || w > 0.08 {
			t.Errorf("n=%d: called different %.1f %%, columns %.1f %%", n, 100*c, 100*w)
		}
	}
}

// One slower profile among twenty equal ones is found, wherever it is slower, and the others are left alone.
func TestPlantedSlowdown(t *testing.T) {
	everywhere := func(plan.Path) bool { return true }
	pods := func(p plan.Path) bool { return p.From == plan.Pod && p.To != plan.Host }
	one := func(p plan.Path) bool { return p == podPod }
	for _, c := range []struct {
		name   string
		page   page
		least  float64
		within int
	}{
		{"quick plan, all paths", page{repetitions: 5, noise: 0.02, slow: 0.1, slowed: everywhere}, 0.95, 5},
		{"standard plan, all paths", page{repetitions: 10, noise: 0.04, slow: 0.1, slowed: everywhere}, 0.95, 5},
		{"standard plan, between pods", page{repetitions: 10, noise: 0.04, slow: 0.1, slowed: pods}, 0.90, 2},
		{"standard plan, one path", page{repetitions: 10, noise: 0.02, slow: 0.1, slowed: one}, 0.90, 1},
	} {
		r := rand.New(rand.NewPCG(32, 1))
		c.page.profiles, c.page.drift, c.page.anew = 21, 0.02, true
		found, there, wrong, others := 0, 0, 0, 0
		const runs = 40
		for range runs {
			h, recs := c.page.run(r)
			for _, x := range analyse(t, h, recs).Comparisons {
				switch {
				case x.Profile == plan.VariantOf("p0") && c.page.slowed(x.Path):
					there++
					if x.Verdict == Worse {
						found++
					}
				default:
					others++
					if x.Verdict == Worse || x.Verdict == Better {
						wrong++
					}
				}
			}
		}
		share := float64(found) / float64(there)
		t.Logf("%s: found %.1f %%, %.2f %% of %d others called different", c.name, 100*share, 100*float64(wrong)/float64(others), others)
		if there != runs*c.within || share < c.least || float64(wrong) > 0.05*float64(others) {
			t.Errorf("%s: %d of %d found, %d of %d others called different", c.name, found, there, wrong, others)
		}
	}
}

// Only what can reach the level is corrected for, and only what is judged.
func TestFamilies(t *testing.T) {
	v := []float64{1, 1.1, 1.2, 1.3, 1.4}
	w := []float64{2, 2.1, 2.2, 2.3, 2.4}
	var all []result.Record
	for _, path := range plan.NinePaths[:4] {
		all = append(all, trials("raw", path, metric.ServiceDemand, v...)...)
		all = append(all, trials("x", path, metric.ServiceDemand, w...)...)
		all = append(all, trials("y", path, metric.ServiceDemand, v...)...)
	}
	all = append(all, trials("raw", plan.NinePaths[4], metric.ServiceDemand, 1, 2, 3)...)
	all = append(all, trials("x", plan.NinePaths[4], metric.ServiceDemand, 7, 8, 9)...)
	all = append(all, trials("raw", plan.NinePaths[5], metric.SoftIRQShare, v...)...)
	all = append(all, trials("x", plan.NinePaths[5], metric.SoftIRQShare, w...)...)
	least := 2. / 252
	for _, x := range analyse(t, header("raw", "x", "y"), all).Comparisons {
		family, adjusted, verdict := 5, 5*least/4, Worse
		switch {
		case x.Metric == metric.SoftIRQShare:
			family, verdict = 0, None
			if !math.IsNaN(x.Adjusted) {
				t.Errorf("%+v: a corrected p value of what is not judged", x)
			}
			adjusted = x.Adjusted
		case x.Path == plan.NinePaths[4]:
			adjusted = x.P // three repetitions, by Student's test
		case x.Profile == plan.VariantOf("y"):
			family, adjusted, verdict = 4, 1, Inconclusive
		}
		if x.Family != family || x.Verdict != verdict || !(math.Abs(x.Adjusted-adjusted) < 1e-12 || math.IsNaN(adjusted)) {
			t.Errorf("%s %s: family %d, adjusted %g, %q; want %d, %g, %q", x.Profile, x.Path, x.Family, x.Adjusted, x.Verdict, family, adjusted, verdict)
		}
	}
	// One of nine at the smallest p value that five repetitions have is not enough, and need says what is.
	all = nil
	for i, path := range plan.NinePaths {
		all = append(all, trials("raw", path, metric.ServiceDemand, v...)...)
		other := v
		if i == 0 {
			other = w
		}
		all = append(all, trials("x", path, metric.ServiceDemand, other...)...)
	}
	x := analyse(t, header("raw", "x"), all).Comparisons[0]
	if x.P > 0.01 || math.Abs(x.Adjusted-9*least) > 1e-12 || x.Verdict != Inconclusive || x.Need != 1 {
		t.Errorf("one of nine: %+v", x)
	}
}

// A collector that has to thin keeps the same repetitions in every cell, leaves small cells alone, and says so.
func TestThinning(t *testing.T) {
	c := Collector{bound: 500}
	add := func(profile string, rep int) error {
		for _, rec := range trials(profile, podPod, metric.ServiceDemand, 100+float64(rep%7)) {
			rec.Repetition = rep
			if err := c.Add(&rec); err != nil {
				return err
			}
		}
		return nil
	}
	for rep := 1; rep <= 2000; rep++ {
		for _, p := range []string{"raw", "x"} {
			if err := add(p, rep); err != nil {
				t.Fatal(err)
			}
		}
		if rep <= 10 {
			if err := add("small", rep); err != nil {
				t.Fatal(err)
			}
		}
	}
	a, err := c.Analyse(header("raw", "x", "small"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	cell := func(p string) Cell {
		c, _ := a.Cell(Key{plan.Case{Profile: plan.VariantOf(p), Path: podPod, Workload: rr}, metric.ServiceDemand})
		return c
	}
	raw, x, small := cell("raw"), cell("x"), cell("small")
	if raw.N < 60 || raw.N > 500 || raw.N != x.N || small.N != 10 {
		t.Fatalf("kept %d, %d and %d", raw.N, x.N, small.N)
	}
	for i := range raw.Samples {
		if raw.Samples[i].Repetition != x.Samples[i].Repetition {
			t.Fatalf("kept other repetitions: %d and %d", raw.Samples[i].Repetition, x.Samples[i].Repetition)
		}
	}
	if math.Abs(raw.Median-103) > 1 {
		t.Errorf("the median of what is kept is %g", raw.Median)
	}
	said := func(c Cell) bool {
		for _, w := range c.Warnings {
			if w.ID == thinned {
				return true
			}
		}
		return false
	}
	if !said(raw) || !said(x) || said(small) {
		t.Errorf("warnings: %v %v %v", raw.Warnings, x.Warnings, small.Warnings)
	}
	if n := a.Comparisons[0].N; a.Comparisons[0].Profile == plan.VariantOf("x") && n != raw.N {
		t.Errorf("%d pairs of %d", n, raw.N)
	}
	// The same trial again and again cannot be thinned, and is refused.
	c, err = Collector{bound: 500}, nil
	for i := 0; i < 2000 && err == nil; i++ {
		err = add("x", 3)
	}
	if err == nil || !strings.Contains(err.Error(), "the same trials of x pod-to-pod/cross-node rr again and again") {
		t.Errorf("one trial, repeated without end: %v", err)
	}
}

// What differs by the margin is called the same in at most 5 of 100 cases; what is equal is, where the interval is a little
// longer than the margin too.
func TestEquivalence(t *testing.T) {
	share := func(slow, noise float64) float64 {
		r := rand.New(rand.NewPCG(33, 1))
		same, all := 0, 0
		for range 60 {
			h, recs := page{profiles: 1, repetitions: 10, noise: noise, slow: slow, slowed: func(plan.Path) bool { return true }, anew: true}.run(r)
			for _, x := range analyse(t, h, recs).Comparisons {
				if x.Profile == plan.VariantOf("p0") {
					all++
					if x.Verdict == Same {
						same++
						if max(x.High, 1/x.Low) > 1.06 {
							t.Errorf("the same by an interval of %.3f to %.3f", x.Low, x.High)
						}
					}
				}
			}
		}
		return float64(same) / float64(all)
	}
	for _, c := range []struct{ slow, noise, least, most float64 }{
		{0.03, 0.01, 0.02, 0.06}, {0.03, 0.03, 0, 0.06}, {0.05, 0.01, 0, 0.001}, {0, 0.01, 0.99, 1}, {0, 0.02, 0.75, 1},
	} {
		got := share(c.slow, c.noise)
		t.Logf("slower by %g at a noise of %g: %.1f %% called the same", c.slow, c.noise, 100*got)
		if got < c.least || got > c.most {
			t.Errorf("slower by %g at a noise of %g: %.3f called the same, want %g to %g", c.slow, c.noise, got, c.least, c.most)
		}
	}
}
