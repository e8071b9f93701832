package config

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// refusal is a combination of options at which Cilium's agent exits at its start.
type refusal struct {
	rule string
	// first and last are the minor versions of 1.x that refuse it; last is 0 if the newest refuses it, too.
	first, last int
	// when returns the faulty option and what is wrong with it. saw is "" if the agent accepts the options.
	when func(c ciliumState) (at value, saw string)
}

// refusals are the checks of the agent's start. The checks of host routing, DSR, netkit, BBR, BIG TCP and conntrack are
// in cilium.go.
var refusals = slices.Concat(valueRefusals, masqueradeRefusals, encryptionRefusals, routingRefusals)

// judgeCiliumRefusals finds what this version of the agent refuses.
func (j *judge) judgeCiliumRefusals(c ciliumState) {
	for _, r := range refusals {
		if c.minor < r.first || c.minor > cmp.Or(r.last, lastMinor) {
			continue
		}
		if at, saw := r.when(c); saw != "" {
			j.addFinding(r.rule, at, "%s", saw)
		}
	}
}

// optionCheck returns a check that refuses an option that is on, if holds returns true. why is the reason.
func optionCheck(option string, holds func(c ciliumState) bool, why string) func(ciliumState) (value, string) {
	return func(c ciliumState) (value, string) {
		if g := c.at(option); g.isOn() && holds(c) {
			return g, option + ": true " + why
		}
		return value{}, ""
	}
}

// optionOn returns a function that reports whether an option is true. optionStated does the same for an option with any
// text.
func optionOn(option string) func(ciliumState) bool {
	return func(c ciliumState) bool { return c.at(option).isOn() }
}

func optionStated(option string) func(ciliumState) bool {
	return func(c ciliumState) bool { return c.at(option).text != "" }
}

func not(holds func(ciliumState) bool) func(ciliumState) bool {
	return func(c ciliumState) bool { return !holds(c) }
}

func every(hold ...func(ciliumState) bool) func(ciliumState) bool {
	return func(c ciliumState) bool {
		return !slices.ContainsFunc(hold, func(h func(ciliumState) bool) bool { return !h(c) })
	}
}

func either(hold ...func(ciliumState) bool) func(ciliumState) bool {
	return func(c ciliumState) bool {
		return slices.ContainsFunc(hold, func(h func(ciliumState) bool) bool { return h(c) })
	}
}

func (c ciliumState) usesTunnel() bool { return c.tunnel != "" }

// usesIPv6Underlay reports whether a tunnel has IPv6 outer addresses.
func (c ciliumState) usesIPv6Underlay() bool {
	return c.usesTunnel() && c.at("underlay-protocol").is("ipv6")
}

// asksEBPF reports whether the options request masquerading by eBPF, even if the agent falls back.
func (c ciliumState) asksEBPF() bool {
	return c.at("enable-bpf-masquerade").isOn() && (c.masqueradesIPv4() || c.masqueradesIPv6())
}

// exactWordCheck returns a check that refuses values of an option other than known, in exactly this spelling.
func exactWordCheck(option string, known ...string) func(ciliumState) (value, string) {
	return wordCheck(func(g value) bool { return slices.Contains(known, g.text) }, option, known)
}

// looseWordCheck returns the same check as exactWordCheck, but ignores case.
func looseWordCheck(option string, known ...string) func(ciliumState) (value, string) {
	return wordCheck(func(g value) bool { return slices.ContainsFunc(known, g.is) }, option, known)
}

func wordCheck(isKnown func(value) bool, option string, known []string) func(ciliumState) (value, string) {
	return func(c ciliumState) (value, string) {
		g, stated := c.statedAt(option)
		if !stated || g.text == "" || isKnown(g) {
			return g, ""
		}
		return g, fmt.Sprintf("%s: %s, and cilium-agent 1.%d knows %s", option, g.text, c.minor, strings.Join(known, ", "))
	}
}

var valueRefusals = []refusal{
	{"agent-value", 10, 12, looseWordCheck("kube-proxy-replacement", "strict", "partial", "probe", "disabled")},
	{"agent-value", 13, 13, looseWordCheck("kube-proxy-replacement", "strict", "partial", "disabled")},
	{"agent-value", 14, 15, looseWordCheck("kube-proxy-replacement", "true", "false", "strict", "partial", "disabled")},
	{"agent-value", 16, 0, looseWordCheck("kube-proxy-replacement", "true", "false")},
	{"agent-value", 10, 0, exactWordCheck("routing-mode", "native", "tunnel")},
	{"agent-value", 10, 0, exactWordCheck("tunnel-protocol", "vxlan", "geneve")},
	{"agent-value", 10, 0, func(c ciliumState) (value, string) {
		id, name := c.at("cluster-id"), c.at("cluster-name")
		if id.number() == 0 || name.text != "" && name.text != "default" {
			return id, ""
		}
		return id, "cluster-id: " + id.text + " with the default of cluster-name"
	}},
	{"agent-value", 10, 18, nodePortCheck(ciliumState.servesNodePorts)},
	{"agent-value", 19, 0, nodePortCheck(func(ciliumState) bool { return true })},
	{"agent-value", 18, 0, optionCheck("bpf-lb-mode-annotation", func(c ciliumState) bool { return c.at("bpf-lb-mode").is("hybrid") }, "with bpf-lb-mode: hybrid")},
	{"agent-value", 10, 0, func(c ciliumState) (value, string) {
		if g := c.at("bpf-lb-maglev-table-size"); c.nodePort && c.at("bpf-lb-algorithm").is("maglev") && g.text != "" && !slices.Contains(maglevSizes, g.number()) {
			return g, fmt.Sprintf("bpf-lb-maglev-table-size: %s is not one of the primes %s", g.text, strings.Trim(fmt.Sprint(maglevSizes), "[]"))
		}
		return value{}, ""
	}},
	{"agent-value", 16, 0, exactWordCheck("datapath-mode", "veth", "netkit", "netkit-l2", "lb-only", "auto")},
	{"address-family", 10, 0, func(c ciliumState) (value, string) {
		g := c.at("enable-ipv4")
		if g.isOn() || c.at("enable-ipv6").isOn() {
			return g, ""
		}
		return g, "neither enable-ipv4 nor enable-ipv6 is true"
	}},
	{"address-family", 13, 0, optionCheck("enable-nat46x64-gateway", func(c ciliumState) bool {
		return !c.at("enable-ipv4").isOn() || !c.at("enable-ipv6").isOn()
	}, "without both enable-ipv4 and enable-ipv6")},
}

// maglevSizes are the valid sizes of Maglev's table.
var maglevSizes = []int{251, 509, 1021, 2039, 4093, 8191, 16381, 32749, 65521, 131071}

func (c ciliumState) servesNodePorts() bool { return c.nodePort }

// nodePortCheck returns a check of the load balancer's options for NodePorts. It applies if read returns true.
func nodePortCheck(read func(c ciliumState) bool) func(ciliumState) (value, string) {
	checks := []func(ciliumState) (value, string){
		exactWordCheck("bpf-lb-algorithm", "random", "maglev"), exactWordCheck("bpf-lb-mode", "snat", "dsr", "hybrid"), exactWordCheck("bpf-lb-dsr-dispatch", "opt", "ipip", "geneve"),
		func(c ciliumState) (value, string) {
			g := c.at("node-port-range")
			low, high, _ := strings.Cut(g.text, ",")
			from, err := strconv.Atoi(strings.TrimSpace(low))
			to, err2 := strconv.Atoi(strings.TrimSpace(high))
			if g.text == "" || err == nil && err2 == nil && from < to {
				return g, ""
			}
			return g, "node-port-range: " + g.text + " is not a smaller and a larger port"
		},
	}
	return func(c ciliumState) (value, string) {
		for _, check := range checks {
			if at, saw := check(c); saw != "" && read(c) {
				return at, saw
			}
		}
		return value{}, ""
	}
}

var masqueradeRefusals = []refusal{
	{"masquerade-refused", 15, 0, optionCheck("enable-masquerade-to-route-source", ciliumState.asksEBPF, "with enable-bpf-masquerade: true")},
	{"masquerade-refused", 11, 13, optionCheck("enable-bpf-masquerade", ciliumState.masqueradesIPv6, "with IPv6 masquerading")},
	{"masquerade-refused", 15, 18, optionCheck("enable-bpf-masquerade", func(c ciliumState) bool { return c.asksEBPF() && !c.nodePort },
		"without kube-proxy-replacement: true")},
	{"masquerade-refused", 15, 0, optionCheck("enable-bpf-masquerade", every(ciliumState.asksEBPF, optionStated("egress-masquerade-interfaces")),
		"with egress-masquerade-interfaces")},
	{"masquerade-refused", 15, 0, optionCheck("enable-bpf-masquerade", not(ciliumState.asksEBPF), "and masquerading is off in IPv4 and IPv6")},
	{"masquerade-refused", 10, 0, optionCheck("enable-ip-masq-agent", not(ciliumState.asksEBPF), "without eBPF masquerading")},
	{"masquerade-refused", 19, 0, optionCheck("enable-remote-node-masquerade", not(optionOn("enable-bpf-masquerade")), "without enable-bpf-masquerade: true")},
	{"egress-gateway", 10, 0, optionCheck("enable-egress-gateway", func(c ciliumState) bool { return !c.asksEBPF() || !c.at("enable-ipv4-masquerade").isOn() },
		"without eBPF masquerading of IPv4")},
	{"egress-gateway", 15, 0, optionCheck("enable-egress-gateway", optionOn("enable-cilium-endpoint-slice"), "with enable-cilium-endpoint-slice: true")},
	{"egress-gateway", 18, 0, optionCheck("enable-egress-gateway", ciliumState.usesIPv6Underlay, "over an IPv6 underlay")},
	{"egress-gateway", 13, 0, optionCheck("enable-egress-gateway", func(c ciliumState) bool {
		mode := c.at("identity-allocation-mode")
		return mode.text != "" && !mode.is("crd")
	}, "with an identity-allocation-mode other than crd")},
}

var encryptionRefusals = []refusal{
	{"encryption-refused", 10, 0, optionCheck("enable-ipsec", optionOn("enable-wireguard"), "with enable-wireguard: true")},
	{"encryption-refused", 10, 15, optionCheck("enable-ipsec", func(c ciliumState) bool { return c.nodePort }, "with kube-proxy replaced, before 1.16")},
	{"encryption-refused", 10, 13, optionCheck("enable-wireguard", optionOn("enable-l7-proxy"), "with enable-l7-proxy: true, before 1.14")},
	{"encryption-refused", 13, 0, optionCheck("enable-ipsec", every(optionOn("enable-l7-proxy"), not(optionOn("dnsproxy-enable-transparent-mode")),
		not(optionOn("dnsproxy-insecure-skip-transparent-mode-check"))), "with enable-l7-proxy: true and without dnsproxy-enable-transparent-mode")},
	{"encryption-refused", 10, 0, optionCheck("enable-ipsec", optionOn("enable-host-firewall"), "with enable-host-firewall: true")},
	{"encryption-refused", 10, 0, optionCheck("enable-ipsec", either(optionStated("local-router-ipv4"), optionStated("local-router-ipv6")), "with a local router address")},
	{"encryption-refused", 19, 0, optionCheck("enable-encryption-strict-mode-ingress", optionOn("enable-ipsec"), "with IPsec")},
	{"encryption-refused", 15, 0, optionCheck("enable-encryption-strict-mode-egress", func(c ciliumState) bool {
		p, err := netip.ParsePrefix(c.at("encryption-strict-egress-cidr").text)
		return err != nil || !p.Addr().Is4()
	}, "without an IPv4 CIDR (encryption-strict-egress-cidr)")},
}

var routingRefusals = []refusal{
	{"native-cidr", 10, 0, func(c ciliumState) (value, string) {
		ipam := c.at("ipam")
		cloud := ipam.is("eni") || ipam.is("alibabacloud")
		return c.nativeCIDRRefusal("ipv4", c.masqueradesIPv4() && !cloud)
	}},
	{"native-cidr", 12, 0, func(c ciliumState) (value, string) { return c.nativeCIDRRefusal("ipv6", c.masqueradesIPv6()) }},
	{"routing-refused", 16, 0, optionCheck("direct-routing-skip-unreachable", not(optionOn("auto-direct-node-routes")), "without auto-direct-node-routes: true")},
	{"routing-refused", 10, 0, routerAddressCheck(ciliumState.usesTunnel, "with a tunnel")},
	{"routing-refused", 10, 18, routerAddressCheck(func(c ciliumState) bool { return !c.usesTunnel() && !c.at("enable-endpoint-routes").isOn() },
		"without enable-endpoint-routes: true, before 1.19")},
	{"routing-refused", 20, 0, optionCheck("fib-table-id-annotation", func(c ciliumState) bool { return len(c.legacy) > 0 }, "with legacy host routing")},
	{"routing-refused", 10, 12, accelerationCheck(ciliumState.usesTunnel, "over a tunnel, before 1.13")},
	{"routing-refused", 18, 0, accelerationCheck(ciliumState.usesIPv6Underlay, "over an IPv6 underlay")},
	{"dsr-refused", 18, 0, optionCheck("bpf-lb-mode-annotation", func(c ciliumState) bool {
		return c.nodePort && c.tunnel == "vxlan" && !c.at("bpf-lb-dsr-dispatch").is("ipip")
	}, "over a VXLAN tunnel without bpf-lb-dsr-dispatch: ipip")},
	{"ipam-refused", 16, 0, ipamModeCheck(ciliumState.usesTunnel, "with a tunnel", "eni")},
	{"ipam-refused", 13, 17, ipamModeCheck(ciliumState.usesTunnel, "with a tunnel, before 1.18", "multi-pool", "cluster-pool-v2beta")},
	{"ipam-refused", 13, 17, ipamModeCheck(optionOn("enable-ipsec"), "with IPsec, before 1.18", "multi-pool", "cluster-pool-v2beta")},
	{"ipam-refused", 18, 18, ipamModeCheck(func(c ciliumState) bool { return c.at("enable-ipsec").isOn() && !c.usesTunnel() }, "with IPsec and native routing", "multi-pool")},
	{"ipam-refused", 16, 19, ipamModeCheck(optionOn("enable-ipv6"), "with IPv6, before 1.20", "eni")},
	{"ipam-refused", 13, 0, ipamModeCheck(every(optionOn("enable-ipv4"), not(optionStated("local-router-ipv4"))), "without local-router-ipv4", "delegated-plugin")},
	{"ipam-refused", 13, 0, ipamModeCheck(optionOn("enable-endpoint-health-checking"), "with enable-endpoint-health-checking: true", "delegated-plugin")},
	{"iptables-rules", 10, 0, iptablesRulesCheck(func(c ciliumState) bool {
		return c.at("enable-l7-proxy").isOn() && !(c.minor >= 20 && c.at("enable-bpf-tproxy").isOn())
	}, "with enable-l7-proxy: true")},
	{"iptables-rules", 20, 0, iptablesRulesCheck(func(c ciliumState) bool { return c.replaces || c.at("enable-bpf-masquerade").isOn() },
		"with kube-proxy replaced or eBPF masquerading")},
	{"netkit", 20, 0, optionCheck("enable-bpf-tproxy", func(c ciliumState) bool { return strings.HasPrefix(c.at("datapath-mode").text, "netkit") }, "with netkit devices")},
}

// nativeCIDRRefusal refuses native routing with masquerading if no option says which addresses need no masquerading.
func (c ciliumState) nativeCIDRRefusal(family string, masquerades bool) (value, string) {
	option := family + "-native-routing-cidr"
	agent := c.minor >= 15 && c.at("enable-ip-masq-agent").isOn()
	if c.usesTunnel() || !masquerades || agent || c.at(option).text != "" {
		return value{}, ""
	}
	return c.at("routing-mode"), fmt.Sprintf("routing-mode: native with %s masquerading and without %s", strings.Replace(family, "ip", "IP", 1), option)
}

// routerAddressCheck returns a check that refuses a local router's address.
func routerAddressCheck(holds func(ciliumState) bool, why string) func(ciliumState) (value, string) {
	return func(c ciliumState) (value, string) {
		for _, option := range []string{"local-router-ipv4", "local-router-ipv6"} {
			if g := c.at(option); g.text != "" && holds(c) && !c.at("ipam").is("delegated-plugin") {
				return g, option + ": " + g.text + " " + why
			}
		}
		return value{}, ""
	}
}

// accelerationCheck returns a check that refuses XDP acceleration.
func accelerationCheck(holds func(ciliumState) bool, why string) func(ciliumState) (value, string) {
	return func(c ciliumState) (value, string) {
		if g := c.at("bpf-lb-acceleration"); c.nodePort && g.isSet() && !g.is("disabled") && holds(c) {
			return g, "bpf-lb-acceleration: " + g.text + " " + why
		}
		return value{}, ""
	}
}

// ipamModeCheck returns a check that refuses some modes of address management.
func ipamModeCheck(holds func(ciliumState) bool, why string, modes ...string) func(ciliumState) (value, string) {
	return func(c ciliumState) (value, string) {
		if g := c.at("ipam"); slices.ContainsFunc(modes, g.is) && holds(c) {
			return g, "ipam: " + g.text + " " + why
		}
		return value{}, ""
	}
}

// iptablesRulesCheck returns a check that refuses install-iptables-rules: false.
func iptablesRulesCheck(holds func(ciliumState) bool, why string) func(ciliumState) (value, string) {
	return func(c ciliumState) (value, string) {
		if g := c.at("install-iptables-rules"); g.text != "" && !g.isOn() && holds(c) {
			return g, "install-iptables-rules: " + g.text + " " + why
		}
		return value{}, ""
	}
}
