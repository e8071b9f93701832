package config

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/plan/position"
	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/vocab/finding"
)

// Needed is a chart without which values are not judged, or only partly.
type Needed struct {
	// Name and Version are the chart's. Version is the version that a file names. If no file names one, it is the newest
	// minor version that the values fit, such as "1.14", or "" if that is unknown.
	Name, Version string
}

// signs has the keys by which the values of a chart are recognized. One of strong identifies the chart, or two of weak.
var signs = []struct {
	chart        string
	strong, weak []string
}{
	{"kube-ovn", []string{"func.ENABLE_LB", "func.ENABLE_NP", "networking.NETWORK_TYPE", "networking.TUNNEL_TYPE", "networking.NET_STACK", "cni_conf", "ovsOvn", "apiNad"}, nil},
	{cilium, []string{"kubeProxyReplacement", "routingMode", "tunnelProtocol", "ipv4NativeRoutingCIDR", "nativeRoutingCIDR", "autoDirectNodeRoutes", "socketLB",
		"enableIPv4Masquerade", "enableMasqueradeRouteSource", "egressMasqueradeInterfaces", "k8sServiceHost", "endpointRoutes", "l7Proxy", "hubble", "bpf", "aksbyocni", "nodeinit"},
		[]string{"tunnel", "ipam", "encryption", "loadBalancer", "cni", "eni", "MTU", "operator", "ipv4", "ipv6", "k8sServicePort", "bandwidthManager", "envoy", "cluster"}},
	{"tigera-operator", []string{"installation", "tigeraOperator", "defaultFelixConfiguration", "kubernetesServiceEndpoint", "calicoctl"}, []string{"apiServer", "whisker", "goldmane"}},
	{flannel, []string{"podCidr", "podCidrv6"}, []string{"flannel", "netpol"}},
	{"aws-vpc-cni", []string{"originalMatchLabels", "enableNetworkPolicy", "branchENICooldown", "eniConfig", "cniConfig", "env.AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG", "env.ENABLE_PREFIX_DELEGATION", "env.AWS_VPC_ENI_MTU",
		"env.AWS_VPC_K8S_CNI_EXTERNALSNAT", "env.WARM_ENI_TARGET", "env.WARM_IP_TARGET", "env.WARM_PREFIX_TARGET", "env.ENABLE_POD_ENI"}, nil},
	{"ovn-kubernetes", []string{"global.gatewayMode", "global.enableOvnKubeIdentity", "podNetwork"}, nil},
	{"antrea", []string{"trafficEncapMode", "antreaProxy", "trafficEncryptionMode", "noSNAT", "tunnelType"}, nil},
}

// chartOf returns the name of the chart whose values n has, recognized by its keys, and n itself. The name is "" if the
// keys match no chart.
func chartOf(n *position.Node) (name string, own *position.Node) {
	for _, s := range signs {
		has := func(key string) bool { return n.At(strings.Split(key, ".")...) != nil }
		weak := 0
		for _, k := range s.weak {
			if has(k) {
				weak++
			}
		}
		if slices.ContainsFunc(s.strong, has) || weak > 1 {
			return s.chart, n
		}
	}
	return "", n
}

// judgeChartless judges what can be judged of a document without a kind if no chart is given. It returns the kind of
// the document, and why the rest is not judged.
func (j *judge) judgeChartless(s source, n *position.Node) (kind, notJudged string) {
	name, own := chartOf(n)
	for i := 0; name == "" && i < len(n.Keys); i++ {
		if inner := n.Items[i]; inner.Kind == position.Mapping {
			if name, own = chartOf(inner); name == "" && isCNIChart(n.Keys[i].Name) {
				name = n.Keys[i].Name
			}
		}
	}
	if name == "" {
		return "a document without a kind", "its keys are of no chart and no file that is read; if they are values, give their chart with --chart"
	}
	if of, ok := cniOfChart(name); ok && readDialectValues(j, of, s, own) {
		return "values of chart " + name, ""
	} else if ok && of.Family == "" {
		j.addUnread(of)
		return "values of chart " + name, unreadReason(of)
	}
	shown := versionShown(name, layer{s, own})
	j.judgeWithoutChart(name, shown.newest(), s, own)
	return "values of chart " + name, j.missingChartReason(name, shown.shownRange())
}

// judgeWithoutChart judges the part of values that has the same meaning in every version of their chart. It adds the
// chart to Needs.
func (j *judge) judgeWithoutChart(name, version string, s source, n *position.Node) {
	j.Needs = append(j.Needs, Needed{name, version})
	switch name {
	case "tigera-operator": // its chart passes these values on unchanged
		if spec := n.At("installation"); spec != nil && spec.ScalarAt("enabled") != "false" {
			readInto(&j.installation, installationDefaults, s, "installation", spec)
		}
		if spec := n.At("defaultFelixConfiguration"); spec.ScalarAt("enabled") == "true" {
			readInto(&j.felix, felixDefaults, s, "defaultFelixConfiguration", spec)
		}
	case cilium, "rke2-cilium":
		j.options = append(j.options, layer{s, n})
	}
}

// versionShown returns the versions of Cilium's chart that fit its values, the zero value for other charts.
func versionShown(chart string, l layer) minors {
	if chart != cilium {
		return minors{}
	}
	return minorsOf(&values{leaves: optionsIn(l)}, true)
}

// optionOf maps values of Cilium's chart to options of the agent. Each value alone sets its option, in every version
// that has both.
var optionOf = map[string]string{
	"routingMode": "routing-mode", "tunnelProtocol": "tunnel-protocol", "tunnel": "tunnel", "kubeProxyReplacement": "kube-proxy-replacement",
	"autoDirectNodeRoutes": "auto-direct-node-routes", "directRoutingSkipUnreachable": "direct-routing-skip-unreachable",
	"ipv4NativeRoutingCIDR": "ipv4-native-routing-cidr", "ipv6NativeRoutingCIDR": "ipv6-native-routing-cidr", "nativeRoutingCIDR": "native-routing-cidr",
	"enableIPv4Masquerade": "enable-ipv4-masquerade", "enableIPv6Masquerade": "enable-ipv6-masquerade", "ipMasqAgent.enabled": "enable-ip-masq-agent",
	"enableMasqueradeRouteSource": "enable-masquerade-to-route-source", "egressMasqueradeInterfaces": "egress-masquerade-interfaces",
	"bpf.masquerade": "enable-bpf-masquerade", "bpf.hostLegacyRouting": "enable-host-legacy-routing", "bpf.datapathMode": "datapath-mode", "bpf.tproxy": "enable-bpf-tproxy",
	"egressGateway.enabled": "enable-egress-gateway", "ciliumEndpointSlice.enabled": "enable-cilium-endpoint-slice", "ipam.mode": "ipam",
	"ipv4.enabled": "enable-ipv4", "ipv6.enabled": "enable-ipv6", "loadBalancer.mode": "bpf-lb-mode", "loadBalancer.algorithm": "bpf-lb-algorithm",
	"loadBalancer.acceleration": "bpf-lb-acceleration", "loadBalancer.dsrDispatch": "bpf-lb-dsr-dispatch", "MTU": "mtu", "endpointRoutes.enabled": "enable-endpoint-routes",
	"installNoConntrackIptablesRules": "install-no-conntrack-iptables-rules", "l7Proxy": "enable-l7-proxy", "hostFirewall.enabled": "enable-host-firewall",
	"encryption.nodeEncryption": "encrypt-node", "bandwidthManager.enabled": "enable-bandwidth-manager", "bandwidthManager.bbr": "enable-bbr",
	"enableIPv4BIGTCP": "enable-ipv4-big-tcp", "enableIPv6BIGTCP": "enable-ipv6-big-tcp", "identityAllocationMode": "identity-allocation-mode",
}

// decisive are values from which the chart derives options of its own.
var decisive = []string{"eni.enabled", "azure.enabled", "alibabacloud.enabled", "gke.enabled", "aksbyocni.enabled", "cni.chainingMode", "upgradeCompatibility"}

// certain are the rules whose findings in values are true whatever the chart's other values are.
var certain = []string{"agent-value", "masquerade-refused", "encryption-refused", "routing-refused", "ipam-refused", "egress-gateway", "native-cidr",
	"dsr-refused", "direct-routes-tunnel", "mtu-is-underlay", "mtu-too-large", "node-encryption"}

// judgeOptions judges values of Cilium's chart if the chart is not given. It applies only the rules in certain, to the
// options in optionOf. It does nothing if a value in decisive is set, and it adds no profile.
func (j *judge) judgeOptions() {
	if len(j.options) == 0 || j.agent != nil {
		return
	}
	agent := agentDefaults.emptyCopy()
	for _, l := range j.options {
		agent.leaves = append(agent.leaves, optionsIn(l)...)
		for _, path := range decisive {
			if v := l.node.ScalarAt(strings.Split(path, ".")...); v != "" && v != "false" && v != "none" {
				return
			}
		}
	}
	m := minorsOf(agent, true)
	of := slices.IndexFunc(j.Needs, func(n Needed) bool { return n.Name == cilium || n.Name == "rke2-cilium" }) // judgeWithoutChart added it
	if n, ok := Minor(cmp.Or(j.known.Version, j.Needs[of].Version)); ok {
		m = singleMinor(n, "the version given")
	}
	part := &judge{faults: j.faults, known: j.known, objects: objects{agent: agent}}
	part.judgeCiliumVersion(m)
	for _, s := range part.Settings {
		if s.Origin == Given {
			j.Settings = append(j.Settings, s)
		}
	}
	j.Findings = append(j.Findings, slices.DeleteFunc(part.Findings, func(f finding.Finding) bool {
		return f.Where == "" || !slices.Contains(certain, f.ID)
	})...)
}

// optionsIn returns the agent's options that the values of one document set.
func optionsIn(l layer) []value {
	var found []value
	given := map[string]value{}
	for _, leaf := range leavesOf(l.node, "") {
		given[leaf.path] = value{path: leaf.path, text: leaf.text, origin: Given, by: l.placeOf(leaf.node)}
	}
	for _, path := range slices.Sorted(maps.Keys(given)) {
		if g := given[path]; optionOf[path] != "" {
			g.path = optionOf[path]
			found = append(found, g)
		}
	}
	if e := given["encryption.enabled"]; e.isOn() {
		e.path, e.text = "enable-"+cmp.Or(given["encryption.type"].text, "ipsec"), "true"
		found = append(found, e)
	}
	return found
}

// readDialectValues reads values of a chart that passes them on unchanged. It returns false, and reads nothing, for
// other charts and if the chart is given.
func readDialectValues(j *judge, of profile.CNI, s source, n *position.Node) bool {
	if dialects[of.Name].judge == nil || j.chart != nil {
		return false
	}
	v := &values{}
	v.addLeaves(s, "", n)
	storeSettings(j, of.Name, true, v.leaves)
	return true
}
