// Package reporttest makes results for the tests of reports: synthetic, but similar to real results in shape and size.
//
// All values are derived from a seed, so that golden files change only if the code changes. It is for tests only.
package reporttest

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/cnibench/cnibench/internal/judge/impact"
	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// Result is a result file in memory.
type Result struct {
	Header  result.Header
	Records []result.Record
}

// Build builds the report of a result, with distributions. It fails if a record or an option is refused.
func Build(h result.Header, recs []result.Record, o report.Options) (report.Document, error) {
	c := report.Collector{Detailed: true}
	for i := range recs {
		if err := c.Add(&recs[i]); err != nil {
			return report.Document{}, err
		}
	}
	return c.Build(h, o)
}

// cost has two factors for each profile: its CPU time relative to that of raw. The first is for paths between hosts, the
// second for paths of pods.
var cost = map[string][2]float64{
	profile.Raw: {1, 1}, profile.Host: {1.31, 1.31}, "bridge": {1.33, 1.62}, "ptp": {1.32, 1.35}, "flannel-vxlan": {1.33, 1.78},
	"canal": {1.45, 1.95}, "calico-vxlan": {1.44, 1.88}, "calico-underlay": {1.45, 1.49}, "macvlan": {1.31, 1.02},
}

// NinePaths returns a finished run of nine lab profiles on nine paths with stream, rr and crr. Each repetition has new
// instances. One profile is skipped, two do not serve every path, some trials fail, and some have warnings.
func NinePaths(repetitions int) Result {
	p := plan.Default()
	p.Name, p.Seed, p.Repetitions, p.Duration = "nine-paths", 42, repetitions, 300*time.Millisecond
	p.Profiles = plan.Variants("raw", "host", "bridge", "ptp", "flannel-vxlan", "canal", "calico-vxlan", "calico-underlay", "macvlan")
	r := Result{Header: runHeader(p)}
	rnd := rand.New(rand.NewPCG(p.Seed, 7))
	at := r.Header.Created
	for rep := 1; rep <= repetitions; rep++ {
		drift := 0.04 * rnd.NormFloat64()
		for _, c := range p.Order(rep) {
			if !servesCase(r.Header, c) {
				continue
			}
			t := finishedTrial(c, rep, at, rnd, drift)
			t.Instance = rep
			spoilTrial(&t, rep)
			r.Records = append(r.Records, t)
			at = at.Add(time.Duration(t.WallNs))
		}
	}
	n := len(r.Records)
	r.Records = append(r.Records, result.Record{Type: result.TypeEnd, Started: at, Status: result.OK, End: &result.End{
		Reason: "complete", WallNs: int64(n) * 380e6, WindowNs: int64(n) * 300e6, Trials: n,
	}})
	return r
}

// runHeader returns the header of a run of p, with facts and profiles.
func runHeader(p plan.Plan) result.Header {
	noPods := "two empty namespaces have no pods"
	noVIP := "the node's stack, and kube-proxy in it, is bypassed"
	raw := map[string]string{}
	for _, path := range p.Paths {
		if path.String() != "host-to-host/cross-node" {
			raw[path.String()] = noPods
		}
	}
	return result.Header{
		Schema: result.Schema, Created: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC), Plan: p,
		Facts: facts.Facts{
			facts.Kernel: "6.18.44", facts.Architecture: "amd64", facts.CPUs: "2", facts.Virtualization: "firecracker",
			facts.Placement: "one, cpu 1", facts.NIC: "ideal", facts.MTU: "1500", facts.Congestion: "cubic", facts.LoadAverage: "0.42",
		},
		Profiles: []result.Profile{
			{Name: plan.VariantOf("raw"), Assertions: 4, NotServed: raw}, {Name: plan.VariantOf("raw").Twin(), Assertions: 4, NotServed: raw},
			{Name: plan.VariantOf("host"), Assertions: 6}, {Name: plan.VariantOf("bridge"), Skipped: "the kernel has no br_netfilter"}, {Name: plan.VariantOf("ptp"), Assertions: 12},
			{Name: plan.VariantOf("flannel-vxlan"), Assertions: 15}, {Name: plan.VariantOf("canal"), Assertions: 21}, {Name: plan.VariantOf("calico-vxlan"), Assertions: 22},
			{Name: plan.VariantOf("calico-underlay"), Assertions: 20, StandIn: []string{"routes are static instead of BGP's"}},
			{Name: plan.VariantOf("macvlan"), Assertions: 9, NotServed: map[string]string{
				"host-to-service/local": noVIP, "host-to-service/remote": noVIP, "pod-to-service/local": noVIP, "pod-to-service/remote": noVIP,
				"pod-to-host/same-node": "macvlan keeps a pod from its own node",
			}},
		},
	}
}

func servesCase(h result.Header, c plan.Case) bool {
	for _, p := range h.Profiles {
		if p.Name == c.Profile {
			return p.Skipped == "" && p.NotServed[c.Path.String()] == ""
		}
	}
	return true
}

// finishedTrial returns a finished trial with random values; drift shifts the logarithm of its CPU time.
func finishedTrial(c plan.Case, rep int, at time.Time, r *rand.Rand, drift float64) result.Record {
	factor := cost[c.Profile.Original().String()]
	f := factor[0]
	if c.Path.From == plan.Pod || c.Path.To == plan.Pod {
		f = factor[1]
	}
	if c.Path.To == plan.Service {
		f += 0.25
	}
	if c.Path.Locality == plan.SameNode || c.Path.Locality == plan.Local {
		f *= 0.8
	}
	f *= math.Exp(drift + 0.03*r.NormFloat64())
	wait := math.Exp(0.06 * r.NormFloat64())
	m := map[string]float64{metric.SoftIRQShare: 0.4 + 0.02*r.Float64()}
	switch c.Workload.Spec.(type) {
	case plan.Stream:
		m[metric.ServiceDemand], m[metric.Goodput] = 216*f, 37e9/f*wait
		m[metric.RetransmitsPerG] = float64(r.IntN(3))
	case plan.RR:
		m[metric.ServiceDemand], m[metric.TransactionRate] = 9272*f, 107340/f*wait
		m["rtt.p50"], m["rtt.p99"] = 7900*f*wait, 14100*f*wait*wait
	case plan.CRR:
		m[metric.ServiceDemand], m[metric.TransactionRate] = 41376*f, 24048/f*wait
		m["rtt.p50"], m["rtt.p99"], m["connect_time.p50"] = 39000*f*wait, 81000*f*wait*wait, 17000*f*wait
	}
	return result.Record{
		Type: result.TypeTrial, Trial: plan.Trial{Case: c, Repetition: rep}, Status: result.OK, Started: at,
		WallNs: 330e6, WindowNs: 300e6, Metrics: m,
	}
}

// spoilTrial makes trials of two cases fail, and adds a warning to the trials of a third case.
func spoilTrial(t *result.Record, rep int) {
	fail := func(kind, message string) {
		t.Status, t.Metrics = result.Failed, nil
		t.Error = &result.Failure{Side: "client", Kind: kind, Message: message}
	}
	switch key := t.Case.Key(); {
	case key == "ptp pod-to-service/remote crr":
		fail("connection refused", "172.20.0.10:80 answered with a reset")
	case key == "canal pod-to-pod/cross-node rr" && rep == 2:
		fail("timeout", "no reply for 1s")
	case key == "calico-vxlan host-to-service/local stream":
		t.Warnings = []sample.Warning{{ID: "softnet", Message: "12 packets dropped in softnet"}}
	}
}

// Job returns the work of a job for a forecast: a transfer with a known share of the job's time, and requests whose share
// is unknown.
func Job() []impact.Work {
	return []impact.Work{
		{Kind: impact.Transfer, Amount: 100e9, Share: 0.3, Text: "100GB"},
		{Kind: impact.Requests, Amount: 1e6, Text: "1M"},
	}
}

// Cases has results by name. The tests of every format for programs use them.
var Cases = map[string]Result{
	"small": Small(10), "one-trial": Small(1), "all-failed": AllFailed(), "empty": {}, "not-numbers": NotNumbers(), "hostile": Hostile(),
}

// Small returns a run of two profiles on one path with rr, with the given number of repetitions.
func Small(repetitions int) Result {
	p := plan.Default()
	p.Seed, p.Repetitions, p.Duration = 1, repetitions, 500*time.Millisecond
	p.Profiles = plan.Variants("host", "calico-vxlan")
	p.Paths = []plan.Path{{From: plan.Pod, To: plan.Pod, Locality: plan.CrossNode}}
	p.Workloads = []plan.Workload{plan.Workload{Spec: plan.RR{}}.Normalize()}
	p.Baseline = plan.VariantOf("host")
	r := Result{Header: result.Header{Schema: result.Schema, Created: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC), Plan: p, Facts: facts.Facts{facts.Kernel: "6.18.44"}}}
	rnd := rand.New(rand.NewPCG(p.Seed, 7))
	for rep := 1; rep <= repetitions; rep++ {
		for _, c := range p.Order(rep) {
			r.Records = append(r.Records, finishedTrial(c, rep, r.Header.Created, rnd, 0))
		}
	}
	return r
}

// Hostile returns Small with names and messages that try to break out of a terminal, a table or a page.
func Hostile() Result {
	r := Small(4)
	const evil = "evil|`x`<script>\x1b[2J\n| a | b |"
	r.Header.Plan.Name = evil
	r.Header.Plan.Profiles[1] = plan.VariantOf(evil)
	r.Header.Facts = facts.Facts{evil: evil}
	r.Header.Profiles = []result.Profile{{Name: plan.VariantOf("s" + evil), Skipped: evil}, {Name: plan.VariantOf(evil), StandIn: []string{evil}}}
	for i := range r.Records {
		if r.Records[i].Profile == plan.VariantOf("calico-vxlan") {
			r.Records[i].Profile = plan.VariantOf(evil)
			r.Records[i].Warnings = []sample.Warning{{ID: evil, Message: evil}}
		}
	}
	return r
}

// AllFailed returns Small with only failed trials.
func AllFailed() Result {
	r := Small(5)
	for i := range r.Records {
		r.Records[i].Status, r.Records[i].Metrics = result.Failed, nil
		r.Records[i].Error = &result.Failure{Kind: "timeout", Message: "no reply for 1s"}
	}
	return r
}

// NotNumbers returns Small with values that are infinite, not a number, zero or negative. No file can contain such
// values, but a program may.
func NotNumbers() Result {
	r := Small(5)
	odd := []float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, -1}
	for i := range r.Records {
		m := r.Records[i].Metrics
		m[metric.ServiceDemand] = odd[i%len(odd)]
		m[metric.FrameLossRate] = 0
		m["rtt.p99"] = math.NaN()
		m["from_the_future"] = 1
	}
	return r
}
