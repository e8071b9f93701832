package compare

import (
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

var ttfr = plan.Workload{Spec: plan.TTFR{}}.Normalize()

const podTimeout = 5e9

// nursery makes trials of new pods with such medians, of which a share got no answer.
func nursery(profile, attached string, lost float64, values ...float64) []result.Record {
	var out []result.Record
	for i, v := range values {
		pods := &sample.Pods{Attached: attached, TimeoutNs: podTimeout}
		m := map[string]float64{metric.FromDue + ".p50": v, metric.FromDue + ".mean": v, metric.ErrorRate: lost}
		if attached == "" { // as an earlier version wrote it
			pods.TimeoutNs = 0
			m = map[string]float64{metric.OneDial + ".p50": v, metric.ServiceDemand: v, metric.ErrorRate: lost}
		} else {
			m[metric.ServiceDemand] = v
		}
		out = append(out, result.Record{Type: result.TypeTrial, Status: result.OK, Metrics: m, Client: &sample.Observation{Pods: pods},
			Trial: plan.Trial{Case: plan.Case{Profile: plan.VariantOf(profile), Path: podPod, Workload: ttfr}, Repetition: i + 1}})
	}
	return out
}

func five(f float64) []float64 { return []float64{100 * f, 101 * f, 99 * f, 100.5 * f, 99.5 * f} }

// verdictOn returns the verdict on x by a metric, "-" without a comparison.
func verdictOn(a *Analysis, name string) Verdict {
	for _, x := range a.Comparisons {
		if x.Profile == plan.VariantOf("x") && x.Metric == name {
			return x.Verdict
		}
	}
	return "-"
}

// TestFailuresAreNeverBetter: a profile that loses more than a twentieth of its work is never better, nor best, nor what
// another is worse than, in whatever metric.
func TestFailuresAreNeverBetter(t *testing.T) {
	for _, tc := range []struct {
		lost, baseLost float64
		factor         float64
		want           Verdict
		ranked         int
	}{
		{0, 0, 0.5, Better, 2},
		{0.05, 0, 0.5, Better, 2},
		{0.06, 0, 0.5, Inconclusive, 1},
		{0.06, 0, 2, Worse, 1},
		{0, 0.06, 2, Inconclusive, 1},
		{0, 0.06, 0.5, Better, 1},
		{0.9, 0.9, 0.5, Inconclusive, 0},
	} {
		a := analyse(t, header("raw", "x"), nursery("raw", sample.AttachedInProcess, tc.baseLost, five(1)...), nursery("x", sample.AttachedInProcess, tc.lost, five(tc.factor)...))
		for _, name := range []string{metric.FromDue + ".p50", metric.ServiceDemand} {
			if got := verdictOn(a, name); got != tc.want {
				t.Errorf("%+v: %s is %s", tc, name, got)
			}
			if ranks := a.Rank(podPod, ttfr, name); len(ranks) != tc.ranked {
				t.Errorf("%+v: %d ranked by %s", tc, len(ranks), name)
			}
		}
		c, _ := a.Cell(Key{plan.Case{Profile: plan.VariantOf("x"), Path: podPod, Workload: ttfr}, metric.FromDue + ".p50"})
		if said := slices.ContainsFunc(c.Warnings, func(w stat.Warning) bool { return w.ID == manyFailed }); said != (tc.lost > 0.05) {
			t.Errorf("%+v: %v", tc, c.Warnings)
		}
	}
	// The share of failures itself is judged: fewer are better.
	a := analyse(t, header("raw", "x"), lossy("raw", 0.5, 0.51, 0.49, 0.5, 0.505), lossy("x", 0.2, 0.21, 0.19, 0.2, 0.205))
	if got := verdictOn(a, metric.ErrorRate); got != Better {
		t.Errorf("fewer failures are %s", got)
	}
}

// lossy makes trials with such shares of failures.
func lossy(profile string, shares ...float64) []result.Record {
	out := nursery(profile, sample.AttachedInProcess, 0, make([]float64, len(shares))...)
	for i := range out {
		out[i].Metrics = map[string]float64{metric.ErrorRate: shares[i]}
	}
	return out
}

// TestLowerBounds: a median at the timeout is a lower bound. Two of them say nothing of each other.
func TestLowerBounds(t *testing.T) {
	ends := []float64{podTimeout, podTimeout, podTimeout, podTimeout, podTimeout}
	a := analyse(t, header("raw", "x"), nursery("raw", sample.AttachedInProcess, 0, ends...), nursery("x", sample.AttachedInProcess, 0, ends...))
	if got := verdictOn(a, metric.FromDue+".p50"); got != Inconclusive {
		t.Errorf("two lower bounds are %s", got)
	}
	for name, want := range map[string]bool{metric.FromDue + ".p50": true, metric.FromDue + ".mean": false, metric.ServiceDemand: false} {
		if c, _ := a.Cell(Key{plan.Case{Profile: plan.VariantOf("x"), Path: podPod, Workload: ttfr}, name}); c.AtLeast != want {
			t.Errorf("%s: a lower bound: %v", name, c.AtLeast)
		}
	}
	// One that keeps a limit above it may be anything beyond.
	near := []float64{0.99 * podTimeout, 0.995 * podTimeout, 0.992 * podTimeout, 0.99 * podTimeout, 0.995 * podTimeout}
	p := pairOf(t, nursery("x", sample.AttachedInProcess, 0, near...), nursery("x", sample.AttachedInProcess, 0, ends...))
	for _, budget := range []string{metric.FromDue + ".p50 > 60s", metric.FromDue + ".p50 > +5%"} {
		b, err := ParseBudget(budget)
		if err != nil {
			t.Fatal(err)
		}
		if hs := holdOne(p, b); len(hs) != 1 || hs[0].State != Undecided || hs[0].Why != "it is a lower bound" {
			t.Errorf("%s: %+v", budget, hs)
		}
	}
	a = analyse(t, header("raw", "x"), nursery("raw", sample.AttachedInProcess, 0, near...), nursery("x", sample.AttachedInProcess, 0, ends...))
	if got := verdictOn(a, metric.FromDue+".p50"); got != Inconclusive {
		t.Errorf("a lower bound beside a value near it is %s", got)
	}
	a = analyse(t, header("raw", "x"), nursery("raw", sample.AttachedInProcess, 0, five(1)...), nursery("x", sample.AttachedInProcess, 0.6, ends...))
	if got := verdictOn(a, metric.FromDue+".p50"); got != Worse {
		t.Errorf("a lower bound of 5 s against 100 ns is %s", got)
	}
}

// TestAttachedInDifferentWays: no verdict compares pods that this program attached with those of executed plugins.
func TestAttachedInDifferentWays(t *testing.T) {
	a := analyse(t, header("raw", "x", "y"), nursery("raw", sample.AttachedInProcess, 0, five(1)...), nursery("x", sample.AttachedByPlugins, 0, five(0.5)...),
		nursery("y", sample.AttachedInProcess, 0, five(2)...))
	for _, name := range []string{metric.FromDue + ".p50", metric.ServiceDemand} {
		if got := verdictOn(a, name); got != "-" {
			t.Errorf("%s: %s", name, got)
		}
		if ranks := a.Rank(podPod, ttfr, name); len(ranks) != 2 || ranks[0].Cell.Profile != plan.VariantOf("raw") || ranks[1].ToBest.Verdict != Worse {
			t.Errorf("%+v", ranks)
		}
	}
}

// TestPodsOfTwoVersions: a file of an earlier version is read, and what both files have is not judged.
func TestPodsOfTwoVersions(t *testing.T) {
	side := func(name, attached string, f float64) Side {
		h := header("raw", "x")
		return Side{name, h, analyse(t, h, nursery("raw", attached, 0, five(1)...), nursery("x", attached, 0, five(f)...))}
	}
	p, err := NewPair(side("old", "", 1), side("new", sample.AttachedInProcess, 0.5), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range p.Matches {
		if m.Verdict != None || strings.HasPrefix(m.Metric, "ttfr") {
			t.Errorf("%s: %q", m.Key, m.Verdict)
		}
	}
	said := slices.ContainsFunc(p.Differences, func(d Difference) bool {
		return d == Difference{"attachment of new pods of x", sample.AttachedUnknown, sample.AttachedInProcess}
	})
	if len(p.Judged()) > 0 || !said || len(p.OnlyA) == 0 || len(p.OnlyB) == 0 {
		t.Errorf("%d judged, %+v, only %v, %v", len(p.Judged()), p.Differences, p.OnlyA, p.OnlyB)
	}
}

// TestBudgetsOfNewPods: a budget on a change is not decided by pods that were attached in different ways, nor by two lower
// bounds.
func TestBudgetsOfNewPods(t *testing.T) {
	side := func(attached string, lost float64, values ...float64) Side {
		h := header("raw", "x")
		return Side{"file", h, analyse(t, h, nursery("raw", attached, 0, five(1)...), nursery("x", attached, lost, values...))}
	}
	ends := []float64{podTimeout, podTimeout, podTimeout, podTimeout, podTimeout}
	for _, tc := range []struct {
		a, b   Side
		budget string
		want   State
		why    string
	}{
		{side(sample.AttachedInProcess, 0, five(1)...), side(sample.AttachedByPlugins, 0, five(3)...), "ttfr.from_due.p50 > +5%", Undecided, "different ways"},
		{side(sample.AttachedInProcess, 0.6, ends...), side(sample.AttachedInProcess, 0.6, ends...), "ttfr.from_due.p50 > +5%", Undecided, "lower bounds"},
		{side(sample.AttachedInProcess, 0, five(1)...), side(sample.AttachedInProcess, 0, five(3)...), "ttfr.from_due.p50 > +5%", Broken, ""},
	} {
		p, err := NewPair(tc.a, tc.b, nil)
		if err != nil {
			t.Fatal(err)
		}
		b, err := ParseBudget("profile=x " + tc.budget)
		if err != nil {
			t.Fatal(err)
		}
		held := p.Hold([]Budget{b}, func(Key) bool { return true })
		if len(held) != 1 || len(held[0]) != 1 || held[0][0].State != tc.want || !strings.Contains(held[0][0].Why, tc.why) {
			t.Errorf("%s: %+v, want %s (%s)", tc.budget, held, tc.want, tc.why)
		}
	}
}
