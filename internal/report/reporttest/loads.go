package reporttest

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// Loads returns a finished run of rr over two paths at five shares of the capacity. The profiles behave as queues with
// one server: a time is the time of the idle path divided by the unused share of the capacity.
func Loads(repetitions int) Result {
	p := plan.Default()
	p.Name, p.Seed, p.Repetitions, p.Duration = "loads", 42, repetitions, 300*time.Millisecond
	p.Profiles = plan.Variants("raw", "canal", "calico-vxlan")
	p.Paths = []plan.Path{plan.ZeroPath, {From: plan.Pod, To: plan.Pod, Locality: plan.CrossNode}}
	p.Workloads = nil
	for _, load := range []float64{0.1, 0.3, 0.5, 0.7, 0.95} {
		p.Workloads = append(p.Workloads, plan.Workload{Spec: plan.RR{Load: load}}.Normalize())
	}
	p = p.Settle()
	r := Result{Header: runHeader(p)}
	rnd := rand.New(rand.NewPCG(p.Seed, 7))
	at := r.Header.Created
	for rep := 1; rep <= repetitions; rep++ {
		for _, c := range p.Order(rep) {
			if servesCase(r.Header, c) {
				r.Records = append(r.Records, loadTrial(c, rep, at, rnd))
				at = at.Add(330 * time.Millisecond)
			}
		}
	}
	return r
}

// loadTrial returns a finished trial at the load of c. If c has no load, the trial measures the capacity.
func loadTrial(c plan.Case, rep int, at time.Time, r *rand.Rand) result.Record {
	f := cost[c.Profile.Original().String()][1]
	capacity := 100_000 / f
	noise := math.Exp(0.02 * r.NormFloat64())
	m := map[string]float64{metric.TransactionRate: capacity * noise, metric.ServiceDemand: 9272 * f * noise}
	if load := c.Workload.Traits().Load; load > 0 {
		time := 8000 * f * noise / (1 - load)
		m = map[string]float64{
			metric.Capacity: capacity, metric.IntendedRate: load * capacity, metric.OfferedRate: load * capacity * noise,
			metric.AnsweredRate: load * capacity * noise, "rtt.p50": time * math.Ln2, "rtt.p99": time * math.Log(100),
			metric.SendLag + ".p50": 110 * noise, metric.SendLag + ".p99": 3000 * noise,
		}
	}
	return result.Record{
		Type: result.TypeTrial, Trial: plan.Trial{Case: c, Repetition: rep}, Status: result.OK, Started: at,
		WallNs: 330e6, WindowNs: 300e6, Metrics: m,
	}
}
