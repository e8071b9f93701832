package impact

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/advice"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

func TestParse(t *testing.T) {
	for s, want := range map[string]string{
		"transfer=100GB":                 "transfer 1e+11 0",
		"transfer=1GiB":                  "transfer 1.073741824e+09 0",
		"sync=1.5kB/share=30%":           "sync 1500 0.3",
		"requests=5000,connections=1.5M": "requests 5000 0; connections 1.5e+06 0",
		"network-share=20%,requests=2G":  "requests 2e+09 0.2",
		"sync=10GB/share=50%,requests=20k,transfer=1TB,network-share=12.5%": "sync 1e+10 0.5; requests 20000 0.125; transfer 1e+12 0.125",
		"requests=1/share=100%": "requests 1 1",
	} {
		works, err := Parse(s)
		if err != nil {
			t.Errorf("%q: %v", s, err)
			continue
		}
		var got []string
		for _, w := range works {
			got = append(got, fmt.Sprintf("%s %v %v", w.Kind, w.Amount, w.Share))
		}
		if g := strings.Join(got, "; "); g != want {
			t.Errorf("%q: got %s, want %s", s, g, want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for s, want := range map[string][]string{
		"":                           {"nothing is written before or after a comma"},
		"transfer":                   {`"transfer" has no value`},
		"network-share=20%":          {"no work is named"},
		"download=1GB":               {`unknown work "download": there are transfer, sync, requests, connections and network-share`},
		"transfer=1GB,transfer=2GB":  {"transfer is given twice"},
		"transfer=1GB,":              {"nothing is written before or after a comma"},
		"transfer=100":               {`transfer: "100" is not a size`},
		"transfer=100KB":             {"transfer: ", "say kB or KiB"},
		"transfer=100Gbit":           {`"100Gbit" is not a size`},
		"transfer=-1GB":              {`"-1GB" is not a size`},
		"transfer=1e3GB":             {`"1e3GB" is not a size`},
		"transfer=0GB":               {"must be at least 1"},
		"transfer=9999999999TB":      {"at most 1e+18"},
		"requests=1.5":               {`requests: "1.5" is not a whole number`},
		"requests=kM":                {`"kM" is not a count`},
		"requests=1kM":               {`"1kM" is not a count`},
		"requests=":                  {`"" is not a count`},
		"requests=0":                 {"must be at least 1"},
		"requests=5/speed=3":         {`requests: unknown option "speed=3": want share=PERCENT`},
		"requests=5/share=30":        {`requests: "30" is not a share: want a percentage`},
		"requests=5/share=0%":        {`requests: "0%" is not a share: it must be more than 0%`},
		"requests=5/share=101%":      {"at most 100%"},
		"requests=5,network-share=x": {`network-share: "x" is not a share`},
		"network-share=1%,network-share=2%,requests=1": {"network-share is given twice"},
		"tränsfer=1GB,sync=x,requests=y":               {`unknown work "tränsfer"`, `sync: "x"`, `requests: "y"`},
	} {
		works, err := Parse(s)
		if err == nil {
			t.Errorf("%q is taken as %+v", s, works)
			continue
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%q: got %v, want %s", s, err, w)
			}
		}
		if got := 1 + strings.Count(err.Error(), "\n"); got != max(1, len(want)) && len(want) != 2 {
			t.Errorf("%q: %d faults of 3 are named: %v", s, got, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"transfer=100GB/share=30%,requests=1M", "network-share=20%,sync=1GiB", "=,/%", "requests=1kk", "transfer=.B", "\xff=\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		works, err := Parse(s)
		if err != nil {
			return
		}
		if len(works) == 0 || len(works) > len(allKinds) {
			t.Fatalf("%q: %d works", s, len(works))
		}
		for _, w := range works {
			if !(w.Amount >= 1 && w.Amount <= most) || !(w.Share >= 0 && w.Share <= 1) {
				t.Fatalf("%q: %+v", s, w)
			}
			// What is written again is read as the same.
			again, err := Parse(string(w.Kind) + "=" + w.Text)
			if err != nil || again[0].Amount != w.Amount {
				t.Fatalf("%q: %+v is read again as %+v, %v", s, w, again, err)
			}
		}
	})
}

var path = plan.Path{From: plan.Pod, To: plan.Pod, Locality: plan.CrossNode}

// measured makes an analysis: for each "profile workload metric" the values by repetition. The baseline is canal.
func measured(t *testing.T, values map[string][]float64) *compare.Analysis {
	t.Helper()
	p := plan.Default()
	p.Profiles, p.Paths, p.Workloads, p.Baseline = plan.Variants("canal", "cilium-native", "macvlan"), []plan.Path{path}, nil, plan.VariantOf("canal")
	var recs []result.Record
	for key, vs := range values {
		f := strings.Fields(key)
		w, err := plan.ParseWorkload(f[1])
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range vs {
			recs = append(recs, result.Record{
				Type: result.TypeTrial, Status: result.OK, Metrics: map[string]float64{f[2]: v},
				Trial: plan.Trial{Repetition: i + 1, Case: plan.Case{Profile: plan.VariantOf(f[0]), Path: path, Workload: w}},
			})
		}
	}
	a, err := compare.Analyse(result.Header{Schema: result.Schema, Plan: p}, recs, compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func around(v float64) []float64 {
	var out []float64
	for i := range 10 {
		out = append(out, v*(1+0.001*float64((i*7)%5-2)))
	}
	return out
}

func near(a, b float64) bool { return math.Abs(a-b) <= 0.01*math.Abs(b) }

func TestAssess(t *testing.T) {
	a := measured(t, map[string][]float64{
		"canal stream goodput": around(8e9), "cilium-native stream goodput": around(32e9), "macvlan stream goodput": around(8e9),
		"canal stream service_demand": around(400), "cilium-native stream service_demand": around(100),
		"canal stream(flows=4) goodput": around(16e9), "cilium-native stream(flows=4) goodput": around(32e9),
		"canal rr transaction_rate": around(1e4), "cilium-native rr transaction_rate": around(2e4), "canal rr service_demand": around(50e3),
	})
	works, err := Parse("transfer=100GB/share=30%,sync=10GB,requests=1M")
	if err != nil {
		t.Fatal(err)
	}
	es, err := Assess(a, path, works)
	if err != nil {
		t.Fatal(err)
	}
	transfer, sync, requests := es[0], es[1], es[2]
	if transfer.Workload.Traits().Flows != 1 || sync.Workload.Traits().Flows != 4 || transfer.Rate != metric.Goodput {
		t.Errorf("estimated from %s, %s by %s", transfer.Workload, sync.Workload, transfer.Rate)
	}
	canal, cilium, macvlan := transfer.Rows[0], transfer.Rows[1], transfer.Rows[2]
	// 100 GB are 8e11 bit: 100 s at 8 Gbit/s. 400 ns for each of 1e8 KB are 40 s.
	if !near(canal.Time.Value, 100e9) || !near(canal.CPU.Value, 40e9) || canal.TimeChange != nil {
		t.Errorf("canal: %+v", canal)
	}
	if !near(cilium.Time.Value, 25e9) || !(cilium.Time.Low <= cilium.Time.Value && cilium.Time.Value <= cilium.Time.High) {
		t.Errorf("cilium: %+v", cilium.Time)
	}
	if c := cilium.TimeChange; !near(c.Value, 0.25) || !(c.Low <= c.Value && c.Value <= c.High) || c.Verdict != compare.Better || !c.Claimed() {
		t.Errorf("cilium's time beside canal's: %+v", c)
	}
	// A quarter of the time for 30 % of the job is 22.5 % less of the job, not 75 %.
	if j := cilium.TimeChange.Job(transfer.Share); math.Abs(j.Value+0.225) > 0.002 || !(j.Low <= j.Value && j.Value <= j.High) {
		t.Errorf("the job: %+v", j)
	}
	if c := macvlan.TimeChange; c.Claimed() || c.Verdict != compare.Same || macvlan.CPU.Known() {
		t.Errorf("macvlan: %+v, %+v", c, macvlan.CPU)
	}
	if !near(sync.Rows[0].Time.Value, 5e9) || sync.Share != 0 {
		t.Errorf("sync: %+v", sync)
	}
	if r := requests.Rows; len(r) != 2 || !near(r[0].Time.Value, 100e9) || !near(r[0].CPU.Value, 50e9) {
		t.Errorf("requests: %+v", r)
	}
	_, err = Assess(a, path, []Work{{Kind: Connections, Amount: 1, Text: "1"}})
	if err == nil || !strings.Contains(err.Error(), "connections needs a workload") || !strings.Contains(advice.Of(err), "rr") {
		t.Errorf("no crr: %v, hint %q", err, advice.Of(err))
	}
}

// Amdahl's law: a job never gains more than its share of network, and nothing from a network that does not change.
func TestJob(t *testing.T) {
	for _, share := range []float64{0.1, 0.3, 1} {
		for _, ratio := range []float64{1e-9, 0.5, 1, 3} {
			c := &Change{Quantity: Quantity{ratio, ratio, ratio}}
			if j := c.Job(share).Value; j < -share || j > share*(ratio-1)+1e-12 || ratio == 1 && j != 0 {
				t.Errorf("share %v, ratio %v: %v", share, ratio, j)
			}
		}
	}
}

// What is no time is absent: rates of zero, less than zero or none, and a single trial has no interval.
func TestAbsent(t *testing.T) {
	a := measured(t, map[string][]float64{
		"canal stream goodput": make([]float64, 5), "cilium-native stream goodput": {-1, -1, -1, -1}, "macvlan stream goodput": {8e9},
	})
	es, err := Assess(a, path, []Work{{Kind: Transfer, Amount: 1e9, Text: "1GB"}})
	if err != nil {
		t.Fatal(err)
	}
	if len(es[0].Rows) != 1 || es[0].Rows[0].Profile != plan.VariantOf("macvlan") || !near(es[0].Rows[0].Time.Value, 1e9) {
		t.Fatalf("rows: %+v", es[0].Rows)
	}
	if q := es[0].Rows[0].Time; !math.IsNaN(q.Low) || !math.IsNaN(q.High) {
		t.Errorf("one trial has an interval: %+v", q)
	}
	if c := es[0].Rows[0].TimeChange; c.Claimed() {
		t.Errorf("a change from nothing is claimed: %+v", c)
	}
}

// An open loop's rate is what was asked for, so it says nothing of how long requests take.
func TestOpenLoopIsNoRate(t *testing.T) {
	a := measured(t, map[string][]float64{"canal rr(rate=1000) transaction_rate": around(1000), "canal rr(flows=2) transaction_rate": around(4000)})
	es, err := Assess(a, path, []Work{{Kind: Requests, Amount: 4000, Text: "4k"}})
	if err != nil || len(es[0].Rows) != 1 || !near(es[0].Rows[0].Time.Value, 1e9) {
		t.Errorf("%v, %+v", err, es)
	}
}

func TestCores(t *testing.T) {
	for _, c := range []struct {
		workload string
		demand   float64
		load     string
		want     float64
	}{
		{"stream", 216, "10 Gbit/s", 0.27}, // 216 ns for each of 1.25 million KB a second
		{"rr", 33_900, "100,000 requests/s", 3.39},
		{"crr", 220_000, "100,000 connections/s", 22},
		{"http", 50_000, "100,000 requests/s", 5},
		{"stream(udp)", 2610, "1,000,000 packets/s", 2.61},
	} {
		w, err := plan.ParseWorkload(c.workload)
		if err != nil {
			t.Fatal(err)
		}
		l, ok := LoadOf(w)
		if got := l.Cores(c.demand); !ok || l.Text != c.load || math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: %g cores for %s, want %g for %s", c.workload, got, l.Text, c.want, c.load)
		}
	}
}

// Bulk without NIC offload says nothing of a job, whether the run or the workload has that model.
func TestBulkWithoutOffloadIsRefused(t *testing.T) {
	works, err := Parse("transfer=100GB")
	if err != nil {
		t.Fatal(err)
	}
	both := map[string][]float64{"canal stream goodput": around(8e9), "canal stream(nic=wire) goodput": around(1e9)}
	a := measured(t, both)
	a.Facts = facts.Facts{facts.NIC: "ideal"}
	if es, err := Assess(a, path, works); err != nil || !near(es[0].Rows[0].Time.Value, 100e9) {
		t.Errorf("both models: %+v, %v", es, err)
	}
	both["canal stream(bidirectional) goodput"] = around(16e9)
	ways := measured(t, both)
	ways.Facts = facts.Facts{facts.NIC: "ideal"}
	if es, err := Assess(ways, path, works); err != nil || es[0].Workload.Traits().Bidirectional {
		t.Errorf("both directions: %+v, %v", es, err)
	}
	delete(both, "canal stream(bidirectional) goodput")
	delete(both, "canal stream goodput")
	for name, a := range map[string]*compare.Analysis{"of the workload": measured(t, both), "of the run": measured(t, map[string][]float64{"canal stream goodput": around(1e9)})} {
		a.Facts = facts.Facts{facts.NIC: "wire"}
		_, err := Assess(a, path, works)
		if err == nil || !strings.Contains(err.Error(), "transfer needs a TCP stream under NIC model ideal") || !strings.Contains(advice.Of(err), "--nic ideal --workloads stream") {
			t.Errorf("%s: %v, hint %q", name, err, advice.Of(err))
		}
	}
}

// TestForecasts: the busiest member's bytes by the goodput of one stream, beside the exchange of each job that moves data.
func TestForecasts(t *testing.T) {
	values := map[string][]float64{
		"canal job(size=16Mi) exchange_time.mean": around(50e6), "cilium-native job(size=16Mi) exchange_time.mean": around(10e6),
		"canal job(pattern=incast,size=250000) exchange_time.mean": around(1e6), "canal job(pattern=microservice) exchange_time.mean": around(1e6),
	}
	if all := Forecasts(measured(t, values), path); all != nil {
		t.Errorf("without a stream: %+v", all)
	}
	values["canal stream goodput"], values["cilium-native stream goodput"] = around(8e9), around(32e9)
	got := map[string]Told{}
	for _, f := range Forecasts(measured(t, values), path) {
		for _, r := range f.Rows {
			got[fmt.Sprint(f.Workload, " ", r.Profile)] = r
		}
	}
	for key, want := range map[string][2]float64{
		"job(size=16777216) canal": {25.17e6, -0.497}, "job(size=16777216) cilium-native": {6.29e6, -0.371}, "job(pattern=incast,size=250000) canal": {0.75e6, -0.25},
	} {
		if r, ok := got[key]; !ok || !near(r.Said.Value, want[0]) || !near(r.Error(), want[1]) {
			t.Errorf("%s: %+v, want %v", key, r, want)
		}
	}
	if len(got) != 3 {
		t.Errorf("%+v", got)
	}
}
