package recipe

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/cnibench/cnibench/internal/env/kube/detect"
	"github.com/cnibench/cnibench/internal/env/kube/recipe/residue"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// Survey has the CNIs that a cluster runs, and leftovers of earlier CNIs.
type Survey struct {
	// CNIs maps the name of each installed CNI to its DaemonSet, "namespace/name". For an installed plugin without a
	// daemon, it maps residue.Plugins to the ConfigMap of the plugin's inventory.
	CNIs map[string]string
	// Proxy is true if kube-proxy runs. ProxyMode is its configured mode, by default iptables.
	Proxy     bool
	ProxyMode string
	Nodes     []corev1.Node
	// Left are the leftovers of earlier CNIs.
	Left []residue.Leftover
	// Unseen lists what could not be inspected, with the reasons.
	Unseen []string
}

// Survey returns the cluster's CNIs and leftovers. If Image is set, it also inspects every node from a privileged pod.
func (i *Installer) Survey(ctx context.Context) (Survey, error) {
	s := Survey{CNIs: map[string]string{}}
	seen := residue.Cluster{}
	sets, err := i.client.DaemonSets(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return s, err
	}
	for _, d := range sets.Items {
		s.addDaemonSet(d)
	}
	if !s.Proxy { // RKE2 runs it without a DaemonSet
		pods, err := i.client.Pods(proxyNamespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return s, err
		}
		s.Proxy = slices.ContainsFunc(pods.Items, func(p corev1.Pod) bool { return strings.HasPrefix(p.Name, proxyName+"-") && p.DeletionTimestamp == nil })
	}
	if s.ProxyMode, _, err = i.proxyConfig(ctx); err != nil {
		return s, err
	}
	nodes, err := i.client.Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return s, err
	}
	s.Nodes = nodes.Items
	seen.InForce = slices.Collect(maps.Keys(s.CNIs))
	if s.Proxy {
		seen.InForce = append(seen.InForce, residue.KubeProxy)
	}
	installed, err := i.inventories(ctx)
	if err != nil {
		return s, err
	}
	for _, inv := range installed {
		if r, err := Lookup(inv.Profile); err == nil && r.Family == "plugins" {
			s.CNIs[residue.Plugins] = inventoryPrefix + inv.Profile
			seen.InForce = append(seen.InForce, residue.Plugins)
		}
	}
	if err := i.addObservations(ctx, &seen, s.Nodes); err != nil {
		return s, err
	}
	if s.addHiddenProxy(seen.Nodes) {
		seen.InForce = append(seen.InForce, residue.KubeProxy)
	}
	s.Left, s.Unseen = residue.Judge(seen), seen.AllUnseen()
	return s, nil
}

// addHiddenProxy adds a kube-proxy that has answered on a node, although no object of the cluster is one: in K3s it is a part
// of another process. It reports whether there is one.
func (s *Survey) addHiddenProxy(nodes []residue.Node) bool {
	n, ok := each.First(nodes, func(n residue.Node) bool { return n.Sight.ProxyMode != "" })
	if !ok || s.Proxy {
		return false
	}
	s.Proxy, s.ProxyMode = true, n.Sight.ProxyMode
	return true
}

func (s *Survey) addDaemonSet(d appsv1.DaemonSet) {
	if d.Name == proxyName && d.Namespace == proxyNamespace {
		_, stopped := d.Spec.Template.Spec.NodeSelector[proxySelector]
		s.Proxy = s.Proxy || !stopped && d.Status.DesiredNumberScheduled > 0
		return
	}
	selectsNoNode := d.Status.DesiredNumberScheduled == 0 && d.Generation > 0 && d.Status.ObservedGeneration >= d.Generation
	if owner := detect.CNIOf(d.Name); owner != "" && !selectsNoNode {
		s.CNIs[owner] = d.Namespace + "/" + d.Name
	}
}

// definitionsAt is the resource of CustomResourceDefinitions.
var definitionsAt = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// addObservations adds the CustomResourceDefinitions to c, and for each node its annotations and taints. If Image is set, it
// also adds the observations of a pod on each node.
func (i *Installer) addObservations(ctx context.Context, c *residue.Cluster, nodes []corev1.Node) error {
	list, err := i.dynamic.Resource(definitionsAt).List(ctx, metav1.ListOptions{})
	switch {
	case apierrors.IsForbidden(err):
		c.Unseen = append(c.Unseen, "no right to list customresourcedefinitions")
	case err != nil:
		return err
	default:
		for _, d := range list.Items {
			c.Definitions = append(c.Definitions, d.GetName())
		}
	}
	looked := map[string]residue.Node{}
	if i.Image != "" {
		if looked, err = i.inspectNodes(ctx, nodes); err != nil {
			return err
		}
	}
	for _, n := range nodes {
		r := looked[n.Name]
		of := nodeParams(n)
		r.Name, r.Address, r.PodCIDR = n.Name, of.Address, of.PodCIDR
		for key := range n.Annotations {
			r.Annotations = append(r.Annotations, key)
		}
		for _, t := range n.Spec.Taints {
			r.Taints = append(r.Taints, t.Key)
		}
		c.Nodes = append(c.Nodes, r)
	}
	return nil
}

// refusalReasons surveys the cluster and returns the reasons not to install r. It reports what could not be inspected.
func (i *Installer) refusalReasons(ctx context.Context, r Recipe) ([]string, error) {
	s, err := i.Survey(ctx)
	if err != nil {
		return nil, err
	}
	for _, u := range s.Unseen {
		i.Say("not seen: %s", u)
	}
	return s.refusalReasons(r, i.StopProxy), nil
}

// refusalReasons returns the reasons not to install r on the surveyed cluster. stopProxy means that kube-proxy will be
// stopped; a running kube-proxy is then not a reason.
func (s Survey) refusalReasons(r Recipe, stopProxy bool) []string {
	var list []string
	say := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	if !r.Secondary {
		for _, owner := range slices.Sorted(maps.Keys(s.CNIs)) {
			say("CNI %s is installed (%s): uninstall it first", owner, s.CNIs[owner])
		}
		for _, l := range s.Left {
			if l.Owner != residue.KubeProxy || r.KubeProxy == "none" {
				say("%s; %s: %s", l, l.Harm, l.Remove)
			}
		}
	}
	switch {
	case r.KubeProxy == "none" && s.Proxy && !stopProxy:
		say("kube-proxy runs, and this profile replaces it: stop it with --stop-kube-proxy")
	case r.KubeProxy == "iptables" || r.KubeProxy == "nftables":
		if !s.Proxy {
			say("kube-proxy does not run, and this profile requires it for Services")
		} else if s.ProxyMode != r.KubeProxy {
			say("kube-proxy is in mode %s, and this profile requires %s: set mode in ConfigMap %s/%s and restart its pods", s.ProxyMode, r.KubeProxy, proxyNamespace, proxyName)
		}
	}
	for _, n := range s.Nodes {
		if kernel := n.Status.NodeInfo.KernelVersion; isOlderKernel(kernel, r.Kernel) {
			say("node %s has Linux %s, and this profile requires %s", n.Name, kernel, r.Kernel)
		}
		if r.NodeCIDRs && !nodeParams(n).PodCIDR.IsValid() {
			say("node %s has no podCIDR, which this profile requires: start kube-controller-manager with --allocate-node-cidrs and --cluster-cidr", n.Name)
		}
	}
	return list
}

// isOlderKernel reports whether the kernel version a, such as 6.8.0-31-generic, is lower than b, such as 6.8. It returns
// false if a version cannot be parsed.
func isOlderKernel(a, b string) bool {
	x, errA := version.ParseGeneric(a)
	y, errB := version.ParseGeneric(b)
	return errA == nil && errB == nil && x.LessThan(y)
}
