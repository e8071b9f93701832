package detect

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/profile"
)

// Verdict is which dataplane a cluster runs.
type Verdict struct {
	// Profile is the one of package profile that fits, "" if none does or it cannot be told which; Title says it in
	// words, and But in what the cluster differs from the profile as the lab builds it.
	Profile string   `json:"profile"`
	Title   string   `json:"title"`
	But     []string `json:"but,omitempty"`
	// CNI is whose dataplane it is: cilium, calico, canal, flannel, kindnet, bridge, ...; "" if that is not known.
	// Version is its image's tag. Source says what showed it.
	CNI     string `json:"cni"`
	Version string `json:"version,omitempty"`
	Source  string `json:"source,omitempty"`
	// Kubernetes is the API server's version, Distribution who made the cluster, where that shows.
	Kubernetes   string    `json:"kubernetes,omitempty"`
	Distribution string    `json:"distribution,omitempty"`
	Settings     []Setting `json:"settings,omitempty"`
	KubeProxy    KubeProxy `json:"kubeProxy"`
	// MTU is that of the pods in bytes; Encapsulation "none", "vxlan", "geneve", "ipip", "wireguard", or with "between
	// subnets" behind it; Encryption "none", "wireguard" or "ipsec".
	MTU           Claim `json:"mtu"`
	Encapsulation Claim `json:"encapsulation"`
	Encryption    Claim `json:"encryption"`
	// Doubts are what speaks against the verdict; Unproven is what could not be seen.
	Doubts   []string `json:"doubts,omitempty"`
	Unproven []string `json:"unproven,omitempty"`
}

// Setting is one setting of the dataplane.
type Setting struct {
	Component string `json:"component"`
	Name      string `json:"name"`
	// Asked is what the configuration comes to, AskedBy where that stands or whose default it is.
	Asked   string `json:"asked,omitempty"`
	AskedBy string `json:"askedBy,omitempty"`
	// InForce is what was seen, SeenBy where; both are "" if nothing showed it.
	InForce string `json:"inForce,omitempty"`
	SeenBy  string `json:"seenBy,omitempty"`
}

// Claim is a value with what it stands on. The zero value says nothing.
type Claim struct {
	Value  string `json:"value,omitempty"`
	Source string `json:"source,omitempty"`
}

// KubeProxy is who serves Services outside of the CNI.
type KubeProxy struct {
	// Runs is "yes", "no" or "unknown".
	Runs string `json:"runs"`
	// Mode is "iptables", "nftables", "ipvs", "" if it does not run or nothing says it.
	Mode    string `json:"mode,omitempty"`
	Version string `json:"version,omitempty"`
	// Source says how both are known.
	Source string `json:"source,omitempty"`
}

// Answers of KubeProxy.Runs.
const (
	Yes     = "yes"
	No      = "no"
	Unknown = "unknown"
)

// detective collects a verdict.
type detective struct {
	Snapshot
	Verdict
	// own counts the entries of But that are not configcheck's.
	own int
}

// Detect says which dataplane the cluster of a Snapshot runs.
func Detect(s Snapshot) Verdict {
	d := &detective{Snapshot: s}
	d.Verdict.Kubernetes, d.Verdict.Distribution = s.Server, distribution(s.Nodes)
	d.Verdict.Unproven = slices.Clone(s.Unproven)
	d.proxy()
	d.identify()
	d.mtu()
	d.leftovers()
	if d.Title == "" {
		if p, ok := profile.Lookup(d.Profile); ok {
			d.Title = p.Title
		}
	}
	return d.Verdict
}

func (d *detective) doubt(format string, args ...any) {
	if line := fmt.Sprintf(format, args...); !slices.Contains(d.Doubts, line) {
		d.Doubts = append(d.Doubts, line)
	}
}

func (d *detective) unproven(format string, args ...any) {
	if line := fmt.Sprintf(format, args...); !slices.Contains(d.Verdict.Unproven, line) {
		d.Verdict.Unproven = append(d.Verdict.Unproven, line)
	}
}

// distributions are told by the kubelet's version, by the provider's id of a node, or by a label.
var distributions = []struct{ name, version, provider, label string }{
	{"RKE2", "+rke2", "rke2://", ""},
	{"K3s", "+k3s", "k3s://", ""},
	{"kind", "", "kind://", ""},
	{"EKS", "-eks-", "aws://", "eks.amazonaws.com/nodegroup"},
	{"GKE", "-gke.", "gce://", "cloud.google.com/gke-nodepool"},
	{"AKS", "", "", "kubernetes.azure.com/cluster"},
	{"OpenShift", "", "", "node.openshift.io/os_id"},
	{"minikube", "", "", "minikube.k8s.io/version"},
	{"Talos", "", "talos://", ""},
}

// distribution names who made the cluster, "" where nothing shows it. A cloud's provider id alone says whose machines
// they are, and is not enough.
func distribution(nodes []Node) string {
	for _, n := range nodes {
		for _, d := range distributions {
			_, labelled := n.Labels[d.label]
			cloud := d.provider == "aws://" || d.provider == "gce://"
			switch {
			case d.version != "" && strings.Contains(n.Kubelet, d.version), d.label != "" && labelled,
				d.provider != "" && !cloud && strings.HasPrefix(n.ProviderID, d.provider):
				return d.name
			}
		}
	}
	return ""
}

// perNode groups nodes by a value: "vxlan on n1 and n2".
func perNode(values map[string]string) (groups []string, distinct []string) {
	byValue := map[string][]string{}
	for node, v := range values {
		byValue[v] = append(byValue[v], node)
	}
	distinct = slices.Sorted(maps.Keys(byValue))
	for _, v := range distinct {
		nodes := byValue[v]
		slices.Sort(nodes)
		groups = append(groups, v+" on "+few(nodes))
	}
	return groups, distinct
}

// few lists names, the first of them where they are many.
func few(names []string) string {
	const most = 4
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}
