package matrix

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/plan/mesh"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

var (
	hosts  = plan.ZeroPath
	pods   = plan.Path{From: plan.Pod, To: plan.Pod, Locality: plan.CrossNode}
	rr     = plan.Workload{Spec: plan.RR{}}.Normalize()
	stream = plan.Workload{Spec: plan.Stream{}}.Normalize()
)

// cluster makes the records of a run over pairs of nodes.
type cluster struct {
	nodes       int
	which       string
	repetitions int
	seed        uint64
	// noise is the standard deviation of the logarithm of what is measured; every fiftieth value is disturbed besides.
	noise float64
	// fault changes what is measured from one node to another: the round trip in ns, the rate in bit/s, the retransmits. It
	// returns false for a pair that fails. (optional)
	fault func(path plan.Path, from, to int, x *seen) bool
	// zones is the number of zones, in which the nodes are in turn; 0 is none.
	zones  int
	random *rand.Rand
}

type seen struct{ rtt, rate, retransmits float64 }

func (c cluster) list() []mesh.Node {
	var nodes []mesh.Node
	for i := range c.nodes {
		n := mesh.Node{Name: fmt.Sprintf("n%d", i+1)}
		if c.zones > 0 {
			n.Labels = map[string]string{"zone": string(rune('a' + i%c.zones))}
		}
		nodes = append(nodes, n)
	}
	return nodes
}

func (c cluster) collect() (*Collector, []mesh.Node) {
	nodes := c.list()
	number := map[string]int{}
	var names []string
	for i, n := range nodes {
		number[n.Name] = i + 1
		names = append(names, n.Name)
	}
	if c.which == "" {
		c.which = mesh.All
	}
	if c.repetitions == 0 {
		c.repetitions = 2
	}
	c.random = rand.New(rand.NewPCG(c.seed, 5))
	var col Collector
	s := mesh.Pairs{Which: c.which}.Schedule(names, c.seed)
	for rep := 1; rep <= c.repetitions; rep++ {
		for i := range s.Rounds() {
			for _, p := range s.Round(i, rep) {
				c.measure(&col, number, p, rep)
			}
		}
	}
	// As a run does, suspects are measured again.
	for _, p := range col.Analyse(nodes, 0).Suspects(8) {
		for more := range 2 {
			c.measure(&col, number, p, c.repetitions+1+2*more)
			c.measure(&col, number, p.Swapped(), c.repetitions+2+2*more)
		}
	}
	return &col, nodes
}

// measure adds the trials of one pair.
func (c cluster) measure(col *Collector, number map[string]int, p mesh.Pair, rep int) {
	r := c.random
	noisy := func(v float64) float64 {
		v *= math.Exp(c.noise * r.NormFloat64())
		if r.IntN(50) == 0 {
			v *= 1.5
		}
		return v
	}
	for _, path := range []plan.Path{hosts, pods} {
		x := seen{rtt: 25e3, rate: 20e9}
		if path == pods {
			x = seen{rtt: 45e3, rate: 11e9}
		}
		if r.IntN(6) == 0 {
			x.retransmits = 20
		}
		ok := c.fault == nil || c.fault(path, number[p.From], number[p.To], &x)
		rtt := noisy(x.rtt)
		for w, metrics := range map[plan.Workload]map[string]float64{
			rr:     {"rtt.p50": rtt, metric.TransactionRate: 1e9 / (rtt * math.Exp(c.noise*r.NormFloat64()/4))},
			stream: {metric.Goodput: x.rate * x.rate / noisy(x.rate), metric.RetransmitsPerG: x.retransmits},
		} {
			rec := result.Record{Type: result.TypeTrial, Status: result.OK, Metrics: metrics,
				Trial: plan.Trial{Case: plan.Case{Profile: plan.VariantOf("calico-vxlan"), Path: path, Workload: w}, Repetition: rep, Pair: p}}
			if !ok {
				rec.Status, rec.Error = result.Failed, &result.Failure{Kind: "connect"}
			}
			col.Add(&rec)
		}
	}
}

func (c cluster) analyse() *Analysis {
	col, nodes := c.collect()
	return col.Analyse(nodes, 0)
}

// said is a finding in words: kind, nodes, scope.
func said(list []Finding) string {
	var words []string
	for _, f := range list {
		text := string(f.Kind) + " " + strings.Join(f.Nodes, " ")
		if f.Scope != "" {
			text += " " + string(f.Scope)
		}
		if f.Doubt != "" {
			text += " (" + string(f.Doubt) + ")"
		}
		words = append(words, text)
	}
	return strings.Join(words, "; ")
}

func is(a, b, from, to int) bool { return from == a && to == b || from == b && to == a }

// planted is what the issue plants: a node with delay, a link with loss, a node with a slow NIC.
func planted(_ plan.Path, from, to int, x *seen) bool {
	if from == 3 || to == 3 {
		x.rtt += 2e6
		x.rate = min(x.rate, 3e9)
	}
	if is(5, 9, from, to) {
		x.rtt *= 3
		x.rate /= 4
		x.retransmits += 7000
	}
	if from == 7 {
		x.rate = 1e8
	}
	return true
}

func TestPlantedFaultsAreNamed(t *testing.T) {
	for seed := range uint64(20) {
		for _, c := range []struct {
			what string
			cluster
			findings, undecided string
		}{
			{"three faults", cluster{nodes: 16, fault: planted}, "node n7 hosts; node n3 hosts; link n5 n9 hosts", ""},
			{"three faults, sampled", cluster{nodes: 40, which: "sample=200", fault: planted}, "", ""},
			{"nothing", cluster{nodes: 16}, "", ""},
			{"nothing between four", cluster{nodes: 4}, "", ""},
			{"the CNI of one node", cluster{nodes: 8, fault: func(path plan.Path, from, to int, x *seen) bool {
				if path == pods && (from == 2 || to == 2) {
					x.rtt *= 2
				}
				return true
			}}, "node n2 pods", ""},
			{"a node that is away", cluster{nodes: 6, fault: func(_ plan.Path, from, to int, _ *seen) bool { return from != 4 && to != 4 }}, "node n4 hosts", ""},
			{"a link that is cut", cluster{nodes: 6, fault: func(_ plan.Path, from, to int, _ *seen) bool { return !is(1, 2, from, to) }}, "link n1 n2 hosts", ""},
			{"one direction", cluster{nodes: 8, repetitions: 4, fault: func(_ plan.Path, from, to int, x *seen) bool {
				if from == 6 && to == 1 {
					x.rate /= 20
				}
				return true
			}}, "direction n6 n1 hosts", ""},
			{"a slow node on a ring", cluster{nodes: 8, which: mesh.Ring, fault: func(_ plan.Path, from, to int, x *seen) bool {
				if from == 5 || to == 5 {
					x.rtt *= 4
				}
				return true
			}}, "", "node n5 hosts (few partners)"},
		} {
			c.seed, c.noise = seed, 0.08
			a := c.analyse()
			if c.what == "three faults, sampled" {
				names := said(a.Findings)
				if !strings.HasPrefix(names, "node n7 hosts; node n3 hosts") || strings.Count(names, "node") != 2 || strings.Count(names, "link") > 1 || strings.Contains(names, "link") && !strings.Contains(names, "link n5 n9") {
					t.Errorf("%s, seed %d: %s", c.what, seed, names)
				}
				continue
			}
			if got := said(a.Findings); got != c.findings {
				t.Errorf("%s, seed %d: found %q, want %q", c.what, seed, got, c.findings)
			}
			if got := said(a.Undecided); c.undecided != "" && got != c.undecided {
				t.Errorf("%s, seed %d: undecided %q, want %q", c.what, seed, got, c.undecided)
			}
		}
	}
}

// TestNothingIsNamedFalsely: of a thousand runs without a fault, in a noisy place, next to none names anything.
func TestNothingIsNamedFalsely(t *testing.T) {
	names := 0
	for seed := range uint64(300) {
		a := cluster{nodes: 4 + int(seed%13), seed: 1000 + seed, noise: 0.05 + 0.15*float64(seed%7)/6}.analyse()
		if len(a.Findings) > 0 {
			names++
			t.Logf("%d nodes: %s", 4+seed%13, said(a.Findings))
		}
	}
	if names > 1 {
		t.Errorf("%d of 300 runs name something", names)
	}
}

// TestZonesAreNotFaults: a difference between zones is one, and no link between them is called slow.
func TestZonesAreNotFaults(t *testing.T) {
	far := func(_ plan.Path, from, to int, x *seen) bool {
		if (from-to)%2 != 0 {
			x.rtt += 400e3
		}
		if from == 3 || to == 3 {
			x.rtt += 2e6
		}
		return true
	}
	a := cluster{nodes: 12, zones: 2, noise: 0.05, fault: far}.analyse()
	if got := said(a.Findings); got != "node n3 hosts; group zone a zone b" {
		t.Errorf("found %s", got)
	}
	if a.Nodes[0].Labels["zone"] != "a" || a.Nodes[6].Labels["zone"] != "b" {
		t.Errorf("the nodes are in the order %v", a.Nodes)
	}
}

func TestSuspects(t *testing.T) {
	a := cluster{nodes: 16, noise: 0.05, fault: planted}.analyse()
	if pairs := a.Suspects(3); !slices.Contains(pairs, mesh.Pair{From: "n5", To: "n9"}) || len(pairs) > 3 {
		t.Errorf("%v", pairs)
	}
}

// TestLayers: what a layer says of a pair, of one that was not measured, and of pods beside hosts.
func TestLayers(t *testing.T) {
	a := cluster{nodes: 5, which: mesh.Ring, repetitions: 1, fault: func(_ plan.Path, from, _ int, x *seen) bool {
		x.rtt *= map[bool]float64{true: 4, false: 1}[from == 2]
		return true
	}}.analyse()
	var at = map[plan.Path]*Matrix{}
	for _, m := range a.Matrices {
		if m.Metric == "rtt.p50" {
			at[m.Path] = m
		}
	}
	if f := at[pods].Worse(1, 2); f < 3.9 || f > 4.1 || at[pods].Worse(0, 1) != 1 || at[pods].Worse(0, 2) != 0 || at[pods].Pairs() != 5 {
		t.Errorf("worse by %v, %v, %v; %d pairs", f, at[pods].Worse(0, 1), at[pods].Worse(0, 2), at[pods].Pairs())
	}
	if q := at[pods].Over(at[hosts]); q < 1.79 || q > 1.81 {
		t.Errorf("pods over hosts: %v", q)
	}
}
