package detect

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cnibench/cnibench/internal/env/kube/api"
	"github.com/cnibench/cnibench/internal/measure/netstate"
	"github.com/cnibench/cnibench/internal/profile"
)

// Values of workloadSpec.Kind.
const (
	daemonSetKind = "DaemonSet"
	// staticPod is a static pod of the kubelet.
	staticPod = "Pod"
)

// Snapshot is a cluster as Read found it.
type Snapshot struct {
	// Server is the version of the API server.
	Server string
	Nodes  []corev1.Node
	// Workloads are the DaemonSets of all namespaces, and static pods named kube-proxy.
	Workloads  []workloadSpec
	ConfigMaps []configMap
	// Objects are objects as the API returns them: Calico's Installation, FelixConfiguration and IPPools, OpenShift's
	// Network, and at most one NetworkPolicy.
	Objects []map[string]any
	// CiliumStatus is the output of `cilium-dbg status --verbose` by node.
	CiliumStatus map[string]string
	// Seen has the observations from pods.
	Seen []seenAtEnd
	// Unproven lists what could not be read, with the reason.
	Unproven []string
}

// underlayFamily returns the family of the addresses between the nodes, as those of a node show it; 4 if it is unknown.
func (s Snapshot) underlayFamily(node string) int {
	for _, n := range s.Nodes {
		if n.Name == node {
			return api.UnderlayFamily(api.NodeAddresses(n))
		}
	}
	return 4
}

// ReadyNodes returns the names of up to n ready Linux nodes, in the order of their names. Cordoned nodes come after all
// others.
func ReadyNodes(nodes []corev1.Node, n int) []string {
	var names, cordoned []string
	for _, node := range nodes {
		if os := node.Labels[corev1.LabelOSStable]; api.Unready(node) != "" || os != "" && os != "linux" {
			continue
		}
		if node.Spec.Unschedulable {
			cordoned = append(cordoned, node.Name)
		} else {
			names = append(names, node.Name)
		}
	}
	slices.Sort(names)
	slices.Sort(cordoned)
	names = append(names, cordoned...)
	return names[:min(n, len(names))]
}

// workloadSpec is a DaemonSet, or kube-proxy as a static pod.
type workloadSpec struct {
	Kind, Namespace, Name string
	// Containers have only the fields Name, Image, Args and Env. Args begins with the command. Env lacks the variables
	// whose value is a reference.
	Containers []corev1.Container
	// Desired and Ready count pods.
	Desired, Ready int
}

// String returns the kind and the full name of the workload.
func (w workloadSpec) String() string { return w.Kind + " " + w.Namespace + "/" + w.Name }

// configMap is one ConfigMap.
type configMap struct {
	Namespace, Name string
	Data            map[string]string
}

// String returns the kind and full name of the ConfigMap.
func (c configMap) String() string { return "ConfigMap " + c.Namespace + "/" + c.Name }

// seenAtEnd has the observations of one pod.
type seenAtEnd struct {
	// Pod, Node, Host and Role are those of the pod's End.
	Pod, Node string
	Host      bool
	Role      string
	netstate.State
}

// findDaemonSet returns the DaemonSet with the first of names that exists, in any namespace. It returns false if none
// exists.
func (s Snapshot) findDaemonSet(names ...string) (workloadSpec, bool) {
	for _, name := range names {
		for _, w := range s.Workloads {
			if w.Kind == daemonSetKind && w.Name == name {
				return w, true
			}
		}
	}
	return workloadSpec{}, false
}

// runsCNI reports whether the CNI has a DaemonSet.
func (s Snapshot) runsCNI(c profile.CNI) bool {
	_, ok := s.findDaemonSet(c.Daemons...)
	return ok
}

// configMap returns the ConfigMap with the first of names that exists. It prefers the given namespace to others. It returns
// false if none exists.
func (s Snapshot) configMap(namespace string, names ...string) (configMap, bool) {
	for _, name := range names {
		for _, anywhere := range []bool{false, true} {
			for _, c := range s.ConfigMaps {
				if c.Name == name && (anywhere || c.Namespace == namespace) {
					return c, true
				}
			}
		}
	}
	return configMap{}, false
}

// objects returns the objects of a kind in s.Objects.
func (s Snapshot) objects(kind string) []map[string]any {
	var found []map[string]any
	for _, o := range s.Objects {
		if k, _ := o["kind"].(string); k == kind {
			found = append(found, o)
		}
	}
	return found
}

// hostObservations returns the observations of host-network pods.
func (s Snapshot) hostObservations() []seenAtEnd {
	return slices.DeleteFunc(slices.Clone(s.Seen), func(n seenAtEnd) bool { return !n.Host })
}

// podObservations returns the observations of ordinary pods.
func (s Snapshot) podObservations() []seenAtEnd {
	return slices.DeleteFunc(slices.Clone(s.Seen), func(n seenAtEnd) bool { return n.Host })
}

// field returns the value at the path keys in an object, nil if it is missing.
func field(o map[string]any, keys ...string) any {
	value, _, _ := unstructured.NestedFieldNoCopy(o, keys...) // an object of another shape has no such field
	return value
}

// stringField returns the string at the path keys in an object, "" if it is missing or not a string.
func stringField(o map[string]any, keys ...string) string {
	s, _ := field(o, keys...).(string)
	return s
}

// imageVersion returns the tag of an image, "" for an image without a tag.
func imageVersion(image string) string {
	image, _, _ = strings.Cut(image, "@")
	slash := strings.LastIndex(image, "/")
	colon := strings.LastIndex(image, ":")
	if colon <= slash {
		return ""
	}
	return image[colon+1:]
}
