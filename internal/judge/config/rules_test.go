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
)

// judged is what a table row expects of Check.
type judged struct {
	name, yaml string
	// rules are the ids of the findings; profile is the one that the configuration amounts to, "" for none.
	rules, profile string
}

func (c judged) run(t *testing.T) {
	t.Helper()
	r, err := Check([]Input{{Name: c.name + ".yaml", Text: c.yaml}}, Known{})
	if err != nil {
		t.Fatal(err)
	}
	c.compare(t, r)
}

func (c judged) compare(t *testing.T, r Report) {
	t.Helper()
	var got []string
	for _, f := range r.Findings {
		got = append(got, f.ID)
	}
	want := strings.Fields(c.rules)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
		for _, f := range r.Findings {
			t.Logf("%s: %s", f.ID, f.Text())
		}
	}
	profile := ""
	if len(r.Measured) > 0 {
		profile = r.Measured[0].Profile
	}
	if profile != c.profile {
		t.Errorf("amounts to %q, want %q", profile, c.profile)
	}
}

// agentConfig is a ConfigMap of an agent with native routing, eBPF host routing and no findings, with options over it.
func agentConfig(options string) string {
	all := map[string]string{
		"routing-mode": "native", "auto-direct-node-routes": "true", "ipv4-native-routing-cidr": "10.0.0.0/8", "ipam": "kubernetes",
		"kube-proxy-replacement": "true", "enable-bpf-masquerade": "true",
	}
	var text strings.Builder
	text.WriteString("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cilium-config}\ndata:\n")
	for _, o := range strings.Fields(options) {
		key, value, _ := strings.Cut(o, "=")
		all[key] = value
	}
	for _, key := range slices.Sorted(func(yield func(string) bool) {
		for k := range all {
			if !yield(k) {
				return
			}
		}
	}) {
		if all[key] != "" {
			text.WriteString("  " + key + ": \"" + all[key] + "\"\n")
		}
	}
	return text.String()
}

const tunnel = "routing-mode=tunnel auto-direct-node-routes= ipv4-native-routing-cidr= "

func TestCilium(t *testing.T) {
	for _, c := range []judged{
		{"native", "", "", "cilium-native"},
		{"iptables masquerade", "enable-bpf-masquerade=false", "host-routing-legacy", "cilium-native-legacy"},
		{"no masquerade", "enable-bpf-masquerade=false enable-ipv4-masquerade=false", "", "cilium-native"},
		{"IPv6 masquerade", "enable-bpf-masquerade=false enable-ipv4-masquerade=false enable-ipv6=true ipv6-native-routing-cidr=fd00::/48", "host-routing-legacy", "cilium-native-legacy"},
		{"legacy asked for", "enable-host-legacy-routing=true", "", "cilium-native-legacy"},
		{"legacy refused, and in force", "enable-host-legacy-routing=false enable-bpf-masquerade=false", "host-routing-legacy", "cilium-native-legacy"},
		{"IPsec", "enable-ipsec=true", "", ""},
		{"WireGuard", "enable-wireguard=true encrypt-node=true", "node-encryption", ""},
		{"node encryption with IPsec", "enable-ipsec=true encrypt-node=true", "not-used", ""},
		{"kube-proxy", "kube-proxy-replacement=false enable-bpf-masquerade=false", "", "cilium-native-legacy"},
		{"eBPF masquerade with kube-proxy", "kube-proxy-replacement=false", "host-routing-legacy", "cilium-native-legacy"},
		{"vxlan", tunnel, "", "cilium-vxlan"},
		{"no routes", "auto-direct-node-routes=false", "native-routes", "cilium-native"},
		{"ENI", "auto-direct-node-routes=false ipam=eni enable-endpoint-routes=true enable-ipv4-masquerade=false enable-bpf-masquerade=false ipv4-native-routing-cidr=", "", "cilium-native"},
		{"aws-cni chaining", "auto-direct-node-routes=false cni-chaining-mode=aws-cni enable-host-legacy-routing=true", "", ""},
		{"portmap chaining", "cni-chaining-mode=portmap", "", "cilium-native"},
		{"direct routes over a tunnel", tunnel + "auto-direct-node-routes=true", "direct-routes-tunnel", "cilium-vxlan"},
		{"CIDR over a tunnel", tunnel + "ipv4-native-routing-cidr=10.0.0.0/8", "not-used", "cilium-vxlan"},
		{"DSR", "bpf-lb-mode=dsr", "dsr-scope", "cilium-native-dsr"},
		{"hybrid", "bpf-lb-mode=hybrid", "dsr-scope", "cilium-native-dsr"},
		{"DSR by Geneve", "bpf-lb-mode=dsr bpf-lb-dsr-dispatch=geneve tunnel-protocol=geneve", "dsr-scope", "cilium-native-dsr"},
		{"DSR by Geneve over VXLAN", "bpf-lb-mode=dsr bpf-lb-dsr-dispatch=geneve", "dsr-refused", "cilium-native-dsr"},
		{"DSR over VXLAN", tunnel + "bpf-lb-mode=dsr", "dsr-refused", "cilium-vxlan"},
		{"DSR by option over Geneve", tunnel + "tunnel-protocol=geneve bpf-lb-mode=dsr", "dsr-refused", "cilium-vxlan"},
		{"load balancer with kube-proxy", "kube-proxy-replacement=false enable-bpf-masquerade=false bpf-lb-mode=dsr bpf-lb-algorithm=maglev bpf-lb-acceleration=native", "needs-kpr needs-kpr needs-kpr", "cilium-native-legacy"},
		{"Maglev and XDP", "bpf-lb-algorithm=maglev bpf-lb-acceleration=best-effort", "maglev-scope xdp-device", "cilium-native"},
		{"netkit", "datapath-mode=netkit", "", "cilium-netkit"},
		{"netkit, legacy", "datapath-mode=netkit-l2 enable-bpf-masquerade=false", "netkit host-routing-legacy", ""},
		{"netkit where it works", "datapath-mode=auto", "", ""},
		{"BBR", "enable-bandwidth-manager=true enable-bbr=true", "", "cilium-native"},
		{"BBR, legacy", "enable-bbr=true enable-host-legacy-routing=true", "bbr", "cilium-native-legacy"},
		{"BIG TCP", "enable-ipv4-big-tcp=true", "", "cilium-native"},
		{"BIG TCP, legacy", "enable-ipv4-big-tcp=true enable-ipv6-big-tcp=true enable-host-legacy-routing=true", "big-tcp big-tcp", "cilium-native-legacy"},
		{"BIG TCP, IPsec", "enable-ipv4-big-tcp=true enable-ipsec=true", "big-tcp", ""},
		{"BIG TCP over a tunnel", tunnel + "enable-ipv4-big-tcp=true", "big-tcp-tunnel", "cilium-vxlan"},
		{"BIG TCP over a tunnel, 1.19", tunnel + "enable-ipv4-big-tcp=true enable-tunnel-big-tcp=true", "", "cilium-vxlan"},
		{"no conntrack", "install-no-conntrack-iptables-rules=true", "", "cilium-native"},
		{"no conntrack, iptables", "install-no-conntrack-iptables-rules=true enable-bpf-masquerade=false", "no-conntrack-refused host-routing-legacy", "cilium-native-legacy"},
		{"socket LB as the chart writes it", "bpf-lb-sock=false", "", "cilium-native"},
		{"endpoint routes", "enable-endpoint-routes=true enable-host-legacy-routing=true", "endpoint-routes-legacy", "cilium-native-legacy"},
		{"a pod's MTU", "mtu=1450", "mtu-is-underlay", "cilium-native"},
		{"jumbo", "mtu=9000", "", "cilium-native"},
	} {
		c.yaml = agentConfig(c.yaml)
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

const (
	vxlanPool = "\nipPools: [{cidr: 10.0.0.0/16, encapsulation: VXLAN}]"
	noProxy   = "---\ndisable-kube-proxy: true\ncni: none\n"
	kindProxy = "---\nkind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\nnetworking: {disableDefaultCNI: true, kubeProxyMode: "
	endpoint  = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: kubernetes-services-endpoint}\ndata: {KUBERNETES_SERVICE_HOST: 192.0.2.1}\n"
)

func TestCalico(t *testing.T) {
	eks := func(cni string) string {
		return "apiVersion: operator.tigera.io/v1\nkind: Installation\nmetadata: {name: default}\nspec: {kubernetesProvider: EKS, cni: {type: " + cni + "}}\n"
	}
	for _, c := range []judged{
		{"defaults", installation("mtu: 1440"), "", "calico-ipip"},
		{"vxlan", installation("bgp: Disabled" + vxlanPool), "", "calico-vxlan"},
		{"none", installation("ipPools: [{cidr: 10.0.0.0/16, encapsulation: None}]"), "", "calico-underlay"},
		{"EKS with Calico's CNI", eks("Calico"), "", "calico-vxlan"},
		{"EKS with Amazon's CNI", eks("AmazonVPC"), "", ""},
		{"EKS", "apiVersion: operator.tigera.io/v1\nkind: Installation\nmetadata: {name: default}\nspec: {kubernetesProvider: EKS}\n", "", ""},
		{"IPIP without BGP", installation("bgp: Disabled\nipPools: [{cidr: 10.0.0.0/16}]"), "bgp-needed", "calico-ipip"},
		{"Felix routes", installation("bgp: Disabled\nclusterRoutingMode: Felix\nipPools: [{cidr: 10.0.0.0/16, encapsulation: IPIP}]"), "", "calico-ipip"},
		{"cross subnet", installation("ipPools: [{cidr: 10.0.0.0/16, encapsulation: VXLANCrossSubnet}]"), "cross-subnet", "calico-vxlan"},
		{"mtu", installation("mtu: 1500" + vxlanPool), "mtu-too-large", "calico-vxlan"},
		{"mtu of jumbo", installation("mtu: 8950" + vxlanPool), "", "calico-vxlan"},
		{"nftables", installation("linuxDataplane: Nftables" + vxlanPool), "", "calico-nftables"},
		{"nftables beside iptables", installation("linuxDataplane: Nftables"+vxlanPool) + kindProxy + "iptables}\n", "two-rule-engines", "calico-nftables"},
		{"nftables beside nftables", installation("linuxDataplane: Nftables"+vxlanPool) + kindProxy + "nftables}\n", "proxy-nodeports", "calico-nftables"},
		{"ebpf", installation("linuxDataplane: BPF\nkubeProxyManagement: Enabled" + vxlanPool), "", "calico-ebpf"},
		{"ebpf beside kube-proxy", installation("linuxDataplane: BPF"+vxlanPool) + kindProxy + "iptables}\n", "kube-proxy-beside", "calico-ebpf"},
		{"ebpf without kube-proxy", installation("linuxDataplane: BPF"+vxlanPool) + noProxy, "api-server", "calico-ebpf"},
		{"ebpf with an endpoint", installation("linuxDataplane: BPF"+vxlanPool) + noProxy + endpoint, "", "calico-ebpf"},
		{"ebpf dsr", installation("linuxDataplane: BPF"+vxlanPool) + felixConfiguration("{bpfExternalServiceMode: DSR}"), "dsr-scope", "calico-ebpf-dsr"},
		{"ebpf between subnets alone", installation("linuxDataplane: BPF\nkubeProxyManagement: Enabled" + strings.Replace(vxlanPool, "VXLAN", "VXLANCrossSubnet", 1)), "cross-subnet", "calico-ebpf-underlay"},
		{"netkit", installation("linuxDataplane: BPF\nkubeProxyManagement: Enabled\nlinuxPodInterfaceType: Netkit" + vxlanPool), "netkit-fallback", "calico-ebpf"},
		{"netkit and its own hook", installation("linuxDataplane: BPF\nkubeProxyManagement: Enabled\nlinuxPodInterfaceType: Netkit"+vxlanPool) + felixConfiguration("{bpfAttachType: Netkit}"), "netkit-fallback", "calico-ebpf"},
		{"netkit and tcx", installation("linuxDataplane: BPF\nkubeProxyManagement: Enabled\nlinuxPodInterfaceType: Netkit"+vxlanPool) + felixConfiguration("{bpfAttachType: TCX}"), "netkit-fallback netkit-attach", "calico-ebpf"},
		{"netkit of iptables", installation("bgp: Disabled\nlinuxPodInterfaceType: Netkit" + vxlanPool), "netkit-fallback", "calico-vxlan"},
		{"veth by name", installation("bgp: Disabled\nlinuxPodInterfaceType: Veth"+vxlanPool) + felixConfiguration("{bpfAttachType: Netkit}"), "", "calico-vxlan"},
		{"no such device", installation("bgp: Disabled\nlinuxPodInterfaceType: netkit" + vxlanPool), "agent-refuses netkit-fallback", "calico-vxlan"},
		{"dsr without ebpf", installation("bgp: Disabled"+vxlanPool) + felixConfiguration("{bpfExternalServiceMode: DSR}"), "not-used", "calico-vxlan"},
		{"two dataplanes", installation("bgp: Disabled"+vxlanPool) + felixConfiguration("{bpfEnabled: true}"), "dataplane-disagree", "calico-vxlan"},
		{"bootstrap", installation("bpfNetworkBootstrap: Enabled" + vxlanPool), "bootstrap", "calico-vxlan"},
		{"manifests, ebpf", felixConfiguration("{bpfEnabled: true}") + ipPool("{cidr: 10.0.0.0/16, vxlanMode: Always}"), "", "calico-ebpf"},
		{"manifests, ipip", ipPool("{cidr: 10.0.0.0/16, ipipMode: Always}"), "", "calico-ipip"},
		{"both", ipPool("{cidr: 10.0.0.0/16, ipipMode: Always, vxlanMode: CrossSubnet}"), "both-encapsulations", "calico-ipip"},
		{"manifest", calicoNode("CALICO_IPV4POOL_IPIP", "Always", "CALICO_IPV4POOL_VXLAN", "Never", "FELIX_IPV6SUPPORT", "false"), "", "calico-ipip"},
		{"manifest, policies alone", calicoNode("CALICO_NETWORKING_BACKEND", "none"), "", "calico-underlay"},
		{"manifest, vxlan", calicoNode("CALICO_IPV4POOL_IPIP", "Never", "CALICO_IPV4POOL_VXLAN", "Always", "FELIX_BPFEXTERNALSERVICEMODE", "DSR"), "not-used", "calico-vxlan"},
		{"manifest, and its pool", calicoNode("CALICO_IPV4POOL_IPIP", "Always") + ipPool("{cidr: 10.0.0.0/16, vxlanMode: Always}"), "", "calico-vxlan"},
		{"wireguard", ipPool("{cidr: 10.0.0.0/16}") + felixConfiguration("{wireguardEnabled: true}"), "", ""},
		{"checksums", installation("bgp: Disabled"+vxlanPool) + felixConfiguration("{featureDetectOverride: ChecksumOffloadBroken=true}"), "checksum-software", "calico-vxlan"},
	} {
		t.Run(c.name, c.run)
	}
}

func TestOthers(t *testing.T) {
	helm := func(name string) string {
		return "---\napiVersion: helm.cattle.io/v1\nkind: HelmChartConfig\nmetadata: {name: " + name + "}\nspec:\n  valuesContent: |-\n    a: 1\n"
	}
	kubeProxy := "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n"
	cilium := "\n---\n" + agentConfig("")
	for _, c := range []judged{
		{"rke2", "cni: canal\n", "", ""},
		{"rke2 values of another", "cni: canal\n" + helm("rke2-cilium"), "chart-of-another", ""},
		{"rke2 cilium beside kube-proxy", "cni: cilium\ncluster-cidr: 10.0.0.0/8" + cilium, "kube-proxy-beside", "cilium-native"},
		{"rke2 cilium", "cni: cilium\ncluster-cidr: 10.0.0.0/8\ndisable-kube-proxy: true" + cilium, "", "cilium-native"},
		{"rke2 other CIDR", "cni: cilium\ncluster-cidr: 10.0.0.0/7,fd00::/56\ndisable-kube-proxy: true" + cilium, "pod-cidr", "cilium-native"},
		{"rke2 ipvs", "cni: canal\nkube-proxy-arg: [proxy-mode=ipvs]\n", "proxy-deprecated", ""},
		{"k3s", "flannel-backend: wireguard-native\n", "", "flannel-wireguard"},
		{"k3s with cilium", "flannel-backend: vxlan\ndisable-kube-proxy: true\ncluster-cidr: 10.0.0.0/8" + cilium, "two-cnis", "cilium-native"},
		{"kind", "kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\nnodes: [{role: control-plane}, {role: worker}]\nnetworking: {kubeProxyMode: nftables}\n", "proxy-nodeports one-machine", "kindnetd"},
		{"kind with two", "kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\nnetworking: {kubeProxyMode: none, podSubnet: 10.0.0.0/8}" + cilium, "two-cnis", "cilium-native"},
		{"flannel host-gw", "Network: 10.0.0.0/16\nBackend: {Type: host-gw, VNI: 5}", "not-used", "flannel-host-gw"},
		{"flannel direct", "Network: 10.0.0.0/16\nBackend: {Type: vxlan, DirectRouting: true}", "cross-subnet", "flannel-vxlan"},
		{"flannel slip", "Network: 10.0.0.0/16\nBackend: {Type: vlxan}", "flannel-backend", ""},
		{"flannel extension", "Backend: {Type: extension, SubnetAddCommand: x}", "", ""},
		{"flannel without Services", "Backend: {Type: vxlan}\n" + noProxy, "no-service-engine", "flannel-vxlan"},
		{"flannel ConfigMap", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kube-flannel-cfg}\ndata:\n  net-conf.json: |\n    {\"Network\": \"10.0.0.0/16\", \"Backend\": {\"Type\": \"host-gw\"}}\n", "", "flannel-host-gw"},
		{"canal ConfigMap", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: canal-config}\ndata:\n  veth_mtu: \"1500\"\n  net-conf.json: |\n    {\"Network\": \"10.0.0.0/16\", \"Backend\": {\"Type\": \"vxlan\"}}\n", "mtu-too-large", "canal"},
		{"kube-proxy", kubeProxy + "mode: iptables\nclusterCIDR: 10.0.0.0/16\nipvs: {strictARP: true, scheduler: \"\"}", "not-used", ""},
		{"kube-proxy nftables", kubeProxy + "mode: nftables\niptables: {masqueradeAll: true}\ndetectLocalMode: NodeCIDR", "not-used proxy-nodeports", ""},
		{"kube-proxy ipvs", kubeProxy + "mode: ipvs\nclusterCIDR: 10.0.0.0/16\nipvs: {strictARP: true}\niptables: {masqueradeAll: true, localhostNodePorts: true}", "proxy-deprecated not-used", ""},
		{"kube-proxy slip", kubeProxy + "mode: ebpf", "proxy-mode proxy-no-local", ""},
		{"kubeadm", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kube-proxy}\ndata:\n  config.conf: |-\n    apiVersion: kubeproxy.config.k8s.io/v1alpha1\n    kind: KubeProxyConfiguration\n    mode: ipvs\n    clusterCIDR: 10.0.0.0/16\n    nftables: {masqueradeAll: false, syncPeriod: 0s}\n", "proxy-deprecated", ""},
		{"conflist", "{\"cniVersion\": \"1.0.0\", \"plugins\": [{\"type\": \"ptp\"}, {\"type\": \"portmap\"}]}", "", "ptp"},
		{"network attachment", "apiVersion: k8s.cni.cncf.io/v1\nkind: NetworkAttachmentDefinition\nmetadata: {name: n}\nspec: {config: '{\"cniVersion\": \"1.0.0\", \"type\": \"sriov\"}'}", "", "sriov"},
		{"limits", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: iperf3}\nspec: {template: {spec: {containers: [{name: a, resources: {limits: {cpu: \"2\"}}}, {name: b}]}}}", "cpu-limit", ""},
	} {
		t.Run(c.name, c.run)
	}
}

// TestEveryRuleIsUsed reads the package's own source: every id that is found has a rule, and every rule is found.
func TestEveryRuleIsUsed(t *testing.T) {
	used := map[string]bool{}
	profiles := map[string]bool{}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		p, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(p, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if sel, ok := call.Fun.(*ast.SelectorExpr); ok && len(call.Args) > 0 {
				if text := literal(call.Args[0]); sel.Sel.Name == "addFinding" && text != "" {
					used[text] = true
				} else if sel.Sel.Name == "addMeasured" && text != "" {
					profiles[text] = true
				}
			}
			return true
		})
	}
	for _, r := range refusals {
		used[r.rule] = true
	}
	if n := strings.Count(page, "\n### "); n != len(Rules()) {
		t.Errorf("page.md has %d rules, of which %d can be read", n, len(Rules()))
	}
	ids := map[string]bool{}
	for _, r := range Rules() {
		if !used[r.ID] {
			t.Errorf("no code finds %s", r.ID)
		}
		if ids[r.ID] {
			t.Errorf("rule %s is listed twice", r.ID)
		}
		ids[r.ID] = true
		for _, text := range []string{r.Title, r.Why, r.Do, r.Source} {
			if text == "" || r.Severity.Rank() < 0 || strings.HasSuffix(text, ".") || unicode.IsSpace(rune(text[0])) {
				t.Errorf("rule %s: %q is not a sentence without its full stop", r.ID, text)
			}
		}
	}
	for id := range used {
		if !ids[id] {
			t.Errorf("%s is found and is not a rule", id)
		}
	}
	for _, b := range backends {
		if b.profile != "" {
			profiles[b.profile] = true
		}
	}
	for _, name := range []string{"calico-ebpf", "calico-ebpf-dsr", "calico-nftables", "calico-underlay", "calico-ipip", "calico-vxlan"} {
		profiles[name] = true
	}
	for name := range profiles {
		if !isProfile(name) {
			t.Errorf("%s is not a profile", name)
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
