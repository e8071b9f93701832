package compare

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// machine draws the slices of trials of rr, whose transactions take 5 us of CPU time at each side at full speed.
type machine struct {
	r *rand.Rand
	// slow says how much slower the machine is in a slice, and yard what its yardstick shows of that.
	slow func() (factor, yard float64)
	// cost is a factor of the path's own in a slice.
	cost func() float64
}

// steady is the full speed at all times, and none the cost of a path without slow moments.
func steady() (factor, yard float64) { return 1, 1 }
func none() float64                  { return 1 }

// neighbour makes the machine slower by 45 % for a quarter of the time, in stretches of many slices.
func neighbour(r *rand.Rand) func() (factor, yard float64) {
	slow := false
	return func() (float64, float64) {
		if stay := map[bool]float64{false: 0.97, true: 0.9}[slow]; r.Float64() > stay {
			slow = !slow
		}
		if slow {
			return 1.45, 1.6
		}
		return 1, 1
	}
}

// trials are n finished trials of a profile.
func (m machine) trials(profile string, n int) []result.Record {
	var out []result.Record
	for rep := 1; rep <= n; rep++ {
		const slices, perSlice = 20, 2000
		var sides [2]*sample.Observation
		demand := 0.0
		for i := range sides {
			sides[i] = &sample.Observation{Machine: "m", Intervals: []sample.Interval{{Warmup: true, Operations: 1, CPUNs: 1e9, YardNs: 1}}}
		}
		now := int64(0)
		for range slices {
			factor, yard := m.slow()
			factor *= m.cost()
			end := now + int64(perSlice*10_000*factor) // both sides share a CPU
			for _, o := range sides {
				cpu := 5000 * factor * math.Exp(0.01*m.r.NormFloat64())
				demand += cpu / slices
				o.Intervals = append(o.Intervals, sample.Interval{
					StartNs: now, EndNs: end, Operations: perSlice, CPUNs: int64(perSlice * cpu),
					YardNs: int64(1000 * yard * math.Exp(0.02*m.r.NormFloat64())),
				})
			}
			now = end
		}
		out = append(out, result.Record{
			Type: result.TypeTrial, Status: result.OK, Client: sides[0], Server: sides[1],
			Metrics: map[string]float64{metric.ServiceDemand: demand, metric.TransactionRate: 1e9 / demand},
			Trial:   plan.Trial{Case: plan.Case{Profile: plan.VariantOf(profile), Path: podPod, Workload: rr}, Repetition: rep},
		})
	}
	return out
}

func demandOf(t *testing.T, a *Analysis, profile string) Cell {
	t.Helper()
	c, ok := a.Cell(Key{plan.Case{Profile: plan.VariantOf(profile), Path: podPod, Workload: rr}, metric.ServiceDemand})
	if !ok {
		t.Fatal("no cell")
	}
	return c
}

// What another machine's neighbour adds is taken out, and what the path itself adds now and then is not.
func TestUndisturbed(t *testing.T) {
	r := rand.New(rand.NewPCG(12, 1))
	// One slice in ten costs twice as much.
	often := oneInTen(r, 2)
	for name, c := range map[string]struct {
		machine
		low, high float64
	}{
		"a quiet machine": {machine{r, steady, none}, 9_900, 10_100},
		"a neighbour":     {machine{r, neighbour(r), none}, 9_900, 10_200},
		"a path with slow moments beside a neighbour": {machine{r, neighbour(r), often}, 10_500, 11_500},
	} {
		got := demandOf(t, analyse(t, header("p", "p"), c.trials("p", 100)), "p")
		if got.Typical == nil || got.Slices == 0 {
			t.Errorf("%s: nothing is undisturbed", name)
			continue
		}
		if got.Median < c.low || got.Median > c.high {
			t.Errorf("%s: %.0f ns, want %.0f to %.0f", name, got.Median, c.low, c.high)
		}
		if name == "a neighbour" && got.Typical.Median < 1.02*got.Median {
			t.Errorf("the neighbour cannot be seen in the typical value of %.0f ns", got.Typical.Median)
		}
	}
}

// oneInTen makes one slice of ten cost more by a factor.
func oneInTen(r *rand.Rand, factor float64) func() float64 {
	return func() float64 {
		if r.IntN(10) == 0 {
			return factor
		}
		return 1
	}
}

// crowd makes the machine slower all the time, by more or less: the yardstick by up to 80 %, transactions by a part of that.
func crowd(r *rand.Rand) func() (factor, yard float64) {
	at := 0.3
	return func() (float64, float64) {
		at = min(max(at+0.05*r.NormFloat64(), 0), 0.6)
		return math.Exp(0.4 * at), math.Exp(at)
	}
}

// A machine that is hardly ever quiet has undisturbed values all the same: what a reading costs is known from all slices. What
// the path itself adds in one slice of ten stays in. Before, such a machine had no undisturbed value.
func TestCrowdedMachine(t *testing.T) {
	r := rand.New(rand.NewPCG(12, 5))
	often := oneInTen(r, 2)
	recs := append(machine{r, crowd(r), none}.trials("p", 20), machine{r, crowd(r), often}.trials("q", 20)...)
	a := analyse(t, header("p", "p", "q"), recs)
	p, q := demandOf(t, a, "p"), demandOf(t, a, "q")
	if p.Typical == nil || p.Median < 9_900 || p.Median > 10_600 || p.Typical.Median < 1.04*p.Median {
		t.Fatalf("%.0f ns of %.0f, want 10 us", p.Median, p.Recorded().Median)
	}
	if spread := (p.High - p.Low) / p.Median; spread > 0.02 {
		t.Errorf("the interval is %.1f %% wide", 100*spread)
	}
	if ratio := q.Median / p.Median; ratio < 1.06 || ratio > 1.14 {
		t.Errorf("a tenth of slices that cost twice as much: %.3f, want 1.1", ratio)
	}
}

// What makes one profile slow in all repetitions, while the bare path beside it is quiet, is the profile's: it is judged,
// whatever the yardstick shows. A cell that was measured only in repetitions in which the bare path was far from its full
// speed is not: it is neither better nor worse than that of another file, and breaks no budget.
func TestCrowdedCell(t *testing.T) {
	r := rand.New(rand.NewPCG(12, 9))
	busy := func() (float64, float64) { return 1.3, 1.5 }
	costly := func() float64 { return 1.3 }
	side := func(name string, p machine, raw ...machine) Side {
		h := header("raw", "p")
		recs := p.trials("p", 12)
		for i, m := range raw {
			for _, rec := range m.trials("raw", 12) {
				rec.Repetition += 12 * i
				recs = append(recs, rec)
			}
		}
		for i := range recs {
			recs[i].Instance = recs[i].Repetition
		}
		return Side{Name: name, Header: h, Analysis: analyse(t, h, recs)}
	}
	quietly, busily := machine{r, steady, none}, machine{r, busy, none}
	before := side("a", quietly, quietly)
	for name, c := range map[string]struct {
		p       machine
		raw     []machine
		verdict Verdict
		state   State
	}{
		"the profile slows the yardstick": {busily, []machine{quietly}, Worse, Broken},
		"the profile costs more":          {machine{r, steady, costly}, []machine{quietly}, Worse, Broken},
		"a crowded hour":                  {machine{r, busy, costly}, []machine{busily, quietly}, Inconclusive, Undecided},
	} {
		pair, err := NewPair(before, side("b", c.p, c.raw...), nil)
		if err != nil {
			t.Fatal(err)
		}
		budget, err := ParseBudget("service_demand > +10%")
		if err != nil {
			t.Fatal(err)
		}
		held := pair.Hold([]Budget{budget}, func(k Key) bool { return k.Profile == plan.VariantOf("p") })
		for _, m := range pair.Matches {
			if m.Profile == plan.VariantOf("p") && m.Metric == metric.ServiceDemand && m.Verdict != c.verdict {
				t.Errorf("%s: %s, want %s (%+v)", name, m.Verdict, c.verdict, m.Effect)
			}
		}
		if len(held[0]) != 1 || held[0][0].State != c.state {
			t.Errorf("%s: budget %+v, want %s", name, held[0], c.state)
		}
	}
}

// The yardstick moves with the cost of a path, always or in bursts, and the cost stays the path's: the ratio to the bare
// path is the true one, on a quiet machine and beside a neighbour that hits all profiles alike.
func TestOwnCostIsNotNoise(t *testing.T) {
	r := rand.New(rand.NewPCG(32, 1))
	ratioOf := func(p machine, slow func() (float64, float64)) float64 {
		var recs []result.Record
		for _, name := range []string{"raw", "raw~twin", "other"} {
			recs = append(recs, machine{r, slow, none}.trials(name, 12)...)
		}
		a := analyse(t, header("raw", "other", "p"), append(recs, p.trials("p", 12)...))
		return demandOf(t, a, "p").Median / demandOf(t, a, "raw").Median
	}
	for _, machineIs := range []string{"quiet", "with a neighbour"} {
		slow, within := steady, 0.01
		if machineIs != "quiet" {
			slow, within = neighbour(r), 0.03
		}
		for _, yard := range []float64{1, 1.03, 1.05, 1.1, 1.3} {
			always := machine{r, func() (float64, float64) {
				f, y := slow()
				return f * 1.05, y * yard
			}, none}
			if got := ratioOf(always, slow); math.Abs(got/1.05-1) > within {
				t.Errorf("%s, readings +%.0f %% always: %.4f, want 1.05", machineIs, 100*(yard-1), got)
			}
			for _, length := range []int{1, 3} { // slices of a burst that doubles the cost; a tenth of all
				at := 0
				bursts := machine{r, func() (float64, float64) {
					f, y := slow()
					if at++; at%(10*length) < length {
						return 2 * f, y * yard
					}
					return f, y
				}, none}
				if got := ratioOf(bursts, slow); math.Abs(got/1.1-1) > within {
					t.Errorf("%s, bursts of %d slices, readings +%.0f %%: %.4f, want 1.1", machineIs, length, 100*(yard-1), got)
				}
			}
		}
	}
}

// Rates and medians count by how near the machine was to its full speed, too; tails do not.
func TestUndisturbedTimes(t *testing.T) {
	r := rand.New(rand.NewPCG(12, 5))
	steadyOne, busy := machine{r, steady, none}.trials("p", 12), machine{r, neighbour(r), none}.trials("q", 12)
	recs := append(steadyOne, busy...)
	for i := range recs {
		half := recs[i].Metrics[metric.ServiceDemand]
		recs[i].Metrics[metric.RTT+".p50"], recs[i].Metrics[metric.RTT+".p99"] = half, 2*half
	}
	a := analyse(t, header("p", "p", "q"), recs)
	of := func(profile plan.Variant, name string) Cell {
		c, _ := a.Cell(Key{plan.Case{Profile: profile, Path: podPod, Workload: rr}, name})
		return c
	}
	for name, within := range map[string]float64{metric.ServiceDemand: 0.01, metric.TransactionRate: 0.01, metric.RTT + ".p50": 0.06} {
		p, q := of(plan.VariantOf("p"), name), of(plan.VariantOf("q"), name)
		if math.Abs(q.Median/p.Median-1) > within || q.HalfWidth() > within || q.Recorded().HalfWidth() < 4*q.HalfWidth() {
			t.Errorf("%s: %g ± %g beside a neighbour, of whole windows ± %g, alone %g", name, q.Median, q.HalfWidth(), q.Recorded().HalfWidth(), p.Median)
		}
	}
	if of(plan.VariantOf("p"), metric.RTT+".p99").Typical != nil || of(plan.VariantOf("p"), metric.TransactionRate).Typical == nil {
		t.Error("a tail is undisturbed, or a rate is not")
	}
}

// A percentile is that of undisturbed times where enough trials have one. Trials without it are left out, and where it was too
// rare to be counted, nothing says that the machine was never quiet.
func TestUndisturbedPercentiles(t *testing.T) {
	r := rand.New(rand.NewPCG(12, 6))
	p99 := metric.RTT + ".p99"
	for without, undisturbed := range map[int]bool{0: true, 4: true, 7: false, 12: false} {
		recs := machine{r, neighbour(r), none}.trials("p", 12)
		for i := range recs {
			recs[i].Metrics[p99] = 40_000 + 20_000*r.Float64()
			if i >= without {
				recs[i].Client.Undisturbed = map[string]float64{p99: 25_000 * math.Exp(0.01*r.NormFloat64())}
			}
		}
		c, _ := analyse(t, header("p", "p"), recs).Cell(Key{plan.Case{Profile: plan.VariantOf("p"), Path: podPod, Workload: rr}, p99})
		if (c.Typical != nil) != undisturbed || c.Crowded {
			t.Errorf("%d without: undisturbed %v, crowded %v", without, c.Typical != nil, c.Crowded)
		}
		if n := 12 - without; undisturbed && (c.N != n || math.Abs(c.Median/25_000-1) > 0.02 || c.HalfWidth() > 0.03 || c.Typical.Median < 40_000) {
			t.Errorf("%d without: %+v, typical %+v", without, c.Summary, c.Typical.Summary)
		}
	}
}

// A stream's trials count by how quiet the machine was, as they were recorded: what its slices say of batches is left out.
func TestUndisturbedStreams(t *testing.T) {
	r := rand.New(rand.NewPCG(12, 7))
	recs := machine{r, neighbour(r), none}.trials("p", 12)
	lowest, highest := math.Inf(1), 0.0
	for i := range recs {
		recs[i].Workload = plan.Workload{Spec: plan.Stream{}}.Normalize()
		v := 2000 * math.Exp(0.05*r.NormFloat64())
		recs[i].Metrics = map[string]float64{metric.ServiceDemand: v, metric.RetransmitsPerG: v}
		lowest, highest = min(lowest, v), max(highest, v)
	}
	a := analyse(t, header("p", "p"), recs)
	k := Key{plan.Case{Profile: plan.VariantOf("p"), Path: podPod, Workload: recs[0].Workload}, metric.ServiceDemand}
	c, _ := a.Cell(k)
	if c.Typical == nil || c.Median < lowest || c.Median > highest || c.HalfWidth() > 0.06 || c.HalfWidth() > c.Typical.HalfWidth() {
		t.Errorf("service demand %+v, typical %+v", c.Summary, c.Typical)
	}
	k.Metric = metric.RetransmitsPerG
	if c, _ := a.Cell(k); c.Typical != nil || c.Crowded {
		t.Errorf("retransmissions are undisturbed, or crowded: %+v", c)
	}
}

// Comparisons of a machine with a neighbour see a difference that whole windows hide.
func TestUndisturbedComparison(t *testing.T) {
	r := rand.New(rand.NewPCG(12, 2))
	found, hidden := 0, 0
	for range 40 {
		slower := machine{r, neighbour(r), func() float64 { return 1.05 }}
		recs := append(machine{r, neighbour(r), none}.trials("p", 8), slower.trials("q", 8)...)
		count := func(recs []result.Record) int {
			x := analyse(t, header("p", "p", "q"), recs).Comparisons
			if len(x) == 0 || x[0].Metric != metric.ServiceDemand {
				t.Fatal(x)
			}
			if x[0].Verdict == Worse {
				return 1
			}
			return 0
		}
		found += count(recs)
		for i := range recs {
			recs[i].Client, recs[i].Server = nil, nil
		}
		hidden += count(recs)
	}
	if found < 38 || hidden > 20 {
		t.Errorf("5 %% are found in %d of 40 runs, and in %d from whole windows", found, hidden)
	}
}

// A machine without a full speed has no undisturbed values, and neither have trials without slices or with few quiet ones.
func TestNothingUndisturbed(t *testing.T) {
	r := rand.New(rand.NewPCG(12, 3))
	never := func() (float64, float64) {
		f := math.Exp(5 * r.Float64())
		return f, f
	}
	a := analyse(t, header("p", "p"), machine{r, never, none}.trials("p", 60))
	if share, measured, enough := a.Undisturbed(); demandOf(t, a, "p").Typical != nil || !measured || enough || share <= 0 {
		t.Errorf("a machine that was never quiet: share %g, measured %v, enough %v", share, measured, enough)
	}
	recs := machine{r, steady, none}.trials("p", 8)
	for i := range recs {
		recs[i].Server.Intervals = nil
	}
	a = analyse(t, header("p", "p"), recs)
	if demandOf(t, a, "p").Typical != nil {
		t.Error("undisturbed without the server's slices")
	}
	if _, measured, _ := analyse(t, header("p", "p"), trials("p", podPod, metric.ServiceDemand, 1, 2, 3)).Undisturbed(); measured {
		t.Error("measured without slices")
	}
}

// Two cells are compared by one kind of estimate.
func TestAlike(t *testing.T) {
	r := rand.New(rand.NewPCG(12, 5))
	with := machine{r, neighbour(r), none}.trials("p", 8)
	without := machine{r, neighbour(r), none}.trials("q", 8)
	for i := range without {
		without[i].Metrics[metric.ServiceDemand] = with[i].Metrics[metric.ServiceDemand]
		without[i].Client, without[i].Server = nil, nil
	}
	a := analyse(t, header("p", "p", "q"), with, without)
	if p, q := demandOf(t, a, "p"), demandOf(t, a, "q"); p.Typical == nil || q.Typical != nil {
		t.Fatal("the first alone should be undisturbed")
	}
	if x := a.Comparisons[0]; x.Ratio != 1 {
		t.Errorf("equal recorded values differ by %g", x.Ratio)
	}
}

// TestAnalysisRepeated: the view of a run judges the trials again and again. That leaves the readings as they are, so the last
// verdicts are those of the file.
func TestAnalysisRepeated(t *testing.T) {
	r := rand.New(rand.NewPCG(12, 9))
	often := oneInTen(r, 3)
	recs := append(machine{r, crowd(r), none}.trials("p", 20), machine{r, crowd(r), often}.trials("q", 20)...)
	h := header("p", "p", "q")
	want := demandOf(t, analyse(t, h, recs), "q")
	var c Collector
	for i := range recs {
		if err := c.Add(&recs[i]); err != nil {
			t.Fatal(err)
		}
		if i%10 == 9 {
			if _, err := c.Analyse(h, Options{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	a, err := c.Analyse(h, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := demandOf(t, a, "q"); got.Median != want.Median || got.Low != want.Low || got.High != want.High {
		t.Errorf("%.1f (%.1f to %.1f) ns after many analyses, %.1f (%.1f to %.1f) after one", got.Median, got.Low, got.High, want.Median, want.Low, want.High)
	}
}
