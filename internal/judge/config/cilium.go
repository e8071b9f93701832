package config

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/profile"
)

const (
	cilium = "cilium"
	gkeV2  = "gke-dataplane-v2"
)

// agentDefaults are the defaults of the options of Cilium's agent, by the names of its flags.
var agentDefaults = values{defaults: map[string]string{
	"auto-direct-node-routes": "false", "bpf-lb-acceleration": "disabled", "bpf-lb-algorithm": "random", "bpf-lb-dsr-dispatch": "opt",
	"bpf-lb-mode": "snat", "cni-chaining-mode": "none", "datapath-mode": "veth", "enable-bpf-masquerade": "false",
	"enable-ipv4": "true", "enable-ipv4-masquerade": "true", "enable-ipv6": "false", "enable-ipv6-masquerade": "true",
	"ipam": "cluster-pool", "kube-proxy-replacement": "false", "routing-mode": "tunnel", "tunnel-protocol": "vxlan",
}}

// ciliumState is the effective state of an agent's options.
type ciliumState struct {
	*values
	// minor is the version whose rules apply to the options.
	minor int
	// replaces means that kube-proxy is replaced completely, nodePort that the agent serves NodePorts. tunnel is the
	// protocol between nodes, "" for native routing.
	replaces, nodePort bool
	tunnel             string
	// masquerade is "iptables", "eBPF" or "off". encryption is "wireguard", "ipsec" or "".
	masquerade, encryption string
	// fallback is why iptables masquerades although eBPF was requested, "" if eBPF masquerades or was not requested.
	fallback string
	// chaining is the CNI chaining mode, "" for none.
	chaining string
	// legacy has the reasons for legacy host routing; it is empty if host routing uses eBPF. asked is true if the user
	// requested legacy host routing.
	legacy []string
	asked  bool
}

// isGoogleOption reports whether only Google's build of the agent has an option.
func isGoogleOption(g value) bool {
	return strings.HasPrefix(g.path, "enable-google-") || slices.Contains([]string{"enable-redirect-service", "enable-fqdn-network-policy"}, g.path)
}

func (j *judge) judgeCilium() { j.judgeCiliumVersion(j.agentMinors()) }

// judgeCiliumVersion judges the agent's options by the rules of a version.
func (j *judge) judgeCiliumVersion(m minors) {
	if m.by != "" && j.known.Version == "" {
		j.showSetting(cilium, "version", m.String(), Given, m.by)
	}
	if why := m.unjudgedReason(); why != "" {
		j.markUnjudged(why, j.agentFiles...)
		j.addUnmatched("Cilium in a version whose rules are not known")
		return
	}
	if i := slices.IndexFunc(j.agent.leaves, isGoogleOption); i >= 0 && !j.gke.isGiven() {
		j.gke = j.agent.leaves[i]
	}
	c := readCilium(j.currentOptions(m), m.last)
	j.showCilium(c)
	if j.gke.isGiven() {
		j.markUnjudged("GKE Dataplane V2 runs Google's build of the agent: what it refuses is not known", j.agentFiles...)
		j.addCiliumProfile(c)
		return
	}
	j.judgeCiliumRefusals(c)
	j.judgeCiliumHostRouting(c)
	j.judgeCiliumServices(c)
	j.judgeCiliumRouting(c)
	j.judgeCiliumMTU(c)
	j.judgeCiliumCIDRs(c)
	j.judgeCiliumDevices(c)
	j.addCiliumProfile(c)
}

func readCilium(v *values, minor int) ciliumState {
	c := ciliumState{values: v, minor: minor, masquerade: "iptables"}
	kpr := v.at("kube-proxy-replacement")
	c.replaces = kpr.isOn() || kpr.is("strict") || kpr.is("probe")
	c.nodePort = c.replaces || minor <= 18 && !kpr.is("disabled") && v.at("enable-node-port").isOn()
	if mode := v.at("routing-mode"); !mode.is("native") {
		c.tunnel = strings.ToLower(v.at("tunnel-protocol").text)
	}
	switch {
	case !c.masqueradesIPv4() && !c.masqueradesIPv6():
		c.masquerade = "off"
	case v.at("enable-bpf-masquerade").isOn():
		c.masquerade = "eBPF"
		if c.fallback = c.masqueradeFallback(); c.fallback != "" {
			c.masquerade = "iptables"
		}
	}
	if mode := v.at("cni-chaining-mode"); !mode.is("none") {
		c.chaining = mode.text
	}
	for _, kind := range []string{"wireguard", "ipsec", "ztunnel"} {
		if v.at("enable-" + kind).isOn() {
			c.encryption = kind
		}
	}
	c.setHostRouting()
	return c
}

func (c ciliumState) masqueradesIPv4() bool {
	return c.at("enable-ipv4").isOn() && c.at("enable-ipv4-masquerade").isOn()
}

func (c ciliumState) masqueradesIPv6() bool {
	return c.at("enable-ipv6").isOn() && c.at("enable-ipv6-masquerade").isOn()
}

// masqueradeFallback returns why an agent up to 1.14 lets iptables masquerade; a newer agent exits instead.
func (c ciliumState) masqueradeFallback() string {
	identity, stated := c.statedAt("enable-remote-node-identity")
	socket, _ := c.statedAt("bpf-lb-sock")
	switch devices := c.at("egress-masquerade-interfaces"); {
	case c.minor > 14:
	case !c.nodePort:
		return "the agent does not serve NodePorts"
	case devices.text != "":
		return "egress-masquerade-interfaces: " + devices.text
	case stated && !identity.isOn():
		return "enable-remote-node-identity: " + identity.text
	case c.tunnel != "" && !c.replaces && !socket.isOn():
		return "no socket load balancing over a tunnel"
	}
	return ""
}

// setHostRouting sets legacy and asked by the agent's rules.
func (c *ciliumState) setHostRouting() {
	wish := c.at("enable-host-legacy-routing")
	c.asked = wish.isOn() && wish.isGiven() && (len(wish.from) == 0 || slices.Contains(wish.from, "bpf.hostLegacyRouting"))
	because := func(holds bool, why string) {
		if holds {
			c.legacy = append(c.legacy, why)
		}
	}
	because(wish.isOn(), "enable-host-legacy-routing is true ("+wish.sourceText()+")")
	if c.fallback != "" {
		because(true, "iptables masquerades: "+c.fallback)
	} else {
		because(c.masquerade == "iptables", "enable-bpf-masquerade is not true: iptables masquerades")
	}
	full := "true"
	if c.minor < 14 {
		full = "strict"
	}
	because(c.minor >= 13 && !c.replaces || !c.nodePort, "kube-proxy-replacement is not "+full)
	because(c.minor <= 13 && c.at("enable-endpoint-routes").isOn(), "enable-endpoint-routes is true, before 1.14")
	because(c.minor <= 13 && c.encryption == "wireguard", "WireGuard encrypts, before 1.14")
	because(c.minor <= 18 && c.encryption == "ipsec", "IPsec encrypts, before 1.19")
}

func (j *judge) showCilium(c ciliumState) {
	j.showValues(cilium, c.values, "routing-mode")
	if c.tunnel != "" {
		j.showValues(cilium, c.values, "tunnel-protocol")
	}
	j.showValues(cilium, c.values, "auto-direct-node-routes", "kube-proxy-replacement", "cni-chaining-mode", "ipam", "datapath-mode", "enable-endpoint-routes")
	by := c.at("enable-bpf-masquerade")
	if c.masquerade == "off" {
		by = c.at("enable-ipv4-masquerade")
	}
	if c.fallback != "" {
		by.origin, by.by = Forced, c.fallback
	}
	j.showSetting(cilium, "masquerading", c.masquerade, by.origin, by.by)
	switch {
	case c.asked:
		j.showSetting(cilium, "host routing", "legacy", Given, c.at("enable-host-legacy-routing").by)
	case len(c.legacy) > 0:
		j.showSetting(cilium, "host routing", "legacy", Forced, joinReasons(c.legacy))
	default:
		j.showSetting(cilium, "host routing", "eBPF", Default, c.reader)
	}
	if c.nodePort && !c.replaces {
		j.showValues(cilium, c.values, "enable-node-port", "bpf-lb-mode", "bpf-lb-algorithm", "bpf-lb-acceleration")
	}
	if c.replaces {
		socket := "on"
		if c.at("bpf-lb-sock-hostns-only").isOn() {
			socket = "on in the host's namespace only; pods per packet"
		}
		j.showSetting(cilium, "socket LB", socket, Forced, "kube-proxy-replacement is "+c.at("kube-proxy-replacement").text)
		j.showValues(cilium, c.values, "bpf-lb-mode", "bpf-lb-algorithm", "bpf-lb-acceleration")
	}
	j.showGiven(cilium, c.values, "mtu", "enable-bandwidth-manager", "ipv4-native-routing-cidr", "enable-ipv4-big-tcp", "enable-ipv6-big-tcp")
	how := c.at("enable-" + cmp.Or(c.encryption, "wireguard"))
	if c.encryption != "" {
		j.showSetting(cilium, Encryption, c.encryption, how.origin, how.by)
	} else if how.origin == "" {
		how.origin, how.by = Default, c.reader
	}
	encapsulation, decides := "none", c.at("routing-mode")
	if c.tunnel != "" {
		encapsulation, decides = c.tunnel, c.at("tunnel-protocol")
	}
	j.addWire(cilium, encapsulation, decides, cmp.Or(c.encryption, "none"), how)
}

// judgeCiliumHostRouting reports a fallback to iptables masquerading, and legacy host routing that the user did not request
// although eBPF serves Services or masquerades.
func (j *judge) judgeCiliumHostRouting(c ciliumState) {
	if asked := c.at("enable-bpf-masquerade"); c.fallback != "" && asked.isGiven() {
		j.addFinding("masquerade-fallback", asked, "enable-bpf-masquerade: true, and iptables masquerades: %s", c.fallback)
	}
	if len(c.legacy) == 0 || c.asked || !c.replaces && c.masquerade != "eBPF" {
		return
	}
	at := c.at("kube-proxy-replacement")
	if wish := c.at("enable-host-legacy-routing"); wish.isGiven() {
		at = wish
	} else if !c.replaces {
		at = c.at("enable-bpf-masquerade")
	}
	j.addFinding("host-routing-legacy", at, "host routing is legacy: %s", joinReasons(c.legacy))
}

func (j *judge) judgeCiliumServices(c ciliumState) {
	if c.nodePort {
		if g := c.at("bpf-lb-algorithm"); g.is("maglev") {
			j.addFinding("maglev-scope", g, "bpf-lb-algorithm: maglev")
		}
		if g := c.at("bpf-lb-acceleration"); g.isSet() && !g.is("disabled") {
			j.addFinding("xdp-device", g, "bpf-lb-acceleration: %s", g.text)
		}
		j.judgeCiliumDSR(c)
	} else {
		for _, p := range []string{"bpf-lb-mode", "bpf-lb-algorithm", "bpf-lb-acceleration", "bpf-lb-dsr-dispatch"} {
			if g := c.at(p); g.isGiven() && !g.is(c.defaults[p]) {
				j.addFinding("needs-kpr", g, "%s: %s, and kube-proxy-replacement is not true", p, g.text)
			}
		}
	}
	j.judgeKubeProxyBeside(c.replaces, c.at("kube-proxy-replacement"), "kube-proxy-replacement")
	host := j.agentEnv["KUBERNETES_SERVICE_HOST"]
	proxy := j.proxyState()
	if c.replaces && proxy.runs == no && j.agentEnv != nil && host.text == "" && c.at("k8s-api-server-urls").text == "" {
		j.addFinding("api-server", proxy.at, "kube-proxy does not run (%s), and the agent has no KUBERNETES_SERVICE_HOST", proxy.why)
	}
	if strings.HasPrefix(host.text, "<") {
		j.addFinding("placeholder", host, "the API server's address is %s", host.text)
	}
}

// servesByDSR reports whether NodePorts are served by direct server return.
func (c ciliumState) servesByDSR() bool {
	mode := c.at("bpf-lb-mode")
	return c.nodePort && (mode.is("dsr") || mode.is("hybrid"))
}

// judgeCiliumDSR applies the agent's checks of DSR.
func (j *judge) judgeCiliumDSR(c ciliumState) {
	mode, dispatch := c.at("bpf-lb-mode"), c.at("bpf-lb-dsr-dispatch")
	switch {
	case !c.servesByDSR():
	case c.tunnel != "" && c.minor <= 12:
		j.addFinding("dsr-fallback", mode, "bpf-lb-mode: %s over a %s tunnel", mode.text, c.tunnel)
	case c.tunnel != "" && c.minor == 13, c.tunnel == "vxlan":
		j.addFinding("dsr-refused", mode, "bpf-lb-mode: %s over a %s tunnel", mode.text, c.tunnel)
	case c.tunnel != "" && !dispatch.is("geneve"):
		j.addFinding("dsr-refused", mode, "bpf-lb-mode: %s over a tunnel with bpf-lb-dsr-dispatch: %s", mode.text, dispatch.text)
	case dispatch.is("geneve") && !c.at("tunnel-protocol").is("geneve"):
		j.addFinding("dsr-refused", dispatch, "bpf-lb-dsr-dispatch: geneve with tunnel-protocol: %s", c.at("tunnel-protocol").text)
	default:
		j.addFinding("dsr-scope", mode, "bpf-lb-mode: %s", mode.text)
	}
}

func (j *judge) judgeCiliumRouting(c ciliumState) {
	direct := c.at("auto-direct-node-routes")
	switch {
	case c.tunnel != "" && direct.isOn():
		j.addFinding("direct-routes-tunnel", direct, "auto-direct-node-routes: true with routing-mode: tunnel")
	case c.tunnel == "" && !direct.isOn() && !c.at("enable-bgp-control-plane").isOn() && !c.routedElsewhere():
		j.addFinding("native-routes", c.at("routing-mode"), "routing-mode: native without auto-direct-node-routes")
	}
	encapsulates := c.at("enable-egress-gateway").isOn() || c.at("enable-vtep").isOn() || c.servesByDSR() && c.at("bpf-lb-dsr-dispatch").is("geneve")
	if g := c.at("tunnel-protocol"); c.tunnel == "" && len(g.from) > 0 && !encapsulates {
		j.addFinding("not-used", g, "tunnel-protocol: %s with routing-mode: native", g.text)
	}
	if g := c.at("ipv4-native-routing-cidr"); c.tunnel != "" && g.isSet() {
		j.addFinding("not-used", g, "ipv4-native-routing-cidr: %s with routing-mode: tunnel", g.text)
	}
	if g := c.at("enable-endpoint-routes"); g.isOn() && len(c.legacy) > 0 {
		j.addFinding("endpoint-routes-legacy", g, "enable-endpoint-routes: true with legacy host routing")
	}
}

// routedElsewhere reports whether another component routes to pods: a cloud's network, or the CNI that Cilium is
// chained to.
func (c ciliumState) routedElsewhere() bool {
	ipam := c.at("ipam")
	chained := c.chaining != "" && !strings.EqualFold(c.chaining, "portmap")
	return chained || ipam.is("eni") || ipam.is("azure") || ipam.is("alibabacloud") || ipam.is("delegated-plugin") || c.at("enable-endpoint-routes").isOn()
}

// judgeCiliumCIDRs compares the ranges of pods: the cluster's, Cilium's pool and the natively routed one.
func (j *judge) judgeCiliumCIDRs(c ciliumState) {
	cluster, cidr := j.podCIDR(), c.at("ipv4-native-routing-cidr")
	if cluster.text == "" {
		return
	}
	pods, whose := cluster.text, cluster.path
	if pool := c.at("cluster-pool-ipv4-cidr"); c.at("ipam").is("cluster-pool") && pool.text != "" {
		if !coversIPv4(cluster.text, pool.text) {
			j.addFinding("pod-cidr", pool, "ipam cluster-pool assigns addresses of %s, the cluster's pods are in %s (%s)", pool.text, cluster.text, cluster.path)
		}
		pods, whose = pool.text, pool.path
	}
	if c.tunnel == "" && cidr.text != "" && !coversIPv4(cidr.text, pods) {
		j.addFinding("pod-cidr", cidr, "ipv4-native-routing-cidr is %s, pods are in %s (%s)", cidr.text, pods, whose)
	}
}

// coversIPv4 reports whether the first IPv4 prefix of a list contains another list's. It is also true if a list has no IPv4
// prefix.
func coversIPv4(outer, inner string) bool {
	o, ok := FirstIPv4(outer)
	i, both := FirstIPv4(inner)
	return !ok || !both || o.Bits() <= i.Bits() && o.Contains(i.Addr())
}

// FirstIPv4 returns the first IPv4 prefix of a list separated by commas or blanks, and whether there is one.
func FirstIPv4(list string) (netip.Prefix, bool) {
	for _, text := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' }) {
		if p, err := netip.ParsePrefix(text); err == nil && p.Addr().Is4() {
			return p.Masked(), true
		}
	}
	return netip.Prefix{}, false
}

// judgeCiliumDevices applies the agent's checks of netkit, BBR, BIG TCP and rules that bypass conntrack.
func (j *judge) judgeCiliumDevices(c ciliumState) {
	legacy := joinReasons(c.legacy)
	if g := c.at("datapath-mode"); strings.HasPrefix(g.text, "netkit") && legacy != "" && c.minor >= 20 {
		j.addFinding("netkit", g, "datapath-mode: %s, and host routing is legacy: %s", g.text, legacy)
	}
	if g := c.at("enable-bbr"); g.isOn() && legacy != "" && !c.at("enable-bbr-hostns-only").isOn() {
		j.addFinding("bbr", g, "enable-bbr: true, and host routing is legacy: %s", legacy)
	}
	for _, p := range []string{"enable-ipv4-big-tcp", "enable-ipv6-big-tcp"} {
		g := c.at(p)
		switch {
		case !g.isOn():
		case legacy != "":
			j.addFinding("big-tcp", g, "%s: true, and host routing is legacy: %s", p, legacy)
		case c.encryption == "ipsec", c.at("bpf-lb-dsr-dispatch").is("ipip"):
			j.addFinding("big-tcp", g, "%s: true with IPsec or bpf-lb-dsr-dispatch: ipip", p)
		case c.tunnel != "" && c.minor <= 18:
			j.addFinding("big-tcp", g, "%s: true over a %s tunnel", p, c.tunnel)
		case c.tunnel != "" && !c.at("enable-tunnel-big-tcp").isOn():
			j.addFinding("big-tcp-tunnel", g, "%s: true over a %s tunnel", p, c.tunnel)
		}
	}
	if g := c.at("install-no-conntrack-iptables-rules"); g.isOn() && (!c.replaces || c.masquerade == "iptables" || c.tunnel != "" || !c.at("enable-ipv4").isOn()) {
		j.addFinding("no-conntrack-refused", g, "install-no-conntrack-iptables-rules: true, kube-proxy-replacement: %v, masquerading: %s, routing-mode: %s, enable-ipv4: %s",
			c.replaces, c.masquerade, c.at("routing-mode").text, c.at("enable-ipv4").text)
	}
	if g := c.at("encrypt-node"); g.isOn() && c.encryption != "wireguard" {
		j.addFinding("not-used", g, "encrypt-node: true without WireGuard")
	}
	if g := c.at("enable-bandwidth-manager"); g.isOn() && c.encryption == "ipsec" {
		j.addFinding("not-used", g, "enable-bandwidth-manager: true with IPsec: the agent turns it off")
	}
}

// describeEncryptedProfile names the lab's profile with the agent's encryption, or says that there is none.
func (c ciliumState) describeEncryptedProfile(legacy bool) string {
	name := map[string]string{"": "cilium-native", "vxlan": "cilium-vxlan"}[c.tunnel]
	if p, ok := profile.Lookup(name); !ok || p.WithEncryption(c.encryption).Encapsulation != c.encryption || legacy || c.servesByDSR() || !c.at("datapath-mode").is("veth") || c.at("encrypt-node").isOn() {
		return "no profile encrypts Cilium's traffic so"
	}
	return "in the lab " + name + "(encryption=" + c.encryption + ")"
}

// addCiliumProfile adds the profile that the options amount to.
func (j *judge) addCiliumProfile(c ciliumState) {
	var but []string
	if !c.replaces {
		but = append(but, "kube-proxy serves NodePorts and the node's own traffic; ClusterIPs of pods are translated per packet")
	} else if j.proxyState().runs == yes {
		but = append(but, "kube-proxy runs beside it, and its rules see every packet that passes the node's stack")
	}
	if c.chaining != "" {
		but = append(but, "CNI chaining ("+c.chaining+")")
	}
	if j.gke.isGiven() {
		j.addFinding("provider-config", j.gke, "GKE Dataplane V2 reads ConfigMap cilium-config")
	}
	legacy := len(c.legacy) > 0
	mode := c.at("datapath-mode")
	switch {
	case j.gke.isGiven() && c.tunnel == "" && c.encryption == "":
		host := "eBPF"
		if legacy {
			host = "legacy"
		}
		j.addUnmatched("GKE Dataplane V2, native routing: no profile describes it", append(but, "host routing is "+host)...)
	case c.encryption != "":
		j.addUnmatched("Cilium with "+c.encryption+": "+c.describeEncryptedProfile(legacy), but...)
	case c.chaining != "" && !strings.EqualFold(c.chaining, "portmap"):
		j.addUnmatched("Cilium chained to "+c.chaining+": another plugin connects the pods", but...)
	case mode.is("auto") && !legacy:
		j.addUnmatched("Cilium with netkit or veth devices, as each node's kernel supports: no profile is known from the configuration", but...)
	case strings.HasPrefix(mode.text, "netkit") && legacy && c.minor >= 20:
		j.addUnmatched("none: netkit does not start with legacy host routing", but...)
	case strings.HasPrefix(mode.text, "netkit"):
		if c.tunnel != "" {
			but = append(but, "a tunnel ("+c.tunnel+")")
		}
		if legacy {
			but = append(but, "legacy host routing")
		}
		j.addMeasured("cilium-netkit", but...)
	case c.tunnel != "":
		if legacy {
			but = append(but, "legacy host routing: received packets reach the pod by redirect, not redirect_peer")
		}
		if c.tunnel != "vxlan" {
			but = append(but, "the tunnel is "+c.tunnel)
		}
		j.addMeasured("cilium-vxlan", but...)
	case legacy:
		if c.servesByDSR() {
			but = append(but, "DSR for external clients")
		}
		j.addMeasured("cilium-native-legacy", but...)
	case c.servesByDSR():
		j.addMeasured("cilium-native-dsr", but...)
	default:
		j.addMeasured("cilium-native", but...)
	}
}
