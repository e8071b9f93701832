package config

import (
	"strings"
	"testing"
)

// TestFilesOfOthers: what clouds and distributions print of a cluster is called what it is, and a CNI that is not given is not
// passed over.
func TestFilesOfOthers(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"az aks show", `{"name": "c", "networkProfile": {"networkDataplane": "cilium", "networkPlugin": "azure", "podCidr": "10.244.0.0/16"}}`, "it is a file of AKS (az aks show)"},
		{"aws eks describe-addon", `{"addon": {"addonName": "coredns", "configurationValues": "{}"}}`, "it is a file of EKS"},
		{"eksctl without settings", "apiVersion: eksctl.io/v1alpha5\nkind: ClusterConfig\nmetadata: {name: c}\naddons: [{name: vpc-cni}]\n", "it is a file of eksctl"},
		{"RKE2 and nothing else", "cni: [multus, cilium]\ndisable-kube-proxy: true\n", "chart rke2-cilium decides the rest"},
		{"RKE2 without a CNI", "cni: none\n", "it installs no CNI"},
		{"BGP of Calico alone", "apiVersion: crd.projectcalico.org/v1\nkind: BGPConfiguration\nmetadata: {name: default}\nspec: {}\n", "it does not say the mode of Calico"},
		{"BGP of Cilium alone", "apiVersion: cilium.io/v2\nkind: CiliumBGPClusterConfig\nmetadata: {name: a}\nspec: {}\n", "it does not say the mode of Cilium"},
		{"a template of Cluster API", "apiVersion: addons.cluster.x-k8s.io/v1alpha1\nkind: HelmChartProxy\nmetadata: {name: calico}\nspec:\n  chartName: tigera-operator\n  valuesTemplate: |\n    installation: {calicoNetwork: {ipPools: [{cidr: {{ index .Cluster.spec 0 }}}]}}\n", "the Cluster that the template reads"},
		{"K3s with a file of flannel", "flannel-backend: vxlan\nflannel-conf: /etc/net-conf.json\n", "flannel-conf: /etc/net-conf.json decides"},
		{"Flux by an OCI repository", "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: cilium}\nspec: {chartRef: {kind: OCIRepository, name: charts}, values: {kubeProxyReplacement: true}}\n", "chart cilium decides"},
		{"gcloud", `{"networkConfig": {"datapathProvider": "ADVANCED_DATAPATH"}}`, "it is a file of GKE"},
		{"cilium-dbg status -o json", `{"kube-proxy-replacement": {"mode": "True"}, "routing": {}}`, "it is a file of Cilium"},
		{"K3s without a CNI", "flannel-backend: none\ndisable-kube-proxy: true\n", "it installs no CNI"},
		{"kind without a CNI", "kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\nnetworking: {disableDefaultCNI: true}\n", "it installs no CNI"},
		{"values of AKS", "aksbyocni: {enabled: true}\nnodeinit: {enabled: true}\n", "chart cilium decides"},
		{"CiliumNodeConfig", "apiVersion: cilium.io/v2\nkind: CiliumNodeConfig\nmetadata: {name: n}\nspec: {defaults: {routing-mode: tunnel}}\n", "options of the agents on some nodes"},
	} {
		r, err := Check([]Input{{Name: "f", Text: c.text}}, Known{})
		if err != nil || !r.Inconclusive() || !strings.Contains(r.Documents[0].NotJudged, c.want) {
			t.Errorf("%s: want %q: %v %+v", c.name, c.want, err, r.Documents)
		}
	}
	r, err := Check([]Input{{Name: "f", Text: "kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\nnetworking: {kubeProxyMode: nftables}\n"}}, Known{})
	if err != nil || len(r.Measured) != 1 || r.Measured[0].Profile != "kindnetd" {
		t.Errorf("kind's own: %v %+v", err, r.Measured)
	}
}

// TestAddons: the settings of EKS' add-on are read where eksctl and aws eks describe-addon have them.
func TestAddons(t *testing.T) {
	const settings = `{\"env\": {\"AWS_VPC_ENI_MTU\": \"1400\", \"ENABLE_POD_ENI\": \"true\"}}`
	for _, text := range []string{
		`{"addon": {"addonName": "vpc-cni", "configurationValues": "` + settings + `"}}`,
		`{"apiVersion": "eksctl.io/v1alpha5", "kind": "ClusterConfig", "metadata": {"name": "c"}, "addons": [{"name": "coredns"}, {"name": "vpc-cni", "configurationValues": "` + settings + `"}]}`,
	} {
		judged{"add-on", text, "branch-probes branch-strict pods-linear", "aws-vpc"}.run(t)
	}
}

// TestWhetherProxyRuns: its DaemonSet and kubeadm say whether kube-proxy runs beside a CNI that replaces it.
func TestWhetherProxyRuns(t *testing.T) {
	daemon := func(rest string) string {
		return "---\napiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: kube-proxy}\nspec: {template: {spec: {" + rest + "containers: [{name: kube-proxy, command: [kube-proxy, --proxy-mode=ipvs]}]}}}\n"
	}
	const kubeadm = "---\napiVersion: kubeadm.k8s.io/v1beta4\nkind: "
	for _, c := range []judged{
		{"a DaemonSet", agentConfig("") + daemon(""), "kube-proxy-beside proxy-deprecated", "cilium-native"},
		{"stopped as Calico says", agentConfig("") + daemon(`nodeSelector: {non-calico: "true"}, `), "", "cilium-native"},
		{"kubeadm, disabled", agentConfig("") + kubeadm + "ClusterConfiguration\nnetworking: {podSubnet: 10.0.0.0/8}\nproxy: {disabled: true}\n", "", "cilium-native"},
		{"kubeadm, a phase", "Backend: {Type: vxlan}\n" + kubeadm + "InitConfiguration\nskipPhases: [addon/coredns, addon/kube-proxy]\n", "no-service-engine", "flannel-vxlan"},
		{"kubeadm's podSubnet", kubeadm + "ClusterConfiguration\nnetworking: {podSubnet: 10.0.0.0/8}\n---\napiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nmode: iptables\n", "", ""},
		{"kubeadm without", kubeadm + "ClusterConfiguration\nnetworking: {serviceSubnet: 10.0.0.0/8}\n---\napiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nmode: iptables\n", "proxy-no-local", ""},
		{"a DaemonSet alone", daemon(""), "proxy-deprecated", ""},
	} {
		t.Run(c.name, c.run)
	}
}

// TestWordsAndNames: what the schemas and agents refuse whatever else holds, and names that Kustomize made.
func TestWordsAndNames(t *testing.T) {
	manifest := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: calico-config}\ndata: {calico_backend: vxlan, veth_mtu: \"1500\"}\n---\n" +
		calicoNode("CALICO_IPV4POOL_IPIP", "Never", "CALICO_IPV4POOL_VXLAN", "Always")
	for _, c := range []judged{
		{"pools of another plugin", installation("ipPools: [{cidr: 10.0.0.0/16, encapsulation: VXLAN}]\nbgp: Enabled") + "  cni: {type: AmazonVPC}\n  kubernetesProvider: AKS\n", "agent-refuses agent-refuses agent-refuses", ""},
		{"IPIP over IPv6, and VPP", installation("linuxDataplane: VPP\nbgp: Disabled\nipPools: [{cidr: 10.0.0.0/16, encapsulation: VXLAN}, {cidr: 'fd00::/48', encapsulation: IPIP}]"), "agent-refuses agent-refuses", ""},
		{"words of an Installation", installation("linuxDataplane: eBPF\nbgp: disabled\nipPools: [{cidr: 10.0.0.0/16, encapsulation: Vxlan}]"), "agent-refuses agent-refuses agent-refuses", ""},
		{"a pool of whereabouts", "apiVersion: whereabouts.cni.cncf.io/v1alpha1\nkind: IPPool\nmetadata: {name: p}\nspec: {range: 10.0.0.0/24}\n---\n" +
			`{"cniVersion": "1.0.0", "name": "n", "type": "macvlan"}`, "", "macvlan"},
		{"no mesh", "apiVersion: crd.projectcalico.org/v1\nkind: BGPConfiguration\nmetadata: {name: default}\nspec: {nodeToNodeMeshEnabled: false}\n" +
			ipPool("{cidr: 10.0.0.0/16, ipipMode: Always}"), "bgp-mesh", "calico-ipip"},
		{"subnets that do not fit", `{"Network": "10.0.0.0/16", "SubnetLen": 17, "EnableIPv6": true, "Backend": {"Type": "vxlan"}}`, "agent-refuses agent-refuses", "flannel-vxlan"},
		{"an MTU that host-gw does not read", `{"Network": "10.0.0.0/16", "Backend": {"Type": "host-gw", "MTU": 1450}}`, "not-used", "flannel-host-gw"},
		{"a rate without a burst", `{"cniVersion": "1.0.0", "name": "n", "plugins": [{"type": "bridge"}, {"type": "bandwidth", "ingressRate": 1000000}]}`, "agent-refuses", "bridge"},
		{"a mode of macvlan", `{"cniVersion": "1.0.0", "name": "n", "type": "macvlan", "mode": "bridges"}`, "agent-refuses", "macvlan"},
		{"the MTU of calico-config", manifest, "mtu-too-large", "calico-vxlan"},
		{"a number without a name", agentConfig("cluster-id=1"), "agent-value", "cilium-native"},
		{"a number and a name", agentConfig("cluster-id=1 cluster-name=a"), "", "cilium-native"},
		{"a name by Kustomize", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: antrea-config-7mdb9d29h6}\ndata: {antrea-agent.conf: \"trafficEncapMode: hybrid\\n\"}\n", "cross-subnet", ""},
		{"K3s with flannel and a chart", "flannel-backend: vxlan\n---\napiVersion: helm.cattle.io/v1\nkind: HelmChart\nmetadata: {name: cilium}\nspec: {chart: cilium, valuesContent: 'MTU: 1500'}\n", "two-cnis", ""},
	} {
		t.Run(c.name, c.run)
	}
	_, err := Check([]Input{{Name: "f", Text: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kube-flannel-cfg}\ndata: {net-conf.json: '{\"Backend\": {} // a comment'}\n"}}, Known{})
	if err == nil || strings.Count(err.Error(), "is not YAML") != 1 {
		t.Errorf("a comment in JSON: %v", err)
	}
}

// TestWhatPluginsChange: plugins behind the one that connects pods, and networks beside the first, are said.
func TestWhatPluginsChange(t *testing.T) {
	limited := `{"cniVersion": "1.0.0", "name": "n", "plugins": [{"type": "bridge"}, {"type": "bandwidth", "ingressRate": 1000000, "ingressBurst": 200000}]}`
	second := "apiVersion: k8s.cni.cncf.io/v1\nkind: NetworkAttachmentDefinition\nmetadata: {name: n}\nspec: {config: '{\"cniVersion\": \"1.0.0\", \"type\": \"macvlan\"}'}\n"
	for text, want := range map[string]string{limited: "ingressRate: 1000000 bit/s", second: "a further network of pods"} {
		r, err := Check([]Input{{Name: "f", Text: text}}, Known{})
		if err != nil || len(r.Measured) != 1 || !strings.Contains(strings.Join(r.Measured[0].But, ", "), want) {
			t.Errorf("%s: %v %+v", want, err, r.Measured)
		}
	}
}
