package benchfmt

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"

	"golang.org/x/perf/benchfmt"

	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/report/reporttest"
	"github.com/cnibench/cnibench/internal/tool/golden"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

func render(t *testing.T, r reporttest.Result) []byte {
	t.Helper()
	return reporttest.Render(t, r, Render)
}

func TestGolden(t *testing.T) {
	for name, r := range reporttest.Cases {
		t.Run(name, func(t *testing.T) { golden.Check(t, name+".txt", render(t, r)) })
	}
}

// read reads text as benchstat does.
func read(t *testing.T, text []byte) (results []*benchfmt.Result, units benchfmt.UnitMetadataMap) {
	t.Helper()
	r := benchfmt.NewReader(bytes.NewReader(text), "test")
	for r.Scan() {
		switch rec := r.Result().(type) {
		case *benchfmt.Result:
			results = append(results, rec.Clone())
		case *benchfmt.SyntaxError:
			t.Errorf("%v", rec)
		}
	}
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	return results, r.Units()
}

// Every finished trial is one line with all its numbers, and its case is found by the keys of its name.
func TestReader(t *testing.T) {
	in := reporttest.NinePaths(3)
	results, units := read(t, render(t, in))
	type trial struct{ profile, path, locality, workload string }
	got := map[trial]int{}
	for _, r := range results {
		_, parts := r.Name.Parts()
		keys := map[string]string{}
		for _, p := range parts {
			k, v, _ := strings.Cut(string(p), "=")
			keys[k] = v
		}
		got[trial{keys["/profile"], keys["/path"], keys["/locality"], keys["/workload"]}] += len(r.Values)
	}
	want := map[trial]int{}
	lines := 0
	for _, rec := range in.Records {
		if rec.Type != result.TypeTrial || rec.Status != result.OK || rec.Profile.IsTwin() {
			continue
		}
		path, locality, _ := strings.Cut(rec.Path.String(), "/")
		want[trial{rec.Profile.String(), path, locality, rec.Workload.String()}] += len(rec.Metrics)
		lines++
	}
	if len(results) != lines {
		t.Errorf("%d lines for %d trials", len(results), lines)
	}
	for k, n := range want {
		if got[k] != n {
			t.Errorf("%v: %d numbers of %d", k, got[k], n)
		}
	}
	if results[0].GetConfig("goarch") != "amd64" || results[0].GetConfig("kernel") == "" || results[0].GetConfig(facts.LoadAverage) != "" {
		t.Errorf("configuration %v", results[0].Config)
	}
	for unit, want := range map[string]int{"cpu-sec/op": -1, "B/s": +1, "transactions/s": +1, "rtt-p99-sec": -1, "softirq-share-ratio": 0} {
		if got := units.GetBetter(unit); got != want {
			t.Errorf("better of %s: %d, want %d", unit, got, want)
		}
	}
}

// Values come out in the base units of benchstat.
func TestValues(t *testing.T) {
	in := reporttest.Small(1)
	for i := range in.Records {
		in.Records[i].Metrics = map[string]float64{
			metric.ServiceDemand: 2500, metric.Goodput: 8e9, metric.OfferedLoad: 16, metric.TransactionRate: 40, metric.PacketRate: 5,
			"rtt.p99": 1e6, "rtt.p99.9": 3e9, metric.RetransmitsPerG: 4, metric.Memory: 4096, metric.FrameLossRate: 0.25, metric.Retransmits: 7,
		}
	}
	results, _ := read(t, render(t, in))
	if len(results) != 2 {
		t.Fatalf("%d lines", len(results))
	}
	for unit, want := range map[string]float64{
		"cpu-sec/op": 2.5e-6, "B/s": 1e9, "offered-load-B/s": 2, "transactions/s": 40, "packets/s": 5, "rtt-p99-sec": 1e-3,
		"rtt-p99.9-sec": 3, "retransmits/GB": 4, "memory-B": 4096, "frame-loss-rate-ratio": 0.25, "retransmits": 7,
	} {
		got, ok := results[0].Value(unit)
		if !ok || math.Abs(got-want) > 1e-12*want {
			t.Errorf("%s: %v, %v; want %v", unit, got, ok, want)
		}
	}
}

// One unit is one metric: otherwise benchstat would put two into one table.
func TestUnits(t *testing.T) {
	seen := map[string]string{}
	for _, m := range metric.All() {
		for _, work := range []string{"transaction", "KB", "packet"} {
			u, size := unitOf(m.Name, metric.UnitFor(m.Name, work))
			if other, ok := seen[u]; ok && other != m.Name {
				t.Errorf("%s is the unit of %s and of %s", u, other, m.Name)
			}
			seen[u] = m.Name
			if size <= 0 || strings.ContainsAny(u, " \t=_") {
				t.Errorf("%s: unit %q, size %v", m.Name, u, size)
			}
		}
	}
	if u, size := unitOf(metric.ServiceDemand, "ns/KB"); u != "cpu-ns/B" || size != 1000 {
		t.Errorf("%s %v", u, size)
	}
}

// Names of a stranger make neither lines of their own nor parts of a name.
func TestHostile(t *testing.T) {
	in := reporttest.Small(2)
	evil := "x/workload=y z\nBenchmarkFake 1 1 ns/op\nUnit cpu-ns/op better=higher\u00a0\x1b"
	for i := range in.Records {
		if in.Records[i].Profile == plan.VariantOf("calico-vxlan") {
			in.Records[i].Profile = plan.VariantOf(evil)
		}
	}
	in.Header.Plan.Name = evil
	in.Header.Facts = facts.Facts{"Benchmark": "1", "goarch": "a", facts.Architecture: "b", "with space": "x", "k": evil}
	text := render(t, in)
	results, units := read(t, text)
	if len(results) != 4 || units.GetBetter("cpu-sec/op") != -1 {
		t.Fatalf("%d lines:\n%s", len(results), text)
	}
	if n := slices.IndexFunc(results, func(r *benchfmt.Result) bool { return strings.Contains(string(r.Name), "Fake") }); n < 0 {
		t.Error("the odd profile is not there")
	}
	for _, r := range results {
		if _, parts := r.Name.Parts(); len(parts) != 4 {
			t.Errorf("name %s has %d parts", r.Name, len(parts))
		}
	}
}

// A fact as long as a book leaves the lines short enough for readers, which end at 64 KiB.
func TestLongFact(t *testing.T) {
	in := reporttest.Small(2)
	in.Header.Facts = facts.Facts{"k": strings.Repeat("x", 1<<20)}
	for line := range strings.Lines(string(render(t, in))) {
		if len(line) > 60<<10 {
			t.Errorf("a line of %d bytes: %.40s", len(line), line)
		}
	}
}
