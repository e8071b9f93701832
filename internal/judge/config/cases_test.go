package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/plan/position"
	"github.com/cnibench/cnibench/internal/profile"
)

// TestFiles judges configurations as people publish them.
func TestFiles(t *testing.T) {
	for _, c := range []struct {
		file  string
		known Known
		// rules are those found, profile is what it amounts to; says are texts of settings, documents and findings.
		rules, profile string
		says           []string
		notJudged      bool
	}{
		{"cilium-1.10-dsr.yaml", Known{}, "dsr-scope", "cilium-native-dsr", []string{"routing-mode native", "version 1.11 or older", "host routing eBPF"}, false},
		{"cilium-1.10-dsr.yaml", Known{Version: "1.20"}, "other-version other-version agent-value dsr-refused direct-routes-tunnel", "cilium-vxlan", []string{"since 1.15 it is routing-mode"}, false},
		{"cilium-1.10-dsr.yaml", Known{Version: "v1.8.3"}, "", "", []string{"rules are known for 1.10 to 1.20"}, true},
		{"cilium-1.10-geneve.yaml", Known{}, "host-routing-legacy not-used", "cilium-vxlan", []string{"tunnel-protocol geneve", "the tunnel is geneve", "masquerading iptables"}, false},
		{"talos-patch.yaml", Known{}, "", "", []string{"machine configuration of Talos", "the CNI is none"}, true},
		{"talos-patch.yaml", Known{Chart: small(t)}, "", "", []string{"machine configuration of Talos"}, true},
		{"talos.yaml", Known{}, "", "", []string{"runs no cluster.proxy.disabled: true"}, true},
		{"talos-kubespan.yaml", Known{}, "", "", []string{"machine configuration of Talos"}, true},
		{"flannel-mtu.yaml", Known{}, "cross-subnet", "flannel-vxlan", []string{"pod MTU 1450"}, false},
		{"net-conf-mtu.json", Known{}, "", "flannel-vxlan", []string{"pod MTU 1450"}, false},
		{"net-conf-mtu.json", Known{Underlay: 1400}, "mtu-too-large", "flannel-vxlan", []string{"the underlay has 1400"}, false},
		{"net-conf-mtu.json", Known{Underlay: 9000}, "mtu-is-underlay", "flannel-vxlan", nil, false},
		{"list-installation.yaml", Known{}, "bgp-needed", "calico-ebpf", []string{"Installation default"}, false},
		{"list-pools.yaml", Known{}, "cross-subnet", "calico-vxlan", []string{"IPPool default-ipv4-ippool"}, false},
		{"ippoollist.yaml", Known{}, "cross-subnet", "calico-vxlan", []string{"IPPool default-ipv4-ippool"}, false},
		{"kube-ovn.yaml", Known{}, "", "", []string{"Kube-OVN", "measures the cluster as kube-ovn"}, true},
		{"installation-1440.yaml", Known{}, "", "calico-vxlan", []string{"underlay MTU required 1490"}, false},
		{"installation-1440.yaml", Known{Underlay: 1400}, "mtu-too-large", "calico-vxlan", []string{"50 for VXLAN leave 1350 of the underlay's 1400"}, false},
		{"installation-1440.yaml", Known{Underlay: 1490}, "", "calico-vxlan", nil, false},
		{"cilium-beside-flannel.yaml", Known{}, "two-cnis", "cilium-vxlan", []string{"Cilium and flannel are configured"}, false},
		{"installation-dual-stack.yaml", Known{}, "cross-subnet mtu-too-large", "calico-ebpf-underlay", []string{"encapsulation VXLANCrossSubnet", "70 for VXLAN leave 1430"}, false},
		// What people export, paste and keep in git.
		{"felix-exported.yaml", Known{}, "", "", []string{"dataplane Iptables"}, false},
		{"felix-of-node.yaml", Known{}, "", "", []string{"it is of one node (worker-1)"}, true},
		{"felix-vxlan-mtu.yaml", Known{}, "mtu-too-large", "calico-vxlan", []string{"vxlanMTU: 1500, and 50 for VXLAN leave 1450"}, false},
		{"pools-disabled.yaml", Known{}, "", "calico-vxlan", []string{"pool 10.2.0.0/16 has encapsulation None"}, false},
		{"cilium-status.txt", Known{}, "", "cilium-vxlan", []string{"version 1.17", "host routing eBPF", "kube-proxy-replacement true cilium-status.txt:4"}, false},
		{"cilium-status-native.txt", Known{}, "", "cilium-native-legacy", []string{"version 1.12", "host routing legacy", "masquerading iptables"}, false},
		{"cilium-cli-status.txt", Known{}, "", "", []string{"which components run, and not how"}, true},
		{"calicoctl-node-status.txt", Known{}, "", "", []string{"which BGP peers are up"}, true},
		{"cilium-config-view.txt", Known{}, "dsr-refused", "cilium-vxlan", []string{"output of cilium config view"}, false},
		{"argo-parameters.yaml", Known{}, "masquerade-refused native-cidr", "", []string{"routing-mode native argo-parameters.yaml:11", "version 1.16"}, true},
		{"argo-values-elsewhere.yaml", Known{}, "", "", []string{"further values are elsewhere ($values/cilium.yaml)"}, true},
		{"argo-git.yaml", Known{}, "", "", []string{"the chart in git: charts/cilium"}, true},
		{"argo-no-values.yaml", Known{}, "", "", []string{"it has no values of its own"}, true},
		{"applicationset.yaml", Known{}, "masquerade-refused native-cidr", "", []string{"cilium-VERSION.tgz", "1.15 or later"}, true},
		{"flux-values-from.yaml", Known{}, "masquerade-refused native-cidr", "", []string{"flux-values-from.yaml:17"}, true},
		{"flux-secret-from.yaml", Known{}, "", "", []string{"further values are elsewhere (ConfigMap cilium-values, Secret cilium-secret)"}, true},
		{"helmchart-set.yaml", Known{}, "masquerade-refused masquerade-refused native-cidr", "", []string{"HelmChart cilium"}, true},
		{"helmfile.yaml", Known{}, "masquerade-refused native-cidr", "", []string{"a file that installs chart cilium"}, true},
		{"kustomization.yaml", Known{}, "masquerade-refused masquerade-refused native-cidr", "", []string{"Kustomization"}, true},
		{"fleet.yaml", Known{}, "native-cidr", "", []string{"a file that installs chart cilium"}, true},
		{"kube-router-port.yaml", Known{}, "agent-refuses agent-refuses agent-refuses cross-subnet pods-linear", "kube-router", []string{"not from 1024 to 65535", "there must be as many", "without enable-ipv6: true"}, false},
		{"k3s-wireguard.yaml", Known{}, "flannel-backend", "", []string{"K3s has no backend wireguard"}, false},
		{"k3s-tailscale.yaml", Known{}, "", "", []string{"flannel over Tailscale"}, false},
		// Without their charts, values are judged as far as no other value can change.
		{"values-route-source.yaml", Known{}, "masquerade-refused", "", []string{"chart cilium decides"}, true},
		{"ciliumconfig.yaml", Known{}, "", "", []string{"CiliumConfig cilium", "chart cilium decides", "1.11 or older"}, true},
		{"values-umbrella.yaml", Known{}, "", "", []string{"values of chart cilium"}, true},
		{"values-1.13-wireguard.yaml", Known{}, "", "", []string{"1.14 or older"}, true},
		{"values-1.15-strict.yaml", Known{}, "", "", []string{"values of chart cilium"}, true},
		{"values-mtu-1450.yaml", Known{}, "mtu-is-underlay", "", []string{"a guess; --underlay-mtu 1450"}, true},
		{"values-mtu-1450.yaml", Known{Underlay: 1450}, "", "", nil, true},
		{"values-wireguard-geneve.yaml", Known{Underlay: 1450}, "node-encryption", "", []string{"an MTU of 1355, the NIC 1450"}, true},
		{"values-wireguard-geneve.yaml", Known{Underlay: 1450, Version: "1.18"}, "node-encryption", "", []string{"an MTU of 1370, the NIC 1450"}, true},
	} {
		t.Run(fmt.Sprint(c.file, " ", c.known.Version, c.known.Underlay), func(t *testing.T) {
			r := checkFile(t, c.file, c.known)
			judged{rules: c.rules, profile: c.profile}.compare(t, r)
			if r.Inconclusive() != c.notJudged {
				t.Errorf("not judged: %v, want %v", r.Inconclusive(), c.notJudged)
			}
			saysAll(t, r, c.says...)
		})
	}
}

// TestOneCluster: two objects that a cluster has once and that differ are of two clusters, and are not merged.
func TestOneCluster(t *testing.T) {
	configMap := func(mode string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cilium-config}\ndata: {routing-mode: " + mode + ", ipv4-native-routing-cidr: 10.0.0.0/8, auto-direct-node-routes: \"true\"}\n"
	}
	netConf := func(kind string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kube-flannel-cfg}\ndata:\n  net-conf.json: '{\"Network\": \"10.244.0.0/16\", \"Backend\": {\"Type\": \"" + kind + "\"}}'\n"
	}
	for _, c := range []struct{ text, says string }{
		{configMap("native") + "---\n" + configMap("tunnel"), "in.yaml:6: a second ConfigMap cilium-config, which differs from that of line 1"},
		{netConf("vxlan") + "---\n" + netConf("host-gw"), "a second net-conf.json"},
		{configMap("native") + "---\n" + configMap("native"), ""},
	} {
		_, err := Check([]Input{{Name: "in.yaml", Text: c.text}}, Known{})
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s\nerror %v, want %q", c.text, err, c.says)
		}
	}
	// A second file may be a patch.
	if _, err := Check([]Input{{Name: "base.yaml", Text: configMap("tunnel")}, {Name: "patch.yaml", Text: configMap("native")}}, Known{}); err != nil {
		t.Error(err)
	}
}

func checkFile(t *testing.T, file string, known Known) Report {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "cases", file))
	if err != nil {
		t.Fatal(err)
	}
	r, err := Check([]Input{{Name: file, Text: string(text)}}, known)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func saysAll(t *testing.T, r Report, texts ...string) {
	t.Helper()
	var all []string
	for _, s := range slices.Concat(r.Settings, r.Wire) {
		all = append(all, s.Name+" "+s.Value+" "+s.By)
	}
	text := fmt.Sprint(strings.Join(all, "\n"), r.Documents, r.Findings, r.Measured)
	for _, want := range texts {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}

// release is a chart like that of a version of Cilium: its values have the words of that version.
func release(version string, options map[string]string) *Chart {
	own := map[string]any{}
	for path := range options {
		own = withValue(own, strings.Split(path, ".")[0], "")
	}
	return &Chart{Name: cilium, Version: version, AppVersion: version, Values: own, Render: func(given map[string]any, _ map[string]bool) ([]Rendered, error) {
		text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cilium-config}\ndata:\n  ipam: cluster-pool\n"
		for path, option := range options {
			if v := valueAt(given, path); v != nil {
				if _, isMap := v.(map[string]any); !isMap {
					text += fmt.Sprintf("  %s: %q\n", option, fmt.Sprint(v))
				}
			}
		}
		return []Rendered{{"config.yaml", text}}, nil
	}}
}

// TestChartVersions: values are judged by the rules of their chart's agent.
func TestChartVersions(t *testing.T) {
	old := map[string]string{
		"tunnel": "tunnel", "kubeProxyReplacement": "kube-proxy-replacement", "autoDirectNodeRoutes": "auto-direct-node-routes", "ipv4NativeRoutingCIDR": "ipv4-native-routing-cidr",
		"bpf.masquerade": "enable-bpf-masquerade", "ipv6.enabled": "enable-ipv6", "enableIPv4Masquerade": "enable-ipv4-masquerade", "enableIPv6Masquerade": "enable-ipv6-masquerade",
		"cni.chainingMode": "cni-chaining-mode", "endpointRoutes.enabled": "enable-endpoint-routes", "encryption.enabled": "enable-wireguard", "l7Proxy": "enable-l7-proxy",
		"k8sServiceHost": "k8s-service-host", "k8sServicePort": "k8s-service-port", "encryption.type": "encryption-type",
	}
	newer := map[string]string{
		"routingMode": "routing-mode", "kubeProxyReplacement": "kube-proxy-replacement", "autoDirectNodeRoutes": "auto-direct-node-routes", "ipv4NativeRoutingCIDR": "ipv4-native-routing-cidr",
		"bpf.masquerade": "enable-bpf-masquerade", "k8sServiceHost": "k8s-service-host", "k8sServicePort": "k8s-service-port",
	}
	for _, c := range []struct {
		file           string
		chart          *Chart
		rules, profile string
		says           []string
	}{
		{"values-1.13-ipv6.yaml", release("1.13.5", old), "masquerade-refused native-cidr", "cilium-native", []string{"routing-mode native", "with IPv6 masquerading"}},
		{"values-1.13-wireguard.yaml", release("1.13.5", old), "endpoint-routes-legacy", "", []string{"routing-mode native"}},
		{"values-1.15-strict.yaml", release("1.15.2", newer), "", "cilium-native", []string{"kube-proxy-replacement strict", "host routing eBPF"}},
		{"values-1.15-strict.yaml", release("1.16.0", newer), "agent-value", "cilium-native", []string{"cilium-agent 1.16 knows true, false"}},
	} {
		t.Run(c.file+" "+c.chart.Version, func(t *testing.T) {
			r := checkFile(t, c.file, Known{Chart: c.chart})
			judged{rules: c.rules, profile: c.profile}.compare(t, r)
			saysAll(t, r, c.says...)
		})
	}
}

// TestValuesWithin: values are found in the objects that carry them and under a parent chart's key, and never ignored.
func TestValuesWithin(t *testing.T) {
	carry := map[string]string{
		"the chart's name":   "cilium:\n  bpf: {mascerade: true}\n  routingMode: native\n",
		"an alias":           "network:\n  bpf: {mascerade: true}\n  routingMode: native\n",
		"beside the parent":  "global: {a: b}\nimage: {tag: x}\ncilium:\n  bpf: {mascerade: true}\n  routingMode: native\n",
		"OLM":                "apiVersion: cilium.io/v1alpha1\nkind: CiliumConfig\nmetadata: {name: cilium}\nspec:\n  bpf: {mascerade: true}\n  routingMode: native\n",
		"HelmChart":          "apiVersion: helm.cattle.io/v1\nkind: HelmChart\nmetadata: {name: net}\nspec:\n  chart: cilium\n  valuesContent: |-\n    bpf: {mascerade: true}\n    routingMode: native\n",
		"Flux":               "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: net}\nspec:\n  chart: {spec: {chart: cilium, version: 1.15.x}}\n  values:\n    bpf: {mascerade: true}\n    routingMode: native\n",
		"Flux, by reference": "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: net}\nspec:\n  chartRef: {kind: OCIRepository, name: cilium}\n  values:\n    bpf: {mascerade: true}\n    routingMode: native\n",
		"Argo CD, a set":     "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: net}\nspec:\n  template:\n    spec:\n      sources:\n      - {repoURL: x}\n      - chart: cilium\n        helm:\n          valuesObject:\n            bpf: {mascerade: true}\n            routingMode: native\n",
		"Argo CD":            "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: net}\nspec:\n  source:\n    chart: cilium\n    targetRevision: 1.15.2\n    helm:\n      values: |\n        bpf: {mascerade: true}\n        routingMode: native\n",
		"Cluster API":        "apiVersion: addons.cluster.x-k8s.io/v1alpha1\nkind: HelmChartProxy\nmetadata: {name: net}\nspec:\n  chartName: cilium\n  valuesTemplate: |\n    bpf: {mascerade: true}\n    routingMode: native\n",
	}
	for name, yaml := range carry {
		t.Run(name, func(t *testing.T) {
			r, err := Check([]Input{{Name: "v.yaml", Text: yaml}}, Known{Chart: small(t)})
			if err != nil {
				t.Fatal(err)
			}
			saysAll(t, r, "routing-mode native", `bpf.mascerade changes nothing`, `did you mean "bpf.masquerade"?`)
			if name == "an alias" || strings.Contains(name, "parent") {
				saysAll(t, r, "values of a parent chart: those under ")
			}
			alone, err := Check([]Input{{Name: "v.yaml", Text: yaml}}, Known{})
			if err != nil || !alone.Inconclusive() || len(alone.Needs) != 1 || alone.Needs[0].Name != cilium {
				t.Errorf("without the chart: %v %+v", err, alone)
			}
		})
	}
}

// TestVersionOfTheChart: the chart that values need is of the version that they name or show, and not the newest.
func TestVersionOfTheChart(t *testing.T) {
	for yaml, want := range map[string]string{
		"tunnel: disabled\nkubeProxyReplacement: strict\n":                                                                 "1.14",
		"routingMode: native\nkubeProxyReplacement: strict\nbpf: {}\n":                                                     "1.15",
		"routingMode: native\nkubeProxyReplacement: true\n":                                                                "",
		"apiVersion: cilium.io/v1alpha1\nkind: CiliumConfig\nmetadata: {name: c}\nspec: {nativeRoutingCIDR: 10.0.0.0/8}\n": "1.11",
		"apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: net}\nspec:\n  chart: {spec: {chart: cilium, version: 1.15.x}}\n  values: {routingMode: native, tunnelProtocol: vxlan}\n": "1.15",
	} {
		r, err := Check([]Input{{Name: "v.yaml", Text: yaml}}, Known{})
		if err != nil || len(r.Needs) != 1 || r.Needs[0].Version != want {
			t.Errorf("%s: want %q: %v %+v", yaml, want, err, r.Needs)
		}
	}
}

// TestNothingConfigured: what a file has instead is named, with a chart, too.
func TestNothingConfigured(t *testing.T) {
	service := Input{Name: "a.yaml", Text: "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n---\napiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: Secret, metadata: {name: s}}]\n"}
	for _, known := range []Known{{}, {Chart: small(t)}} {
		_, err := Check([]Input{service}, known)
		var fs position.Faults
		if !errors.As(err, &fs) || !strings.Contains(err.Error(), "a.yaml: has Service web, Secret s: not about a cluster's network") {
			t.Errorf("%v", err)
		}
	}
	r, err := Check([]Input{service, {Name: "n.json", Text: `{"Network": "10.0.0.0/16", "Backend": {"Type": "vxlan"}}`}}, Known{})
	if err != nil || r.Inconclusive() || len(r.Documents) != 2 {
		t.Errorf("beside a file that configures: %v %+v", err, r)
	}
	kind := Input{Name: "k.yaml", Text: "kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\nnetworking: {disableDefaultCNI: true}\n"}
	if r, err := Check([]Input{kind}, Known{Chart: small(t)}); err != nil || !r.Inconclusive() || !strings.Contains(fmt.Sprint(r.Documents), "no file has values for it") {
		t.Errorf("a chart without values: %v %+v", err, r)
	}
	nginx := &Chart{Name: "nginx", Version: "1", Render: func(map[string]any, map[string]bool) ([]Rendered, error) {
		return []Rendered{{"a", service.Text}}, nil
	}}
	if r, err := Check(nil, Known{Chart: nginx}); err != nil || !r.Inconclusive() {
		t.Errorf("a chart of another kind: %v %+v", err, r)
	}
}

// TestUnreadCNIs: every CNI that detection knows and no profile describes is named, by each way in which it shows.
func TestUnreadCNIs(t *testing.T) {
	inconclusive := func(c profile.CNI, text string, known Known) {
		t.Helper()
		var inputs []Input
		if text != "" {
			inputs = []Input{{Name: "in", Text: text}}
		}
		r, err := Check(inputs, known)
		if err != nil || !r.Inconclusive() || r.Alarm() || len(r.Measured) != 1 || r.Measured[0].Profile != "" || !strings.Contains(r.Measured[0].Title, c.Title) {
			t.Errorf("%s: %s\n%v %+v", c.Name, text, err, r)
		}
	}
	for _, c := range profile.CNIs() {
		if c.Family != "" || c.Name == gkeV2 || dialects[c.Name].judge != nil {
			continue
		}
		for _, d := range c.Daemons {
			object := "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: " + d + "}\n"
			inconclusive(c, object, Known{})
			inconclusive(c, "", Known{Chart: &Chart{Name: c.Name, Version: "1", Render: func(map[string]any, map[string]bool) ([]Rendered, error) {
				return []Rendered{{"a", object}}, nil
			}}})
		}
		for _, m := range c.ConfigMaps {
			inconclusive(c, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: "+m+"}\ndata: {a: b}\n", Known{})
		}
		for _, p := range c.Plugins {
			inconclusive(c, `{"cniVersion": "1.0.0", "plugins": [{"type": "`+p+`"}, {"type": "portmap"}]}`, Known{})
		}
		for _, g := range c.Groups {
			inconclusive(c, "apiVersion: "+g+"/v1\nkind: Thing\nmetadata: {name: t}\n", Known{})
		}
	}
	kubeOVN, _ := cniOfChart("kube-ovn")
	inconclusive(kubeOVN, "networking: {NET_STACK: ipv4}", Known{})
	inconclusive(kubeOVN, "ipv4: {}\ncni: {}\nfunc: {ENABLE_LB: true}", Known{})
	inconclusive(kubeOVN, "networking: {networkType: geneve}\novsOvn: {}", Known{})
}

// TestForeigners: files of other tools are called what they are, also where a chart is given.
func TestForeigners(t *testing.T) {
	for text, want := range map[string]string{
		"apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nnetworking: {podSubnet: 10.0.0.0/8}\n":                        "a file of kubeadm (networking.podSubnet: 10.0.0.0/8)",
		"apiVersion: k0s.k0sproject.io/v1beta1\nkind: ClusterConfig\nmetadata: {name: k0s}\nspec: {network: {provider: kuberouter}}\n": "a file of k0s (spec.network.provider: kuberouter)",
		"apiVersion: kops.k8s.io/v1alpha2\nkind: Cluster\nmetadata: {name: a}\nspec: {networking: {cilium: {}}}\n":                     "a file of kOps (spec.networking)",
		"network: {plugin: canal}\nnodes: []\n": "a file of RKE (network.plugin: canal)",
		"kube_network_plugin: calico\n":         "a file of kubespray",
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: netd-config}\ndata: {enable_policy_routing: \"false\"}\n":               "a file of netd of GKE (data)",
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ip-masq-agent}\ndata: {config: \"nonMasqueradeCIDRs: [10.0.0.0/8]\"}\n": "a file of the agent that masquerades (data)",
		"baseDomain: a.example\nnetworking: {networkType: OVNKubernetes}\n":                                                        "a file of the installer of OpenShift",
		"apiVersion: spiderpool.spidernet.io/v2beta1\nkind: SpiderMultusConfig\nmetadata: {name: m}\nspec: {cniType: macvlan}\n":   "a file of Spiderpool (spec.cniType: macvlan)",
	} {
		for _, known := range []Known{{}, {Chart: small(t)}} {
			r, err := Check([]Input{{Name: "in", Text: text}}, known)
			if err != nil || !r.Inconclusive() || len(r.Measured) > 0 || !strings.Contains(r.Documents[0].NotJudged, want) {
				t.Errorf("%s: %v %+v", want, err, r)
			}
		}
	}
	gke, err := Check([]Input{{Name: "in", Text: agentConfig("enable-google-multi-nic=false tunnel=disabled install-iptables-rules=false")}}, Known{})
	if err != nil || !gke.Inconclusive() || len(gke.Findings) != 1 || !strings.Contains(gke.Documents[0].NotJudged, "Google's build") {
		t.Errorf("the ConfigMap of GKE Dataplane V2: %v %+v", err, gke)
	}
	multus := "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: kube-multus-ds}\nspec: {template: {spec: {containers: [{name: kube-multus, resources: {limits: {cpu: 100m}}}]}}}\n---\n"
	if r, err := Check([]Input{{Name: "in", Text: multus}}, Known{}); err != nil || !r.Inconclusive() || len(r.Findings) > 0 {
		t.Errorf("Multus and the limit of its CPU: %v %+v", err, r)
	}
	filter := "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: kube-router}\nspec: {template: {spec: {containers: [{name: r, args: [--run-router=false]}]}}}\n---\n"
	config := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kube-router-cfg}\ndata:\n  kubeconfig: |\n    server: %APISERVER%\n---\n"
	alone, err := Check([]Input{{Name: "in", Text: config + filter}}, Known{})
	if err != nil || !alone.Inconclusive() || !strings.Contains(alone.Documents[0].NotJudged, "connects no pods") {
		t.Errorf("a kube-router that filters, alone: %v %+v", err, alone)
	}
	r, err := Check([]Input{{Name: "in", Text: filter + agentConfig("")}}, Known{})
	if err != nil || r.Inconclusive() || len(r.Measured) != 1 {
		t.Errorf("a kube-router that filters only: %v %+v", err, r)
	}
}

// TestSilence: objects that do not say the mode of their CNI are not called fine.
func TestSilence(t *testing.T) {
	object := func(kind, name string) string {
		return "apiVersion: v1\nkind: " + kind + "\nmetadata: {name: " + name + "}\nspec: {template: {spec: {containers: [{name: a, image: b}]}}}\ndata: {a: b}\n"
	}
	for text, want := range map[string]string{
		object("DaemonSet", "kube-flannel-ds"):              "give the objects that do (ConfigMap kube-flannel-cfg",
		object("DaemonSet", "canal"):                        "give the objects that do (ConfigMap canal-config",
		object("DaemonSet", "kindnet"):                      "give the objects that do (the conflist in /etc/cni/net.d)",
		object("DaemonSet", "cilium"):                       "nothing follows from it alone",
		object("ConfigMap", "calico-config"):                "give the objects that do (Installation",
		object("ConfigMap", "kubernetes-services-endpoint"): "nothing follows from it alone",
	} {
		r, err := Check([]Input{{Name: "in", Text: text}}, Known{})
		if err != nil || !r.Inconclusive() || !strings.Contains(r.Documents[0].NotJudged, want) {
			t.Errorf("%s: %v %+v", want, err, r)
		}
	}
	r, err := Check([]Input{{Name: "in", Text: object("DaemonSet", "kube-flannel-ds") + "---\nBackend: {Type: vxlan}\n"}}, Known{})
	if err != nil || r.Inconclusive() {
		t.Errorf("beside its configuration: %v %+v", err, r)
	}
	pools := `[{"apiVersion": "projectcalico.org/v3", "kind": "IPPool", "metadata": {"name": "a"}, "spec": {"cidr": "10.0.0.0/16", "ipipMode": "Always"}}]`
	judged{name: "a list of calicoctl", yaml: pools, profile: "calico-ipip"}.run(t)
}

// TestConflists: a list of plugins says which CNI connects pods; its mode is elsewhere.
func TestConflists(t *testing.T) {
	for types, c := range map[string]struct {
		why, profile string
	}{
		`{"type": "calico"}, {"type": "portmap"}`:  {"Calico's, whose mode is in other objects: give those (Installation", ""},
		`{"type": "cilium-cni"}`:                   {"give those (ConfigMap cilium-config)", ""},
		`{"type": "flannel"}, {"type": "portmap"}`: {"give those (ConfigMap kube-flannel-cfg", ""},
		`{"type": "my-own"}`:                       {`no rule reads plugin "my-own"`, ""},
		`{"type": "macvlan"}`:                      {"", "macvlan"},
	} {
		r, err := Check([]Input{{Name: "c", Text: `{"cniVersion": "1.0.0", "name": "x", "plugins": [` + types + `]}`}}, Known{})
		if err != nil {
			t.Fatal(err)
		}
		if r.Inconclusive() != (c.why != "") || !strings.Contains(r.Documents[0].NotJudged, c.why) {
			t.Errorf("%s: %+v", types, r.Documents)
		}
		judged{profile: c.profile}.compare(t, r)
	}
	beside, err := Check([]Input{{Name: "c", Text: `{"cniVersion": "1.0.0", "plugins": [{"type": "cilium-cni"}]}` + "\n---\n" + agentConfig("")}}, Known{})
	if err != nil || beside.Inconclusive() {
		t.Errorf("beside its ConfigMap: %v %+v", err, beside.Documents)
	}
}

// TestTalos: a machine's configuration says whether kube-proxy runs, and which CNI Talos installs.
func TestTalos(t *testing.T) {
	talos := func(cni, proxy string) string {
		return "machine: {network: {}}\ncluster:\n  network:\n    cni: {name: " + cni + "}\n    podSubnets: [10.0.0.0/8]\n  proxy: {disabled: " + proxy + "}\n---\n"
	}
	for _, c := range []judged{
		{"flannel", talos("flannel", "false"), "", "flannel-vxlan"},
		{"cilium without kube-proxy", talos("none", "true") + agentConfig(""), "", "cilium-native"},
		{"no Services", talos("none", "true") + agentConfig("kube-proxy-replacement=false enable-bpf-masquerade=false"), "no-service-engine", "cilium-native-legacy"},
		{"flannel and Cilium", talos("flannel", "true") + agentConfig(""), "two-cnis", "cilium-native"},
		{"other CIDR", strings.Replace(talos("none", "true"), "10.0.0.0/8", "11.0.0.0/8", 1) + agentConfig(""), "pod-cidr", "cilium-native"},
	} {
		t.Run(c.name, c.run)
	}
}

// TestPlatforms: settings of the CNIs of platforms, what their agents refuse, and two CNIs at once.
func TestPlatforms(t *testing.T) {
	daemon := func(name, container, rest string) string {
		return "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: " + name + "}\nspec: {template: {spec: {containers: [{name: " + container + ", " + rest + "}]}}}\n---\n"
	}
	aws := func(env string) string {
		var list []string
		for _, e := range strings.Fields("AWS_VPC_ENI_MTU=1500 " + env) {
			name, text, _ := strings.Cut(e, "=")
			list = append(list, fmt.Sprintf("{name: %s, value: %q}", name, text))
		}
		return daemon("aws-node", "aws-node", "env: ["+strings.Join(list, ", ")+"]")
	}
	router := func(flags string) string {
		return daemon("kube-router", "kube-router", "args: ["+strings.Join(strings.Fields(flags), ", ")+"]")
	}
	conf := func(map_, file, text string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + map_ + "}\ndata:\n  " + file + ": |\n    " + strings.ReplaceAll(text, "\n", "\n    ") + "\n---\n"
	}
	antrea := func(text string) string { return conf("antrea-config", "antrea-agent.conf", text) }
	ovn := func(text string) string { return conf("ovnkube-config", "ovnkube.conf", text) }
	const proxy = "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nmode: iptables\nclusterCIDR: 10.0.0.0/16\n---\n"
	const policy = "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: p}\n---\n"
	const kind = "kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\n---\n"
	const flannel = "Network: 10.0.0.0/16\nBackend: {Type: vxlan}\n---\n"
	for _, c := range []judged{
		{"aws", aws(""), "pods-linear", "aws-vpc"},
		{"aws, dual stack", aws("ENABLE_IPv4=true ENABLE_IPv6=true"), "agent-refuses pods-linear", ""},
		{"aws, IPv6 by addresses", aws("ENABLE_IPv4=false ENABLE_IPv6=true"), "agent-refuses pods-linear", ""},
		{"aws, IPv6", aws("ENABLE_IPv4=false ENABLE_IPv6=true ENABLE_PREFIX_DELEGATION=true"), "addresses-only pods-linear", ""},
		{"aws, neither", aws("ENABLE_IPv4=false"), "agent-refuses pods-linear", "aws-vpc"},
		{"aws, no prefixes", aws("ENABLE_PREFIX_DELEGATION=true WARM_PREFIX_TARGET=0"), "addresses-only agent-refuses pods-linear", "aws-vpc"},
		{"aws, no prefixes and addresses", aws("ENABLE_PREFIX_DELEGATION=true WARM_PREFIX_TARGET=0 WARM_IP_TARGET=5"), "addresses-only pods-linear", "aws-vpc"},
		{"aws, branches", aws("ENABLE_POD_ENI=true DISABLE_TCP_EARLY_DEMUX=true"), "branch-strict pods-linear", "aws-vpc"},
		{"aws, standard branches", aws("ENABLE_POD_ENI=true POD_SECURITY_GROUP_ENFORCING_MODE=standard"), "pods-linear", "aws-vpc"},
		{"aws, mode of no branches", aws("POD_SECURITY_GROUP_ENFORCING_MODE=standard"), "not-used pods-linear", "aws-vpc"},
		{"aws, a word", aws("AWS_VPC_K8S_CNI_RANDOMIZESNAT=yes"), "agent-refuses pods-linear", "aws-vpc"},
		{"aws and kube-router", aws("") + router(""), "pods-linear pods-linear cross-subnet two-cnis", "aws-vpc"},
		{"aws and Cilium", aws("") + agentConfig(""), "pods-linear two-cnis", "cilium-native"},
		{"aws by Flux", "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: n}\nspec: {chart: {spec: {chart: aws-vpc-cni}}, values: {env: {AWS_VPC_ENI_MTU: \"1400\"}}}\n", "pods-linear", "aws-vpc"},
		{"router", router("--run-service-proxy=false") + proxy, "cross-subnet pods-linear", "kube-router"},
		{"router and kube-proxy", router("--run-service-proxy") + proxy, "cross-subnet pods-linear kube-proxy-beside", "kube-router"},
		{"router, a slip", router("--overlay-type=ful"), "no-tunnel pods-linear", "kube-router"},
		{"router, unknown encapsulation", router("--overlay-encap vxlan"), "agent-refuses pods-linear", "kube-router"},
		{"router, no overlay", router("--enable-overlay=false --overlay-type=full"), "not-used pods-linear", "kube-router"},
		{"router, full with its own MTU", router("--overlay-type=full --auto-mtu=false"), "pods-linear", "kube-router"},
		{"router in kind", kind + router(""), "two-cnis cross-subnet pods-linear kube-proxy-beside", "kube-router"},
		{"router that filters", router("--run-router=false") + flannel + policy, "", "flannel-vxlan"},
		{"flannel ignores", flannel + policy, "policy-ignored", "flannel-vxlan"},
		{"k3s does not", "flannel-backend: vxlan\n---\n" + policy, "", "flannel-vxlan"},
		{"k3s without", "flannel-backend: vxlan\ndisable-network-policy: true\n---\n" + policy, "policy-ignored", "flannel-vxlan"},
		{"router ignores", router("--run-firewall=false") + policy, "cross-subnet policy-ignored", "kube-router"},
		{"kind's own", daemon("kindnet", "kindnet-cni", "image: 'docker.io/kindest/kindnetd:v1'") + policy, "policy-queue", "kindnetd"},
		{"antrea", antrea("trafficEncapMode: encap"), "", ""},
		{"antrea, brackets in a comment", antrea("# Names of devices, such as [eth0, eth1].\ntrafficEncapMode: noEncap\ntrafficEncryptionMode: wireguard"), "agent-refuses", ""},
		{"antrea, hybrid", antrea("trafficEncapMode: hybrid"), "cross-subnet", ""},
		{"antrea, a word", antrea("tunnelType: gue"), "agent-refuses", ""},
		{"antrea, DSR", antrea("antreaProxy: {defaultLoadBalancerMode: dsr}"), "agent-refuses", ""},
		{"antrea, DSR with its gate", antrea("featureGates: {LoadBalancerModeDSR: true}\nantreaProxy: {defaultLoadBalancerMode: dsr}"), "dsr-scope", ""},
		{"antrea, no SNAT", antrea("noSNAT: true"), "agent-refuses", ""},
		{"antrea over aws", antrea("trafficEncapMode: networkPolicyOnly") + aws(""), "pods-linear", ""},
		{"ovn", ovn("[default]\nmtu=1400\n[gateway]\nmode=local"), "gateway-local", ""},
		{"ovn, MTU", ovn("[default]\nmtu=100"), "agent-refuses", ""},
		{"ovn, no overlay", ovn("[default]\ntransport=no-overlay\nmtu=1500\nencap-port=7777"), "not-used", ""},
		{"ovn and kube-proxy", ovn("[default]\nmtu=1400") + proxy, "kube-proxy-beside", ""},
		{"azure's old mode", `{"cniVersion": "0.3.0", "plugins": [{"type": "azure-vnet", "mode": "bridge"}]}`, "", ""},
	} {
		t.Run(c.name, c.run)
	}
	for yaml, want := range map[string]string{
		daemon("kube-multus-ds", "a", "image: b"): "it is Multus, which calls other CNIs",
		"apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: mine}\nspec: {template: {spec: {volumes: [{name: a, hostPath: {path: /etc/cni/net.d}}]}}}\n": "it installs a CNI plugin on the nodes",
		"apiVersion: config.openshift.io/v1\nkind: Network\nmetadata: {name: cluster}\nspec: {networkType: Kuryr}\n":                                         "its network is Kuryr, which no rule reads",
		"apiVersion: config.openshift.io/v1\nkind: Network\nmetadata: {name: cluster}\nspec: {networkType: Calico}\n":                                        "does not say the mode of Calico",
		"apiVersion: config.openshift.io/v1\nkind: Network\nmetadata: {name: cluster}\nspec: {networkType: OpenShiftSDN}\n":                                  "it configures OpenShift SDN, and no rule reads that",
		daemon("antrea-agent", "antrea-agent", "image: b"):                                                                                                   "give the objects that do (ConfigMap antrea-config)",
		daemon("azure-cns", "cns", "image: b"): "give the objects that do (the conflist in /etc/cni/net.d)",
	} {
		r, err := Check([]Input{{Name: "in", Text: yaml}}, Known{})
		if err != nil || !r.Inconclusive() || r.Alarm() || !strings.Contains(fmt.Sprint(r.Documents), want) {
			t.Errorf("%s: %v %+v", want, err, r)
		}
	}
}
