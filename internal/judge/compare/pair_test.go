package compare

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/advice"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

func TestPair(t *testing.T) {
	sd := metric.ServiceDemand
	steady := []float64{100, 100.1, 99.9, 100, 100}
	slower := []float64{120, 121, 119, 120.5, 119.5}
	a := slices.Concat(trials("raw", hostHost, sd, steady...), trials("x", podPod, sd, steady...), trials("x", hostHost, sd, steady...),
		trials("gone", podPod, sd, steady...), trials("x", podPod, metric.SoftIRQShare, steady...))
	b := slices.Concat(trials("raw", hostHost, sd, 100.2, 100, 99.8, 100.1, 100), trials("x", podPod, sd, slower...), failed("x", hostHost, 1, 2, 3),
		trials("new", podPod, sd, steady...))
	p := pairOf(t, a, b)
	got := map[string]Verdict{}
	for _, m := range p.Matches {
		got[m.Profile.String()+" "+m.Path.String()+" "+m.Metric] = m.Verdict
		if m.Baseline != m.Profile || m.Test == "signed-rank" {
			t.Errorf("%+v", m.Comparison)
		}
	}
	want := map[string]Verdict{
		"raw host-to-host/cross-node service_demand": None, "x pod-to-pod/cross-node service_demand": Worse,
		"x host-to-host/cross-node service_demand": Inconclusive,
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if fmt.Sprint(p.OnlyA) != fmt.Sprint([]Key{{Case: plan.Case{Profile: plan.VariantOf("gone"), Path: podPod, Workload: rr}}, {plan.Case{Profile: plan.VariantOf("x"), Path: podPod, Workload: rr}, metric.SoftIRQShare}}) {
		t.Errorf("only in A: %v", p.OnlyA)
	}
	if fmt.Sprint(p.OnlyB) != fmt.Sprint([]Key{{Case: plan.Case{Profile: plan.VariantOf("new"), Path: podPod, Workload: rr}}}) {
		t.Errorf("only in B: %v", p.OnlyB)
	}
	if p.Judge() != Broken {
		t.Errorf("judged %s", p.Judge())
	}
	// Left out is left out, and nothing else changes.
	q := p.Only(func(k Key) bool { return k.Path == hostHost })
	if len(q.Matches) != 2 || len(q.OnlyA) != 0 || q.Judge() != Undecided || len(p.Matches) != 3 {
		t.Errorf("only host-to-host: %+v, judged %s", q.Matches, q.Judge())
	}
	// The other way round worse is better.
	if q := pairOf(t, b, a).Only(func(k Key) bool { return k.Path == podPod }); q.Matches[0].Verdict != Better || q.Judge() != Kept {
		t.Errorf("turned: %+v", q.Matches)
	}
}

// A result beside itself differs in nothing, however noisy it is.
func TestPairWithItself(t *testing.T) {
	noisy := slices.Concat(trials("raw", hostHost, metric.Goodput, 1, 9, 4, 7, 2), trials("x", podPod, metric.Goodput, 3, 80, 5, 1, 9))
	p := pairOf(t, noisy, noisy)
	for _, m := range p.Matches {
		if m.Verdict != Same && !m.Yardstick || !m.Identical() || math.Abs(m.Ratio-1) > 1e-12 || m.Need != 0 {
			t.Errorf("%+v", m)
		}
	}
	if p.Judge() != Kept || len(p.Differences)+len(p.OnlyA)+len(p.OnlyB) != 0 {
		t.Errorf("%+v", p)
	}
}

func TestPairMaps(t *testing.T) {
	sd := metric.ServiceDemand
	a := sideOf(t, "A", trials("canal", podPod, sd, 2, 2, 2, 2, 2), trials("raw", hostHost, sd, 1, 1, 1, 1, 1))
	b := sideOf(t, "B", trials("cilium-native", podPod, sd, 1, 1, 1, 1, 1))
	if _, err := NewPair(a, b, nil); err == nil || !strings.Contains(advice.Of(err), "--map") {
		t.Errorf("nothing in common: %v", err)
	}
	p, err := NewPair(a, b, map[plan.Variant]plan.Variant{plan.VariantOf("canal"): plan.VariantOf("cilium-native")})
	if err != nil || len(p.Matches) != 1 {
		t.Fatalf("%v %+v", err, p)
	}
	if m := p.Matches[0]; m.Verdict != Better || m.Baseline != plan.VariantOf("canal") || m.Profile != plan.VariantOf("cilium-native") {
		t.Errorf("%+v", m)
	}
	if len(p.OnlyB) != 0 || len(p.OnlyA) != 1 || p.OnlyA[0].Profile != plan.VariantOf("raw") {
		t.Errorf("only: %v %v", p.OnlyA, p.OnlyB)
	}
	_, err = NewPair(a, b, map[plan.Variant]plan.Variant{plan.VariantOf("cana"): plan.VariantOf("cilium")})
	if err == nil || !strings.Contains(err.Error(), `"cana" is not in A`) || !strings.Contains(err.Error(), `"cilium" is not in B`) {
		t.Errorf("unknown profiles: %v", err)
	}
}

// One instance in either file widens the interval by the larger of the two floors; several in both do not.
func TestPairWidening(t *testing.T) {
	sd := metric.ServiceDemand
	v := []float64{100, 100, 100, 100, 100}
	plain := trials("raw", hostHost, sd, v...)
	twin := slices.Concat(plain, trials("raw~twin", hostHost, sd, 105, 105, 105, 105, 105))
	for _, c := range []struct {
		a, b  []result.Record
		share float64
	}{{plain, plain, minFloor}, {twin, plain, 0.05}, {plain, twin, 0.05}, {anew(twin), anew(plain), 0}, {anew(twin), plain, 0.05}} {
		if m := pairOf(t, c.a, c.b).Matches[0]; math.Abs(m.Widened-c.share) > 1e-9 {
			t.Errorf("widened by %g, want %g", m.Widened, c.share)
		}
	}
}

func TestDiffer(t *testing.T) {
	p := plan.Default()
	a := result.Header{Plan: p, Facts: facts.Facts{facts.Kernel: "6.1", facts.LoadAverage: "0.1", facts.MTU: "1500"}}
	b := a
	b.Plan.Name, b.Plan.Seed, b.Plan.Repetitions = "other", 9, 99
	b.Facts = facts.Facts{facts.Kernel: "6.1", facts.LoadAverage: "7", facts.MTU: "1500"}
	if d := differingConditions(a, b); len(d) != 0 {
		t.Errorf("names, seeds, repetitions and the load of the moment are no conditions: %v", d)
	}
	b.Facts = facts.Facts{facts.Kernel: "6.12", facts.CPUModel: "y", facts.MTU: "9000"}
	b.Plan.Duration, b.Plan.Lab.NIC, b.Plan.Lab.MTU = time.Second, "wire", 9000
	a.Profiles = []result.Profile{{Name: plan.VariantOf("calico-ipip"), StandIn: []string{"IPIP by BPF"}}, {Name: plan.VariantOf("only in A")}}
	b.Profiles = []result.Profile{{Name: plan.VariantOf("calico-ipip")}}
	b.Origin = "netperf"
	want := []Difference{
		{"origin", "", "netperf"}, {"cpu.model", "", "y"}, {"kernel", "6.1", "6.12"}, {"lab.mtu", "1500", "9000"},
		{"duration", "0s", "1s"}, {"lab.nic", "ideal", "wire"}, {"stand_in of calico-ipip", "IPIP by BPF", ""},
	}
	if got := differingConditions(a, b); !slices.Equal(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
}

// 200 comparisons of a result with another of the same on a busy machine: few are called different.
func TestPairSameAgainstSame(t *testing.T) {
	r := rand.New(rand.NewPCG(61, 1))
	calls, all := 0, 0
	for range 40 {
		draw := func() []result.Record {
			_, recs := page{profiles: 22, repetitions: 5 + r.IntN(6), noise: 0.08}.run(r)
			return recs
		}
		p := pairOf(t, draw(), draw())
		for _, m := range slices.Concat(p.Judged(), p.Only(func(k Key) bool { return k.Workload == rr }).Matches) {
			if m.Need > 0 && m.Verdict != Inconclusive {
				t.Fatalf("%s: %d more repetitions, though it is %s", m.A.Key, m.Need, m.Verdict)
			}
		}
		for _, m := range p.Judged() {
			all++
			if m.Verdict == Better || m.Verdict == Worse {
				calls++
			}
		}
	}
	if share := float64(calls) / float64(all); all < 40*198 || share > 0.05 {
		t.Errorf("%d of %d called different", calls, all)
	}
}

// TestPairTails: a profile is not called better because the common baseline is slower in one of two runs. One that is slower
// by itself is worse, and a median that moves with the baseline is the same; a tail is not.
func TestPairTails(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 9))
	run := func(undisturbed bool, base, own float64) (recs []result.Record) {
		for _, of := range []struct {
			profile string
			factor  float64
		}{{"raw", base}, {"x", 3 * own}, {"y", 4}} {
			all := machine{r, steady, none}.trials(of.profile, 20)
			for i := range all {
				v := 2e4 * of.factor * math.Exp(0.004*r.NormFloat64())
				all[i].Metrics = map[string]float64{"rtt.p99": v, "rtt.p50": v}
				if all[i].Client.Undisturbed = maps.Clone(all[i].Metrics); !undisturbed {
					all[i].Client = nil
				}
			}
			recs = append(recs, all...)
		}
		return recs
	}
	for _, tt := range []struct {
		base, own    float64
		tail, middle Verdict
	}{
		{1, 1, Same, Same}, {1.3, 1, Inconclusive, Inconclusive}, {1, 1.3, Worse, Worse}, {1.3, 1.3, Inconclusive, Same},
	} {
		side := func(recs []result.Record) Side {
			h := header("raw", "raw", "x", "y")
			return Side{Header: h, Analysis: analyse(t, h, recs)}
		}
		for _, undisturbed := range []bool{false, true} {
			p, err := NewPair(side(run(undisturbed, 1, 1)), side(run(undisturbed, tt.base, tt.own)), nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range p.Judged() {
				want := map[string]Verdict{"rtt.p99": tt.tail, "rtt.p50": tt.middle}[m.Metric]
				if m.Profile == plan.VariantOf("x") && m.Verdict != want || (m.levels != nil) != undisturbed {
					t.Errorf("baseline %g, own %g, undisturbed %v: %s is %s (%.3g to %.3g), want %s",
						tt.base, tt.own, undisturbed, m.Metric, m.Verdict, m.Low, m.High, want)
				}
			}
		}
	}
}

// historySide returns a side of a history: x has the given cost, created so many days on.
func historySide(t *testing.T, r *rand.Rand, day int, kernel string, cost map[plan.Path]float64) Side {
	t.Helper()
	var recs []result.Record
	for _, path := range plan.NinePaths {
		for _, profile := range []string{"x", "y"} {
			var vs []float64
			for range 6 {
				f := 1.0
				if c, ok := cost[path]; ok && profile == "x" {
					f = c
				}
				vs = append(vs, 1e4*f*math.Exp(0.02*r.NormFloat64()))
			}
			recs = append(recs, trials(profile, path, metric.ServiceDemand, vs...)...)
		}
	}
	h := header("y", "x")
	h.Created = time.Date(2026, 1, day, 0, 0, 0, 0, time.UTC)
	h.Facts = facts.Facts{facts.Kernel: kernel}
	return Side{Name: fmt.Sprintf("day%d", day), Header: h, Analysis: analyse(t, h, recs)}
}

func TestHistory(t *testing.T) {
	r := rand.New(rand.NewPCG(62, 1))
	var h Historian
	for _, day := range []int{8, 2, 3, 1, 5, 6, 7, 4} { // in any order
		cost, kernel := map[plan.Path]float64{}, "6.1"
		if day >= 6 {
			kernel = "6.12"
			for _, p := range plan.NinePaths[:5] {
				cost[p] = 1.15
			}
		}
		h.Add(historySide(t, r, day, kernel, cost))
	}
	out, err := h.History()
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Runs) != 8 || out.Runs[0].Name != "day1" || out.Runs[7].Name != "day8" || len(out.Tracks) != 18 {
		t.Fatalf("%d runs, %d tracks: %+v", len(out.Runs), len(out.Tracks), out.Runs)
	}
	if d := out.Runs[5].Changed; len(d) != 1 || d[0] != (Difference{"kernel", "6.1", "6.12"}) || len(out.Runs[4].Changed) != 0 {
		t.Errorf("what changed: %v", d)
	}
	found := 0
	for _, e := range out.Events() {
		slowed := e.Profile == plan.VariantOf("x") && slices.Contains(plan.NinePaths[:5], e.Path)
		if !slowed || e.Run != 5 || e.Verdict != Worse || math.Abs(e.Ratio-1.15) > 0.04 || !(e.Adjusted >= e.Share && e.Adjusted <= 0.05) {
			t.Errorf("a change: %s %s in run %d: %+v", e.Profile, e.Path, e.Run, e.Shift)
		}
		found++
	}
	if found != 5 {
		t.Errorf("%d changes, want 5", found)
	}
}

// Histories of what does not change say so in nearly all of their families.
func TestHistoryOfNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(63, 1))
	families, changed := 0, 0
	for range 12 {
		var h Historian
		for day := 1; day <= 6; day++ {
			h.Add(historySide(t, r, day, "6.1", nil))
		}
		out, err := h.History()
		if err != nil {
			t.Fatal(err)
		}
		profiles := map[string]bool{}
		for _, e := range out.Events() {
			profiles[e.Profile.String()] = true
		}
		families, changed = families+2, changed+len(profiles)
	}
	if changed > 4 { // 5 % of 24 is 1.2; five or more come by chance once in a hundred times
		t.Errorf("%d of %d families change", changed, families)
	}
}

// Where trials share an instance, a history follows the instances, and their quotients to the baseline. Before, of blocks of
// three it compared the values themselves.
func TestHistoryOfBlocks(t *testing.T) {
	var h Historian
	for day := range 5 {
		var recs []result.Record
		for _, profile := range []string{"y", "x"} {
			for _, rec := range trials(profile, podPod, metric.ServiceDemand, 10, 11, 12, 10, 11, 12, 10, 11, 12) {
				rec.Instance = (rec.Repetition-1)/3 + 1
				recs = append(recs, rec)
			}
		}
		head := header("y", "x")
		head.Created = time.Date(2026, 1, day+1, 0, 0, 0, 0, time.UTC)
		h.Add(Side{Name: fmt.Sprintf("day%d", day), Header: head, Analysis: analyse(t, head, recs)})
	}
	out, err := h.History()
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range out.Tracks {
		if want := map[plan.Variant]plan.Variant{plan.VariantOf("x"): plan.VariantOf("y")}[x.Profile]; x.Common != want {
			t.Errorf("%s is set beside %q, want %q", x.Profile, x.Common, want)
		}
	}
}

// What a moment does to all profiles of a run is no change of one: the quotients to the baseline stay.
func TestHistoryThatWanders(t *testing.T) {
	r := rand.New(rand.NewPCG(65, 1))
	changed := 0
	const histories = 10
	for range histories {
		var h Historian
		level := 1.0
		for day := 1; day <= 8; day++ {
			level *= math.Exp(0.05 * r.NormFloat64())
			s := historySide(t, r, day, "6.1", nil)
			for i := range s.Cells {
				for j := range s.Cells[i].Samples {
					s.Cells[i].Samples[j].Value *= level
				}
			}
			h.Add(s)
		}
		out, err := h.History()
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(out.Tracks, func(t Track) bool { return t.Profile == plan.VariantOf("x") && len(t.Changes) > 0 }) {
			changed++
		}
		if x := out.Tracks[0]; x.Profile == plan.VariantOf("x") && x.Common != plan.VariantOf("y") {
			t.Fatalf("%s is set beside %q", x.Profile, x.Common)
		}
	}
	if changed > 2 {
		t.Errorf("%d of %d histories of the same thing change", changed, histories)
	}
}

// A change of a tail is one of its values and of its quotients: a baseline whose tail moves changes no other's.
func TestHistoryTails(t *testing.T) {
	r := rand.New(rand.NewPCG(66, 1))
	for _, tt := range []struct {
		base, own float64
		changes   []string // metrics of x
	}{{1, 1, nil}, {1.3, 1, []string{"rtt.p50"}}, {1, 1.3, []string{"rtt.p50", "rtt.p99"}}, {1.3, 1.3, nil}} {
		h := Historian{Metrics: []string{"rtt.p50", "rtt.p99"}}
		for day := range 8 {
			var recs []result.Record
			later := map[string]float64{"y": tt.base, "x": tt.own}
			for _, profile := range []string{"y", "x"} {
				for _, name := range h.Metrics {
					var vs []float64
					for range 8 {
						v := 1e4 * math.Exp(0.01*r.NormFloat64())
						if day >= 4 {
							v *= later[profile]
						}
						vs = append(vs, v)
					}
					recs = append(recs, trials(profile, podPod, name, vs...)...)
				}
			}
			head := header("y", "y", "x")
			head.Created = time.Date(2026, 1, day+1, 0, 0, 0, 0, time.UTC)
			h.Add(Side{Name: fmt.Sprint(day), Header: head, Analysis: analyse(t, head, recs)})
		}
		out, err := h.History()
		if err != nil {
			t.Fatal(err)
		}
		var changes []string
		for _, e := range out.Events() {
			if e.Profile == plan.VariantOf("x") {
				changes = append(changes, e.Metric)
			}
		}
		if slices.Sort(changes); !slices.Equal(changes, tt.changes) {
			t.Errorf("baseline %g, own %g: changes of %v, want %v", tt.base, tt.own, changes, tt.changes)
		}
	}
}

func TestHistoryNeedsTwo(t *testing.T) {
	r := rand.New(rand.NewPCG(64, 1))
	var h Historian
	if _, err := h.History(); err == nil || advice.Of(err) == "" {
		t.Errorf("none: %v", err)
	}
	h.Add(historySide(t, r, 1, "6.1", nil))
	if _, err := h.History(); err == nil {
		t.Error("one result is no history")
	}
	h.Add(sideOf(t, "other", trials("z", podPod, metric.ServiceDemand, 1, 2, 3)))
	if _, err := h.History(); err == nil || advice.Of(err) == "" {
		t.Errorf("nothing in common: %v", err)
	}
	// A cell that one run lacks is followed through the others.
	h.Add(historySide(t, r, 3, "6.1", nil))
	out, err := h.History()
	if err != nil || len(out.Runs) != 3 || len(out.Tracks) != 18 {
		t.Fatalf("%v %+v", err, out)
	}
	for _, x := range out.Tracks {
		if n := slices.IndexFunc(out.Runs, func(r HistoryRun) bool { return r.Name == "other" }); x.Points[n].N != 0 || !math.IsNaN(x.Wander) {
			t.Errorf("%+v", x)
		}
	}
}

// TestUnsureBaseline: a baseline that moved within its error leaves the values as they are, one that moved far beyond it
// takes its movement from them; the interval holds the truth either way. What equal runs differ by is allowed for.
func TestUnsureBaseline(t *testing.T) {
	r := rand.New(rand.NewPCG(32, 4))
	const runs = 250
	for _, moved := range []float64{0, 0.005, 0.01, 0.03} {
		var quotients, estimates float64
		held := 0
		for range runs {
			side := func(shift float64) Side {
				h := header("raw", "p")
				var recs []result.Record
				for _, name := range []string{"raw", "p"} {
					trials := machine{r, steady, none}.trials(name, 8)
					for i := range trials {
						trials[i].Metrics[metric.ServiceDemand] *= math.Exp(shift + 0.01*r.NormFloat64())
						trials[i].Instance = trials[i].Repetition
					}
					recs = append(recs, trials...)
				}
				return Side{Header: h, Analysis: analyse(t, h, recs)}
			}
			pair, err := NewPair(side(0), side(moved), nil)
			if err != nil {
				t.Fatal(err)
			}
			plain := map[plan.Variant]float64{}
			for _, m := range pair.Matches {
				if m.Metric != metric.ServiceDemand {
					continue
				}
				if plain[m.Profile] = math.Log(m.Plain.Ratio); m.Profile != plan.VariantOf("p") {
					continue
				}
				estimates += math.Pow(math.Log(m.Ratio), 2)
				if m.Low <= 1 && 1 <= m.High {
					held++
				}
				m.addAllowance(map[string]float64{"rr " + metric.ServiceDemand: 0.05})
				if wide := m.scaledTestBy(stat.StudentT, 0.95)(1); wide.Ratio != m.Ratio || wide.High/wide.Low <= m.High/m.Low {
					t.Fatalf("allowed 5 %%: %+v, was %+v", wide, m.Effect)
				}
			}
			quotients += math.Pow(plain[plan.VariantOf("p")]-plain[plan.VariantOf("raw")], 2)
		}
		if share := float64(held) / runs; share < 0.93 {
			t.Errorf("moved by %g: %.3f of the intervals hold", moved, share)
		}
		if moved == 0 && estimates > 0.8*quotients {
			t.Errorf("a baseline that stands still: error %.2g, of quotients %.2g", estimates/runs, quotients/runs)
		}
	}
}
