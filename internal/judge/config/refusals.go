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

// ciliumRefusals finds what this version of the agent refuses.
func (j *judge) ciliumRefusals(c ciliumState) {
	for _, r := range refusals {
		if c.minor < r.first || c.minor > cmp.Or(r.last, lastMinor) {
			continue
		}
		if at, saw := r.when(c); saw != "" {
			j.find(r.rule, at, "%s", saw)
		}
	}
}

// refuses returns a check that refuses an option that is on, if holds returns true. why is the reason.
func refuses(option string, holds func(c ciliumState) bool, why string) func(ciliumState) (value, string) {
	return func(c ciliumState) (value, string) {
		if g := c.at(option); g.on() && holds(c) {
			return g, option + ": true " + why
		}
		return value{}, ""
	}
}

// optionOn returns a test whether an option is true; stated returns a test whether it has a text.
func optionOn(option string) func(ciliumState) bool {
	return func(c ciliumState) bool { return c.at(option).on() }
}

func stated(option string) func(ciliumState) bool {
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

func (c ciliumState) tunnels() bool { return c.tunnel != "" }

// encapsulates6 reports whether a tunnel has IPv6 outer addresses.
func (c ciliumState) encapsulates6() bool { return c.tunnels() && c.at("underlay-protocol").is("ipv6") }

// asksEBPF reports whether the options request masquerading by eBPF, even if the agent falls back.
func (c ciliumState) asksEBPF() bool {
	return c.at("enable-bpf-masquerade").on() && (c.masquerades4() || c.masquerades6())
}

// words returns a check that refuses values of an option other than known, in exactly this spelling.
func words(option string, known ...string) func(ciliumState) (value, string) {
	return wordsBy(func(g value) bool { return slices.Contains(known, g.text) }, option, known)
}

// looseWords returns the same check as words, but ignores case.
func looseWords(option string, known ...string) func(ciliumState) (value, string) {
	return wordsBy(func(g value) bool { return slices.ContainsFunc(known, g.is) }, option, known)
}

func wordsBy(isKnown func(value) bool, option string, known []string) func(ciliumState) (value, string) {
	return func(c ciliumState) (value, string) {
		g, stated := c.leaf(option)
		if !stated || g.text == "" || isKnown(g) {
			return g, ""
		}
		return g, fmt.Sprintf("%s: %s, and cilium-agent 1.%d knows %s", option, g.text, c.minor, strings.Join(known, ", "))
	}
}

var valueRefusals = []refusal{
	{"agent-value", 10, 12, looseWords("kube-proxy-replacement", "strict", "partial", "probe", "disabled")},
	{"agent-value", 13, 13, looseWords("kube-proxy-replacement", "strict", "partial", "disabled")},
	{"agent-value", 14, 15, looseWords("kube-proxy-replacement", "true", "false", "strict", "partial", "disabled")},
	{"agent-value", 16, 0, looseWords("kube-proxy-replacement", "true", "false")},
	{"agent-value", 10, 0, words("routing-mode", "native", "tunnel")},
	{"agent-value", 10, 0, words("tunnel-protocol", "vxlan", "geneve")},
	{"agent-value", 10, 0, func(c ciliumState) (value, string) {
		id, name := c.at("cluster-id"), c.at("cluster-name")
		if id.number() == 0 || name.text != "" && name.text != "default" {
			return id, ""
		}
		return id, "cluster-id: " + id.text + " with the default of cluster-name"
	}},
	{"agent-value", 10, 18, nodePorts(ciliumState.servesNodePorts)},
	{"agent-value", 19, 0, nodePorts(func(ciliumState) bool { return true })},
	{"agent-value", 18, 0, refuses("bpf-lb-mode-annotation", func(c ciliumState) bool { return c.at("bpf-lb-mode").is("hybrid") }, "with bpf-lb-mode: hybrid")},
	{"agent-value", 10, 0, func(c ciliumState) (value, string) {
		if g := c.at("bpf-lb-maglev-table-size"); c.nodePort && c.at("bpf-lb-algorithm").is("maglev") && g.text != "" && !slices.Contains(maglevSizes, g.number()) {
			return g, fmt.Sprintf("bpf-lb-maglev-table-size: %s is not one of the primes %s", g.text, strings.Trim(fmt.Sprint(maglevSizes), "[]"))
		}
		return value{}, ""
	}},
	{"agent-value", 16, 0, words("datapath-mode", "veth", "netkit", "netkit-l2", "lb-only", "auto")},
	{"address-family", 10, 0, func(c ciliumState) (value, string) {
		g := c.at("enable-ipv4")
		if g.on() || c.at("enable-ipv6").on() {
			return g, ""
		}
		return g, "neither enable-ipv4 nor enable-ipv6 is true"
	}},
	{"address-family", 13, 0, refuses("enable-nat46x64-gateway", func(c ciliumState) bool {
		return !c.at("enable-ipv4").on() || !c.at("enable-ipv6").on()
	}, "without both enable-ipv4 and enable-ipv6")},
}

// maglevSizes are the valid sizes of Maglev's table.
var maglevSizes = []int{251, 509, 1021, 2039, 4093, 8191, 16381, 32749, 65521, 131071}

func (c ciliumState) servesNodePorts() bool { return c.nodePort }

// nodePorts returns a check of the load balancer's options for NodePorts. It applies if read returns true.
func nodePorts(read func(c ciliumState) bool) func(ciliumState) (value, string) {
	checks := []func(ciliumState) (value, string){
		words("bpf-lb-algorithm", "random", "maglev"), words("bpf-lb-mode", "snat", "dsr", "hybrid"), words("bpf-lb-dsr-dispatch", "opt", "ipip", "geneve"),
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
	{"masquerade-refused", 15, 0, refuses("enable-masquerade-to-route-source", ciliumState.asksEBPF, "with enable-bpf-masquerade: true")},
	{"masquerade-refused", 11, 13, refuses("enable-bpf-masquerade", ciliumState.masquerades6, "with IPv6 masquerading")},
	{"masquerade-refused", 15, 18, refuses("enable-bpf-masquerade", func(c ciliumState) bool { return c.asksEBPF() && !c.nodePort },
		"without kube-proxy-replacement: true")},
	{"masquerade-refused", 15, 0, refuses("enable-bpf-masquerade", every(ciliumState.asksEBPF, stated("egress-masquerade-interfaces")),
		"with egress-masquerade-interfaces")},
	{"masquerade-refused", 15, 0, refuses("enable-bpf-masquerade", not(ciliumState.asksEBPF), "and masquerading is off in IPv4 and IPv6")},
	{"masquerade-refused", 10, 0, refuses("enable-ip-masq-agent", not(ciliumState.asksEBPF), "without eBPF masquerading")},
	{"masquerade-refused", 19, 0, refuses("enable-remote-node-masquerade", not(optionOn("enable-bpf-masquerade")), "without enable-bpf-masquerade: true")},
	{"egress-gateway", 10, 0, refuses("enable-egress-gateway", func(c ciliumState) bool { return !c.asksEBPF() || !c.at("enable-ipv4-masquerade").on() },
		"without eBPF masquerading of IPv4")},
	{"egress-gateway", 15, 0, refuses("enable-egress-gateway", optionOn("enable-cilium-endpoint-slice"), "with enable-cilium-endpoint-slice: true")},
	{"egress-gateway", 18, 0, refuses("enable-egress-gateway", ciliumState.encapsulates6, "over an IPv6 underlay")},
	{"egress-gateway", 13, 0, refuses("enable-egress-gateway", func(c ciliumState) bool {
		mode := c.at("identity-allocation-mode")
		return mode.text != "" && !mode.is("crd")
	}, "with an identity-allocation-mode other than crd")},
}

var encryptionRefusals = []refusal{
	{"encryption-refused", 10, 0, refuses("enable-ipsec", optionOn("enable-wireguard"), "with enable-wireguard: true")},
	{"encryption-refused", 10, 15, refuses("enable-ipsec", func(c ciliumState) bool { return c.nodePort }, "with kube-proxy replaced, before 1.16")},
	{"encryption-refused", 10, 13, refuses("enable-wireguard", optionOn("enable-l7-proxy"), "with enable-l7-proxy: true, before 1.14")},
	{"encryption-refused", 13, 0, refuses("enable-ipsec", every(optionOn("enable-l7-proxy"), not(optionOn("dnsproxy-enable-transparent-mode")),
		not(optionOn("dnsproxy-insecure-skip-transparent-mode-check"))), "with enable-l7-proxy: true and without dnsproxy-enable-transparent-mode")},
	{"encryption-refused", 10, 0, refuses("enable-ipsec", optionOn("enable-host-firewall"), "with enable-host-firewall: true")},
	{"encryption-refused", 10, 0, refuses("enable-ipsec", either(stated("local-router-ipv4"), stated("local-router-ipv6")), "with a local router address")},
	{"encryption-refused", 19, 0, refuses("enable-encryption-strict-mode-ingress", optionOn("enable-ipsec"), "with IPsec")},
	{"encryption-refused", 15, 0, refuses("enable-encryption-strict-mode-egress", func(c ciliumState) bool {
		p, err := netip.ParsePrefix(c.at("encryption-strict-egress-cidr").text)
		return err != nil || !p.Addr().Is4()
	}, "without an IPv4 CIDR (encryption-strict-egress-cidr)")},
}

var routingRefusals = []refusal{
	{"native-cidr", 10, 0, func(c ciliumState) (value, string) {
		ipam := c.at("ipam")
		cloud := ipam.is("eni") || ipam.is("alibabacloud")
		return c.nativeCIDR("ipv4", c.masquerades4() && !cloud)
	}},
	{"native-cidr", 12, 0, func(c ciliumState) (value, string) { return c.nativeCIDR("ipv6", c.masquerades6()) }},
	{"routing-refused", 16, 0, refuses("direct-routing-skip-unreachable", not(optionOn("auto-direct-node-routes")), "without auto-direct-node-routes: true")},
	{"routing-refused", 10, 0, routerAddress(ciliumState.tunnels, "with a tunnel")},
	{"routing-refused", 10, 18, routerAddress(func(c ciliumState) bool { return !c.tunnels() && !c.at("enable-endpoint-routes").on() },
		"without enable-endpoint-routes: true, before 1.19")},
	{"routing-refused", 20, 0, refuses("fib-table-id-annotation", func(c ciliumState) bool { return len(c.legacy) > 0 }, "with legacy host routing")},
	{"routing-refused", 10, 12, accelerated(ciliumState.tunnels, "over a tunnel, before 1.13")},
	{"routing-refused", 18, 0, accelerated(ciliumState.encapsulates6, "over an IPv6 underlay")},
	{"dsr-refused", 18, 0, refuses("bpf-lb-mode-annotation", func(c ciliumState) bool {
		return c.nodePort && c.tunnel == "vxlan" && !c.at("bpf-lb-dsr-dispatch").is("ipip")
	}, "over a VXLAN tunnel without bpf-lb-dsr-dispatch: ipip")},
	{"ipam-refused", 16, 0, ipam(ciliumState.tunnels, "with a tunnel", "eni")},
	{"ipam-refused", 13, 17, ipam(ciliumState.tunnels, "with a tunnel, before 1.18", "multi-pool", "cluster-pool-v2beta")},
	{"ipam-refused", 13, 17, ipam(optionOn("enable-ipsec"), "with IPsec, before 1.18", "multi-pool", "cluster-pool-v2beta")},
	{"ipam-refused", 18, 18, ipam(func(c ciliumState) bool { return c.at("enable-ipsec").on() && !c.tunnels() }, "with IPsec and native routing", "multi-pool")},
	{"ipam-refused", 16, 19, ipam(optionOn("enable-ipv6"), "with IPv6, before 1.20", "eni")},
	{"ipam-refused", 13, 0, ipam(every(optionOn("enable-ipv4"), not(stated("local-router-ipv4"))), "without local-router-ipv4", "delegated-plugin")},
	{"ipam-refused", 13, 0, ipam(optionOn("enable-endpoint-health-checking"), "with enable-endpoint-health-checking: true", "delegated-plugin")},
	{"iptables-rules", 10, 0, noRules(func(c ciliumState) bool {
		return c.at("enable-l7-proxy").on() && !(c.minor >= 20 && c.at("enable-bpf-tproxy").on())
	}, "with enable-l7-proxy: true")},
	{"iptables-rules", 20, 0, noRules(func(c ciliumState) bool { return c.replaces || c.at("enable-bpf-masquerade").on() },
		"with kube-proxy replaced or eBPF masquerading")},
	{"netkit", 20, 0, refuses("enable-bpf-tproxy", func(c ciliumState) bool { return strings.HasPrefix(c.at("datapath-mode").text, "netkit") }, "with netkit devices")},
}

// nativeCIDR refuses native routing with masquerading if no option says which addresses need no masquerading.
func (c ciliumState) nativeCIDR(family string, masquerades bool) (value, string) {
	option := family + "-native-routing-cidr"
	agent := c.minor >= 15 && c.at("enable-ip-masq-agent").on()
	if c.tunnels() || !masquerades || agent || c.at(option).text != "" {
		return value{}, ""
	}
	return c.at("routing-mode"), fmt.Sprintf("routing-mode: native with %s masquerading and without %s", strings.Replace(family, "ip", "IP", 1), option)
}

// routerAddress returns a check that refuses a local router's address.
func routerAddress(holds func(ciliumState) bool, why string) func(ciliumState) (value, string) {
	return func(c ciliumState) (value, string) {
		for _, option := range []string{"local-router-ipv4", "local-router-ipv6"} {
			if g := c.at(option); g.text != "" && holds(c) && !c.at("ipam").is("delegated-plugin") {
				return g, option + ": " + g.text + " " + why
			}
		}
		return value{}, ""
	}
}

// accelerated returns a check that refuses XDP acceleration.
func accelerated(holds func(ciliumState) bool, why string) func(ciliumState) (value, string) {
	return func(c ciliumState) (value, string) {
		if g := c.at("bpf-lb-acceleration"); c.nodePort && g.set() && !g.is("disabled") && holds(c) {
			return g, "bpf-lb-acceleration: " + g.text + " " + why
		}
		return value{}, ""
	}
}

// ipam returns a check that refuses some modes of address management.
func ipam(holds func(ciliumState) bool, why string, modes ...string) func(ciliumState) (value, string) {
	return func(c ciliumState) (value, string) {
		if g := c.at("ipam"); slices.ContainsFunc(modes, g.is) && holds(c) {
			return g, "ipam: " + g.text + " " + why
		}
		return value{}, ""
	}
}

// noRules returns a check that refuses install-iptables-rules: false.
func noRules(holds func(ciliumState) bool, why string) func(ciliumState) (value, string) {
	return func(c ciliumState) (value, string) {
		if g := c.at("install-iptables-rules"); g.text != "" && !g.on() && holds(c) {
			return g, "install-iptables-rules: " + g.text + " " + why
		}
		return value{}, ""
	}
}
