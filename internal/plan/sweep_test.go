package plan

import (
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/plan/condition"
	"github.com/cnibench/cnibench/internal/vocab/pattern"
)

func TestParseSweep(t *testing.T) {
	for text, want := range map[string]string{
		"services=0,1K,10K,30K": "services=0,1000,10000,30000",
		"policies = 100, 0,1k":  "policies=0,100,1000",
		"mtu=1500,9K":           "mtu=1500,9000",
		"":                      "",
	} {
		s, err := ParseSweep(text)
		if err != nil || s.String() != want {
			t.Errorf("%q: %q, %v; want %q", text, s, err, want)
		}
		var again Sweep
		if b, err := s.MarshalText(); err != nil || again.UnmarshalText(b) != nil || again.String() != want {
			t.Errorf("%q is read again as %q (%v)", b, again, err)
		}
	}
	for text, want := range map[string][]string{
		"services":                         {"is not CONDITION="},
		"services=":                        {`"" is not a whole number`},
		"services=1":                       {"one point"},
		"services=1,1K,1000,1000":          {"1000 is given twice"},
		"service=0,x,0":                    {`"service" cannot be swept, did you mean`, `"x" is not a whole number`, "0 is given twice"},
		"service-proxy=1,2":                {"cannot be swept", "a sweep may have", "policies-unselected"},
		"mtu=1,1500,1000000":               {"1 is out of range", "1000000 is out of range"},
		"services=0,1K,policies=10":        {"one condition", "as a variant"},
		"services=0,99999999999999999999M": {"is not a whole number"},
	} {
		_, err := ParseSweep(text)
		for _, part := range want {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%q: %v, want %q", text, err, part)
			}
		}
	}
}

// sweptPlan is a plan with a sweep of two profiles.
func sweptPlan(profiles string, sweep string) Plan {
	p := Preset("standard")
	for _, name := range pattern.SplitOutside(profiles, ',') {
		p.Profiles = append(p.Profiles, VariantOf(name))
	}
	p.Profiles = p.Profiles[len(Preset("standard").Profiles):]
	p.Sweep, _ = ParseSweep(sweep)
	return p.Settle()
}

// TestSweepExpands: the baseline once, then each profile at each point, in canonical form and in order.
func TestSweepExpands(t *testing.T) {
	p := sweptPlan("calico-vxlan(service-proxy=nftables,policies=5),cilium-native", "services=10,0")
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	want := []Variant{VariantOf("raw"), VariantOf("raw~twin"),
		VariantOf("calico-vxlan(services=0,service-proxy=nftables,policies=5)"), VariantOf("calico-vxlan(services=10,service-proxy=nftables,policies=5)"),
		VariantOf("cilium-native(services=0)"), VariantOf("cilium-native(services=10)")}
	if got := p.Measured(); !slices.Equal(got, want) {
		t.Errorf("measured are %v, want %v", got, want)
	}
	for _, v := range p.Measured()[2:] {
		if canonical, err := ParseVariant(v.String()); err != nil || canonical != v {
			t.Errorf("%s is %s in canonical form (%v)", v, canonical, err)
		}
	}
	if got := p.Measured()[3].Lab(p.Lab); got.Services != 10 || got.Policies != 5 {
		t.Errorf("conditions %+v", got)
	}
	if s := p.Swept(); len(s) != 2 || s[1].Of != VariantOf("cilium-native") || s[1].Variants[1] != VariantOf("cilium-native(services=10)") {
		t.Errorf("swept %+v", s)
	}
}

func TestSweepRefuses(t *testing.T) {
	for name, tt := range map[string]struct {
		profiles, sweep string
		want            []string
	}{
		"no use":    {"raw,macvlan,cilium-native", "services=0,1", []string{"raw serves no Services", "macvlan serves no Services"}},
		"twice":     {"cilium-native(services=4)", "services=0,1", []string{"services of its own"}},
		"no flow":   {"ptp", "message=1,100K", []string{"message 1 is out of range", "message=100000: ping: 100000 is out of range"}},
		"own flow":  {"ptp", "flows=1,4", []string{"rr(flows=2) has flows of its own"}},
		"policy":    {"flannel-vxlan,calico-vxlan", "policies=0,1", []string{"flannel-vxlan enforces no NetworkPolicies"}},
		"no track":  {"macvlan,ptp(conntrack=off)", "connections=0,1K", []string{"no node tracks the connections of macvlan's pods", "not tracked with conntrack=off"}},
		"no bridge": {"canal(bridge-netfilter=off)", "services=0,1", []string{"no pod of canal is on a bridge"}},
		"one CPU":   {"ptp(rps=on),canal(rps=off,conntrack=off)", "connections=0,1K", []string{"ptp(rps=on,connections=0): all work is on one CPU", "rps=off has no use", "not tracked with conntrack=off: leave out one of the two; all work"}},
		"uncut":     {"ptp(nic=ideal,gro=on)", "connections=0,1K", []string{"gro=on has nothing to merge"}},
		"cut":       {"ptp(nic=wire,big-tcp=on),canal(nic=ideal,big-tcp=on)", "connections=0,1K", []string{"big-tcp=on has no use", "big-tcp=on is for IPv4", "headers of canal's tunnel"}},
		"too many":  {"ptp(services=1000)", "endpoints=2,200", []string{"more than 100000 endpoints"}},
		"variant": {"cilium-native(service-proxy=nftables),calico-nftables(service-proxy=iptables)", "services=0,1",
			[]string{"cilium-native serves Services by BPF", "calico-nftables always has"}},
	} {
		p := sweptPlan(tt.profiles, tt.sweep)
		for _, text := range map[string][]string{"no flow": {"ping"}, "own flow": {"rr(flows=2)"}}[name] {
			w, _ := ParseWorkload(text)
			p.Workloads = []Workload{w}
		}
		if name == "cut" {
			p.Lab.Family = 6
		}
		if name == "one CPU" {
			p.Lab.CPU = condition.PlacementOne
		}
		err := p.Validate()
		for _, part := range tt.want {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %v, want %q", name, err, part)
			}
		}
	}
	p := Preset("standard")
	p.Sweep = Sweep{"policies", []int{0, 1}}
	if err := p.Settle().Validate(); err != nil {
		t.Errorf("of the profiles that are not named, those without a use for it are left out: %v", err)
	}
}

// TestLoaded: a variant's flows and message size are those of what is sent, and the case keeps the name of its workload.
func TestLoaded(t *testing.T) {
	for text, want := range map[string]string{
		"rr": "rr(flows=4,request=100,response=100)", "crr": "crr(flows=4,request=100,response=100)",
		"stream": "stream(flows=4,message=100)", "stream(udp,rate=1G)": "stream(udp,flows=4,message=100,rate=1G)",
	} {
		w, err := ParseWorkload(text)
		if err != nil {
			t.Fatal(err)
		}
		k := Case{Profile: VariantOf("ptp(message=100)"), Path: Paths[0], Workload: w}
		p := Plan{loadSize: loadSize{Flows: 4}}
		if got := p.Loaded(k).Workload.String(); got != want {
			t.Errorf("%s under 4 flows of 100 bytes is %s, want %s", text, got, want)
		}
		if got := (Plan{}).Loaded(Case{Profile: VariantOf("ptp"), Workload: w}).Workload; got != w {
			t.Errorf("%s without conditions is %s", text, got)
		}
	}
}
