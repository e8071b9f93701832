package config

import (
	"net/netip"
	"slices"
	"strings"
)

// ciliumHostRouting tells those who expect eBPF host routing that they do not have it. With kube-proxy replaced the
// agent's wish is eBPF, and what it falls back to is not what was asked; with kube-proxy it never was.
func (j *judge) ciliumHostRouting(c ciliumState) {
	if !c.legacy || c.asked {
		return
	}
	at := c.at("kubeProxyReplacement")
	reasons := strings.Join(c.because, "; ")
	wish := c.at("bpf.hostLegacyRouting")
	switch {
	case wish.given():
		j.find("host-routing-legacy", wish, "bpf.hostLegacyRouting=false, and host routing is legacy: %s", reasons)
	case c.kpr:
		j.find("host-routing-legacy", at, "host routing is legacy: %s", reasons)
	case c.at("bpf.masquerade").on():
		j.find("host-routing-legacy", c.at("bpf.masquerade"), "host routing is legacy: %s", reasons)
	default:
		j.find("host-routing-default", at, "host routing is legacy: %s", reasons)
	}
}

// kprSettings are those that only kube-proxy's replacement reads.
var kprSettings = []string{"loadBalancer.mode", "loadBalancer.algorithm", "loadBalancer.acceleration", "loadBalancer.dsrDispatch", "maglev.tableSize", "maglev.hashSeed"}

func (j *judge) ciliumServices(c ciliumState) {
	kpr := c.at("kubeProxyReplacement")
	if !slices.Contains([]string{"true", "false", ""}, strings.ToLower(kpr.text)) && kpr.given() {
		j.find("kpr-value", kpr, "kubeProxyReplacement: %s", kpr.text)
	}
	if !c.kpr {
		for _, p := range kprSettings {
			if g := c.at(p); g.given() && g.text != c.defaults[p] {
				j.find("needs-kpr", g, "%s: %s with kubeProxyReplacement not true", p, g.text)
			}
		}
	} else if off := c.at("socketLB.enabled"); off.given() && !off.on() {
		j.find("socket-lb-forced", off, "socketLB.enabled: %s", off.text)
	}
	if g := c.at("loadBalancer.algorithm"); c.kpr && g.is("maglev") {
		j.find("maglev-scope", g, "loadBalancer.algorithm: maglev")
	}
	if g := c.at("loadBalancer.acceleration"); c.kpr && !g.is("disabled") && g.text != "" {
		j.find("xdp-device", g, "loadBalancer.acceleration: %s", g.text)
	}
	proxy := j.proxyState()
	switch {
	case c.kpr && proxy.runs == yes:
		j.find("kube-proxy-beside", kpr, "kubeProxyReplacement: true, and kube-proxy runs: %s", proxy.why)
	case c.kpr && proxy.runs == unsaid:
		j.find("kube-proxy-unsaid", kpr, "kubeProxyReplacement: true")
	case !c.kpr && proxy.runs == no:
		j.find("no-service-engine", proxy.at, "kube-proxy does not run (%s), and kubeProxyReplacement is not true", proxy.why)
	}
	host := c.at("k8sServiceHost")
	if c.kpr && proxy.runs == no && host.text == "" && !c.has("k8sServiceHostRef") && j.agent == nil {
		j.find("api-server", proxy.at, "kube-proxy does not run (%s), and k8sServiceHost is not set", proxy.why)
	}
	if strings.HasPrefix(host.text, "<") {
		j.find("placeholder", host, "k8sServiceHost: %s", host.text)
	}
}

func (j *judge) ciliumRouting(c ciliumState) {
	mode, cidr := c.at("routingMode"), c.at("ipv4NativeRoutingCIDR")
	direct := c.at("autoDirectNodeRoutes")
	if c.native {
		if j.agent == nil && c.masquerade != "off" && c.at("ipv4.enabled").on() && cidr.text == "" && !c.at("ipMasqAgent.enabled").on() && !c.cloud() {
			j.find("native-cidr", mode, "routingMode: native without ipv4NativeRoutingCIDR")
		}
		if !direct.on() && !c.at("bgpControlPlane.enabled").on() && !c.cloud() {
			j.find("native-routes", mode, "routingMode: native without autoDirectNodeRoutes")
		}
		if g := c.at("tunnelProtocol"); g.given() && g.text != "" && !(c.dsr && c.at("loadBalancer.dsrDispatch").is("geneve")) {
			j.find("tunnel-unused", g, "tunnelProtocol: %s with routingMode: native", g.text)
		}
	} else if direct.on() {
		j.find("direct-routes-tunnel", direct, "autoDirectNodeRoutes: true with routingMode: tunnel")
	}
	if !c.native && cidr.given() && cidr.text != "" {
		j.find("switch-off", cidr, "ipv4NativeRoutingCIDR: %s with routingMode: tunnel routes nothing natively", cidr.text)
	}
	if g := c.at("endpointRoutes.enabled"); g.on() && c.legacy {
		j.find("endpoint-routes-legacy", g, "endpointRoutes.enabled: true with legacy host routing")
	}
	if g := c.at("MTU"); g.given() && slices.Contains([]string{"1450", "1420", "1405", "8950"}, g.text) {
		j.find("mtu-is-underlay", g, "MTU: %s looks like a pod's", g.text)
	}
	j.ciliumCIDRs(c)
}

// cloud reports whether the cloud's own network knows the pods.
func (c ciliumState) cloud() bool {
	mode := c.at("ipam.mode")
	return c.at("eni.enabled").on() || c.at("gke.enabled").on() || mode.is("eni") || mode.is("alibabacloud")
}

// ciliumCIDRs holds the ranges of pods against one another: the cluster's, that of Cilium's own pool where that hands
// out the addresses, and the one that is routed natively.
func (j *judge) ciliumCIDRs(c ciliumState) {
	cluster, cidr := j.podCIDR(), c.at("ipv4NativeRoutingCIDR")
	if cluster.text == "" {
		return
	}
	pods, whose := cluster.text, cluster.path
	if pool := c.at("ipam.operator.clusterPoolIPv4PodCIDRList"); c.at("ipam.mode").is("cluster-pool") {
		if !covers(cluster.text, pool.text) {
			at := either(pool, c.at("ipam.mode"))
			j.find("pod-cidr", at, "ipam.mode cluster-pool hands out %s, the cluster's pods are in %s (%s)", pool.text, cluster.text, cluster.path)
		}
		pods, whose = pool.text, pool.path
	}
	if c.native && cidr.text != "" && !covers(cidr.text, pods) {
		j.find("pod-cidr", cidr, "ipv4NativeRoutingCIDR is %s, pods are in %s (%s)", cidr.text, pods, whose)
	}
}

// covers reports whether the first IPv4 prefix of a list has all of that of another within. What is no prefix is not
// judged.
func covers(outer, inner string) bool {
	o, ok := firstIPv4(outer)
	i, both := firstIPv4(inner)
	return !ok || !both || o.Bits() <= i.Bits() && o.Contains(i.Addr())
}

func firstIPv4(list string) (netip.Prefix, bool) {
	for text := range strings.SplitSeq(list, ",") {
		if p, err := netip.ParsePrefix(strings.TrimSpace(text)); err == nil && p.Addr().Is4() {
			return p, true
		}
	}
	return netip.Prefix{}, false
}

// ciliumDSR asks what the agent asks at its start.
func (j *judge) ciliumDSR(c ciliumState) {
	mode, dispatch := c.at("loadBalancer.mode"), c.at("loadBalancer.dsrDispatch")
	if !c.kpr || !c.dsr {
		return
	}
	switch {
	case c.tunnel == "vxlan":
		j.find("dsr-refused", mode, "loadBalancer.mode: %s with VXLAN tunnelling", mode.text)
	case c.tunnel != "" && !dispatch.is("geneve"):
		j.find("dsr-refused", mode, "loadBalancer.mode: %s with a tunnel and dsrDispatch: %s", mode.text, dispatch.text)
	case dispatch.is("geneve") && !c.at("tunnelProtocol").is("geneve"):
		j.find("dsr-refused", dispatch, "dsrDispatch: geneve with tunnelProtocol: %s", c.at("tunnelProtocol").text)
	default:
		j.find("dsr-scope", mode, "loadBalancer.mode: %s", mode.text)
	}
}

func (j *judge) ciliumDevices(c ciliumState) {
	if g := c.at("bpf.datapathMode"); strings.HasPrefix(g.text, "netkit") {
		var lacks []string
		if c.legacy {
			lacks = append(lacks, "host routing is legacy: "+strings.Join(c.because, "; "))
		}
		if !c.at("bpf.enableTCX").on() {
			lacks = append(lacks, "bpf.enableTCX is off")
		}
		if c.at("bpf.tproxy").on() {
			lacks = append(lacks, "bpf.tproxy is on")
		}
		if len(lacks) > 0 {
			j.find("netkit", g, "bpf.datapathMode: %s, but %s", g.text, strings.Join(lacks, "; "))
		}
	}
	if g := c.at("bandwidthManager.bbr"); g.on() {
		switch {
		case !c.at("bandwidthManager.enabled").on():
			j.find("switch-off", g, "bandwidthManager.bbr: true with bandwidthManager.enabled not true")
		case c.legacy && !c.at("bandwidthManager.bbrHostNamespaceOnly").on():
			j.find("bbr", g, "bandwidthManager.bbr: true with legacy host routing: %s", strings.Join(c.because, "; "))
		}
	}
	if g := c.at("installNoConntrackIptablesRules"); g.on() {
		switch {
		case c.chaining != "" && j.agent == nil:
			j.find("no-conntrack-forced", g, "installNoConntrackIptablesRules: true with cni.chainingMode: %s", c.chaining)
		case !c.kpr || c.masquerade == "iptables":
			j.find("no-conntrack-refused", g, "installNoConntrackIptablesRules: true, kubeProxyReplacement: %s, masquerading by %s", c.at("kubeProxyReplacement").text, c.masquerade)
		}
	}
}

func (j *judge) ciliumRest(c ciliumState) {
	if c.encrypted != "" {
		j.find("encrypted", c.at("encryption.enabled"), "encryption by %s", c.encrypted)
	} else {
		for _, p := range []string{"encryption.type", "encryption.nodeEncryption"} {
			if g := c.at(p); g.given() && !g.is("false") {
				j.find("switch-off", g, "%s: %s with encryption.enabled not true", p, g.text)
			}
		}
	}
	if g := c.at("encryption.nodeEncryption"); c.encrypted != "" && c.encrypted != "wireguard" && g.on() {
		j.find("switch-off", g, "encryption.nodeEncryption: true works with wireguard alone, type is %s", c.encrypted)
	}
	if g := c.at("hubble.enabled"); g.on() {
		j.find("observability", g, "hubble.enabled: true, %s", byWhom(g, c.defaultOf))
	}
}

// byWhom says who set g.
func byWhom(g value, defaultOf string) string {
	if g.given() {
		return "given"
	}
	return "the default of " + defaultOf
}
