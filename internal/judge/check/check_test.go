package check

import (
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/external"
	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/vocab/finding"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

const published = "../../../examples/published"

// view is the view of a result in memory.
func view(h result.Header, records []result.Record) *View {
	v := New(h)
	for _, r := range records {
		if v.Add(r) != nil {
			break
		}
	}
	return v
}

// load reads a file of examples/published.
func load(t *testing.T, name string) Report {
	t.Helper()
	s, err := external.OpenStream(filepath.Join(published, name))
	if err != nil {
		t.Fatal(err)
	}
	v := New(s.Header)
	if err := errors.Join(s.Each(func(r *result.Record) error { return v.Add(*r) }), s.Close()); err != nil {
		t.Fatal(err)
	}
	r, err := v.Report(name, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestPublished names the rules that must find something in each published result.
func TestPublished(t *testing.T) {
	want := map[string][]string{
		"canal-vs-cilium.csv": {"line-rate", "claim-unit", "claim-decimal", "zero-time", "edited-output", "offered-load", "unequal-load",
			"cpu-limit", "hybrid-cpu", "confounded", "few-repetitions", "flows-slower", "claim-does-not-follow", "claim-without-numbers", "retransmits-per-byte", "claim-one-sided"},
		"nine-paths.csv": {"faster-than-hosts", "pods-below-hosts", "copied", "call-rate", "same-node-slower", "service-faster", "encapsulation-free", "tunnels-disagree",
			"part-slower", "modes-disagree", "not-served", "few-repetitions", "claim-does-not-follow", "wire-bound", "asked-not-published", "odd-one-out"},
		"kind-calico-cilium.csv": {"same-node-slower", "short-window", "one-machine", "cpu-limit", "leftovers", "fixed-order", "claim-without-numbers", "claim-two-measures"},
		"calico-dataplanes.csv":  {"token-bucket", "leftovers", "fixed-order", "dsr-path", "udp-without-loss", "encapsulation-unproven", "few-repetitions", "failed-trials", "claim-without-numbers"},
	}
	files, err := os.ReadDir(published)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != len(want) {
		t.Errorf("there are %d published results, want %d", len(files), len(want))
	}
	for _, f := range files {
		t.Run(f.Name(), func(t *testing.T) {
			r := load(t, f.Name())
			for _, id := range want[f.Name()] {
				if !slices.ContainsFunc(r.Findings, func(f finding.Finding) bool { return f.ID == id }) {
					t.Errorf("%s does not ring", id)
				}
			}
			if !r.Alarm() || want[f.Name()] == nil {
				t.Error("it is not known what is wrong with it")
			}
		})
	}
}

// TestCopiedTrials: a trial that is recorded twice is not two repetitions.
func TestCopiedTrials(t *testing.T) {
	records := clean(rand.New(rand.NewPCG(1, 1)), 4)
	for _, twice := range []bool{false, true} {
		v := New(result.Header{})
		for _, r := range records {
			again := r
			again.Repetition += 4
			if err := v.Add(r); err != nil {
				t.Fatal(err)
			}
			if twice {
				if err := v.Add(again); err != nil {
					t.Fatal(err)
				}
			}
		}
		r, err := v.Report("a run", []string{"copied"})
		if err != nil || len(r.Findings) > 0 != twice {
			t.Errorf("recorded twice: %v, %v: %+v", twice, err, r.Findings)
		}
	}
}

// clean makes a result in which everything agrees: so many repetitions of every workload on every path, with noise.
func clean(r *rand.Rand, repetitions int) []result.Record {
	noise := func() float64 { return 1 + 0.06*(r.Float64()-0.5) }
	var records []result.Record
	for i, name := range []string{"host", "canal", "calico-vxlan", "calico-underlay", "cilium-vxlan", "cilium-native", "macvlan"} {
		for _, path := range plan.NinePaths {
			if p, _ := profile.Lookup(name); cannotServe(p, path) {
				continue
			}
			// The cost of a transaction: hosts are cheapest, the wire and a Service come on top.
			cost := 10e3 * (1 + 0.03*float64(i))
			if path != plan.ZeroPath {
				cost *= 1.15
			}
			if path.Locality == plan.SameNode || path.Locality == plan.Local {
				cost *= 0.7
			}
			if path.To == plan.Service {
				cost *= 1.1
			}
			if path.From == plan.Pod && path.To != plan.Host {
				cost *= 1.05
			}
			for n := range repetitions {
				for _, w := range []string{"rr", "crr", "stream", "stream(flows=4)", "stream(udp,rate=1G)", "http"} {
					records = append(records, cleanTrial(plan.Trial{Case: plan.Case{Profile: plan.VariantOf(name), Path: path, Workload: workload(w)}, Repetition: n + 1}, cost*noise()))
				}
			}
		}
	}
	return records
}

func workload(s string) plan.Workload {
	w, err := plan.ParseWorkload(s)
	if err != nil {
		panic(err)
	}
	return w
}

// cleanTrial is what a transaction cost of so many ns means for each workload.
func cleanTrial(t plan.Trial, cost float64) result.Record {
	const seconds = 2
	m := map[string]float64{}
	spread := func(family string, mean float64) {
		for part, factor := range map[string]float64{"min": 0.6, "mean": 1, "p50": 0.95, "p90": 1.3, "p99": 2, "p99.9": 4, "max": 9, "stddev": 0.5} {
			m[family+"."+part] = mean * factor
		}
	}
	switch w := t.Workload; {
	case w.Traits().Datagrams():
		m[metric.OfferedLoad], m[metric.FrameLossRate], m[metric.Jitter] = w.Traits().Rate, 0, cost/10
		m[metric.Goodput] = w.Traits().Rate
		m[metric.PacketRate] = w.Traits().Rate / 8 / float64(w.Traits().Message)
	case w.Traits().Bulk():
		m[metric.Goodput] = 8e13 / cost
		m[metric.OfferedLoad] = m[metric.Goodput]
		m[metric.Transferred] = m[metric.Goodput] / 8 * seconds
		m[metric.Retransmits] = 7
		m[metric.RetransmitsPerG] = 7 / (m[metric.Transferred] / 1e9)
	case w.Traits().Work == plan.Request:
		m[metric.RequestRate] = 1e9 / cost
		m[metric.Requests] = m[metric.RequestRate] * seconds
		spread(metric.ResponseTime, cost*float64(w.Traits().Flows))
	default:
		m[metric.TransactionRate] = 0.97e9 / cost
		spread(metric.RTT, cost)
	}
	return result.Record{Type: result.TypeTrial, Trial: t, Status: result.OK, WindowNs: seconds * 1e9, Metrics: m}
}

// TestCleanIsClean: nothing is found in results in which everything agrees, of ours or imported.
func TestCleanIsClean(t *testing.T) {
	stated, _ := imported(t, allStated+"canal;X;rr;rtt.p50;9 us")
	for seed := range uint64(6) {
		records := clean(rand.New(rand.NewPCG(seed, 1)), 7)
		for name, h := range map[string]result.Header{
			"lab":        {Plan: plan.Plan{Environment: "lab"}},
			"kubernetes": {Plan: plan.Plan{Environment: "kubernetes"}, Facts: facts.Facts{"line_rate": "100Gbit/s"}},
			"imported":   stated,
		} {
			r, err := view(h, records).Report("clean", nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range r.Findings {
				t.Errorf("seed %d, %s: %s at %s: %s", seed, name, f.ID, f.Where, f.Saw)
			}
		}
	}
}

// TestLabRun: a run of the lab on a machine that was busy with other work raises no alarm.
func TestLabRun(t *testing.T) {
	c, err := result.Load(filepath.Join("testdata", "lab.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := view(c.Header, c.Records).Report("lab.jsonl", nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.Alarm() || r.Cells == 0 {
		t.Errorf("false alarm, or nothing to look at: %+v", r)
	}
}

func TestParseClaim(t *testing.T) {
	for text, want := range map[string]Claim{
		"goodput of canal on pod-to-pod/cross-node under stream = 14.72 Gbit/s":                        {Metric: "goodput", A: "canal", Low: 14.72e9, High: 14.72e9, Step: 1e7},
		"frame_loss_rate of canal on pod-to-pod/cross-node under stream(udp,rate=1G) = 0.02..0.038 %":  {Metric: "frame_loss_rate", A: "canal", Low: 0.0002, High: 0.00038, Step: 0.0001},
		"goodput of a over b on pod-to-pod/cross-node under stream = +271%":                            {Metric: "goodput", A: "a", B: "b", Low: 3.71, High: 3.71, Step: 0.01},
		"goodput of a over b on pod-to-pod/cross-node under stream = -35%":                             {Metric: "goodput", A: "a", B: "b", Low: 0.65, High: 0.65, Step: 0.01},
		"goodput of a over b on pod-to-pod/cross-node under stream = +5..10%":                          {Metric: "goodput", A: "a", B: "b", Low: 1.05, High: 1.1, Step: 0.01},
		"goodput of a over b on pod-to-pod/cross-node under stream = -5..10%":                          {Metric: "goodput", A: "a", B: "b", Low: 0.9, High: 0.95, Step: 0.01},
		"goodput of a over b on pod-to-pod/cross-node under stream = -10..-5%":                         {Metric: "goodput", A: "a", B: "b", Low: 0.9, High: 0.95, Step: 0.01},
		"goodput of a over b on pod-to-pod/cross-node under stream = -5..+10%":                         {Metric: "goodput", A: "a", B: "b", Low: 0.95, High: 1.1, Step: 0.01},
		"goodput of a over b on pod-to-pod/cross-node under stream = 3.7x":                             {Metric: "goodput", A: "a", B: "b", Low: 3.7, High: 3.7, Step: 0.1},
		"joy of a over b on pod-to-pod/cross-node under rr(request=1024,response=1024) is worse":       {Metric: "joy", A: "a", B: "b", Word: "worse"},
		"rtt.p50 of a on pod-to-pod/cross-node under rr is second":                                     {Metric: "rtt.p50", A: "a", Word: "second"},
		"  rtt.p50 of a on pod-to-pod/cross-node under http(threads=4,connections=500) = 1.50 ms     ": {Metric: "rtt.p50", A: "a", Low: 1.5e6, High: 1.5e6, Step: 1e4},
	} {
		c, err := parseClaim(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		equal := c.Metric == want.Metric && c.A == want.A && c.B == want.B && c.Word == want.Word && c.Text == strings.TrimSpace(text) &&
			nearlyEqual(c.Low, want.Low, 1e-9) && nearlyEqual(c.High, want.High, 1e-9) && nearlyEqual(c.Step, want.Step, 1e-9)
		if !equal {
			t.Errorf("%s: got %+v, want %+v", text, c, want)
		}
	}
}

func TestParseClaimRefuses(t *testing.T) {
	const good = "goodput of a over b on pod-to-pod/cross-node under stream "
	for text, want := range map[string]string{
		"":                   `it lacks "of"`,
		"goodput of a":       `it lacks "on"`,
		"goodput of a on b":  `it lacks "under"`,
		good:                 "it claims nothing",
		good + "is splendid": `"splendid" is not one of better, worse, same`,
		good + "= 14.7":      "compares two profiles",
		good + "= 14.7 Gbit": "compares two profiles",
		good + "= many%":     "is not a value",
		good + "= 1..2..3%":  "is not a value",
		good + "= NaN%":      "is not a value",
		"rtt of  on pod-to-pod/cross-node under rr is best":                "the metric or the profile is empty",
		"goodput of a on pod-to-pod/cross-node under stream is better":     "is not one of best, second, worst",
		"goodput of a on pod-to-pod/cross-node under stream = 9 us":        "does not measure",
		"goodput of a on pod-to-moon under stram = 9 Gbit/s":               `unknown path "pod-to-moon"`,
		"goodput of a on pod-to-pod/cross-node under stram = 9 Gbit/s":     `unknown workload "stram"`,
		"goodput of a on pod-to-pod/cross-node under stream = 9 furlong/s": "unknown unit",
	} {
		if c, err := parseClaim(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %+v, %v, want %q", text, c, err, want)
		}
	}
}

func FuzzParseClaim(f *testing.F) {
	f.Add("goodput of canal over ptp on pod-to-pod/cross-node under stream = +5..10%", 1.5)
	f.Add("goodput of canal on pod-to-pod/cross-node under stream = 0.0..14.72 Gbit/s", 0.0)
	f.Add("goodput of canal on pod-to-pod/cross-node under stream is second", -1.0)
	f.Add("goodput of canal over ptp on pod-to-pod/cross-node under stream is same; x", 1e300)
	f.Fuzz(func(t *testing.T, text string, x float64) {
		if c, err := parseClaim(text); err == nil && (c.A == "" || c.Metric == "" || c.Low > c.High || math.IsNaN(c.Low)) {
			t.Fatalf("%q gives %+v", text, c)
		}
		v := New(result.Header{Facts: facts.Facts{"claim": text}, Origin: "x"})
		for i, name := range []string{"canal", "ptp", "raw"} {
			r := own(1, 0, "")[0]
			r.Profile, r.Metrics = plan.VariantOf(name), map[string]float64{metric.Goodput: x * float64(i+1)}
			v.Add(r)
		}
		r, err := v.Report("r", nil)
		if err != nil {
			t.Fatal(err)
		}
		whole(t, r)
	})
}

// whole fails t if a finding lacks something or cannot be written.
func whole(t *testing.T, r Report) {
	t.Helper()
	for _, f := range r.Findings {
		if f.Saw == "" || f.Why == "" || f.Do == "" {
			t.Fatalf("%+v lacks something", f)
		}
	}
}

// FuzzNumbers puts any numbers into any metric: no rule falls over one that is 0, negative, infinite or none.
func FuzzNumbers(f *testing.F) {
	f.Add([]byte("0123456789abcdef0123456789abcdef"))
	f.Add(binary.LittleEndian.AppendUint64(nil, math.Float64bits(math.NaN())))
	f.Add(binary.LittleEndian.AppendUint64(nil, 0))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < 8 || len(b) > 4096 {
			return
		}
		next := func(i int) float64 {
			i = i * 8 % (len(b) - 7)
			return math.Float64frombits(binary.LittleEndian.Uint64(b[i:]))
		}
		v := New(result.Header{Facts: facts.Facts{"line_rate": "10Gbit/s", "setting.x": string(b), "pods": string(b), "order": string(b)}})
		n := 0
		for _, name := range []string{"canal", "calico-vxlan", "calico-ipip"} {
			for _, path := range []plan.Path{plan.ZeroPath, plan.NinePaths[3], plan.NinePaths[4], plan.NinePaths[8]} {
				for _, w := range []string{"rr", "http", "stream(udp,rate=1G)", "stream"} {
					r := own(1, 0, "")[0]
					r.Case = plan.Case{Profile: plan.VariantOf(name), Path: path, Workload: workload(w)}
					r.WindowNs = int64(b[n%len(b)])
					for _, m := range metric.All() {
						n++
						r.Metrics[m.Name] = next(n)
					}
					v.Add(r)
				}
			}
		}
		r, err := v.Report("r", nil)
		if err != nil {
			t.Fatal(err)
		}
		whole(t, r)
	})
}

func TestFact(t *testing.T) {
	for text, want := range map[string]float64{
		"10Gbit/s": 1e10, "10 Gbit/s": 1e10, "0.256 Gbit/s": 2.56e8, "1e3bit/s": 1e3, "": 0, "fast": 0, "10": 0, "0x10bit/s": 0, "-5bit/s": 0,
	} {
		v := View{facts: facts.Facts{"line_rate": text}}
		if got := v.factInUnit("line_rate", "bit/s"); got != want {
			t.Errorf("%q: got %g, want %g", text, got, want)
		}
	}
}

func TestDigits(t *testing.T) {
	for x, want := range map[float64]int{9.16e9: 3, 113.27 * 1e3: 5, 439.04 * 1e3: 5, 1e9: 1, 0.1 + 0.2: 1, 123456: 6} {
		if got := significantDigits(x); got != want {
			t.Errorf("digits(%g) = %d, want %d", x, got, want)
		}
	}
}

func TestDocumentIsCurrent(t *testing.T) {
	got, err := os.ReadFile("../../../docs/reference/check.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != page {
		t.Error("docs/reference/check.md is not page.md; run make generate")
	}
}
