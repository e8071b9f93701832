package compare

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/advice"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

var (
	podPod   = plan.Path{From: plan.Pod, To: plan.Pod, Locality: plan.CrossNode}
	hostHost = plan.Path{From: plan.Host, To: plan.Host, Locality: plan.CrossNode}
	rr       = plan.Workload{Spec: plan.RR{}}.Normalize()
)

// trials makes one finished trial per value, in repetitions 1, 2, ...
func trials(profile string, path plan.Path, name string, values ...float64) []result.Record {
	var out []result.Record
	for i, v := range values {
		out = append(out, result.Record{
			Type: result.TypeTrial, Status: result.OK, Metrics: map[string]float64{name: v},
			Trial: plan.Trial{Case: plan.Case{Profile: plan.VariantOf(profile), Path: path, Workload: rr}, Repetition: i + 1},
		})
	}
	return out
}

func failed(profile string, path plan.Path, repetitions ...int) []result.Record {
	var out []result.Record
	for _, rep := range repetitions {
		out = append(out, result.Record{
			Type: result.TypeTrial, Status: result.Failed, Error: &result.Failure{Kind: "timeout", Message: "no reply"},
			Trial: plan.Trial{Case: plan.Case{Profile: plan.VariantOf(profile), Path: path, Workload: rr}, Repetition: rep},
		})
	}
	return out
}

func header(baseline string, profiles ...string) result.Header {
	return result.Header{Plan: plan.Plan{Baseline: plan.VariantOf(baseline), Profiles: plan.Variants(profiles...)}}
}

func analyse(t *testing.T, h result.Header, recs ...[]result.Record) *Analysis {
	t.Helper()
	a, err := Analyse(h, slices.Concat(recs...), Options{})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestVerdicts(t *testing.T) {
	base := []float64{100, 101, 99, 100.5, 99.5}
	times := func(f float64) []float64 {
		out := make([]float64, len(base))
		for i, b := range base {
			out[i] = f * b
		}
		return out
	}
	noisy := []float64{80, 130, 95, 110, 100}
	zeros := []float64{0, 0, 0, 0, 0}
	for _, c := range []struct {
		name     string
		metric   string
		base     []float64
		other    []float64
		twin     []float64
		want     Verdict
		wantNeed bool
	}{
		{"dearer", metric.ServiceDemand, base, times(1.5), base, Worse, false},
		{"cheaper", metric.ServiceDemand, base, times(0.7), base, Better, false},
		{"faster", metric.Goodput, base, times(1.5), base, Better, false},
		{"slower", metric.Goodput, base, times(0.7), base, Worse, false},
		{"not judged", metric.SoftIRQShare, base, times(1.5), base, None, false},
		{"identical", metric.ServiceDemand, base, base, base, Same, false},
		{"identical and steady", metric.ServiceDemand, []float64{100, 100.1, 99.9, 100, 100}, []float64{100, 99.9, 100, 100.1, 100}, []float64{100, 100, 100, 100, 100}, Same, false},
		{"apart, but within what twins differ by", metric.ServiceDemand, base, times(1.05), times(1.08), Inconclusive, false},
		{"apart, and beyond what twins differ by", metric.ServiceDemand, base, times(1.15), times(1.08), Worse, false},
		{"apart, but perhaps beyond what twins differ by", metric.ServiceDemand, base, []float64{102, 103, 104, 140, 150}, times(1.08), Inconclusive, false},
		{"noise", metric.ServiceDemand, base, noisy, base, Inconclusive, true},
		{"no loss beside no loss", metric.FrameLossRate, zeros, zeros, zeros, Same, false},
		{"loss beside none", metric.FrameLossRate, zeros, []float64{.1, .2, .1, .3, .1}, zeros, Worse, false},
		{"some loss beside none", metric.FrameLossRate, zeros, []float64{0, 0, 0, 0, .1}, zeros, Inconclusive, false},
		{"three trials prove nothing", metric.ServiceDemand, []float64{1, 1, 1}, []float64{9, 9, 9}, nil, Inconclusive, true},
		{"nor that nothing differs", metric.ServiceDemand, []float64{1, 1, 1}, []float64{1, 1, 1}, nil, Inconclusive, true},
		{"four do", metric.ServiceDemand, []float64{1, 1, 1, 1}, []float64{9, 9, 9, 9}, nil, Worse, false},
	} {
		a := analyse(t, header("raw", "x"), trials("raw", podPod, c.metric, c.base...), trials("x", podPod, c.metric, c.other...),
			trials("raw~twin", podPod, c.metric, c.twin...))
		if len(a.Comparisons) != 1 {
			t.Fatalf("%s: %d comparisons", c.name, len(a.Comparisons))
		}
		x := a.Comparisons[0]
		if x.Verdict != c.want || (x.Need > 0) != c.wantNeed {
			t.Errorf("%s: got %q, need %d (%+v, floor %g), want %q", c.name, x.Verdict, x.Need, x.Effect, x.Widened, c.want)
		}
	}
}

// TestCounted: instructions of sampled trials have a verdict of their own; the other numbers of such a trial do not count.
func TestCounted(t *testing.T) {
	sampled := func(profile string, values ...float64) []result.Record {
		recs := trials(profile, podPod, metric.Instructions, values...)
		for i := range recs {
			recs[i].Type = result.TypeSampled
			recs[i].Metrics[metric.ServiceDemand] = 1
		}
		return recs
	}
	a := analyse(t, header("raw", "raw", "canal"), trials("raw", podPod, metric.ServiceDemand, 100, 101, 99, 100, 100), trials("canal", podPod, metric.ServiceDemand, 100, 99, 101, 100, 100),
		sampled("raw", 60e3, 60.1e3, 59.9e3, 60e3, 60.2e3)[1:], sampled("canal", 90e3, 90.1e3, 89.9e3, 90e3, 90.2e3)[1:])
	k := Key{plan.Case{Profile: plan.VariantOf("canal"), Path: podPod, Workload: rr}, metric.Instructions}
	cell, ok := a.Cell(k)
	if !ok || cell.N != 4 || cell.Unit != "1/transaction" || cell.Median < 89e3 || slices.ContainsFunc(cell.Warnings, func(w stat.Warning) bool { return w.ID == missingValues }) {
		t.Errorf("%+v", cell)
	}
	i := slices.IndexFunc(a.Comparisons, func(x Comparison) bool { return x.Key == k })
	if i < 0 || a.Comparisons[i].Verdict != Worse {
		t.Errorf("%+v", a.Comparisons)
	}
	k.Metric = metric.ServiceDemand
	if cell, _ := a.Cell(k); cell.N != 5 || cell.Median < 90 {
		t.Errorf("%+v", cell)
	}
}

func TestFloor(t *testing.T) {
	steady := []float64{100, 100, 100, 100, 100}
	for _, c := range []struct {
		name     string
		first    []float64
		second   []float64
		low      float64
		high     float64
		measured bool
	}{
		{"no twin", steady, nil, minFloor, minFloor, false},
		{"one trial tells nothing", []float64{100}, []float64{150}, minFloor, minFloor, false},
		{"perfect twins have the least floor", steady, steady, minFloor, minFloor, true},
		{"the ratio seen", steady, []float64{105, 105, 105, 105, 105}, 0.0499, 0.0501, true},
		{"either way round", []float64{105, 105, 105, 105, 105}, steady, 0.0499, 0.0501, true},
		{"no less than the standard error", []float64{90, 95, 100, 105, 110}, []float64{91, 95, 100, 105, 109}, 0.04, 0.09, true},
		{"zeros have no ratio", []float64{0, 0, 0}, []float64{0, 0, 0}, minFloor, minFloor, false},
	} {
		a := analyse(t, header("raw"), trials("raw", hostHost, metric.ServiceDemand, c.first...),
			trials("raw~twin", hostHost, metric.ServiceDemand, c.second...))
		if f := a.Floors[0]; f.Share < c.low || f.Share > c.high || f.Measured != c.measured {
			t.Errorf("%s: got %g, measured %v, want %g to %g", c.name, f.Share, f.Measured, c.low, c.high)
		}
		if slices.Contains(a.Profiles, plan.VariantOf("raw~twin")) || slices.ContainsFunc(a.Cells, func(c Cell) bool { return strings.Contains(c.Profile.String(), "~") }) {
			t.Errorf("%s: the twin is shown as a profile", c.name)
		}
	}
	// The largest of the paths counts.
	a := analyse(t, header("host"), trials("host", hostHost, metric.ServiceDemand, steady...), trials("host", podPod, metric.ServiceDemand, steady...),
		trials("host~twin", hostHost, metric.ServiceDemand, 102, 102, 102, 102, 102), trials("host~twin", podPod, metric.ServiceDemand, 107, 107, 107, 107, 107))
	if f := a.Floors[0]; math.Abs(f.Share-0.07) > 1e-9 || len(f.Twins) != 2 {
		t.Errorf("pooled over two paths: %+v", f)
	}
}

func TestStandIn(t *testing.T) {
	v := []float64{1, 1, 1, 1, 1}
	sd := metric.ServiceDemand
	a := analyse(t, header("raw", "x"), trials("raw", hostHost, sd, v...), trials("x", podPod, sd, v...), trials("x", hostHost, sd, v...))
	for _, c := range a.Comparisons {
		if want := c.Path == podPod; (c.BaselinePath == hostHost) != want {
			t.Errorf("%s: baseline path %q", c.Path, c.BaselinePath)
		}
	}
	if len(a.Comparisons) != 2 {
		t.Errorf("%d comparisons, want 2", len(a.Comparisons))
	}
	// A path within a node is compared with none between nodes, but with that of the same baseline within a node.
	for _, path := range []plan.Path{{From: plan.Pod, To: plan.Pod, Locality: plan.SameNode}, {From: plan.Pod, To: plan.Service, Locality: plan.Local}, {From: plan.Pod, To: plan.Self}} {
		x, raw := trials("x", path, sd, v...), trials("raw", hostHost, sd, v...)
		if a = analyse(t, header("raw", "x"), raw, x); len(a.Comparisons) != 0 {
			t.Errorf("%s is compared with %s", path, a.Comparisons[0].BaselinePath)
		}
		within := plan.Path{From: plan.Host, To: plan.Host, Locality: plan.SameNode}
		a = analyse(t, header("host", "x"), trials("host", hostHost, sd, v...), trials("host", within, sd, v...), x)
		if len(a.Comparisons) != 1 || a.Comparisons[0].BaselinePath != within {
			t.Errorf("%s: %+v", path, a.Comparisons)
		}
	}
	// Tried and failed is not the same as having no such path.
	a = analyse(t, header("raw", "x"), trials("raw", hostHost, sd, v...), failed("raw", podPod, 1, 2), trials("x", podPod, sd, v...))
	if len(a.Comparisons) != 0 {
		t.Errorf("a failed baseline was replaced: %+v", a.Comparisons)
	}
	// Nor is having the path, but not this metric.
	a = analyse(t, header("raw", "x"), trials("raw", hostHost, sd, v...), trials("raw", podPod, metric.Goodput, v...), trials("x", podPod, sd, v...))
	if len(a.Comparisons) != 0 {
		t.Errorf("a baseline that has the path was replaced: %+v", a.Comparisons)
	}
	// A dataplane with pods lends its host-to-host to nobody.
	a = analyse(t, header("canal", "x"), trials("canal", hostHost, sd, v...), trials("x", podPod, sd, v...))
	if len(a.Comparisons) != 0 {
		t.Errorf("canal stood in: %+v", a.Comparisons)
	}
}

func TestCells(t *testing.T) {
	sd := metric.ServiceDemand
	some := trials("x", podPod, sd, 3, 1, 2)
	some[0].Warnings = []sample.Warning{{ID: "softnet", Message: "dropped 1"}}
	some[2].Warnings = []sample.Warning{{ID: "softnet", Message: "dropped 3"}, {ID: "softnet", Message: "dropped 4"}} // one trial
	some[1].Metrics["rtt.p50"] = math.NaN()
	slices.Reverse(some)
	end := []result.Record{{Type: result.TypeEnd, End: &result.End{}}}
	a := analyse(t, header("raw", "x"), some, failed("x", podPod, 4, 5), failed("y", hostHost, 1, 2), end)
	c, ok := a.Cell(Key{plan.Case{Profile: plan.VariantOf("x"), Path: podPod, Workload: rr}, sd})
	if !ok || c.N != 3 || c.Median != 2 || c.Failed != 2 || c.Unit != "ns/transaction" || !slices.Equal(c.Values(), []float64{3, 1, 2}) {
		t.Errorf("cell: %+v", c)
	}
	got := fmt.Sprint(c.Warnings)
	// Of several the first repetition's message is kept, whatever the order of the file.
	for _, want := range []string{"{softnet dropped 1 2}", "{failed-trials 2 of 5 trials failed: timeout: no reply 2}", stat.Few} {
		if !strings.Contains(got, want) {
			t.Errorf("warnings %s lack %s", got, want)
		}
	}
	// A case that failed altogether is missing from no table of its workload, and has no number in any.
	for _, name := range a.Metrics {
		c, ok := a.Cell(Key{plan.Case{Profile: plan.VariantOf("y"), Path: hostHost, Workload: rr}, name})
		if !ok || c.N != 0 || c.Failed != 2 || !math.IsNaN(c.Median) {
			t.Errorf("failed case, %s: %v %+v", name, ok, c)
		}
	}
	if c, ok := a.Cell(Key{plan.Case{Profile: plan.VariantOf("x"), Path: podPod, Workload: rr}, "rtt.p50"}); !ok || c.N != 0 || !slices.ContainsFunc(c.Warnings, func(w stat.Warning) bool { return w.ID == notFinite }) {
		t.Errorf("a NaN: %v %+v", ok, c)
	}
	// Two of the three finished trials have no median: that it stands on one is said, and only there.
	for name, want := range map[string]bool{sd: false, "rtt.p50": true} {
		c, _ := a.Cell(Key{plan.Case{Profile: plan.VariantOf("x"), Path: podPod, Workload: rr}, name})
		if got := strings.Contains(fmt.Sprint(c.Warnings), "{missing-values 2 of 3 finished trials"); got != want {
			t.Errorf("%s: warnings %v", name, c.Warnings)
		}
	}
	if len(a.Unknown) != 0 {
		t.Errorf("unknown: %v", a.Unknown)
	}
	if a := analyse(t, header("raw"), trials("raw", hostHost, "warp_factor", 9)); !slices.Equal(a.Unknown, []string{"warp_factor"}) || len(a.Cells) != 0 {
		t.Errorf("unknown metric: %v, %d cells", a.Unknown, len(a.Cells))
	}
	// Nothing finished anywhere: one cell says so.
	if a := analyse(t, header("raw"), failed("x", podPod, 1)); len(a.Cells) != 1 || a.Cells[0].Failed != 1 {
		t.Errorf("all failed: %+v", a.Cells)
	}
}

func TestPairs(t *testing.T) {
	s := func(reps ...int) (out []Sample) {
		for _, r := range reps {
			out = append(out, Sample{Repetition: r, Value: float64(r)})
		}
		return out
	}
	for _, c := range []struct {
		x, y []Sample
		want int
	}{
		{s(1, 2, 3), s(1, 2, 3), 3}, {s(1, 3, 5), s(2, 3, 4, 5), 2}, {nil, s(1), 0}, {s(1, 1, 2), s(1, 1), 2}, {s(9), s(1, 2), 0},
	} {
		var a, b []Sample
		for x, y := range pairsOf(c.x, c.y) {
			a, b = append(a, x), append(b, y)
		}
		if len(a) != c.want || !slices.Equal(a, b) {
			t.Errorf("%v %v: got %v %v", c.x, c.y, a, b)
		}
	}
}

// What one invocation measured of a repetition is no pair with what another measured hours later.
func TestResumedRepetitionsAreNotPairs(t *testing.T) {
	raw := trials("raw", podPod, metric.ServiceDemand, 100, 100, 100, 100, 100, 100, 100, 300)
	x := trials("x", podPod, metric.ServiceDemand, 101, 102, 101, 103, 101, 102, 101, 101)
	last := len(raw) - 1
	at := func(recs ...[]result.Record) (pairs int) {
		a := analyse(t, header("raw", "x"), recs...)
		one, _ := a.Cell(Key{plan.Case{Profile: plan.VariantOf("raw"), Path: podPod, Workload: rr}, metric.ServiceDemand})
		two, _ := a.Cell(Key{plan.Case{Profile: plan.VariantOf("x"), Path: podPod, Workload: rr}, metric.ServiceDemand})
		for range pairsOf(one.Samples, two.Samples) {
			pairs++
		}
		return pairs
	}
	end := []result.Record{{Type: result.TypeEnd, End: &result.End{Reason: result.Killed}}}
	if got := at(raw, x[:last], end, x[last:]); got != last {
		t.Errorf("the last repetition of x was resumed: %d pairs, want %d", got, last)
	}
	if got := at(raw, x, end); got != last+1 {
		t.Errorf("in one go: %d pairs, want %d", got, last+1)
	}
}

// From 7 repetitions on, drift that both share does not hide a difference: the test is the paired one.
func TestTestIsChosenByRepetitions(t *testing.T) {
	sd := metric.ServiceDemand
	drift := []float64{100, 140, 90, 200, 120, 160, 80}
	var slower []float64
	for i, d := range drift {
		slower = append(slower, d*(1.1+0.001*float64(i)))
	}
	for n, want := range map[int]stat.Test{6: stat.MannWhitney, 7: stat.SignedRank} {
		a := analyse(t, header("raw", "x"), trials("raw", podPod, sd, drift[:n]...), trials("x", podPod, sd, slower[:n]...))
		x := a.Comparisons[0]
		if x.Test != want || (x.Verdict == Worse) != (want == stat.SignedRank) {
			t.Errorf("n=%d: %s, %q", n, x.Test, x.Verdict)
		}
	}
	// A trial that failed on one side leaves six pairs of seven.
	part := slices.Concat(trials("x", podPod, sd, slower...)[:6], failed("x", podPod, 7))
	if a := analyse(t, header("raw", "x"), trials("raw", podPod, sd, drift...), part); a.Comparisons[0].Test != stat.MannWhitney {
		t.Errorf("six pairs: %s", a.Comparisons[0].Test)
	}
}

func TestBaselines(t *testing.T) {
	v := []float64{1, 1, 1, 1, 1}
	sd := metric.ServiceDemand
	recs := slices.Concat(trials("raw", hostHost, sd, v...), trials("x", hostHost, sd, v...), trials("y", hostHost, sd, v...))
	a, err := Analyse(header("raw", "x", "y"), recs, Options{Baseline: plan.VariantOf("x")})
	if err != nil || a.Profiles[0] != plan.VariantOf("x") || len(a.Comparisons) != 2 || a.Comparisons[0].Baseline != plan.VariantOf("x") {
		t.Errorf("baseline x: %v %+v", err, a)
	}
	if _, err := Analyse(header("raw", "x"), recs, Options{Baseline: plan.VariantOf("nosuch")}); err == nil || !strings.Contains(advice.Of(err), "raw, x, y") {
		t.Errorf("unknown baseline: %v, hint %q", err, advice.Of(err))
	}
	if a, err := Analyse(header("gone", "x"), recs, Options{}); err != nil || len(a.Comparisons) != 0 {
		t.Errorf("a planned baseline without trials: %v", err)
	}
	if a, err := Analyse(result.Header{}, nil, Options{}); err != nil || len(a.Cells)+len(a.Floors)+len(a.Comparisons) != 0 {
		t.Errorf("nothing at all: %v %+v", err, a)
	}
}

func TestNeed(t *testing.T) {
	e := func(n int, ratio, low, high float64) stat.Effect {
		return stat.Effect{N: n, Ratio: ratio, Low: low, High: high}
	}
	for _, c := range []struct {
		name            string
		e               stat.Effect
		widened, margin float64
		want            int
	}{
		{"four times the repetitions halve the interval", e(10, math.Exp(0.1), math.Exp(-0.1), math.Exp(0.3)), 0, 0.01, 30},
		{"nearly there", e(10, math.Exp(0.1), math.Exp(-0.001), math.Exp(0.2)), 0, 0.01, 1},
		{"towards same", e(10, 1, math.Exp(-0.2), math.Exp(0.2)), 0, math.Expm1(0.1), 19},
		{"below the least", e(1, 2, 2, 2), 0, 0.01, 3},
		{"whichever takes fewer", e(10, math.Exp(0.05), math.Exp(-0.15), math.Exp(0.25)), 0, math.Expm1(0.15), 19},
		{"the widening stays", e(10, math.Exp(0.2), math.Exp(-0.1), math.Exp(0.5)), math.Expm1(0.1), 0.01, 30},
		{"no number would do", e(10, math.Exp(0.05), math.Exp(-0.1), math.Exp(0.2)), math.Expm1(0.1), 0.03, 0},
		{"equal, and the margin beyond reach", e(10, 1, math.Exp(-0.1), math.Exp(0.1)), 0, 1e-9, most},
		{"unknown", e(9, math.NaN(), math.NaN(), math.NaN()), 0, 0.01, 0},
	} {
		r := rules{confidence: 0.95, margin: c.margin}
		if got := neededValues(Comparison{Effect: c.e, Widened: c.widened}, r, false); got != c.want {
			t.Errorf("%s: got %d, want %d", c.name, got, c.want)
		}
	}
}

func TestRank(t *testing.T) {
	times := func(f float64) []float64 { return []float64{f * 100, f * 101, f * 99, f * 100.5, f * 99.5} }
	for name, want := range map[string]string{metric.ServiceDemand: "a b c", metric.Goodput: "c b a", metric.SoftIRQShare: ""} {
		an := analyse(t, header("a", "b", "c"), trials("c", podPod, name, times(2)...), trials("a", podPod, name, times(1)...), trials("b", podPod, name, times(1.5)...))
		var got []string
		ranks := an.Rank(podPod, rr, name)
		for _, s := range ranks {
			got = append(got, s.Cell.Profile.String())
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: got %v, want %s", name, got, want)
		}
		if len(ranks) > 0 && (ranks[0].ToBest.Verdict != None || ranks[2].ToBest.Verdict != Worse || ranks[0].ToLast.Verdict != Better || ranks[2].ToLast.Verdict != None) {
			t.Errorf("%s: %+v", name, ranks)
		}
	}
}

// TestSurvivors: what is left of a profile of which most trials failed is never better, nor best, nor what another is worse
// than. Before, it could be: the trials that a path survives are its fast ones.
func TestSurvivors(t *testing.T) {
	four := func(f float64) []float64 { return []float64{100 * f, 101 * f, 99 * f, 100 * f} }
	few := func(profile string) []result.Record {
		return slices.Concat(trials(profile, podPod, metric.ServiceDemand, four(0.5)...), failed(profile, podPod, 5, 6, 7, 8, 9, 10))
	}
	whole := func(profile string) []result.Record { return trials(profile, podPod, metric.ServiceDemand, four(1)...) }
	for _, recs := range [][]result.Record{slices.Concat(whole("raw"), few("x")), slices.Concat(few("raw"), whole("x"))} {
		a := analyse(t, header("raw", "x"), recs)
		if v := a.Comparisons[0].Verdict; v != Inconclusive {
			t.Errorf("%s", v)
		}
		if ranks := a.Rank(podPod, rr, metric.ServiceDemand); len(ranks) != 1 || ranks[0].Cell.Failing() {
			t.Errorf("%+v", ranks)
		}
	}
}

// A profile measured as two: the share of comparisons that call them different must stay at what was promised, with
// one instance of each and drift as it is on a busy machine.
func TestSameAgainstSame(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	for _, n := range []int{5, 10} {
		apart, total := 0, 0
		for range 400 {
			level := 0.0
			var raw, twin, x []float64
			for range n {
				level += 0.05 * r.NormFloat64()
				one := func() float64 { return math.Exp(level + 0.08*r.NormFloat64()) }
				raw, twin, x = append(raw, one()), append(twin, one()), append(x, one())
			}
			a := analyse(t, header("raw", "x"), trials("raw", podPod, metric.ServiceDemand, raw...),
				trials("raw~twin", podPod, metric.ServiceDemand, twin...), trials("x", podPod, metric.ServiceDemand, x...))
			if v := a.Comparisons[0].Verdict; v == Better || v == Worse {
				apart++
			}
			total++
		}
		if share := float64(apart) / float64(total); share > 0.07 {
			t.Errorf("n=%d: called different in %.1f %%", n, 100*share)
		}
	}
}

func TestTable(t *testing.T) {
	v := []float64{1, 1, 1, 1, 1}
	sd := metric.ServiceDemand
	a := analyse(t, header("raw", "x"), trials("x", podPod, sd, v...), trials("raw", hostHost, sd, v...))
	tab, ok := a.Table(rr, sd)
	if !ok || tab.Unit != "ns/transaction" || !slices.Equal(tab.Profiles, plan.Variants("raw", "x")) || !slices.Equal(tab.Paths, []plan.Path{hostHost, podPod}) {
		t.Fatalf("table: %v %+v", ok, tab)
	}
	if tab.Rows[0][0].Cell == nil || tab.Rows[0][1].Cell != nil || tab.Rows[1][1].Comparison == nil || tab.Rows[0][0].Comparison != nil {
		t.Errorf("rows: %+v", tab.Rows)
	}
	if _, ok := a.Table(rr, metric.Goodput); ok {
		t.Error("a table of a metric that nobody measured")
	}
}

func TestWarningsAreInTheManual(t *testing.T) {
	manual, err := os.ReadFile("../../../docs/reference/warnings.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{someFailed, missingValues, thinned, notFinite, stat.Few, stat.Spread, stat.Outlier, stat.Trend} {
		if !strings.Contains(string(manual), "\n| `"+id+"` |") {
			t.Errorf("docs/reference/warnings.md does not say what %s means", id)
		}
	}
}

// TestRepetitionsOf: what a test counts as one value may be several repetitions.
func TestRepetitionsOf(t *testing.T) {
	for _, x := range []struct{ values, n, trials, want int }{{3, 10, 10, 3}, {1, 5, 10, 2}, {331, 5, 10, 662}, {1, 4, 10, 3}, {2, 0, 0, 2}, {most, 5, 10, most}} {
		if got := repetitionsOf(x.values, x.n, x.trials); got != x.want {
			t.Errorf("%d more values after %d of %d repetitions are %d repetitions, want %d", x.values, x.n, x.trials, got, x.want)
		}
	}
}
