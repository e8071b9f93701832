package config

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The minor versions of Cilium 1.x whose checks are known.
const (
	firstMinor = 10
	lastMinor  = 20
)

// minors is the range of minor versions of Cilium 1.x that an agent can have.
type minors struct {
	first, last int
	// newer is the version itself if its checks are not known yet, 0 otherwise.
	newer int
	// by is what shows the version, "" if nothing does.
	by string
}

// agentName returns the name of the agent whose rules apply: the newest of the range.
func (m minors) agentName() string { return fmt.Sprintf("cilium-agent 1.%d", m.last) }

func (m minors) String() string {
	if m.newer == 0 && m.first == m.last {
		return m.rangeText()
	}
	return fmt.Sprintf("%s, judged as 1.%d", m.rangeText(), m.last)
}

// rangeText describes the versions: "1.16", "1.14 to 1.15", "1.18 or later".
func (m minors) rangeText() string {
	switch {
	case m.newer > 0:
		return fmt.Sprintf("1.%d", m.newer)
	case m.first == m.last:
		return fmt.Sprintf("1.%d", m.last)
	case m.last == lastMinor:
		return fmt.Sprintf("1.%d or later", m.first)
	case m.first == firstMinor:
		return fmt.Sprintf("1.%d or older", m.last)
	}
	return fmt.Sprintf("1.%d to 1.%d", m.first, m.last)
}

// shownRange describes the versions, "" if nothing shows them.
func (m minors) shownRange() string {
	if m.by == "" {
		return ""
	}
	return m.rangeText()
}

// newest returns the newest of the versions, "" if nothing limits the range.
func (m minors) newest() string {
	if m.by == "" || m.last == lastMinor {
		return ""
	}
	return fmt.Sprintf("1.%d", m.last)
}

// unjudgedReason returns why there are no rules for the version, "" if there are.
func (m minors) unjudgedReason() string {
	if m.last < firstMinor {
		return fmt.Sprintf("Cilium 1.%d (%s): rules are known for 1.%d to 1.%d", m.last, m.by, firstMinor, lastMinor)
	}
	return ""
}

// Minor returns the minor version of a CNI whose major version is 1, such as 16 for "v1.16.5". ok is false for any
// other text.
func Minor(version string) (minor int, ok bool) {
	rest, is1 := strings.CutPrefix(strings.TrimPrefix(version, "v"), "1.")
	digits := rest
	if end := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' }); end >= 0 {
		digits = rest[:end]
	}
	n, err := strconv.Atoi(digits)
	return n, is1 && err == nil
}

// mark is an option, or some of its values, that only some versions of the agent or of its chart have. A first or last
// of 0 means no limit.
type mark struct {
	option      string
	values      []string
	first, last int
}

// marks identify the version of a ConfigMap without a label.
var marks = []mark{
	{"tunnel", nil, 0, 13},
	{"native-routing-cidr", nil, 0, 11},
	{"masquerade", nil, 0, 10},
	{"enable-host-reachable-services", nil, 0, 11},
	{"sockops-enable", nil, 0, 13},
	{"kube-proxy-replacement", []string{"probe"}, 0, 12},
	{"kube-proxy-replacement", []string{"strict", "partial", "disabled"}, 0, 15},
	{"kube-proxy-replacement", []string{"true", "false"}, 14, 0},
	{"enable-remote-node-identity", nil, 0, 15},
	{"sidecar-istio-proxy-image", nil, 0, 15},
	{"disable-cnp-status-updates", nil, 0, 14},
	{"enable-ipv4-egress-gateway", nil, 0, 17},
	{"enable-wireguard-userspace-fallback", nil, 0, 17},
	{"enable-encryption-strict-mode", nil, 15, 19},
	{"routing-mode", nil, 14, 0},
	{"tunnel-protocol", nil, 14, 0},
	{"cni-exclusive", nil, 14, 0},
	{"external-envoy-proxy", nil, 14, 0},
	{"max-connected-clusters", nil, 15, 0},
	{"enable-masquerade-to-route-source", nil, 15, 0},
	{"enable-tcx", nil, 16, 0},
	{"direct-routing-skip-unreachable", nil, 16, 0},
	{"datapath-mode", []string{"netkit", "netkit-l2"}, 16, 0},
	{"underlay-protocol", nil, 18, 0},
	{"enable-lb-ipam", nil, 18, 0},
	{"enable-ztunnel", nil, 19, 0},
	{"enable-drift-checker", nil, 19, 0},
	{"datapath-mode", []string{"auto"}, 20, 0},
	{"enable-datapath-plugins", nil, 20, 0},
}

// agentMinors returns the agent's version. It takes the known version, or the version of the chart or of the agent's
// image. Without these, it takes the versions that fit the options. Options of newer versions outweigh options of older
// ones, which agents ignore.
func (j *judge) agentMinors() minors {
	if n, ok := Minor(j.known.Version); ok {
		return singleMinor(n, "the version given")
	}
	if j.chart != nil && strings.HasSuffix(j.chart.Name, cilium) { // rke2-cilium, too
		if n, ok := Minor(cmp.Or(j.chart.AppVersion, j.chart.Version)); ok {
			return singleMinor(n, "appVersion of "+j.chart.String())
		}
	}
	if n, ok := Minor(imageTag(j.agentImage.text)); ok {
		return singleMinor(n, "the agent's image ("+j.agentImage.by+")")
	}
	return minorsOf(j.agent, false)
}

// minorsOf returns the versions that have these options. The chart's values kept tunnel for one version longer than the
// ConfigMap.
func minorsOf(options *values, ofChart bool) minors {
	m := minors{first: firstMinor, last: lastMinor}
	var older, newer []string
	for _, k := range marks {
		g, stated := options.statedAt(k.option)
		if k.option == "tunnel" && ofChart {
			k.last = lastTunnel
		}
		if !stated || k.values != nil && !slices.ContainsFunc(k.values, g.is) {
			continue
		}
		shown := k.option
		if k.values != nil {
			shown += ": " + g.text
		}
		if k.last > 0 && k.last <= m.last {
			m.last, older = k.last, append(older, shown)
		}
		if k.first > m.first {
			m.first, newer = k.first, append(newer, shown)
		}
	}
	if m.first > m.last {
		m.last, older = lastMinor, nil
	}
	m.by = strings.Join(slices.Concat(older, newer), ", ")
	return m
}

// singleMinor returns the range of one version. A version whose checks are not known yet is judged as the newest known one.
func singleMinor(minor int, by string) minors {
	if minor > lastMinor {
		return minors{first: lastMinor, last: lastMinor, newer: minor, by: by}
	}
	return minors{first: minor, last: minor, by: by}
}

// imageTag returns the tag of an image, "" without one.
func imageTag(image string) string {
	image, _, _ = strings.Cut(image, "@")
	_, tag, _ := strings.Cut(image[strings.LastIndexByte(image, '/')+1:], ":")
	return tag
}

// renamed are options with another name in older agents, with the last version that reads the old name.
var renamed = []struct {
	old, now string
	last     int
}{
	{"native-routing-cidr", "ipv4-native-routing-cidr", 11},
	{"masquerade", "enable-ipv4-masquerade", 10},
	{"enable-host-reachable-services", "bpf-lb-sock", 11},
	{"enable-ipv4-egress-gateway", "enable-egress-gateway", 17},
	{"enable-encryption-strict-mode", "enable-encryption-strict-mode-egress", 19},
	{"encryption-strict-mode-cidr", "encryption-strict-egress-cidr", 19},
}

// The versions around the change from tunnel to routing-mode and tunnel-protocol.
const (
	lastTunnel   = 14
	firstRouting = 14
)

// currentOptions returns the agent's options by their present names and values. It reports options that the version does not
// read.
func (j *judge) currentOptions(m minors) *values {
	v := j.agent.emptyCopy()
	v.leaves, v.reader = slices.Clone(j.agent.leaves), m.agentName()
	for _, r := range renamed {
		g, stated := v.statedAt(r.old)
		if _, both := v.statedAt(r.now); !stated || both {
			continue
		}
		if m.last > r.last {
			j.reportOtherVersion(g, m, fmt.Sprintf("since 1.%d it is %s", r.last+1, r.now))
			continue
		}
		g.path = r.now
		v.leaves = append(v.leaves, g)
	}
	j.translateTunnel(v, m)
	return v
}

// translateTunnel translates the option tunnel (disabled, vxlan or geneve) into routing-mode and tunnel-protocol.
func (j *judge) translateTunnel(v *values, m minors) {
	for _, option := range []string{"routing-mode", "tunnel-protocol"} {
		if g, stated := v.statedAt(option); stated && m.last < firstRouting {
			j.reportOtherVersion(g, m, "before 1.14 it is tunnel")
		}
	}
	g, stated := v.statedAt("tunnel")
	_, both := v.statedAt("routing-mode")
	switch {
	case !stated:
	case m.last > lastTunnel:
		j.reportOtherVersion(g, m, "since 1.15 it is routing-mode and tunnel-protocol")
	case both:
	case g.is("disabled"):
		g.path, g.text = "routing-mode", "native"
		v.leaves = append(v.leaves, g)
	default:
		mode := g
		mode.path, mode.text, g.path = "routing-mode", "tunnel", "tunnel-protocol"
		v.leaves = append(v.leaves, mode, g)
	}
}

func (j *judge) reportOtherVersion(g value, m minors, instead string) {
	if g.isGiven() && !j.gke.isGiven() {
		j.addFinding("other-version", g, "%s: %s, and the agent is %s: %s", g.path, g.text, m, instead)
	}
}
