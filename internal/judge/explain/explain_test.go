package explain

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// one is a sample.
var one = sample.Counted{Samples: 1, Weight: 1}

// stackOf is a stack of each part of the tests.
var stackOf = map[string][]string{
	"socket":        {"pod", "entry_SYSCALL_64", "tcp_sendmsg"},
	"conntrack":     {"node-1", "process_backlog", "ip_rcv", "nf_hook_slow", "nf_conntrack_in"},
	"rules forward": {"node-1", "process_backlog", "ip_forward", "nf_hook_slow", "nft_do_chain"},
	"unexplained":   {"node-1", "[unknown]"},
}

// spends is what a profile spends on each part in ns.
type spends map[string]float64

func (s spends) total() (sum float64) {
	for _, ns := range s {
		sum += ns
	}
	return sum
}

var (
	theCase  = plan.Case{Path: plan.Path{From: plan.Pod, To: plan.Pod, Locality: plan.CrossNode}, Workload: plan.Workload{Spec: plan.RR{}}.Normalize()}
	profiles = plan.Variants("flannel-vxlan", "canal", "ptp")
)

// records are trials and sampled trials of profiles that spend. Every other slice is of a slow machine, on which the load
// generator of the neighbour spoils the shares.
func records(of map[plan.Variant]spends, repetitions, samples int) []result.Record {
	r := rand.New(rand.NewPCG(1, 2))
	var all []result.Record
	for rep := 1; rep <= repetitions; rep++ {
		for _, name := range profiles {
			s, ok := of[name]
			if !ok {
				continue
			}
			k := theCase
			k.Profile = name
			rec := result.Record{Type: result.TypeTrial, Trial: plan.Trial{Case: k, Repetition: rep}, Instance: rep, Status: result.OK, Started: time.Unix(0, 0)}
			rec.Client = &sample.Observation{Machine: "m"}
			ids := append([]string{"socket", "conntrack", "rules forward", "unexplained"}, slices.Sorted(maps.Keys(s))...)
			stacks := &sample.Stacks{Event: "cpu-clock", Rate: 499}
			for i := range 20 {
				slow := i%2 == 1
				yard := int64(1000 + 10*r.Float64())
				if slow {
					yard *= 2
				}
				cpu := int64(100 * s.total() / 2 * float64(yard) / 1000)
				rec.Client.Intervals = append(rec.Client.Intervals, sample.Interval{StartNs: int64(i) * 1e7, EndNs: int64(i+1) * 1e7, Operations: 100, CPUNs: cpu, YardNs: yard})
				for range samples {
					x := r.Float64() * s.total()
					for _, id := range ids {
						if x -= s[id]; x < 0 || slow { // a slow machine is all sockets
							stacks.Add(i, one, stackOf[id]...)
							break
						}
					}
				}
			}
			rec.Server = rec.Client
			rec.Metrics = map[string]float64{metric.ServiceDemand: s.total() * (1 + 0.002*r.NormFloat64()) * 1.5, metric.TransactionRate: 1e9 / s.total()}
			all = append(all, rec)
			sampled := rec
			sampled.Type, sampled.Stacks = result.TypeSampled, stacks
			sampled.Metrics = map[string]float64{metric.ServiceDemand: rec.Metrics[metric.ServiceDemand] / 0.98}
			all = append(all, sampled)
		}
	}
	return all
}

// judged analyses records.
func judged(t *testing.T, recs []result.Record) (*compare.Analysis, []Side) {
	t.Helper()
	h := result.Header{Plan: plan.Plan{Profiles: profiles, Baseline: profiles[0], Paths: []plan.Path{theCase.Path}, Workloads: []plan.Workload{theCase.Workload}}}
	a, err := compare.Analyse(h, recs, compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var c Collector
	for i := range recs {
		if err := c.Add(&recs[i]); err != nil {
			t.Fatal(err)
		}
	}
	return a, c.Sides(a)
}

var spending = map[plan.Variant]spends{
	plan.VariantOf("flannel-vxlan"): {"socket": 8000, "conntrack": 1500, "rules forward": 3000, "unexplained": 100},
	plan.VariantOf("canal"):         {"socket": 8000, "conntrack": 1500, "rules forward": 9000, "unexplained": 100},
	plan.VariantOf("ptp"):           {"socket": 8000, "conntrack": 1500, "rules forward": 3000, "unexplained": 100},
}

// TestParts: parts are those that were planted, though half of the slices are of a slow machine, and they add up.
func TestParts(t *testing.T) {
	a, sides := judged(t, records(spending, 12, 60))
	if len(sides) != 3 {
		t.Fatalf("%d sides", len(sides))
	}
	for _, s := range sides {
		sum := 0.0
		for _, p := range s.Parts {
			sum += p.Time.Value
			want := spending[s.Profile][p.ID] / spending[s.Profile].total() * s.Demand.Value
			if off := math.Abs(p.Time.Value - want); off > 0.03*s.Demand.Value {
				t.Errorf("%s %s: %.0f ns, want %.0f", s.Profile, p.ID, p.Time.Value, want)
			}
			if p.Time.Low > p.Time.Value || p.Time.High < p.Time.Value {
				t.Errorf("%s %s: interval %+v", s.Profile, p.ID, p.Time)
			}
		}
		if math.Abs(sum/s.Demand.Value-1) > 1e-9 {
			t.Errorf("%s: parts add up to %.3f of %.3f", s.Profile, sum, s.Demand.Value)
		}
		if s.Cost == nil || math.Abs(*s.Cost-0.02) > 0.01 {
			t.Errorf("%s: cost %v", s.Profile, s.Cost)
		}
	}
	d, ok := Between(a, sides[0], sides[1])
	if !ok || d.Nothing {
		t.Fatalf("difference %+v", d)
	}
	for _, of := range [][]Change{d.Changes, d.Families} {
		sum := 0.0
		for _, c := range of {
			sum += c.By.Value
		}
		if math.Abs(sum-d.Total.Value) > 1e-6 {
			t.Errorf("changes add up to %f of %f", sum, d.Total.Value)
		}
	}
	if first := d.Changes[0]; first.ID != "rules forward" || first.Noise || first.By.Value/d.Total.Value < 0.85 {
		t.Errorf("first is %+v of %+v", first, d.Total)
	}
	said := strings.Join(d.Findings(), " ")
	if !strings.Contains(said, "more than flannel-vxlan") || !strings.Contains(said, "netfilter (") {
		t.Errorf("findings: %s", said)
	}
}

// TestNothing: two equal profiles, and a profile beside itself, have nothing to explain.
func TestNothing(t *testing.T) {
	a, sides := judged(t, records(spending, 12, 60))
	for _, pair := range [][2]Side{{sides[0], sides[2]}, {sides[0], sides[0]}} {
		d, ok := Between(a, pair[0], pair[1])
		if !ok || !d.Nothing || !strings.Contains(d.Findings()[0], "nothing to explain") {
			t.Errorf("%s and %s: %v %v", pair[0].Profile, pair[1].Profile, ok, d.Findings())
		}
	}
}

// TestNoise: what one instance does and others do not is within the noise.
func TestNoise(t *testing.T) {
	recs := records(spending, 6, 60)
	for i := range recs {
		if r := &recs[i]; r.Type == result.TypeSampled && r.Profile == plan.VariantOf("canal") && r.Instance == 3 {
			for slice := range 20 {
				for range 30 {
					r.Stacks.Add(slice, one, "node-1", "process_backlog", "vxlan_rcv")
				}
			}
		}
	}
	a, sides := judged(t, recs)
	d, _ := Between(a, sides[0], sides[1])
	for _, c := range d.Changes {
		if c.ID == "vxlan" && (!c.Noise || c.By.Value <= 0) {
			t.Errorf("of one instance alone: %+v", c)
		}
	}
}

// TestMissing: sampled trials that failed, stacks cut short by a lost ring and what the machine lacks are said; a case without
// samples has no parts.
func TestMissing(t *testing.T) {
	recs := records(spending, 5, 20)
	for i := range recs {
		if r := &recs[i]; r.Type == result.TypeSampled {
			switch {
			case r.Profile == plan.VariantOf("ptp"):
				r.Status, r.Error, r.Stacks = result.Failed, &result.Failure{Kind: "not sampled", Message: "no right to sample the CPU"}, nil
			case r.Repetition == 1:
				r.Stacks.Lost, r.Stacks.Throttled, r.Stacks.Cut, r.Stacks.Missing = 7, 2, 5, []string{"network namespaces"}
			}
		}
	}
	a, sides := judged(t, recs)
	if s := sides[0]; s.Lost != 7 || s.Cut != 5 || s.Throttled != 2 || fmt.Sprint(s.Missing) != "[network namespaces]" {
		t.Errorf("%+v", s)
	}
	if s := sides[2]; s.Failed != 5 || s.Failure != "no right to sample the CPU" || s.Parts != nil {
		t.Errorf("%+v", s)
	}
	if _, ok := Between(a, sides[0], sides[2]); ok {
		t.Error("a side without parts is explained")
	}
	if recs[0].Type = result.TypeEnd; recs[0].Type != result.TypeSampled {
		var c Collector
		if err := c.Add(&recs[0]); err != nil || !c.Empty() {
			t.Errorf("%v, empty: %v", err, c.Empty())
		}
	}
}

// TestSwitch: where only every fourth trial follows packets, the others are split as those are, by what their stacks have in
// common.
func TestSwitch(t *testing.T) {
	recs := records(spending, 8, 0)
	for i := range recs {
		r := &recs[i]
		if r.Type != result.TypeSampled {
			continue
		}
		root := func(space string) string {
			if r.Repetition%4 == 1 {
				return space
			}
			return sample.UnknownSpace
		}
		for slice := range 20 {
			for n := range 20 {
				r.Stacks.Add(slice, one, root("switch"), "process_backlog", "__netif_receive_skb_core", "br_handle_frame", "br_forward", "f"+fmt.Sprint(n, r.Repetition))
				r.Stacks.Add(slice, one, root("node-1"), "process_backlog", "__netif_receive_skb_core", "br_handle_frame", "br_pass_frame_up")
				r.Stacks.Add(slice, one, root("node-1"), "process_backlog", "__netif_receive_skb_core", "ip_rcv", "nf_conntrack_in")
				r.Stacks.Add(slice, one, "pod", "entry_SYSCALL_64", "tcp_sendmsg")
			}
		}
	}
	_, sides := judged(t, recs)
	for _, s := range sides {
		for id, want := range map[string]float64{"switch": 0.25, "bridge": 0.25, "conntrack": 0.25, "socket": 0.25} {
			if got := s.Part(id).Share; math.Abs(got-want) > 1e-9 {
				t.Errorf("%s: %s has %.3f, want %.3f", s.Profile, id, got, want)
			}
		}
	}
}

// TestWeights: a sample counts for its period, as where the kernel keeps up a frequency by changing it.
func TestWeights(t *testing.T) {
	recs := records(spending, 8, 0)
	for i := range recs {
		if r := &recs[i]; r.Type == result.TypeSampled {
			for slice := range 20 {
				r.Stacks.Add(slice, sample.Counted{Samples: 3, Weight: 3_000}, stackOf["socket"]...)
				r.Stacks.Add(slice, sample.Counted{Samples: 1, Weight: 9_000}, stackOf["conntrack"]...)
			}
		}
	}
	_, sides := judged(t, recs)
	for _, s := range sides {
		if got := s.Part("conntrack").Share; math.Abs(got-0.75) > 1e-9 || s.Samples != 8*20*4 {
			t.Errorf("%s: %d samples, of which conntrack has %.3f of the time, want 0.75", s.Profile, s.Samples, got)
		}
	}
}
