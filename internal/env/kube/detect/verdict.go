package detect

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/cnibench/cnibench/internal/profile"
)

// Verdict is the dataplane that a cluster runs.
type Verdict struct {
	// Profile is the matching profile, "" if no profile matches or several may match.
	Profile string `json:"profile"`
	// Title describes the profile, or says why there is none.
	Title string `json:"title"`
	// But lists the differences between the cluster and the profile in the lab.
	But []string `json:"but,omitempty"`
	// CNI is cilium, calico, canal, flannel, kindnet, bridge, ...; "" if unknown.
	CNI string `json:"cni"`
	// Version is the tag of the CNI's image. Source is the object that shows the CNI.
	Version string `json:"version,omitempty"`
	Source  string `json:"source,omitempty"`
	// Kubernetes is the API server's version. Distribution is kind, RKE2, EKS, ...; "" if unknown.
	Kubernetes   string       `json:"kubernetes,omitempty"`
	Distribution string       `json:"distribution,omitempty"`
	Settings     []setting    `json:"settings,omitempty"`
	KubeProxy    proxyVerdict `json:"kubeProxy"`
	// MTU is the pods' MTU in bytes. Encapsulation is "none", "vxlan", "geneve", "ipip" or "wireguard", optionally
	// followed by "between subnets". Encryption is "none", "wireguard" or "ipsec".
	MTU           configClaim `json:"mtu"`
	Encapsulation configClaim `json:"encapsulation"`
	Encryption    configClaim `json:"encryption"`
	// Doubts are observations that contradict the verdict. Unproven lists what could not be observed.
	Doubts   []string `json:"doubts,omitempty"`
	Unproven []string `json:"unproven,omitempty"`
}

// setting is one setting of the dataplane.
type setting struct {
	Component string `json:"component"`
	Name      string `json:"name"`
	// Asked is the configured value, AskedBy the object that sets it or defines its default.
	Asked   string `json:"asked,omitempty"`
	AskedBy string `json:"askedBy,omitempty"`
	// InForce is the value in force, SeenBy its source; both are "" if it was not observed.
	InForce string `json:"inForce,omitempty"`
	SeenBy  string `json:"seenBy,omitempty"`
}

// configClaim is a value with its source. The zero value claims nothing.
type configClaim struct {
	Value  string `json:"value,omitempty"`
	Source string `json:"source,omitempty"`
}

// proxyVerdict describes whether kube-proxy serves Services, and how.
type proxyVerdict struct {
	// Runs is "yes", "no" or "unknown".
	Runs string `json:"runs"`
	// Mode is "iptables", "nftables" or "ipvs", "" if it does not run or its mode is not known.
	Mode    string `json:"mode,omitempty"`
	Version string `json:"version,omitempty"`
	// Source is the observation that shows Runs and Mode.
	Source string `json:"source,omitempty"`
}

// Values of proxyVerdict.Runs.
const (
	Yes     = "yes"
	no      = "no"
	Unknown = "unknown"
)

// detective derives a verdict from a snapshot.
type detective struct {
	Snapshot
	Verdict
	// own is the number of entries at the start of But that are not from package config. setProfile keeps only these.
	own int
}

// Detect returns the verdict on the dataplane of a Snapshot. It contacts no cluster.
func Detect(s Snapshot) Verdict {
	d := &detective{Snapshot: s}
	d.Verdict.Kubernetes, d.Verdict.Distribution = s.Server, distribution(s.Nodes)
	d.Verdict.Unproven = slices.Clone(s.Unproven)
	d.detectProxy()
	d.identifyCNI()
	d.detectMTU()
	d.addLeftoverDoubts()
	if d.Title == "" {
		if p, ok := profile.Lookup(d.Profile); ok {
			d.Title = p.Title
		}
	}
	return d.Verdict
}

func (d *detective) addDoubt(format string, args ...any) {
	if line := fmt.Sprintf(format, args...); !slices.Contains(d.Doubts, line) {
		d.Doubts = append(d.Doubts, line)
	}
}

func (d *detective) addUnproven(format string, args ...any) {
	if line := fmt.Sprintf(format, args...); !slices.Contains(d.Verdict.Unproven, line) {
		d.Verdict.Unproven = append(d.Verdict.Unproven, line)
	}
}

// distributions has for each distribution the signs of its nodes: a part of the kubelet's version, the start of the provider
// id, or a label. One sign is enough. "" means that there is no such sign.
var distributions = []struct{ name, version, provider, label string }{
	{"RKE2", "+rke2", "rke2://", ""},
	{"K3s", "+k3s", "k3s://", ""},
	{"kind", "", "kind://", ""},
	{"EKS", "-eks-", "", "eks.amazonaws.com/nodegroup"},
	{"GKE", "-gke.", "", "cloud.google.com/gke-nodepool"},
	{"AKS", "", "", "kubernetes.azure.com/cluster"},
	{"OpenShift", "", "", "node.openshift.io/os_id"},
	{"minikube", "", "", "minikube.k8s.io/version"},
	{"Talos", "", "talos://", ""},
}

// distribution returns the distribution that the first node with a sign shows, "" if unknown. A cloud's provider id is not a
// sign, because other distributions also run on a cloud's machines.
func distribution(nodes []corev1.Node) string {
	for _, n := range nodes {
		for _, d := range distributions {
			_, labelled := n.Labels[d.label]
			if d.version != "" && strings.Contains(n.Status.NodeInfo.KubeletVersion, d.version) || d.label != "" && labelled ||
				d.provider != "" && strings.HasPrefix(n.Spec.ProviderID, d.provider) {
				return d.name
			}
		}
	}
	return ""
}

// groupNodes groups nodes by their value; values has the value of each node. distinct has the different values, sorted.
// groups has for each of them a text such as "vxlan on n1, n2", in the same order.
func groupNodes(values map[string]string) (groups []string, distinct []string) {
	byValue := map[string][]string{}
	for node, v := range values {
		byValue[v] = append(byValue[v], node)
	}
	distinct = slices.Sorted(maps.Keys(byValue))
	for _, v := range distinct {
		nodes := byValue[v]
		slices.Sort(nodes)
		groups = append(groups, v+" on "+fewNames(nodes))
	}
	return groups, distinct
}

// fewNames lists up to four names and counts the rest.
func fewNames(names []string) string {
	const most = 4
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}
