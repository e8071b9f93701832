package plan

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/plan/condition"
	"github.com/cnibench/cnibench/internal/plan/mesh"
	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/vocab/advice"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// Sweep lists several values of one condition for one run. Each profile of the plan is measured with each value, as a
// variant. The zero value sweeps nothing.
type Sweep struct {
	// Condition is the flag of a setting whose values are whole numbers.
	Condition string
	// Points are the values of the condition, in ascending order.
	Points []int
}

// String returns the text from which ParseSweep returns s, "" for the zero value.
func (s Sweep) String() string {
	if s.IsZero() {
		return ""
	}
	return s.Condition + "=" + strings.Join(each.Of(s.Points, strconv.Itoa), ",")
}

// IsZero reports whether s sweeps nothing.
func (s Sweep) IsZero() bool { return s.Condition == "" }

// MarshalText returns String.
func (s Sweep) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText decodes what MarshalText encodes.
func (s *Sweep) UnmarshalText(b []byte) (err error) {
	*s, err = ParseSweep(string(b))
	return err
}

// variantAt returns v with the swept condition set to point.
func (s Sweep) variantAt(v Variant, point int) Variant {
	swept := v.withCondition(s.Condition, strconv.Itoa(point))
	if canonical, err := swept.canonicalForm(); err == nil {
		return canonical
	}
	return swept
}

// Swept has the variants of one profile of the plan, one for each point of the sweep, in the order of the points.
type Swept struct {
	Of       Variant
	Variants []Variant
}

// Swept returns each profile of the plan with its variants from the sweep. It returns nil without a sweep.
func (p Plan) Swept() []Swept {
	if p.Sweep.IsZero() {
		return nil
	}
	return each.Of(p.Profiles, func(v Variant) Swept {
		return Swept{v, each.Of(p.Sweep.Points, func(n int) Variant { return p.Sweep.variantAt(v, n) })}
	})
}

// Variants returns the variants that the plan measures.
func (p Plan) Variants() []Variant {
	if p.Sweep.IsZero() {
		return p.Profiles
	}
	return slices.Concat(each.Of(p.Swept(), func(s Swept) []Variant { return s.Variants })...)
}

// sweepableFlags returns the flags of the conditions that a sweep may have. Variants may set these conditions, and
// their values are whole numbers.
func sweepableFlags() []string {
	return flagsWhere(func(s Setting) bool { return s.PerVariant && s.Number })
}

// ParseSweep parses CONDITION=NUMBER,NUMBER,... such as services=0,1K,10K. Points may be in any order. The text "" is
// the zero Sweep. The error lists every fault.
func ParseSweep(text string) (Sweep, error) {
	if text == "" {
		return Sweep{}, nil
	}
	flag, list, ok := strings.Cut(strings.ReplaceAll(text, " ", ""), "=")
	if !ok {
		return Sweep{}, fmt.Errorf("%q is not CONDITION=NUMBER,NUMBER,...: want for example services=0,1K,10K", text)
	}
	var wrong []string
	refuse := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	setting, known := SettingOf(flag)
	known = known && slices.Contains(sweepableFlags(), flag)
	if !known {
		refuse("%q cannot be swept%s; a sweep may have %s", flag, advice.DidYouMean(flag, sweepableFlags()), strings.Join(sweepableFlags(), ", "))
	}
	s := Sweep{Condition: flag}
	for part := range strings.SplitSeq(list, ",") {
		if strings.Contains(part, "=") {
			refuse("%s: a run sweeps one condition; give each profile the other as a variant, such as calico-vxlan(policies=100)", part)
			continue
		}
		point, err := parseWhole(part)
		p := Default()
		switch {
		case err != nil:
			refuse("%s", err)
			continue
		case slices.Contains(s.Points, point):
			refuse("%d is given twice", point)
			continue
		case known:
			_ = setting.Set(&p, strconv.Itoa(point)) // cannot fail for a whole number
			if fault := setting.Check(p); fault != "" {
				refuse("%s", fault)
			}
		}
		s.Points = append(s.Points, point)
	}
	if len(s.Points) < 2 && wrong == nil {
		refuse("%s has one point: want 2 or more", flag)
	}
	if wrong != nil {
		return Sweep{}, errors.New(strings.Join(wrong, "; "))
	}
	slices.Sort(s.Points)
	return s, nil
}

// Changes returns the kind of object that a run with this sweep also changes, in order to measure the cost of a change.
// It returns "" for conditions without such objects.
func (s Sweep) Changes() ChurnKind {
	switch s.Condition {
	case "", "flows", "message", "connections", "flowtable":
		return ""
	case "policies", "policies-unselected":
		return ChurnPolicies
	}
	return ChurnEndpoints
}

// checkSweep adds faults for a sweep that contradicts the rest of the plan.
func (fs *faults) checkSweep(p Plan) {
	if p.Sweep.IsZero() {
		return
	}
	if p.OnCluster() {
		fs.Add("sweep", "is for the lab, and a cluster is measured as it is: leave it out, or measure the lab")
		return
	}
	for _, v := range p.Profiles {
		if why := whyUseless(p.Sweep.Condition, v); why != "" {
			fs.Add("sweep", "%s: %s", v, why)
		}
		if v.setsCondition(p.Sweep.Condition) {
			fs.Add("sweep", "%s has %s of its own, which the sweep sets: leave out one of the two", v, p.Sweep.Condition)
			continue
		}
		for _, point := range p.Sweep.Points {
			if why := p.Sweep.variantAt(v, point).Lab(p.Lab).whyContradictory(); why != "" {
				fs.Add("sweep", "%s: %s", p.Sweep.variantAt(v, point), why)
			}
			fs.checkLoad(p, "sweep", p.Sweep.variantAt(v, point))
		}
	}
}

// whyUseless returns why a condition has no effect on the profile of v, or cannot be set for it. It returns "" if the
// condition can be used, and for an unknown profile.
func whyUseless(flag string, v Variant) string {
	p, known := profile.Lookup(v.Profile())
	if !known {
		return "" // which is reported as another fault
	}
	leave := "; leave it out"
	if p.Name == profile.Raw {
		leave = "; as the baseline it is measured once without"
	}
	switch flag {
	case "services", "endpoints", "position", "traffic-policy":
		if p.Services == "none" {
			return p.Name + " serves no Services and has no use for " + flag + leave
		}
	case "service-proxy":
		switch {
		case p.Services == "none":
			return p.Name + " has no kube-proxy and no use for " + flag + leave
		case p.Services == "ebpf":
			return p.Name + " serves Services by BPF instead of kube-proxy and has no use for " + flag + leave
		case p.Policy == "calico-nftables":
			return p.Name + " always has kube-proxy in nftables mode and no use for " + flag + leave
		}
	case "policies", "policies-unselected":
		if p.Policy == "none" {
			return p.Name + " enforces no NetworkPolicies and has no use for " + flag + leave
		}
		if p.Policy == "nfqueue" {
			return p.Name + " decides on NetworkPolicies in user space (nfqueue), which this version does not model" + leave
		}
	case "connections":
		if p.Services == "none" {
			return "no node tracks the connections of " + p.Name + "'s pods, so it has no use for " + flag + leave
		}
	case "flowtable":
		if p.Flowtables() == 0 {
			return p.Name + " programs no flowtable: take kindnet or calico-nftables"
		}
	case "bridge-netfilter":
		if !p.FiltersBridge() {
			return "no pod of " + p.Name + " is on a bridge, so it has no use for " + flag + leave
		}
	case "encryption":
		if p.Encapsulation == "wireguard" {
			return p.Name + " always encrypts and has no use for " + flag + leave
		}
		if len(p.Encrypted) == 0 {
			return p.Name + " has no encryption in the lab: take calico-vxlan, calico-nftables, calico-underlay, cilium-native, cilium-vxlan or flannel-wireguard"
		}
		if kind := string(v.Lab(Lab{}).Encryption); kind != "" && kind != string(condition.EncryptionOff) && p.WithEncryption(kind).Encapsulation != kind {
			return "the lab does not encrypt " + p.Name + " by " + kind + ": take wireguard, or ipsec with cilium-native"
		}
	case "big-tcp":
		if p.Encapsulation != "none" {
			return "headers of " + p.Name + "'s tunnel have no room for the length of longer super-packets, so it has no use for " + flag + leave
		}
	case "pod-mtu":
		if p.PodDevice == "" {
			return p.Name + " has no pods with a network of their own and no use for " + flag + leave
		}
	case "pods-per-node":
		if p.Name == profile.Raw {
			return p.Name + " has no pods and no use for " + flag + leave
		}
	}
	return ""
}

// whyContradictory returns a description of the conditions of l that contradict each other. It returns "" if none do.
func (l Lab) whyContradictory() string {
	var wrong []string
	refuse := func(when bool, format string, args ...any) {
		if when {
			wrong = append(wrong, fmt.Sprintf(format, args...))
		}
	}
	n := l.Services * max(l.Endpoints, 1)
	refuse(n > maxEndpoints, "%d Services of %d endpoints are more than %d endpoints: take fewer of one", l.Services, l.Endpoints, maxEndpoints)
	refuse(!l.Churn.IsZero() && l.Impaired(),
		"churn is looked for by probes, which delay and loss of the wires would mislead: leave out one of the two")
	if wrong := mesh.Wrong(l.Plants, l.Nodes); wrong != "" {
		refuse(true, "planted faults: %s", wrong)
	}
	refuse(l.Connections > 0 && l.Conntrack == condition.ConntrackOff, "connections are not tracked with conntrack=off: leave out one of the two")
	refuse(l.Flowtable > 0 && l.Conntrack == condition.ConntrackOff, "only tracked connections pass by a flowtable: leave out flowtable or conntrack=off")
	refuse(l.Services > MaxServices6 && l.Family == 6, "IPv6 has addresses for %d Services: take IPv4 or fewer", MaxServices6)
	refuse(l.NIC == NICIdeal && (l.GRO == condition.GROOn || l.GRO == condition.GROUDP), "nothing cuts super-packets with nic=ideal, so gro=%s has nothing to merge: take nic=wire, or leave gro out", l.GRO)
	refuse(l.NIC == NICWire && l.BigTCP == condition.BigTCPOn, "everything is cut into frames with nic=wire, so big-tcp=on has no use: take nic=ideal")
	refuse(l.Family == 6 && l.BigTCP == condition.BigTCPOn, "nodes that forward by their own stack drop super-packets of more than 64 KiB in IPv6: big-tcp=on is for IPv4")
	refuse(l.CPU == condition.PlacementOne && l.RPS.Explicit(), "all work is on one CPU (cpu=one), so rps=%s has no use: take cpu=split", l.RPS)
	return strings.Join(wrong, "; ")
}

// programmingTime returns an estimate of how long it takes to load the Services and policies of a variant on its nodes,
// with two CPUs.
func (l Lab) programmingTime(v Variant) time.Duration {
	p, _ := profile.Lookup(v.Profile())
	per := 400 * time.Microsecond
	switch {
	case p.Services == "none":
		per = 0
	case p.Services == "ebpf":
		per = 20 * time.Microsecond
	case l.ServiceProxy == condition.ProxyNftables || p.Policy == "calico-nftables":
		per = 200 * time.Microsecond
	}
	return time.Duration(l.Services)*per + l.policyTime(p)
}

// policyTime returns an estimate of how long it takes to load the policies of a profile. In nftables, the time grows
// with the square of their number, because the kernel searches all sets to find one.
func (l Lab) policyTime(p profile.Profile) time.Duration {
	switch sets := l.Policies + l.PoliciesUnselected; {
	case p.Policy == "none":
		return 0
	case p.Policy == "calico-nftables":
		return time.Duration(sets*sets) * 1800 * time.Nanosecond
	case p.Family == "cilium", p.Policy == "aws-agent":
		return time.Duration(l.Policies) * 50 * time.Microsecond
	}
	all := time.Duration(l.Policies) * 3500 * time.Microsecond
	if p.Policy == "calico-iptables" {
		all += time.Duration(l.PoliciesUnselected) * 1500 * time.Microsecond
	}
	return all
}
