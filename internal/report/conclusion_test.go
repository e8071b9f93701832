package report_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/measure/outcome"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/reporttest"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

var between = plan.Path{From: plan.Pod, To: plan.Pod, Locality: plan.CrossNode}

// row makes a result with one path, one workload and one metric; values are by profile, one for each repetition.
func row(name string, profiles []string, values map[string][]float64) (result.Header, []result.Record) {
	p := plan.Default()
	p.Profiles, p.Paths, p.Baseline = plan.Variants(profiles...), []plan.Path{between}, plan.VariantOf(profiles[0])
	w := plan.Workload{Spec: plan.RR{}}.Normalize()
	p.Workloads = []plan.Workload{w}
	var recs []result.Record
	for _, who := range profiles {
		for i, v := range values[who] {
			recs = append(recs, result.Record{
				Type: result.TypeTrial, Status: result.OK, Metrics: map[string]float64{name: v},
				Trial: plan.Trial{Repetition: i + 1, Case: plan.Case{Profile: plan.VariantOf(who), Path: between, Workload: w}},
			})
		}
	}
	return result.Header{Schema: result.Schema, Plan: p}, recs
}

func around(v float64, n int) []float64 {
	var out []float64
	for i := range n {
		out = append(out, v*(1+0.001*float64((i*7)%5-2)))
	}
	return out
}

// conclusionOf is the conclusion about the only row.
func conclusionOf(t *testing.T, h result.Header, recs []result.Record) report.Conclusion {
	t.Helper()
	d, err := reporttest.Build(h, recs, report.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return d.Sections[0].Tables[0].Conclusions[0]
}

func TestConclusions(t *testing.T) {
	wild := []float64{8, 13, 9, 12, 14, 7, 11, 10}
	for name, tt := range map[string]struct {
		metric   string
		profiles string
		values   map[string][]float64
		want     string
	}{
		"lower is better": {metric.ServiceDemand, "a b c", map[string][]float64{"a": around(100, 8), "b": around(200, 8), "c": around(150, 8)},
			"a (100 ns/transaction) is best; next is c (150), 1.50x (1.49x to 1.52x); b (200) is worst, 2.00x (1.98x to 2.02x)."},
		"higher is better": {metric.TransactionRate, "a b", map[string][]float64{"a": around(1e4, 8), "b": around(2e4, 8)},
			"b (20.0 k/s) is best; a (10.0) is worst, 0.50x (0.50x to 0.51x)."},
		"all the same": {metric.ServiceDemand, "a b", map[string][]float64{"a": around(100, 8), "b": around(100, 8)},
			"all are the same within the margin of 3%: a (100 ns/transaction) to b (100)."},
		"no loss anywhere": {metric.FrameLossRate, "a b", map[string][]float64{"a": make([]float64, 8), "b": make([]float64, 8)},
			"all are the same: a (0 %) to b (0)."},
		"loss over none": {metric.FrameLossRate, "a b", map[string][]float64{"a": make([]float64, 8), "b": around(0.1, 8)},
			"a (0 %) is best; b (10.0) is worst."},
		"groups": {metric.ServiceDemand, "a b c d", map[string][]float64{"a": around(100, 8), "b": around(200, 8), "c": around(200, 8), "d": around(300, 8)},
			"a (100 ns/transaction) is best; next is b (200), 2.00x (1.98x to 2.02x); d (300) is worst, 3.00x (2.97x to 3.03x); b and c do not differ significantly."},
		"ties at both ends": {metric.ServiceDemand, "a b c d", map[string][]float64{"a": around(100, 8), "b": around(100, 8), "c": around(200, 8), "d": around(200, 8)},
			"a (100 ns/transaction) is best among equals, the same as b within the margin of 3%; d (200) is worst, 2.00x (1.98x to 2.02x), the same as c."},
		"undecided": {metric.ServiceDemand, "a b", map[string][]float64{"a": wild, "b": {9, 12, 10, 11, 13, 8, 12, 11}}, "no significant differences: "},
		"too few":   {metric.ServiceDemand, "a b", map[string][]float64{"a": {100}, "b": {200}}, "no significant differences: a (100 ns/transaction) to b (200) (3 more repetitions would decide)."},
		"alone":     {metric.ServiceDemand, "host b", map[string][]float64{"host": around(100, 8), "b": around(200, 8)}, "b (200 ns/transaction) is the only dataplane measured; 2.00x (1.98x to 2.02x) of host."},
		"no dataplane": {metric.ServiceDemand, "raw host", map[string][]float64{"raw": around(100, 8), "host": around(200, 8)},
			"raw (100 ns/transaction) is best; host (200) is worst, 2.00x (1.98x to 2.02x)."},
		"nobody else": {metric.ServiceDemand, "a", map[string][]float64{"a": around(100, 8)}, "a (100 ns/transaction) is the only dataplane measured."},
	} {
		h, recs := row(tt.metric, strings.Fields(tt.profiles), tt.values)
		c := conclusionOf(t, h, recs)
		if c.Text != tt.want && !(strings.HasSuffix(tt.want, " ") && strings.HasPrefix(c.Text, tt.want)) {
			t.Errorf("%s:\ngot  %s\nwant %s", name, c.Text, tt.want)
		}
	}
	h, recs := row(metric.SoftIRQShare, []string{"a", "b"}, map[string][]float64{"a": around(0.1, 8), "b": around(0.2, 8)})
	d, err := reporttest.Build(h, recs, report.Options{Metrics: []string{metric.SoftIRQShare}})
	if err != nil || len(d.Sections[0].Tables[0].Conclusions) != 0 {
		t.Errorf("a metric without direction is judged: %v, %+v", err, d.Sections)
	}
}

// TestBrief: the first and the last alone, and nothing where nothing differs significantly.
func TestBrief(t *testing.T) {
	for name, tt := range map[string]struct {
		metric   string
		profiles string
		values   map[string][]float64
		want     string
		alone    bool
	}{
		"three": {metric.ServiceDemand, "a b c", map[string][]float64{"a": around(100, 8), "b": around(200, 8), "c": around(150, 8)},
			"a is best; b is worst, 2.00x (1.98x to 2.02x).", false},
		"ties": {metric.ServiceDemand, "a b c d", map[string][]float64{"a": around(100, 8), "b": around(100, 8), "c": around(200, 8), "d": around(200, 8)},
			"a is best among equals (1 the same); d is worst, 2.00x (1.98x to 2.02x).", false},
		"no ratio":    {metric.FrameLossRate, "a b", map[string][]float64{"a": make([]float64, 8), "b": around(0.1, 8)}, "a is best; b is worst.", false},
		"the same":    {metric.ServiceDemand, "a b", map[string][]float64{"a": around(100, 8), "b": around(100, 8)}, "", false},
		"nobody else": {metric.ServiceDemand, "a", map[string][]float64{"a": around(100, 8)}, "", true},
	} {
		h, recs := row(tt.metric, strings.Fields(tt.profiles), tt.values)
		if c := conclusionOf(t, h, recs); c.Brief != tt.want || c.Alone != tt.alone {
			t.Errorf("%s: got %q, alone %v, want %q", name, c.Brief, c.Alone, tt.want)
		}
	}
}

// TestBoundsNameNoBest: CPU time that lacks softirq work ranks no profile. The rate or time that was measured beside it
// answers; where there is none, the answer says that the values are bounds.
func TestBoundsNameNoBest(t *testing.T) {
	values := map[string][]float64{"canal": around(100, 8), "macvlan": around(200, 8), "cilium-native": around(300, 8)}
	for name, tt := range map[string]struct {
		often   int // of 8 trials
		beside  string
		metric  string
		bounds  bool
		demands string
	}{
		"few":     {3, "rtt.p50", metric.ServiceDemand, false, "canal (100 ns/transaction) is best"},
		"most":    {8, "rtt.p50", "rtt.p50", false, "lower bounds (idle-softirq), which say nothing about the order: canal (100 ns/transaction) to cilium-native (300)."},
		"no more": {8, "", metric.ServiceDemand, true, "lower bounds (idle-softirq), which"},
	} {
		h, recs := row(metric.ServiceDemand, []string{"canal", "macvlan", "cilium-native"}, values)
		for i := range recs {
			if tt.beside != "" {
				recs[i].Metrics[tt.beside] = recs[i].Metrics[metric.ServiceDemand] * 7
			}
			if recs[i].Repetition <= tt.often {
				recs[i].Warnings = append(recs[i].Warnings, sample.Warning{ID: outcome.IdleSoftIRQ, Message: "so it was"})
			}
		}
		d, err := reporttest.Build(h, recs, report.Options{})
		if err != nil {
			t.Fatal(err)
		}
		n := d.Needs[0]
		if n.Metric.Name != tt.metric || n.Bounds != tt.bounds || len(n.Conclusion.Claims) == 0 != tt.bounds || (len(n.Best) == 0) != tt.bounds {
			t.Errorf("%s: answered by %s, bounds %v, claims %d, best %v", name, n.Metric.Name, n.Bounds, len(n.Conclusion.Claims), n.Best)
		}
		if got := conclusionOf(t, h, recs).Text; !strings.HasPrefix(got, tt.demands) {
			t.Errorf("%s: got %q, want %q", name, got, tt.demands)
		}
		for _, row := range d.Summary.Rows {
			if marked := row.Entries[0].Verdict != compare.None; marked == tt.bounds {
				t.Errorf("%s: %s is marked %q", name, row.Profile, row.Entries[0].Verdict)
			}
		}
	}
}

var sizes = regexp.MustCompile(`[0-9.]+x \([0-9.]+x to [0-9.]+x\)`)

// honest says what is wrong with a conclusion: it claims what has no verdict, or states a size that no claim has.
func honest(c report.Conclusion) error {
	ratios := 0
	for _, x := range c.Claims {
		if x.Verdict != compare.Better && x.Verdict != compare.Worse {
			return fmt.Errorf("%s beside %s is %q and is claimed", x.Profile, x.Baseline, x.Verdict)
		}
		if !math.IsNaN(x.Ratio) {
			ratios++
		}
	}
	for _, x := range c.Ties {
		if x.Verdict == compare.Better || x.Verdict == compare.Worse {
			return fmt.Errorf("%s beside %s is %q and is called a tie", x.Profile, x.Baseline, x.Verdict)
		}
	}
	if n := len(sizes.FindAllString(c.Text, -1)); n != ratios {
		return fmt.Errorf("%d sizes for %d claims", n, ratios)
	}
	if n := len(sizes.FindAllString(c.Brief, -1)); n > min(ratios, 1) || c.Brief != "" && len(c.Claims) == 0 {
		return fmt.Errorf("%q stands on %d claims", c.Brief, len(c.Claims))
	}
	for _, word := range []string{" is best", ") leads", " is worst", "next is"} {
		if strings.Contains(c.Text, word) && len(c.Claims) == 0 {
			return fmt.Errorf("%q without a claim", word)
		}
	}
	return nil
}

// Whatever was measured, words never go beyond the verdicts: worlds of any noise, number of profiles and repetitions,
// with values that have no ratio among them.
func TestConclusionsNeverGoBeyondVerdicts(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 5))
	said := map[string]int{}
	for round := range 400 {
		var profiles []string
		values := map[string][]float64{}
		n, noise, spread := 1+r.IntN(10), 0.3*r.Float64()*r.Float64(), 0.5*r.Float64()
		for i := range 1 + r.IntN(7) {
			who := fmt.Sprintf("p%d", i)
			profiles = append(profiles, who)
			level := 1000 * math.Exp(spread*r.NormFloat64())
			if r.IntN(20) == 0 {
				level = 0
			}
			for range n {
				values[who] = append(values[who], level*math.Exp(noise*r.NormFloat64()))
			}
		}
		name := []string{metric.ServiceDemand, metric.TransactionRate}[r.IntN(2)]
		h, recs := row(name, profiles, values)
		d, err := reporttest.Build(h, recs, report.Options{})
		if err != nil {
			t.Fatal(err)
		}
		c := d.Sections[0].Tables[0].Conclusions[0]
		if err := honest(c); err != nil {
			t.Fatalf("round %d: %v: %s", round, err, c.Text)
		}
		ranks := d.Analysis.Rank(between, plan.Workload{Spec: plan.RR{}}.Normalize(), name)
		told := 0
		for _, s := range ranks {
			if s.ToBest.Verdict == compare.Worse {
				told++
			}
		}
		if (told > 0) != (strings.Contains(c.Text, " is best") || strings.Contains(c.Text, ") leads")) {
			t.Fatalf("round %d: %d are worse than the first: %s", round, told, c.Text)
		}
		last := ranks[len(ranks)-1]
		worst := len(ranks) > 1 && last.ToBest.Verdict == compare.Worse
		if worst != strings.Contains(c.Text, last.Cell.Profile.String()+" (") || worst != strings.Contains(c.Text, " is worst") {
			if worst || strings.Contains(c.Text, " is worst") {
				t.Fatalf("round %d: the last is %q: %s", round, last.ToBest.Verdict, c.Text)
			}
		}
		for _, word := range []string{"is best", ") leads", "next is", "is worst", "not significantly", "no significant differences", "the same", "do not differ"} {
			if strings.Contains(c.Text, word) {
				said[word]++
			}
		}
		for _, need := range d.Needs {
			if err := honest(need.Conclusion); err != nil {
				t.Fatalf("round %d: need: %v", round, err)
			}
		}
	}
	for _, word := range []string{"is best", ") leads", "next is", "is worst", "not significantly", "no significant differences", "the same", "do not differ"} {
		if said[word] == 0 {
			t.Errorf("no world had %q: the test is blind to it", word)
		}
	}
}

// Where CPU time is not the measure, speed decides and CPU time has a line of its own.
func TestNeedsOnKubernetes(t *testing.T) {
	h, recs := row("rtt.p50", []string{"a", "b"}, map[string][]float64{"a": around(100, 8), "b": around(200, 8)})
	for i := range recs {
		recs[i].Metrics[metric.ServiceDemand] = 300 - recs[i].Metrics["rtt.p50"]
	}
	for env, want := range map[string]string{
		"lab":        "Requests on standing connections by service_demand: b",
		"kubernetes": "Requests on standing connections by rtt.p50: a; CPU efficiency by service_demand: b",
	} {
		h.Plan.Environment = env
		d, err := reporttest.Build(h, recs, report.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, n := range d.Needs {
			got = append(got, fmt.Sprintf("%s by %s: %s", n.Name, n.Metric.Name, n.Standings[n.Pick].Cell.Profile))
		}
		if s := strings.Join(got, "; "); s != want {
			t.Errorf("%s:\ngot  %s\nwant %s", env, s, want)
		}
	}
}

// What a load that was given says of rates is nothing, so times decide; and where it is swept, the closed loop speaks.
func TestNeedsUnderGivenLoad(t *testing.T) {
	h, recs := row("rtt.p50", []string{"a", "b"}, map[string][]float64{"a": around(100, 8), "b": around(200, 8)})
	h.Plan.Environment = "kubernetes"
	w, err := plan.ParseWorkload("crr(rate=1000)")
	if err != nil {
		t.Fatal(err)
	}
	for i := range recs {
		recs[i].Workload = w.Normalize()
		recs[i].Metrics[metric.TransactionRate] = recs[i].Metrics["rtt.p50"]
	}
	h.Plan.Workloads = []plan.Workload{w.Normalize()}
	d, err := reporttest.Build(h, recs, report.Options{})
	if err != nil || len(d.Needs) != 1 || d.Needs[0].Metric.Name != "rtt.p50" {
		t.Fatalf("open loop: %v, %+v", err, d.Needs)
	}
	closed := plan.Workload{Spec: plan.CRR{}}.Normalize()
	for _, rec := range recs {
		rec.Workload = closed
		recs = append(recs, rec)
	}
	h.Plan.Workloads = append(h.Plan.Workloads, closed)
	d, err = reporttest.Build(h, recs, report.Options{})
	if err != nil || len(d.Needs) != 1 || d.Needs[0].Workload != closed || d.Needs[0].Metric.Name != metric.TransactionRate {
		t.Fatalf("both loops: %v, %+v", err, d.Needs)
	}
}
