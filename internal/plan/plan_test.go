package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/tool/golden"
)

func small() Plan {
	p := Default()
	p.Profiles = Variants("host", "canal")
	p.Paths = p.Paths[:3]
	p.Workloads = p.Workloads[:2]
	p.Seed = 7
	return p
}

func TestOrderGolden(t *testing.T) {
	var b strings.Builder
	for rep := 1; rep <= 2; rep++ {
		for _, c := range small().Order(rep) {
			fmt.Fprintf(&b, "%d %s\n", rep, c.Key())
		}
	}
	golden.Check(t, "order.golden", []byte(b.String()))
}

// TestOrderKeepsComparedTogether is the property that the method stands on: within one repetition every group of equal
// path and workload is contiguous, nothing is lost, and neither groups nor profiles stand in the same order each time.
func TestOrderKeepsComparedTogether(t *testing.T) {
	p := small()
	p.Baseline = VariantOf("host")
	firsts := map[string]bool{}
	for rep := 1; rep <= 40; rep++ {
		order := p.Order(rep)
		if got, want := keysOf(order), keysOf(p.Cases()); !slices.Equal(got, want) {
			t.Fatalf("repetition %d has not each case once: %v", rep, got)
		}
		size := len(p.Measured())
		for group := range slices.Chunk(order, size) {
			for _, c := range group {
				if c.Path != group[0].Path || c.Workload != group[0].Workload {
					t.Fatalf("repetition %d: %s stands in the group of %s", rep, c.Key(), group[0].Key())
				}
			}
		}
		firsts[order[0].Key()] = true
		if again := p.Order(rep); !slices.Equal(again, order) {
			t.Fatalf("repetition %d has two orders", rep)
		}
	}
	if len(firsts) < 10 {
		t.Errorf("40 repetitions began with only %d different cases: %v", len(firsts), firsts)
	}
	q := p
	q.Seed++
	if slices.Equal(q.Order(1), p.Order(1)) {
		t.Error("another seed gives the same order")
	}
}

// TestRawHasOnePath: raw is measured on its own path alone, whatever the paths of the plan, and beside what is compared
// with it.
func TestRawHasOnePath(t *testing.T) {
	p := small()
	p.Paths = []Path{{Pod, Pod, CrossNode}, {Pod, Service, Remote}}
	for rep := 1; rep <= 20; rep++ {
		order := p.Order(rep)
		if got, want := keysOf(order), keysOf(p.Cases()); !slices.Equal(got, want) {
			t.Fatalf("repetition %d has not each case once: %v", rep, got)
		}
		raws := 0
		for i, c := range order {
			if !strings.HasPrefix(c.Profile.String(), "raw") {
				continue
			}
			raws++
			if c.Path != ZeroPath {
				t.Errorf("%s is measured", c.Key())
			}
			beside := slices.ContainsFunc(order[max(0, i-3):min(len(order), i+4)], func(o Case) bool {
				return !strings.HasPrefix(o.Profile.String(), "raw") && o.Workload == c.Workload
			})
			if !beside {
				t.Errorf("repetition %d: %s stands alone", rep, c.Key())
			}
		}
		if raws != 4 { // raw and its twin under two workloads
			t.Errorf("repetition %d has raw %d times", rep, raws)
		}
	}
}

func keysOf(cases []Case) []string {
	keys := make([]string, len(cases))
	for i, c := range cases {
		keys[i] = c.Key()
	}
	slices.Sort(keys)
	return keys
}

func TestMeasured(t *testing.T) {
	for _, tt := range []struct {
		profiles []Variant
		baseline Variant
		twin     bool
		want     []Variant
	}{
		{Variants("canal"), VariantOf("raw"), true, Variants("raw", "raw~twin", "canal")},
		{Variants("canal"), VariantOf("raw"), false, Variants("raw", "canal")},
		{Variants("canal", "raw", "host"), VariantOf("raw"), true, Variants("raw", "raw~twin", "canal", "host")},
		{Variants("canal", "host"), VariantOf("host"), true, Variants("host", "host~twin", "canal")},
	} {
		p := Plan{Profiles: tt.profiles, Baseline: tt.baseline, Twin: tt.twin}
		if got := p.Measured(); !slices.Equal(got, tt.want) {
			t.Errorf("%v on %s: got %v, want %v", tt.profiles, tt.baseline, got, tt.want)
		}
	}
}

func TestPresetsAreValidAndFit(t *testing.T) {
	for _, name := range Presets {
		p := Preset(name)
		if err := p.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		cases := len(p.Cases())
		p = p.Fit(cases)
		if p.Duration < shortestFit || p.Duration > LongestFit {
			t.Errorf("%s: window %s", name, p.Duration)
		}
		if all := p.Expected(cases); all > p.Budget {
			t.Errorf("%s: %d cases with windows of %s take %s, more than %s", name, cases, p.Duration, all, p.Budget)
		}
		if notes := p.Notes(cases); len(notes) > 0 {
			t.Errorf("%s: %v", name, notes)
		}
	}
}

func TestFit(t *testing.T) {
	for _, tt := range []struct {
		duration, budget time.Duration
		cases            int
		want             time.Duration
	}{
		{0, 0, 100, LongestFit},
		{0, time.Minute, 0, LongestFit},
		{0, time.Second, 1000, shortestFit},
		{0, time.Hour, 1, LongestFit},
		{3 * time.Second, time.Second, 1000, 3 * time.Second},
		{0, 100 * time.Second, 100, 109 * time.Millisecond},
	} {
		p := Default()
		p.Duration, p.Budget = tt.duration, tt.budget
		if got := p.Fit(tt.cases).Duration; got != tt.want {
			t.Errorf("budget %s, %d cases: window %s, want %s", tt.budget, tt.cases, got, tt.want)
		}
	}
}

// TestNoteAboutTunnels: the default datagram does not fit through a tunnel of IPv6.
func TestNoteAboutTunnels(t *testing.T) {
	p := Default()
	p.Workloads = []Workload{Workload{Spec: Stream{Protocol: UDP}}.Normalize()}
	said := func() bool {
		return strings.Contains(strings.Join(p.Fit(1).Notes(1), "\n"), "do not fit through every tunnel")
	}
	if said() {
		t.Error("in IPv4 it fits")
	}
	p.Lab.Family = 6
	if !said() {
		t.Error("in IPv6 it does not")
	}
	p.Workloads[0], _ = p.Workloads[0].With("messageSize", "1372")
	if said() {
		t.Error("1372 bytes fit: the underlay's 1500 less WireGuard's 80, IPv6's 40 and UDP's 8")
	}
}

func TestNotes(t *testing.T) {
	p := Default()
	p.Duration, p.Budget = time.Second, 10*time.Second
	notes := p.Notes(5)
	if len(notes) != 1 || !strings.Contains(notes[0], "more than the budget of 10s: about 1 will be complete") {
		t.Errorf("got %q", notes)
	}
	p = Default()
	p.Profiles, p.Lab.Encryption = Variants("raw", "canal", "calico-vxlan"), "wireguard"
	if notes := p.Notes(5); len(notes) != 1 || notes[0] != "--encryption has no effect on canal: measured without" {
		t.Errorf("got %q", notes)
	}
}

func TestValidate(t *testing.T) {
	for _, tt := range []struct {
		name  string
		spoil func(*Plan)
		want  string
	}{
		{"environment", func(p *Plan) { p.Environment = "labb" }, `environment: "labb" is not one of lab, kubernetes, kind, did you mean "lab"?`},
		{"profile", func(p *Plan) { p.Profiles = Variants("calico-vxlam") }, `profiles: unknown profile "calico-vxlam", did you mean "calico-vxlan"?`},
		{"no profile", func(p *Plan) { p.Profiles = nil }, "profiles: none is given"},
		{"profile twice", func(p *Plan) { p.Profiles = Variants("host", "host") }, "profiles: host is given twice"},
		{"platform", func(p *Plan) { p.Profiles = Variants("eks") }, `profiles: unknown profile "eks": the default of EKS is aws-vpc`},
		{"another platform", func(p *Plan) { p.Profiles = Variants("kind") }, `profiles: unknown profile "kind": the default of kind is kindnetd`},
		{"baseline", func(p *Plan) { p.Baseline = VariantOf("x") }, `baseline: unknown profile "x"`},
		{"no baseline", func(p *Plan) { p.Baseline = Variant{} }, "baseline: none is given"},
		{"no path", func(p *Plan) { p.Paths = nil }, "paths: none is given"},
		{"path twice", func(p *Plan) { p.Paths = append(p.Paths, p.Paths[0]) }, "paths: host-to-host/cross-node is given twice"},
		{"no workload", func(p *Plan) { p.Workloads = nil }, "workloads: none is given"},
		{"workload", func(p *Plan) { p.Workloads = []Workload{{}} }, `workloads: workload is missing`},
		{"flows", func(p *Plan) { p.Workloads = []Workload{{Spec: RR{Flows: 5000}}} }, "flows: 5000 is out of range"},
		{"repetitions", func(p *Plan) { p.Repetitions = 0 }, "repetitions: 0 is out of range: want 1 to 1000"},
		{"max below", func(p *Plan) { p.Precision, p.MaxRepetitions = 0.1, 2 }, "maxRepetitions: 2 is less than the 5 repetitions"},
		{"max alone", func(p *Plan) { p.MaxRepetitions = 20 }, "maxRepetitions: has no meaning without precision"},
		{"precision", func(p *Plan) { p.Precision = 5 }, "precision: 5 is out of range"},
		{"duration", func(p *Plan) { p.Duration = -time.Second }, "duration: -1s is out of range"},
		{"warmup", func(p *Plan) { p.Warmup = -1 }, "warmup: -1ns is out of range"},
		{"budget", func(p *Plan) { p.Budget = -1 }, "budget: -1ns is negative"},
		{"tiny budget", func(p *Plan) { p.Duration, p.Budget = 10*time.Second, time.Second }, "budget: 1s is less than one trial takes (10.026s)"},
		{"nodes", func(p *Plan) { p.Lab.Nodes = 1 }, "lab.nodes: 1 is out of range: want 2 to 16"},
		{"pods", func(p *Plan) { p.Lab.PodsPerNode = 251 }, "lab.podsPerNode: 251 is out of range"},
		{"nic", func(p *Plan) { p.Lab.NIC = "wired" }, `lab.nic: "wired" is not one of ideal, wire, did you mean "wire"?`},
		{"cpu", func(p *Plan) { p.Lab.CPU = "two" }, `lab.cpu: "two" is not one of`},
		{"pod MTU", func(p *Plan) { p.Lab.PodMTU = 500 }, "lab.podMTU: 500 is out of range: want 1280 to 9000, or 0"},
		{"mtu", func(p *Plan) { p.Lab.MTU = 500 }, "lab.mtu: 500 is out of range: want 1280 to 9000"},
		{"line rate", func(p *Plan) { p.Lab.LineRate = 5 }, "lab.lineRate: 5 is out of range"},
		{"services", func(p *Plan) { p.Lab.Services = -1 }, "lab.services: -1 is out of range"},
		{"service proxy", func(p *Plan) { p.Lab.ServiceProxy = "nftable" }, `lab.serviceProxy: "nftable" is not one of iptables, nftables, ipvs, did you mean "nftables"?`},
		{"iptables", func(p *Plan) { p.Lab.Iptables = "nftables" }, `lab.iptables: "nftables" is not one of auto, nft, legacy`},
	} {
		p := Default()
		tt.spoil(&p)
		err := p.Validate()
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %s", tt.name, err, tt.want)
		}
		if err != nil && strings.Count(err.Error(), "\n") > 0 {
			t.Errorf("%s: one mistake gives several faults:\n%v", tt.name, err)
		}
	}
	if err := Default().Validate(); err != nil {
		t.Error(err)
	}
}

func TestDiffer(t *testing.T) {
	p, q := Default(), Default()
	if got := p.Differ(q); got != nil {
		t.Errorf("equal plans differ in %v", got)
	}
	q.Seed, q.Lab.MTU, q.MaxRepetitions = 1, 9000, 3
	if got := strings.Join(p.Differ(q), " "); got != "maxRepetitions seed lab.mtu" {
		t.Errorf("got %s", got)
	}
}

// TestBlock: a long repetition has instances of its own; short ones share them, but five repetitions have five.
func TestBlock(t *testing.T) {
	for _, tt := range []struct {
		window                        time.Duration
		repetitions, block, instances int
	}{
		{time.Second, 10, 1, 10},
		{time.Second, 1, 1, 1},
		{time.Millisecond, 4, 1, 4},
		{time.Millisecond, 5, 1, 5},
		{time.Millisecond, 9, 1, 9},
		{time.Millisecond, 11, 2, 6},
		{time.Millisecond, 1000, 13, 77},
	} {
		p := Default()
		p.Profiles, p.Duration, p.Repetitions = Variants("canal", "macvlan"), tt.window, tt.repetitions
		if got := p.Block(); got != tt.block || p.Instances() != tt.instances {
			t.Errorf("%d repetitions of %s: blocks of %d, %d instances; want %d, %d", tt.repetitions, tt.window, got, p.Instances(), tt.block, tt.instances)
		}
		trials := time.Duration(len(p.Cases())*tt.repetitions) * p.TrialTime()
		if got, want := p.Expected(len(p.Cases()))-trials, time.Duration(tt.instances-1)*p.RaiseTime(p.Measured()); got != want {
			t.Errorf("%d repetitions of %s: raising is expected to take %s, want %s", tt.repetitions, tt.window, got, want)
		}
		if p.Environment = EnvKubernetes; p.RaiseTime(nil) != p.RaiseTime(p.Measured()) {
			t.Error("the profiles of a cluster share its pods")
		}
	}
}

// TestFitRepetitions: few cases are measured more often, many no less often than the plan says, and an own window or no
// budget changes nothing.
func TestFitRepetitions(t *testing.T) {
	few := Preset("standard")
	few.Profiles = Variants("raw", "canal")
	window, endless := few, few
	window.Duration, endless.Budget = time.Second, 0
	for name, tt := range map[string]struct {
		plan Plan
		want int
	}{"few": {few, mostFit}, "all": {Preset("standard"), 5}, "window": {window, 5}, "no budget": {endless, 5}} {
		got := tt.plan.FitRepetitions()
		if got.Repetitions != tt.want {
			t.Errorf("%s: %d repetitions, want %d", name, got.Repetitions, tt.want)
		}
		if fit := got.Fit(len(got.Cases())); got.Repetitions > 5 && fit.Duration < fitWindow {
			t.Errorf("%s: %d repetitions leave a window of %s", name, got.Repetitions, fit.Duration)
		}
	}
}
