package config

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/cnibench/cnibench/internal/profile"
)

// judged is what a table row wants of Check.
type judged struct {
	name string
	as   string
	yaml string
	// rules are the ids of the findings, in the order of the report; profile is the one measured, "" for none.
	rules   string
	profile string
}

func (c judged) run(t *testing.T) {
	t.Helper()
	r, err := Check([]Input{{c.name + ".yaml", c.yaml}}, Options{As: c.as})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range r.Findings {
		got = append(got, f.Rule)
	}
	want := strings.Fields(c.rules)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
		for _, f := range r.Findings {
			t.Logf("%s: %s", f.Rule, f.sentence())
		}
	}
	measured := ""
	if len(r.Measured) > 0 {
		measured = r.Measured[0].Profile
	}
	if measured != c.profile {
		t.Errorf("measured with this is %q, want %q", measured, c.profile)
	}
}

// full is a Cilium without anything to say but whether kube-proxy runs: each row of the table changes one thing.
const full = `kubeProxyReplacement: true
routingMode: native
autoDirectNodeRoutes: true
ipv4NativeRoutingCIDR: 10.0.0.0/8
hubble: {enabled: false}
`

const masq = "bpf: {masquerade: true}\n"

func TestCilium(t *testing.T) {
	for _, c := range []judged{
		{"native", "", full + masq, "kube-proxy-unsaid", "cilium-native"},
		{"iptables masquerade", "", full, "kube-proxy-unsaid host-routing-legacy", "cilium-native-legacy"},
		{"no masquerade", "", full + "enableIPv4Masquerade: false", "kube-proxy-unsaid", "cilium-native"},
		{"asked for legacy", "", full + "bpf: {hostLegacyRouting: true}", "kube-proxy-unsaid", "cilium-native-legacy"},
		{"false is no promise", "", full + "bpf: {hostLegacyRouting: false}", "kube-proxy-unsaid host-routing-legacy", "cilium-native-legacy"},
		{"rke2 chains", "rke2-cilium", full + masq, "kube-proxy-unsaid host-routing-legacy", "cilium-native-legacy"},
		{"rke2 unchained", "rke2-cilium", full + masq + "cni: {chainingMode: none}", "kube-proxy-unsaid", "cilium-native"},
		{"rke2 explicit", "rke2-cilium", full + "bpf: {masquerade: true, hostLegacyRouting: false}", "kube-proxy-unsaid", "cilium-native"},
		{"ipsec", "", full + masq + "encryption: {enabled: true}", "kube-proxy-unsaid host-routing-legacy encrypted", ""},
		{"wireguard", "", full + masq + "encryption: {enabled: true, type: wireguard}", "kube-proxy-unsaid encrypted", ""},
		{"encryption off", "", full + masq + "encryption: {type: wireguard}", "kube-proxy-unsaid switch-off", "cilium-native"},
		{"chart defaults", "cilium", "hubble: {enabled: false}", "host-routing-default", "cilium-vxlan"},
		{"hubble", "cilium", "ipv4: {enabled: true}", "host-routing-default observability", "cilium-vxlan"},
		{"strict", "cilium", "kubeProxyReplacement: strict\nhubble: {enabled: false}", "kpr-value host-routing-default", "cilium-vxlan"},
		{"no cidr", "", "routingMode: native\nautoDirectNodeRoutes: true\nhubble: {enabled: false}", "native-cidr host-routing-default", "cilium-native-legacy"},
		{"no routes", "", "routingMode: native\nipv4NativeRoutingCIDR: 10.0.0.0/8\nhubble: {enabled: false}", "native-routes host-routing-default", "cilium-native-legacy"},
		{"direct over tunnel", "", "autoDirectNodeRoutes: true\nhubble: {enabled: false}", "direct-routes-tunnel host-routing-default", "cilium-vxlan"},
		{"tunnel unused", "", full + masq + "tunnelProtocol: geneve", "kube-proxy-unsaid tunnel-unused", "cilium-native"},
		{"cidr over tunnel", "", "ipv4NativeRoutingCIDR: 10.0.0.0/8\nhubble: {enabled: false}", "switch-off host-routing-default", "cilium-vxlan"},
		{"dsr", "", full + masq + "loadBalancer: {mode: dsr}", "kube-proxy-unsaid dsr-scope", "cilium-native-dsr"},
		{"hybrid", "", full + masq + "loadBalancer: {mode: hybrid}", "kube-proxy-unsaid dsr-scope", "cilium-native-dsr"},
		{"dsr geneve", "", full + masq + "loadBalancer: {mode: dsr, dsrDispatch: geneve}\ntunnelProtocol: geneve", "kube-proxy-unsaid dsr-scope", "cilium-native-dsr"},
		{"dsr geneve over vxlan", "", full + masq + "loadBalancer: {mode: dsr, dsrDispatch: geneve}", "kube-proxy-unsaid dsr-refused", "cilium-native-dsr"},
		{"dsr over vxlan", "", "kubeProxyReplacement: true\nhubble: {enabled: false}\n" + masq + "loadBalancer: {mode: dsr}", "kube-proxy-unsaid dsr-refused", "cilium-vxlan"},
		{"dsr opt over geneve", "", "kubeProxyReplacement: true\ntunnelProtocol: geneve\nhubble: {enabled: false}\n" + masq + "loadBalancer: {mode: dsr}", "kube-proxy-unsaid dsr-refused", "cilium-vxlan"},
		{"lb without kpr", "", "loadBalancer: {mode: dsr, algorithm: maglev, acceleration: native}\nmaglev: {tableSize: 65521}\nhubble: {enabled: false}", "needs-kpr needs-kpr needs-kpr needs-kpr host-routing-default", "cilium-vxlan"},
		{"maglev and xdp", "", full + masq + "loadBalancer: {algorithm: maglev, acceleration: best-effort}", "kube-proxy-unsaid maglev-scope xdp-device", "cilium-native"},
		{"netkit", "", full + "bpf: {masquerade: true, datapathMode: netkit}", "kube-proxy-unsaid", "cilium-netkit"},
		{"netkit legacy", "", full + "bpf: {datapathMode: netkit-l2}", "kube-proxy-unsaid netkit host-routing-legacy", ""},
		{"netkit tproxy", "", full + "bpf: {masquerade: true, datapathMode: netkit, tproxy: true, enableTCX: false}", "kube-proxy-unsaid netkit", "cilium-netkit"},
		{"bbr", "", full + masq + "bandwidthManager: {enabled: true, bbr: true}", "kube-proxy-unsaid", "cilium-native"},
		{"bbr legacy", "", full + "bandwidthManager: {enabled: true, bbr: true}", "kube-proxy-unsaid bbr host-routing-legacy", "cilium-native-legacy"},
		{"bbr off", "", full + masq + "bandwidthManager: {bbr: true}", "kube-proxy-unsaid switch-off", "cilium-native"},
		{"no conntrack", "", full + masq + "installNoConntrackIptablesRules: true", "kube-proxy-unsaid", "cilium-native"},
		{"no conntrack chained", "rke2-cilium", full + masq + "installNoConntrackIptablesRules: true", "kube-proxy-unsaid no-conntrack-forced host-routing-legacy", "cilium-native-legacy"},
		{"no conntrack iptables", "", full + "installNoConntrackIptablesRules: true", "kube-proxy-unsaid no-conntrack-refused host-routing-legacy", "cilium-native-legacy"},
		{"socket lb", "", full + masq + "socketLB: {enabled: false}", "kube-proxy-unsaid socket-lb-forced", "cilium-native"},
		{"endpoint routes", "", full + "endpointRoutes: {enabled: true}", "kube-proxy-unsaid endpoint-routes-legacy host-routing-legacy", "cilium-native-legacy"},
		{"mtu", "", full + masq + "MTU: 1450", "kube-proxy-unsaid mtu-is-underlay", "cilium-native"},
		{"jumbo", "", full + masq + "MTU: 9000", "kube-proxy-unsaid", "cilium-native"},
		{"node encryption with ipsec", "", full + "encryption: {enabled: true, nodeEncryption: true}", "kube-proxy-unsaid switch-off encrypted host-routing-legacy", ""},
		{"old names", "", full + masq + "tunnel: disabled\nnativeRoutingCIDR: 10.0.0.0/8\nhostServices: {enabled: true}", "kube-proxy-unsaid moved-key moved-key moved-key", "cilium-native"},
		{"misspelt", "", full + masq + "autoDirectNodeRoute: true\nloadBalancer: {algoritm: maglev}", "kube-proxy-unsaid unknown-key unknown-key", "cilium-native"},
		{"raw option", "", full + "extraConfig: {enable-bpf-masquerade: \"true\"}", "kube-proxy-unsaid", "cilium-native"},
		{"placeholder", "", full + masq + "k8sServiceHost: <IP>", "kube-proxy-unsaid placeholder", "cilium-native"},
		{"chaining target", "", full + masq + "cni: {chainingTarget: other}", "kube-proxy-unsaid host-routing-legacy", "cilium-native-legacy"},
		{"eni", "", "kubeProxyReplacement: true\neni: {enabled: true}\nhubble: {enabled: false}\n" + masq, "kube-proxy-unsaid", "cilium-native"},
		{"config map, chained by hand", "", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cilium-config}\ndata:\n  routing-mode: native\n  auto-direct-node-routes: \"true\"\n  cni-chaining-mode: portmap\n  kube-proxy-replacement: \"true\"\n  enable-bpf-masquerade: \"true\"\n", "kube-proxy-unsaid", "cilium-native"},
		{"config map", "", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cilium-config}\ndata:\n  routing-mode: native\n  auto-direct-node-routes: \"true\"\n  ipv4-native-routing-cidr: 10.0.0.0/8\n  kube-proxy-replacement: \"true\"\n  enable-bpf-masquerade: \"true\"\n  enable-wireguard: \"false\"\n", "kube-proxy-unsaid", "cilium-native"},
		{"config map of a chained one", "", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cilium-config}\ndata:\n  routing-mode: native\n  auto-direct-node-routes: \"true\"\n  ipv4-native-routing-cidr: 10.0.0.0/8\n  kube-proxy-replacement: \"true\"\n  enable-bpf-masquerade: \"true\"\n  enable-host-legacy-routing: \"true\"\n", "kube-proxy-unsaid", "cilium-native-legacy"},
	} {
		t.Run(c.name, c.run)
	}
}

// installation is an Installation with the given lines below calicoNetwork.
func installation(lines string) string {
	return "apiVersion: operator.tigera.io/v1\nkind: Installation\nmetadata: {name: default}\nspec:\n  calicoNetwork:\n    " +
		strings.ReplaceAll(lines, "\n", "\n    ") + "\n"
}

// felixConfiguration is a document after others, with the given spec.
func felixConfiguration(spec string) string {
	return "---\napiVersion: crd.projectcalico.org/v1\nkind: FelixConfiguration\nmetadata: {name: default}\nspec: " + spec + "\n"
}

func ipPool(spec string) string {
	return "---\napiVersion: crd.projectcalico.org/v1\nkind: IPPool\nmetadata: {name: p}\nspec: " + spec + "\n"
}

// calicoNode is its DaemonSet with the given environment, names and values in turn.
func calicoNode(env ...string) string {
	text := "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: calico-node}\nspec: {template: {spec: {containers: [{name: calico-node, env: ["
	for i := 0; i < len(env); i += 2 {
		text += "{name: " + env[i] + ", value: \"" + env[i+1] + "\"}, "
	}
	return text + "{name: X, valueFrom: {}}]}]}}}\n"
}

func TestCalico(t *testing.T) {
	for _, c := range []judged{
		{"defaults", "", installation("mtu: 1440"), "", "calico-ipip"},
		{"vxlan", "", installation("bgp: Disabled\nipPools: [{cidr: 10.0.0.0/16, encapsulation: VXLAN}]"), "", "calico-vxlan"},
		{"none", "", installation("ipPools: [{cidr: 10.0.0.0/16, encapsulation: None}]"), "", "calico-underlay"},
		{"ipip without bgp", "", installation("bgp: Disabled\nipPools: [{cidr: 10.0.0.0/16}]"), "bgp-needed", "calico-ipip"},
		{"felix routes", "", installation("bgp: Disabled\nclusterRoutingMode: Felix\nipPools: [{cidr: 10.0.0.0/16, encapsulation: IPIP}]"), "", "calico-ipip"},
		{"cross subnet", "", installation("ipPools: [{cidr: 10.0.0.0/16, encapsulation: VXLANCrossSubnet}]"), "cross-subnet", "calico-vxlan"},
		{"mtu", "", installation("mtu: 1500\nipPools: [{cidr: 10.0.0.0/16, encapsulation: VXLAN}]"), "mtu-too-large", "calico-vxlan"},
		{"mtu of jumbo", "", installation("mtu: 8950\nipPools: [{cidr: 10.0.0.0/16, encapsulation: VXLAN}]"), "", "calico-vxlan"},
		{"nftables", "", installation("linuxDataplane: Nftables\nipPools: [{cidr: 10.0.0.0/16, encapsulation: VXLAN}]"), "", "calico-nftables"},
		{"ebpf", "", installation("linuxDataplane: BPF\nkubeProxyManagement: Enabled\nipPools: [{cidr: 10.0.0.0/16, encapsulation: VXLAN}]"), "", "calico-ebpf"},
		{"ebpf beside who knows", "", installation("linuxDataplane: BPF\nipPools: [{cidr: 10.0.0.0/16, encapsulation: VXLAN}]"), "kube-proxy-unsaid", "calico-ebpf"},
		{"ebpf dsr", "", installation("linuxDataplane: BPF\nkubeProxyManagement: Enabled\nipPools: [{cidr: 10.0.0.0/16, encapsulation: VXLAN}]") + felixConfiguration("{bpfExternalServiceMode: DSR}"), "dsr-scope", "calico-ebpf-dsr"},
		{"dsr without ebpf", "", installation("ipPools: [{cidr: 10.0.0.0/16, encapsulation: VXLAN}]") + felixConfiguration("{bpfExternalServiceMode: DSR}"), "bpf-off", "calico-vxlan"},
		{"two dataplanes", "", installation("ipPools: [{cidr: 10.0.0.0/16, encapsulation: VXLAN}]") + felixConfiguration("{bpfEnabled: true}"), "dataplane-disagree", "calico-vxlan"},
		{"bootstrap", "", installation("bpfNetworkBootstrap: Enabled\nipPools: [{cidr: 10.0.0.0/16, encapsulation: VXLAN}]"), "bootstrap", "calico-vxlan"},
		{"manifests, ebpf", "", felixConfiguration("{bpfEnabled: true}") + ipPool("{cidr: 10.0.0.0/16, vxlanMode: Always}"), "kube-proxy-unsaid", "calico-ebpf"},
		{"manifests, ipip", "", ipPool("{cidr: 10.0.0.0/16, ipipMode: Always}"), "", "calico-ipip"},
		{"both", "", ipPool("{cidr: 10.0.0.0/16, ipipMode: Always, vxlanMode: CrossSubnet}"), "both-encapsulations", "calico-ipip"},
		{"manifest", "", calicoNode("CALICO_IPV4POOL_IPIP", "Always", "CALICO_IPV4POOL_VXLAN", "Never", "FELIX_IPV6SUPPORT", "false"), "", "calico-ipip"},
		{"manifest, vxlan", "", calicoNode("CALICO_IPV4POOL_IPIP", "Never", "CALICO_IPV4POOL_VXLAN", "Always", "FELIX_BPFEXTERNALSERVICEMODE", "DSR", "FELIX_NOSUCH", "1"), "bpf-off", "calico-vxlan"},
		{"manifest, and its pool", "", calicoNode("CALICO_IPV4POOL_IPIP", "Always") + ipPool("{cidr: 10.0.0.0/16, vxlanMode: Always}"), "", "calico-vxlan"},
		{"wireguard", "", ipPool("{cidr: 10.0.0.0/16}") + felixConfiguration("{wireguardEnabled: true}"), "encrypted", ""},
		{"unknown", "", installation("linuxDataplan: BPF\nipPools: [{cidr: 10.0.0.0/16, encapsulation: VXLAN, natOutgoin: Enabled}]"), "unknown-key unknown-key", "calico-vxlan"},
		{"rke2", "rke2-calico", "installation: {enabled: true}", "checksum-software", "calico-vxlan"},
		{"rke2 without", "rke2-calico", "felixConfiguration: {featureDetectOverride: ChecksumOffloadBroken=false}", "", "calico-vxlan"},
	} {
		t.Run(c.name, c.run)
	}
}

func TestOthers(t *testing.T) {
	helm := func(name, values string) string {
		return "---\napiVersion: helm.cattle.io/v1\nkind: HelmChartConfig\nmetadata: {name: " + name + "}\nspec:\n  valuesContent: |-\n    " +
			strings.ReplaceAll(strings.TrimSpace(values), "\n", "\n    ") + "\n"
	}
	for _, c := range []judged{
		{"rke2", "", "cni: canal\n", "", "canal"},
		{"rke2 by default", "rke2", "write-kubeconfig-mode: \"0644\"\n", "", "canal"},
		{"rke2 canal, no proxy", "rke2", "disable-kube-proxy: true\n", "no-service-engine", "canal"},
		{"rke2 values of another", "", "cni: canal\n" + helm("rke2-cilium", full), "chart-of-another", "canal"},
		{"rke2 cilium beside kube-proxy", "", "cni: cilium\ncluster-cidr: 10.0.0.0/8\n" + helm("rke2-cilium", full+masq+"cni: {chainingMode: none}"), "kube-proxy-beside", "cilium-native"},
		{"rke2 cilium without an api server", "", "cni: cilium\ncluster-cidr: 10.0.0.0/8\ndisable-kube-proxy: true\n" + helm("rke2-cilium", full+masq+"cni: {chainingMode: none}"), "api-server", "cilium-native"},
		{"rke2 cilium by default", "", "cni: cilium\ndisable-kube-proxy: true\n", "no-service-engine host-routing-default", "cilium-vxlan"},
		{"rke2 beside bare values", "rke2-cilium", "cni: cilium\ndisable-kube-proxy: true\n---\nk8sServiceHost: 127.0.0.1\ncni: {chainingMode: none}\nipv4NativeRoutingCIDR: 10.42.0.0/16\n" + strings.Replace(full, "ipv4NativeRoutingCIDR: 10.0.0.0/8\n", masq, 1), "", "cilium-native"},
		{"rke2 told by its neighbour", "", helm("rke2-cilium", full+masq+"k8sServiceHost: 127.0.0.1\ncni: {chainingMode: none}") + "---\ncni: cilium\n---\ncluster-cidr: 10.0.0.0/8\ndisable-kube-proxy: true\n", "", "cilium-native"},
		{"bare values on rke2", "", full + masq + "k8sServiceHost: 127.0.0.1\n---\ncni: cilium\ncluster-cidr: 10.0.0.0/8\ndisable-kube-proxy: true\n", "host-routing-legacy", "cilium-native-legacy"},
		{"values that begin with cni", "", "cni: {chainingMode: none}\n" + full + masq, "kube-proxy-unsaid", "cilium-native"},
		{"rke2 multus", "", "cni: [multus, calico]\n", "checksum-software", "calico-vxlan"},
		{"rke2 calico ebpf", "", "cni: calico\n" + helm("rke2-calico", "installation: {calicoNetwork: {linuxDataplane: BPF, kubeProxyManagement: Enabled}}\n"), "bpf-kube-proxy checksum-software", "calico-ebpf"},
		{"rke2 other cidr", "", "cni: cilium\ncluster-cidr: 10.0.0.0/7,fd00::/56\ndisable-kube-proxy: true\n" + helm("rke2-cilium", full+masq+"cni: {chainingMode: none}\nk8sServiceHost: 127.0.0.1"), "pod-cidr", "cilium-native"},
		{"rke2 ipvs", "rke2", "kube-proxy-arg: [proxy-mode=ipvs]\n", "proxy-deprecated", "canal"},
		{"rke2 with k3s keys", "rke2", "flannel-backend: none\n", "moved-key", "canal"},
		{"canal", "rke2-canal", "flannel: {backend: host-gw}\ncalico: {vethMTU: 1500}", "moved-key", "canal"},
		{"canal mtu", "rke2-canal", "calico: {vethuMTU: 1500}", "mtu-too-large", "canal"},
		{"k3s", "", "flannel-backend: wireguard-native\n", "encrypted", "flannel-wireguard"},
		{"k3s with cilium", "", "flannel-backend: vxlan\n---\n" + full + masq, "two-cnis kube-proxy-beside pod-cidr", "cilium-native"},
		{"k3s with its cidr", "", "flannel-backend: none\ndisable-kube-proxy: true\n---\nipam: {mode: kubernetes}\nk8sServiceHost: 192.0.2.1\n" + full + masq, "", "cilium-native"},
		{"kind alone", "", "kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\nnodes: [{role: control-plane}]\nnetworking: {kubeProxyMode: nftables}\n", "proxy-nodeports", ""},
		{"kind with two", "", "kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\nnetworking: {kubeProxyMode: none, podSubnet: 10.0.0.0/8, disableDefaultCni: true}\n---\n" + full + masq + "k8sServiceHost: kind-control-plane", "two-cnis unknown-key", "cilium-native"},
		{"flannel chart", "", "flannel: {backend: vxlan}", "", "flannel-vxlan"},
		{"flannel rke2", "rke2-flannel", "flannel: {mtu: 1500}", "tunnel-number", "flannel-vxlan"},
		{"flannel host-gw", "", "flannel: {backend: host-gw, vni: 5}", "backend-unused", "flannel-host-gw"},
		{"flannel direct", "", "Network: 10.0.0.0/16\nBackend: {Type: vxlan, DirectRouting: true}", "cross-subnet", "flannel-vxlan"},
		{"flannel slip", "", "Network: 10.0.0.0/16\nBackend: {Type: vlxan, Prt: 1}", "flannel-backend unknown-key", ""},
		{"flannel ipip", "", "Backend: {Type: ipip}", "", ""},
		{"flannel config map", "", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kube-flannel-cfg}\ndata:\n  net-conf.json: |\n    {\"Network\": \"10.0.0.0/16\", \"Backend\": {\"Type\": \"host-gw\"}}\n", "", "flannel-host-gw"},
		{"canal config map", "", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: canal-config}\ndata:\n  veth_mtu: \"0\"\n  net-conf.json: |\n    {\"Network\": \"10.0.0.0/16\", \"Backend\": {\"Type\": \"vxlan\"}}\n", "", "canal"},
		{"kube-proxy", "kube-proxy", "mode: iptables\nclusterCIDR: 10.0.0.0/16\nipvs: {strictARP: true, scheduler: \"\"}", "proxy-mode-unused", ""},
		{"kube-proxy nftables", "kube-proxy", "mode: nftables\niptables: {masqueradeAll: true}\ndetectLocalMode: NodeCIDR", "proxy-mode-unused proxy-nodeports", ""},
		{"kube-proxy ipvs", "kube-proxy", "mode: ipvs\nclusterCIDR: 10.0.0.0/16\nipvs: {strictARP: true}\niptables: {masqueradeAll: true, localhostNodePorts: true}", "proxy-deprecated proxy-mode-unused", ""},
		{"kube-proxy by nobody", "kube-proxy", "mode: ebpf\nstrictARP: true", "proxy-mode moved-key proxy-no-local", ""},
		{"kubeadm", "", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kube-proxy}\ndata:\n  config.conf: |-\n    apiVersion: kubeproxy.config.k8s.io/v1alpha1\n    kind: KubeProxyConfiguration\n    mode: ipvs\n    clusterCIDR: 10.0.0.0/16\n    nftables: {masqueradeAll: false, syncPeriod: 0s}\n", "proxy-deprecated", ""},
		{"limits", "", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: iperf3}\nspec: {template: {spec: {containers: [{name: a, resources: {limits: {cpu: \"2\"}}}, {name: b}]}}}", "cpu-limit", ""},
	} {
		t.Run(c.name, c.run)
	}
}

// TestFindingsNameTheLine follows values through a HelmChartConfig to the line of the file.
func TestFindingsNameTheLine(t *testing.T) {
	r, err := Check([]Input{example(t, "rke2-article.yaml")}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(example(t, "rke2-article.yaml").Text, "\n")
	named := 0
	for _, f := range r.Findings {
		_, number, found := strings.Cut(f.Where, "yaml:")
		if !found {
			continue
		}
		named++
		n, err := strconv.Atoi(number)
		if err != nil {
			t.Fatal(err)
		}
		key, _, _ := strings.Cut(strings.TrimSpace(lines[n-1]), ":")
		if !strings.Contains(f.Saw, key) && f.Rule != "host-routing-legacy" {
			t.Errorf("%s names line %d, which is %q", f.Saw, n, lines[n-1])
		}
	}
	if named < 6 {
		t.Errorf("%d findings name a line, want 6", named)
	}
}

// TestEveryRuleIsUsed reads the package's own source: every id that is found has a rule, and every rule is found.
func TestEveryRuleIsUsed(t *testing.T) {
	used := map[string]bool{}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		p, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(p, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if sel, ok := n.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "find" && len(n.Args) > 2 {
					used[literal(n.Args[0])] = true
				}
			case *ast.CompositeLit: // moved keys name their rule second
				if n.Type == nil && len(n.Elts) == 3 {
					used[literal(n.Elts[1])] = true
				}
			}
			return true
		})
	}
	for _, r := range rules {
		if !used[r.ID] {
			t.Errorf("nothing finds %s", r.ID)
		}
	}
	ids := map[string]bool{}
	for _, r := range rules {
		if ids[r.ID] {
			t.Errorf("rule %s is there twice", r.ID)
		}
		ids[r.ID] = true
		for _, text := range []string{r.Title, r.Why, r.Do, r.Source} {
			if text == "" || strings.HasSuffix(text, ".") || unicode.IsSpace(rune(text[0])) {
				t.Errorf("rule %s: %q is no sentence without its end", r.ID, text)
			}
		}
	}
	for id := range used {
		if strings.Contains(id, "-") && !strings.ContainsAny(id, " /:.") && !ids[id] && id != "host-gw" {
			t.Errorf("%s is found and is no rule", id)
		}
	}
}

func literal(e ast.Expr) string {
	l, ok := e.(*ast.BasicLit)
	if !ok || l.Kind != token.STRING {
		return ""
	}
	text, _ := strconv.Unquote(l.Value)
	return text
}

// TestProfilesExist: the names that are said are in the catalogue.
func TestProfilesExist(t *testing.T) {
	names := []string{"canal", "cilium-netkit", "cilium-vxlan", "cilium-native", "cilium-native-legacy", "cilium-native-dsr",
		"calico-ebpf", "calico-ebpf-dsr", "calico-nftables", "calico-underlay", "calico-ipip", "calico-vxlan"}
	for _, b := range backends {
		if b.profile != "" {
			names = append(names, b.profile)
		}
	}
	for _, n := range names {
		if _, ok := profile.Lookup(n); !ok {
			t.Errorf("%s is no profile", n)
		}
	}
}

// TestDefaultsAreKnownKeys: a default of a key that the schema does not have would be shown and be a lie.
func TestDefaultsAreKnownKeys(t *testing.T) {
	for _, c := range []struct {
		v *values
		s schema
	}{
		{newCilium("rke2-cilium"), ciliumSchema}, {newInstallation("x"), installationSchema}, {newFelix(), felixSchema},
		{newFlannel("rke2-flannel"), flannelSchema}, {newNetconf(), netconfSchema}, {newCanal(), canalSchema}, {newProxy(), proxySchema}, {newKind(), kindSchema},
	} {
		for path := range c.v.defaults {
			if part, _, unknown := c.s.unknown(path); unknown {
				t.Errorf("%s has a default, and %s is no key of %s", path, part, c.s.of)
			}
		}
	}
	for option, path := range agentOptions {
		if part, _, unknown := ciliumSchema.unknown(path); unknown {
			t.Errorf("%s sets %s, and %s is no key of the chart", option, path, part)
		}
	}
}
