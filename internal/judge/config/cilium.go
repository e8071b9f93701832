package config

import (
	"slices"
	"strings"
)

const cilium = "cilium"

// ciliumState is what a Cilium configuration comes to.
type ciliumState struct {
	*values
	// kpr is kubeProxyReplacement; native and tunnel how packets get to other nodes: "" or the protocol.
	kpr    bool
	native bool
	tunnel string
	// masquerade is "iptables", "eBPF" or "off".
	masquerade string
	// chaining is the CNI chaining mode, "" for none.
	chaining string
	// legacy is the host routing in force; because says why, with the value that asked for it.
	legacy    bool
	because   []string
	asked     bool
	dsr       bool
	encrypted string
}

// judgeCilium says what a Cilium configuration comes to. What the ConfigMap says is what the agent reads, so that it
// has the last word over a chart's values beside it.
func (j *judge) judgeCilium() {
	v := j.cilium
	if v != nil {
		j.unknownKeys(v, ciliumSchema)
		j.extraConfig(v)
	}
	if j.agent != nil {
		v = j.agent
	}
	c := readCilium(v, j.agent == nil)
	j.showCilium(c)
	j.ciliumHostRouting(c)
	j.ciliumServices(c)
	j.ciliumRouting(c)
	j.ciliumDSR(c)
	j.ciliumDevices(c)
	j.ciliumRest(c)
	j.Measured = append(j.Measured, c.measured(j.proxyState()))
}

// extraConfig takes raw options of the agent for the values that they stand for.
func (j *judge) extraConfig(v *values) {
	for _, g := range v.all() {
		option, ok := strings.CutPrefix(g.path, "extraConfig.")
		if path := agentOptions[option]; ok && path != "" {
			v.put(value{path: path, text: g.text, file: g.file, line: g.line}, false)
		}
	}
}

// readCilium reads values of the chart, or options of the agent: what the chart makes of others it has made there.
func readCilium(v *values, chart bool) ciliumState {
	if chart && (v.at("eni.enabled").on() || v.at("gke.enabled").on()) {
		v.defaults["routingMode"] = "native"
	}
	c := ciliumState{values: v, kpr: v.at("kubeProxyReplacement").on(), native: v.at("routingMode").is("native")}
	if !c.native {
		c.tunnel = strings.ToLower(v.at("tunnelProtocol").text)
	}
	switch {
	case !v.at("enableIPv4Masquerade").on():
		c.masquerade = "off"
	case v.at("bpf.masquerade").on():
		c.masquerade = "eBPF"
	default:
		c.masquerade = "iptables"
	}
	chaining := v.at("cni.chainingMode")
	if target := v.at("cni.chainingTarget"); target.text != "" && !chaining.given() {
		chaining = target
		chaining.text = "generic-veth" // the chart's answer to a target without a mode
	}
	if !chaining.is("none") {
		c.chaining = chaining.text
	}
	if v.at("encryption.enabled").on() {
		c.encrypted = strings.ToLower(v.at("encryption.type").text)
	}
	mode := v.at("loadBalancer.mode")
	c.dsr = mode.is("dsr") || mode.is("hybrid")
	c.hostRouting(chaining, chart)
	return c
}

// hostRouting decides as the chart and the agent do.
func (c *ciliumState) hostRouting(chaining value, chart bool) {
	wish := c.at("bpf.hostLegacyRouting")
	c.asked = wish.given() && wish.on()
	because := func(yes bool, why string) {
		if yes {
			c.because = append(c.because, why)
		}
	}
	because(c.asked, "bpf.hostLegacyRouting=true asks for it")
	by := ""
	if chaining.origin == Default {
		by = ", the default of " + c.defaultOf
	}
	because(chart && c.chaining != "" && !wish.given(), "cni.chainingMode="+c.chaining+by)
	because(!c.kpr, "kubeProxyReplacement is not true")
	because(c.masquerade == "iptables", "masquerading is by iptables: bpf.masquerade is not true")
	because(c.encrypted == "ipsec", "IPsec needs the node's stack")
	c.legacy = len(c.because) > 0
}

// showCilium adds the rows that decide about the dataplane.
func (j *judge) showCilium(c ciliumState) {
	paths := []string{"routingMode", "autoDirectNodeRoutes", "kubeProxyReplacement", "cni.chainingMode", "ipam.mode", "bpf.datapathMode"}
	if !c.native {
		paths = slices.Insert(paths, 1, "tunnelProtocol")
	}
	for _, p := range paths {
		j.showGiven(cilium, c.values, p)
	}
	by := "bpf.masquerade"
	if c.masquerade == "off" {
		by = "enableIPv4Masquerade"
	}
	j.show(cilium, "masquerading", c.masquerade, or(c.at(by).origin, Default), or(c.at(by).where(), by+" of "+c.defaultOf))
	switch {
	case c.asked:
		j.show(cilium, "host routing", "legacy", Given, c.at("bpf.hostLegacyRouting").where())
	case c.legacy:
		j.show(cilium, "host routing", "legacy", Forced, strings.Join(c.because, "; "))
	default:
		j.show(cilium, "host routing", "eBPF", c.originOf("bpf.hostLegacyRouting"), "kubeProxyReplacement=true, and nothing needs the node's stack")
	}
	socket := "off"
	if c.kpr {
		socket = "on"
		if c.at("socketLB.hostNamespaceOnly").on() {
			socket = "on in the host namespace only; pods per packet"
		}
		j.show(cilium, "socket LB", socket, Forced, "kubeProxyReplacement=true")
		for _, p := range []string{"loadBalancer.mode", "loadBalancer.algorithm", "loadBalancer.acceleration"} {
			j.showGiven(cilium, c.values, p)
		}
	} else if c.at("socketLB.enabled").on() {
		j.show(cilium, "socket LB", "on", Given, c.at("socketLB.enabled").where())
	}
	for _, p := range []string{"MTU", "endpointRoutes.enabled", "bandwidthManager.enabled", "hubble.enabled", "ipv4NativeRoutingCIDR"} {
		if c.at(p).given() {
			j.showGiven(cilium, c.values, p)
		}
	}
	if c.encrypted != "" {
		j.show(cilium, "encryption", c.encrypted, c.originOf("encryption.type", "encryption.enabled"), c.at("encryption.enabled").where())
	}
}

// originOf is Given if any of the paths was given.
func (c ciliumState) originOf(paths ...string) string {
	for _, p := range paths {
		if c.at(p).given() {
			return Given
		}
	}
	return Default
}

func or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// measured names the profile.
func (c ciliumState) measured(proxy proxyState) Measured {
	var but []string
	if !c.kpr {
		but = append(but, "kube-proxy serves the node's own traffic and NodePorts; pods get ClusterIPs translated per packet")
	} else if proxy.runs == yes {
		but = append(but, "kube-proxy runs beside it: its rules are in the path of what passes the node's stack")
	}
	if c.encrypted != "" {
		return Measured{Title: "Cilium with " + c.encrypted + ": none of our profiles encrypts Cilium's traffic", But: but}
	}
	if c.chaining != "" {
		but = append(but, "CNI chaining ("+c.chaining+")")
	}
	switch mode := c.at("bpf.datapathMode"); {
	case strings.HasPrefix(mode.text, "netkit"):
		if c.legacy {
			return Measured{Title: "nothing: netkit does not start with legacy host routing", But: but}
		}
		if !c.native {
			but = append(but, "a tunnel ("+c.tunnel+")")
		}
		return known("cilium-netkit", but)
	case !c.native:
		if c.legacy {
			but = append(but, "legacy host routing: received packets are handed to the pod by redirect, not redirect_peer")
		}
		if c.tunnel != "vxlan" {
			but = append(but, "the tunnel is "+c.tunnel)
		}
		return known("cilium-vxlan", but)
	case c.legacy:
		if c.kpr && c.dsr {
			but = append(but, "DSR for external clients")
		}
		return known("cilium-native-legacy", but)
	case c.dsr && c.kpr:
		return known("cilium-native-dsr", but)
	}
	return known("cilium-native", but)
}
