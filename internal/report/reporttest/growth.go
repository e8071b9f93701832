package reporttest

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// Growth returns a sweep of the number of Services with a curve of each kind. The CPU time of flannel-vxlan grows by 12 ns
// for each Service, with nftables by 4 µs for each doubling. cilium-native is constant, calico-vxlan grows quadratically,
// canal grows only at 30,000 Services, and calico-ebpf varies too much for a verdict.
func Growth() Result {
	shapes := []struct {
		profile string
		scatter float64
		ns      func(x float64) float64
	}{
		{"flannel-vxlan", 0.01, func(x float64) float64 { return 50e3 + 12*x }},
		{"cilium-native", 0.01, func(float64) float64 { return 54e3 }},
		{"flannel-vxlan(service-proxy=nftables)", 0.01, func(x float64) float64 { return 60e3 + 4e3*math.Log2(1+x) }},
		{"calico-vxlan", 0.01, func(x float64) float64 { return 70e3 + x*x/100 }},
		{"canal", 0.01, func(x float64) float64 { return 80e3 + 40e3*math.Floor(x/30e3) }},
		{"calico-ebpf", 0.4, func(float64) float64 { return 60e3 }},
	}
	p := plan.Default()
	p.Name, p.Seed, p.Repetitions, p.Duration = "growth", 1, 8, 300*time.Millisecond
	p.Profiles = nil
	for _, s := range shapes {
		p.Profiles = append(p.Profiles, plan.VariantOf(s.profile))
	}
	p.Sweep = plan.Sweep{Condition: "services", Points: []int{0, 1000, 3000, 10_000, 30_000}}
	p.Paths = []plan.Path{{From: plan.Pod, To: plan.Service, Locality: plan.Remote}}
	p.Workloads = []plan.Workload{plan.Workload{Spec: plan.CRR{}}.Normalize()}
	p = p.Settle()
	r := Result{Header: runHeader(p)}
	r.Header.Profiles = nil
	rnd := rand.New(rand.NewPCG(p.Seed, 7))
	for i, s := range p.Swept() {
		for j, v := range s.Variants {
			r.Header.Profiles = append(r.Header.Profiles, result.Profile{Name: v, Assertions: 20})
			for rep := 1; rep <= p.Repetitions; rep++ {
				c := plan.Case{Profile: v, Path: p.Paths[0], Workload: p.Workloads[0]}
				ns := shapes[i].ns(float64(p.Sweep.Points[j])) * math.Exp(shapes[i].scatter*rnd.NormFloat64())
				r.Records = append(r.Records, result.Record{Type: result.TypeTrial, Trial: plan.Trial{Case: c, Repetition: rep}, Instance: rep,
					Status: result.OK, Started: r.Header.Created, WallNs: 330e6, WindowNs: 300e6, Metrics: map[string]float64{metric.ServiceDemand: ns}})
			}
		}
	}
	return r
}
