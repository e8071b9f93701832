package profile

import (
	"slices"
	"strings"
)

// CNI describes how a CNI appears in the objects of a cluster.
type CNI struct {
	// Name is the name in results, for example "aws-vpc". Title is the name in texts.
	Name, Title string
	// Family is the family of profiles from which detection chooses by the CNI's settings. It is "" if there is no such
	// family, or if one profile describes the CNI whatever its settings are.
	Family string
	// Daemons are the possible names of its DaemonSet.
	Daemons []string
	// Container is the container whose image tag is the version of the CNI, "" for the first container.
	Container string
	// Plugins are the types of its plugins in conflists.
	Plugins []string
	// ConfigMaps and Charts are the names of its ConfigMaps and of its Helm charts.
	ConfigMaps, Charts []string
	// Groups are its API groups.
	Groups []string
}

// cnis has the CNIs that detection recognises, in the order in which it searches for their DaemonSets.
var cnis = []CNI{
	{Name: "cilium", Title: "Cilium", Family: "cilium", Daemons: []string{"cilium"}, Container: "cilium-agent", Plugins: []string{"cilium-cni"},
		ConfigMaps: []string{"cilium-config"}, Charts: []string{"cilium"}, Groups: []string{"cilium.io"}},
	{Name: "canal", Title: "canal", Family: "canal", Daemons: []string{"canal", "rke2-canal"}, Container: "kube-flannel",
		ConfigMaps: []string{"canal-config", "rke2-canal-config"}},
	{Name: "calico", Title: "Calico", Family: "calico", Daemons: []string{"calico-node", "calico-vpp-node"}, Container: "calico-node", Plugins: []string{"calico"},
		ConfigMaps: []string{"calico-config"}, Charts: []string{"tigera-operator"}, Groups: []string{"projectcalico.org", "crd.projectcalico.org", "operator.tigera.io"}},
	{Name: "flannel", Title: "flannel", Family: "flannel",
		Daemons:   []string{"kube-flannel-ds", "kube-flannel", "rke2-flannel", "kube-flannel-ds-amd64", "kube-flannel-ds-arm64"},
		Container: "kube-flannel", Plugins: []string{"flannel"}, ConfigMaps: []string{"kube-flannel-cfg", "rke2-flannel-config", "flannel-config"},
		Charts: []string{"flannel"}},
	{Name: "kindnet", Title: "kindnet", Family: "plugins", Daemons: []string{"kindnet"}, Container: "kindnet-cni", Plugins: []string{"kindnet", "cni-kindnet"}},
	{Name: "aws-vpc", Title: "the AWS VPC CNI", Family: "aws", Daemons: []string{"aws-node"}, Container: "aws-node", Plugins: []string{"aws-cni"},
		ConfigMaps: []string{"amazon-vpc-cni"}, Charts: []string{"aws-vpc-cni"}, Groups: []string{"crd.k8s.amazonaws.com", "vpcresources.k8s.aws"}},
	{Name: "gke-dataplane-v2", Title: "GKE Dataplane V2 (Google's build of Cilium)", Daemons: []string{"anetd"}, Container: "cilium-agent", Plugins: []string{"gke"},
		ConfigMaps: []string{"cilium-config"}},
	{Name: "azure-cni", Title: "Azure CNI", Daemons: []string{"azure-cns", "azure-cni"}, Plugins: []string{"azure-vnet", "azure-ipam"},
		ConfigMaps: []string{"cns-config", "azure-cns-config"}, Groups: []string{"acn.azure.com"}},
	{Name: "antrea", Title: "Antrea", Daemons: []string{"antrea-agent"}, Container: "antrea-agent", Plugins: []string{"antrea"},
		ConfigMaps: []string{"antrea-config"}, Charts: []string{"antrea"}, Groups: []string{"crd.antrea.io", "operator.antrea.vmware.com"}},
	{Name: "weave", Title: "Weave Net", Daemons: []string{"weave-net"}, Container: "weave", Plugins: []string{"weave-net"}},
	{Name: "kube-router", Title: "kube-router", Daemons: []string{"kube-router"}, ConfigMaps: []string{"kube-router-cfg"}},
	{Name: "ovn-kubernetes", Title: "OVN-Kubernetes", Daemons: []string{"ovnkube-node"}, Plugins: []string{"ovn-k8s-cni-overlay"},
		ConfigMaps: []string{"ovn-config", "ovnkube-config"}, Charts: []string{"ovn-kubernetes"}, Groups: []string{"k8s.ovn.org"}},
	{Name: "openshift-sdn", Title: "OpenShift SDN", Daemons: []string{"sdn"}, Container: "sdn", Plugins: []string{"openshift-sdn"}, Groups: []string{"network.openshift.io"}},
	{Name: "kube-ovn", Title: "Kube-OVN", Daemons: []string{"kube-ovn-cni"}, Container: "cni-server", Plugins: []string{"kube-ovn"},
		ConfigMaps: []string{"ovn-vpc-nat-config"}, Charts: []string{"kube-ovn", "kube-ovn-v2"}, Groups: []string{"kubeovn.io"}},
	{Name: "romana", Title: "Romana", Daemons: []string{"romana-agent"}},
	{Name: "contiv", Title: "Contiv-VPP", Daemons: []string{"contiv-vswitch"}},
	{Name: "terway", Title: "Terway", Daemons: []string{"terway-eniip", "terway"}, Container: "terway", Plugins: []string{"terway"}, ConfigMaps: []string{"eni-config"}},
}

// Multus has the possible names of the DaemonSet of Multus, which calls other CNIs.
var Multus = []string{"kube-multus-ds", "multus", "rke2-multus", "kube-multus-ds-amd64"}

// CNIs returns the CNIs that detection knows, in the order in which it searches.
func CNIs() []CNI { return slices.Clone(cnis) }

// LookupCNI returns the CNI called name, false if it is unknown.
func LookupCNI(name string) (CNI, bool) {
	return findCNI(func(c CNI) bool { return c.Name == name })
}

// CNIOfPlugin returns the CNI that installs a plugin of this type, false if it is unknown.
func CNIOfPlugin(plugin string) (CNI, bool) {
	return findCNI(func(c CNI) bool { return slices.Contains(c.Plugins, plugin) })
}

// CNIOfObject returns the CNI to which an object of Kubernetes belongs, by its kind, its name and its API version; false if
// it belongs to none.
func CNIOfObject(kind, name, version string) (CNI, bool) {
	group, _, _ := strings.Cut(version, "/")
	return findCNI(func(c CNI) bool {
		return kind == "DaemonSet" && slices.Contains(c.Daemons, name) || kind == "ConfigMap" && slices.Contains(c.ConfigMaps, name) ||
			slices.Contains(c.Groups, group)
	})
}

func findCNI(is func(CNI) bool) (CNI, bool) {
	i := slices.IndexFunc(cnis, is)
	if i < 0 {
		return CNI{}, false
	}
	return cnis[i], true
}
