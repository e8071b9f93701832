package detect

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/cnibench/cnibench/internal/env/kube/api"
	"github.com/cnibench/cnibench/internal/env/kube/recipe/residue"
	"github.com/cnibench/cnibench/internal/measure/netstate"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// Clients has the clients of a cluster.
type Clients struct {
	Kube    *api.Client
	Dynamic dynamic.Interface
	// Exec runs a program in a container and returns its stdout; nil if Read must not run programs in others' pods.
	Exec func(ctx context.Context, c ContainerRef, argv []string) ([]byte, error)
	// Stream runs a program in a container until it ends, with the streams of o. Read does not use it.
	Stream func(ctx context.Context, c ContainerRef, argv []string, o remotecommand.StreamOptions) error
}

// ContainerRef names a container.
type ContainerRef struct{ Namespace, Pod, Container string }

// usual are the namespaces in which CNIs and kube-proxy usually run. If the user may not list DaemonSets in all namespaces,
// Read lists them only there.
var usual = []string{"kube-system", "kube-flannel", "calico-system", "tigera-operator", "cilium"}

// Read reads from a cluster what Detect requires. Snapshot.Unproven lists what could not be read because a right is missing.
// Read fails if the API server does not answer, or if ctx has ended.
func Read(ctx context.Context, c Clients) (Snapshot, error) {
	r := &reader{ctx: ctx, Clients: c, selectors: map[string]string{}}
	for _, step := range []func() error{r.readVersion, r.readNodes, r.readDaemonSets, r.readStaticProxies, r.readConfigMaps, r.readCalicoObjects, r.readNetworks, r.readPolicies, r.readCiliumStatus} {
		if err := step(); err != nil {
			return Snapshot{}, err
		}
		if err := ctx.Err(); err != nil {
			return Snapshot{}, context.Cause(ctx)
		}
	}
	return r.s, nil
}

// reader is the state of one call of Read.
type reader struct {
	Clients
	ctx context.Context
	s   Snapshot
	// selectors are the pod selectors of DaemonSets, by namespace/name.
	selectors map[string]string
}

// tolerate returns nil if err means that an object is missing or that the user lacks a right. It records a missing right as
// unproven. It returns any other error with the prefix what, which describes the request.
func (r *reader) tolerate(err error, what string) error {
	switch {
	case apierrors.IsForbidden(err):
		r.s.Unproven = append(r.s.Unproven, "no right to "+what)
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
	default:
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

func (r *reader) readVersion() (err error) {
	if r.s.Server, err = r.Kube.Version(r.ctx); err != nil {
		return r.tolerate(err, "read the version of the API server")
	}
	return nil
}

func (r *reader) readNodes() error {
	list, err := r.Kube.Nodes().List(r.ctx, metav1.ListOptions{})
	if err != nil {
		return r.tolerate(err, "list nodes")
	}
	r.s.Nodes = list.Items
	return nil
}

// readDaemonSets lists the DaemonSets of all namespaces, or of the usual ones if listing all is forbidden.
func (r *reader) readDaemonSets() error {
	list, err := r.Kube.DaemonSets(metav1.NamespaceAll).List(r.ctx, metav1.ListOptions{})
	if err == nil {
		r.addDaemonSets(list)
		return nil
	}
	if !apierrors.IsForbidden(err) {
		return fmt.Errorf("list daemonsets: %w", err)
	}
	var refused []string
	for _, namespace := range usual {
		list, err := r.Kube.DaemonSets(namespace).List(r.ctx, metav1.ListOptions{})
		switch {
		case err == nil:
			r.addDaemonSets(list)
		case apierrors.IsForbidden(err):
			refused = append(refused, namespace)
		default:
			return fmt.Errorf("list daemonsets in %s: %w", namespace, err)
		}
	}
	if len(refused) == len(usual) {
		r.s.Unproven = append(r.s.Unproven, "no right to list daemonsets, neither in all namespaces nor in kube-system")
	} else {
		r.s.Unproven = append(r.s.Unproven, "no right to list daemonsets in all namespaces: only the usual ones were read")
	}
	return nil
}

func (r *reader) addDaemonSets(list *appsv1.DaemonSetList) {
	for _, ds := range list.Items {
		w := newWorkload(daemonSetKind, ds.ObjectMeta, ds.Spec.Template.Spec)
		w.Desired, w.Ready = int(ds.Status.DesiredNumberScheduled), int(ds.Status.NumberReady)
		r.s.Workloads = append(r.s.Workloads, w)
		r.selectors[w.Namespace+"/"+w.Name] = metav1.FormatLabelSelector(ds.Spec.Selector)
	}
}

func newWorkload(kind string, m metav1.ObjectMeta, spec corev1.PodSpec) workloadSpec {
	w := workloadSpec{Kind: kind, Namespace: m.Namespace, Name: m.Name}
	for _, c := range spec.Containers {
		w.Containers = append(w.Containers, corev1.Container{
			Name: c.Name, Image: c.Image, Args: slices.Concat(c.Command, c.Args),
			Env: slices.DeleteFunc(slices.Clone(c.Env), func(e corev1.EnvVar) bool { return e.ValueFrom != nil }),
		})
	}
	return w
}

// readStaticProxies finds kube-proxy as a static pod, as in RKE2.
func (r *reader) readStaticProxies() error {
	if _, ok := r.s.findDaemonSet(kubeProxy, "rke2-kube-proxy"); ok {
		return nil
	}
	list, err := r.Kube.Pods("kube-system").List(r.ctx, metav1.ListOptions{})
	if err != nil {
		return r.tolerate(err, "list pods in kube-system")
	}
	for _, p := range list.Items {
		if _, static := p.Annotations[corev1.MirrorPodAnnotationKey]; static && strings.HasPrefix(p.Name, kubeProxy) {
			r.s.Workloads = append(r.s.Workloads, newWorkload(staticPod, p.ObjectMeta, p.Spec))
		}
	}
	return nil
}

// readConfigMaps reads the ConfigMaps of the CNI and of kube-proxy. It gets each of them by name, because fewer users may list
// ConfigMaps.
func (r *reader) readConfigMaps() error {
	for _, c := range cnis {
		w, ok := r.s.findDaemonSet(c.Daemons...)
		if !ok {
			continue
		}
		for _, name := range c.ConfigMaps {
			if err := r.readConfigMap(w.Namespace, name); err != nil {
				return err
			}
		}
	}
	// K3s runs flannel outside of pods.
	if of := cniNamed(flannel); !r.s.runsCNI(of) && len(r.s.flannelBackends()) > 0 {
		for _, namespace := range []string{"kube-flannel", "kube-system"} {
			if err := r.readConfigMap(namespace, of.ConfigMaps[0]); err != nil {
				return err
			}
		}
	}
	if w, ok := r.s.findDaemonSet(kubeProxy, "rke2-kube-proxy"); ok {
		for _, name := range []string{"kube-proxy", "kube-proxy-config"} {
			if err := r.readConfigMap(w.Namespace, name); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *reader) readConfigMap(namespace, name string) error {
	m, err := r.Kube.ConfigMaps(namespace).Get(r.ctx, name, metav1.GetOptions{})
	if err != nil {
		return r.tolerate(err, "get configmap "+name+" in "+namespace)
	}
	r.s.ConfigMaps = append(r.s.ConfigMaps, configMap{Namespace: namespace, Name: name, Data: m.Data})
	return nil
}

// groups are the API groups of Calico's objects. Objects are read from the first group that has any.
var groups = []schema.GroupVersion{{Group: "crd.projectcalico.org", Version: "v1"}, {Group: "projectcalico.org", Version: "v3"}}

// readCalicoObjects reads Calico's objects if the DaemonSet of Calico or canal was found.
func (r *reader) readCalicoObjects() error {
	if !r.s.runsCNI(cniNamed(calico)) && !r.s.runsCNI(cniNamed(canal)) {
		return nil
	}
	installation := schema.GroupVersionResource{Group: "operator.tigera.io", Version: "v1", Resource: "installations"}
	if _, err := r.readObjects(installation, "Installation"); err != nil {
		return err
	}
	for _, of := range []struct{ resource, kind string }{{"felixconfigurations", "FelixConfiguration"}, {"ippools", "IPPool"}} {
		for _, g := range groups {
			found, err := r.readObjects(g.WithResource(of.resource), of.kind)
			if err != nil {
				return err
			}
			if found {
				break
			}
		}
	}
	return nil
}

// readNetworks reads the Network objects of OpenShift's operator, if the DaemonSet of OVN-Kubernetes was found.
func (r *reader) readNetworks() error {
	if !r.s.runsCNI(cniNamed("ovn-kubernetes")) {
		return nil
	}
	_, err := r.readObjects(schema.GroupVersionResource{Group: "operator.openshift.io", Version: "v1", Resource: "networks"}, "Network")
	return err
}

// readPolicies reads at most one NetworkPolicy, because it only matters whether there is any. If the user may not list
// policies, it reads nothing and records nothing as unproven.
func (r *reader) readPolicies() error {
	l, err := r.Kube.NetworkPolicies(metav1.NamespaceAll).List(r.ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		if apierrors.IsForbidden(err) {
			return nil
		}
		return r.tolerate(err, "list networkpolicies")
	}
	for _, p := range l.Items {
		r.s.Objects = append(r.s.Objects, map[string]any{
			"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": map[string]any{"name": p.Name, "namespace": p.Namespace},
		})
		return nil
	}
	return nil
}

// readObjects adds the objects of a resource to the snapshot, with the given kind, and reports whether there are any.
func (r *reader) readObjects(resource schema.GroupVersionResource, kind string) (bool, error) {
	l, err := r.Dynamic.Resource(resource).List(r.ctx, metav1.ListOptions{})
	if err != nil {
		return false, r.tolerate(err, "list "+resource.Resource+"."+resource.Group)
	}
	for _, o := range l.Items {
		body := o.Object
		body["kind"] = kind
		r.s.Objects = append(r.s.Objects, body)
	}
	return len(l.Items) > 0, nil
}

// agentsAtOnce bounds how many agents are asked at once, agentTime how long one may take.
const (
	agentsAtOnce = 16
	agentTime    = 20 * time.Second
)

// readCiliumStatus runs cilium-dbg status in Cilium's agents, if there are any. If that fails for an agent, it records the
// agent's status as unproven.
func (r *reader) readCiliumStatus() error {
	w, ok := r.s.findDaemonSet(cniNamed(cilium).Daemons...)
	if !ok {
		return nil
	}
	if r.Exec == nil {
		r.s.Unproven = append(r.s.Unproven, "cilium-dbg status: no program may run in Cilium's pods")
		return nil
	}
	list, err := r.Kube.Pods(w.Namespace).List(r.ctx, metav1.ListOptions{LabelSelector: r.selectors[w.Namespace+"/"+w.Name]})
	if err != nil {
		return r.tolerate(err, "list pods in "+w.Namespace)
	}
	r.s.CiliumStatus = map[string]string{}
	outs, errs := make([][]byte, len(list.Items)), make([]error, len(list.Items))
	each.AtMost(agentsAtOnce, list.Items, func(i int, p corev1.Pod) {
		switch {
		case p.Status.Phase != corev1.PodRunning:
		case isUnready(p): // perhaps of a node that does not answer
			errs[i] = errors.New("the agent is not ready")
		default:
			outs[i], errs[i] = r.agentStatus(ContainerRef{p.Namespace, p.Name, "cilium-agent"})
		}
	})
	for i, p := range list.Items {
		switch {
		case errs[i] != nil:
			r.s.Unproven = append(r.s.Unproven, fmt.Sprintf("cilium-dbg status on %s: %v", p.Spec.NodeName, errs[i]))
			if apierrors.IsForbidden(errs[i]) {
				return nil
			}
		case p.Status.Phase == corev1.PodRunning:
			r.s.CiliumStatus[p.Spec.NodeName] = string(outs[i])
		}
	}
	return nil
}

// isUnready reports whether a pod has the condition Ready, and is not ready.
func isUnready(p corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status != corev1.ConditionTrue
	})
}

// agentStatus returns the output of cilium-dbg status in an agent's container, or of cilium status, its name before 1.15.
func (r *reader) agentStatus(c ContainerRef) ([]byte, error) {
	ctx, stop := context.WithTimeout(r.ctx, agentTime)
	defer stop()
	out, err := r.Exec(ctx, c, []string{"cilium-dbg", "status", "--verbose"})
	if err == nil || apierrors.IsForbidden(err) || ctx.Err() != nil {
		return out, err
	}
	old, second := r.Exec(ctx, c, []string{"cilium", "status", "--verbose"})
	if second != nil {
		return nil, errors.Join(err, second)
	}
	return old, nil
}

// detectMTU sets the MTU from the devices of the inspected pods, if all pods have the same MTU. It adds a doubt if the pods'
// MTUs differ, or differ from the configured MTU.
func (d *detective) detectMTU() {
	by := map[string]string{}
	for _, p := range d.podObservations() {
		if _, m, ok := p.Way(); ok {
			by[p.Pod] = fmt.Sprint(m)
		}
	}
	groups, distinct := groupNodes(by)
	switch {
	case len(distinct) > 1:
		d.addDoubt("the pods' MTU differs: %s", strings.Join(groups, "; "))
	case len(distinct) == 1:
		if d.MTU.Value != "" && d.MTU.Value != distinct[0] {
			d.addDoubt("MTU %s is configured (%s), pods have %s", d.MTU.Value, d.MTU.Source, distinct[0])
		}
		d.MTU = configClaim{distinct[0], "seen in pods"}
	case d.MTU.Value == "":
		d.addUnproven("the pods' MTU: no pod was inspected, and it is not configured")
	}
}

// foreignLeftovers lists what CNIs other than cni have left in the state s of a node, except files. It omits leftovers that
// may be of several CNIs. For cni "" it returns nil.
func foreignLeftovers(cni string, s netstate.State) []string {
	if cni == "" {
		return nil
	}
	var found []string
	in := residue.Cluster{InForce: []string{cni, residue.KubeProxy, residue.Plugins}, Nodes: []residue.Node{{Looked: true, Sight: s}}}
	for _, l := range residue.Judge(in) {
		if !strings.Contains(l.Owner, " or ") && l.Kind != "file" {
			found = append(found, l.Kind+" "+l.Name+" of "+l.Owner)
		}
	}
	return found
}

// addLeftoverDoubts adds a doubt for each inspected node with leftovers of another CNI, because these may process the node's
// packets. It also adds a doubt if nodes have annotations of flannel but the CNI is neither flannel nor canal.
func (d *detective) addLeftoverDoubts() {
	for _, h := range d.hostObservations() {
		if found := foreignLeftovers(d.CNI, h.State); len(found) > 0 {
			d.addDoubt("%s has leftovers of another CNI: %s", h.Node, strings.Join(found, ", "))
		}
	}
	nodes := slices.Sorted(maps.Keys(d.flannelBackends()))
	if len(nodes) > 0 && d.CNI != "" && d.CNI != flannel && d.CNI != canal {
		d.addDoubt("annotations of flannel are on %s, and the CNI is %s", fewNames(nodes), d.CNI)
	}
}
