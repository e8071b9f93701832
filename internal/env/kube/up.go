package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/cnibench/cnibench/internal/env/kube/api"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/advice"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

const (
	// beat is the time between two polls.
	beat = 200 * time.Millisecond
	// accountLimit bounds the wait for the service account of a new namespace, which pods need.
	accountLimit = 30 * time.Second
	// patience is how long a pod may have a fault that may pass, such as a failed image pull.
	patience = 15 * time.Second
	// undoLimit bounds the removal of the run's objects after Up has failed.
	undoLimit = time.Minute
)

// standing describes a pod that became ready.
type standing struct {
	node string
	// addresses are the pod's IP addresses, in the cluster's order.
	addresses []string
}

// reachable is a created Service, with the address that clients dial. balancer, mode and why are only for a Service of type
// LoadBalancer.
type reachable struct {
	address string
	// nodePorts are the node ports by Service port, nil for a Service without node ports.
	nodePorts map[int]int
	// balancer is the host name of the load balancer, "" if the cluster shows only an IP address.
	balancer string
	// mode is the ipMode of the address: VIP, the default, or Proxy.
	mode corev1.LoadBalancerIPMode
	// why is the reason if there is no address.
	why string
}

// Up chooses the nodes and creates the namespaces, pods and Services that the plan needs. It waits until all pods are ready.
// Then it waits, at most LoadBalancerTimeout, until all load balancers have addresses. After an error it removes everything.
func (c *Cluster) Up(ctx context.Context) error {
	err := c.createObjects(ctx)
	if err == nil {
		return nil
	}
	undo, stop := context.WithTimeout(context.WithoutCancel(ctx), undoLimit)
	defer stop()
	if left := c.Close(undo); left != nil {
		return advice.With(errors.Join(err, left), advice.Of(err))
	}
	return err
}

func (c *Cluster) createObjects(ctx context.Context) error {
	if err := c.chooseNodesAndImage(ctx); err != nil {
		return err
	}
	c.layout = newLayout(c.options, c.place)
	if len(c.layout.pods) == 0 {
		return &ConfigError{advice.With(fmt.Errorf("this cluster serves none of the plan's paths: %s", cmp.Or(c.unservedPaths(), "it has none")),
			"choose other --paths (cnibench list paths), or allow more nodes")}
	}
	c.options.Say("making %d pods and %d Services in namespace %s", len(c.layout.pods), len(c.layout.services), c.namespace(false))
	if err := c.makeNamespaces(ctx); err != nil {
		return err
	}
	if err := c.makePods(ctx); err != nil {
		return err
	}
	if err := c.checkTools(ctx); err != nil {
		return err
	}
	if err := c.chooseHostPorts(ctx); err != nil {
		return err
	}
	for _, s := range c.layout.services {
		if err := c.makeService(ctx, s); err != nil {
			return fmt.Errorf("create Service %s: %w", s.Name, withAdvice(withCause(ctx, err)))
		}
	}
	return c.awaitBalancers(ctx)
}

// Renews reports whether the user may delete pods, which Renew requires.
func (c *Cluster) Renews(ctx context.Context) bool {
	missing, err := c.Missing(ctx, []Right{renewRight})
	return err == nil && len(missing) == 0
}

// Renew deletes the run's pods and creates them again on the same nodes. It returns when all pods are ready, and
// fails if they take too long. Services and ports stay.
func (c *Cluster) Renew(ctx context.Context) error {
	err := wait.PollUntilContextTimeout(ctx, beat, c.options.Ready, true, func(ctx context.Context) (bool, error) {
		pods, err := c.listPods(ctx)
		for name, p := range pods {
			if p.DeletionTimestamp == nil && err == nil {
				err = c.client.Pods(p.Namespace).Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(1))})
			}
		}
		if err != nil && (api.Passing(err) || apierrors.IsNotFound(err)) {
			return false, nil
		}
		return len(pods) == 0, err
	})
	if err != nil {
		return fmt.Errorf("delete the pods: %w", withAdvice(withCause(ctx, err)))
	}
	return c.makePods(ctx)
}

// makePods creates the pods of all nodes that are not away, and calls awaitPods to wait until they are ready. It fails if the
// API server refuses a pod, or if awaitPods fails.
func (c *Cluster) makePods(ctx context.Context) error {
	making, first := errgroup.WithContext(ctx)
	making.SetLimit(requestsAtOnce)
	for _, s := range c.place.presentPods(c.layout.pods) {
		making.Go(func() error {
			if err := c.makePod(first, s); err != nil {
				return fmt.Errorf("create pod %s: %w", s.Name, withPodAdvice(s.Name, withCause(ctx, err)))
			}
			return nil
		})
	}
	if err := making.Wait(); err != nil {
		return err
	}
	return c.awaitPods(ctx)
}

// unservedPaths lists the paths of the plan that the cluster does not serve, with the reasons. It returns "" if it serves all.
func (c *Cluster) unservedPaths() string {
	var all []string
	for _, p := range c.options.Paths {
		if _, why := c.place.ends(c.options, plan.Single(plan.Variant{}, p)); why != "" {
			all = append(all, p.String()+": "+why)
		}
	}
	return strings.Join(all, "; ")
}

// Unserved chooses the nodes, and lists the paths of the plan that the cluster does not serve, with the reasons. It returns ""
// if it serves all. It creates nothing in the cluster.
func (c *Cluster) Unserved(ctx context.Context) (string, error) {
	if err := c.chooseNodes(ctx); err != nil {
		return "", err
	}
	return c.unservedPaths(), nil
}

func (c *Cluster) makeNamespaces(ctx context.Context) error {
	for _, host := range []bool{false, true} {
		if host && !c.layout.hasHostPod() {
			continue
		}
		ns := namespaceObject(c.identity, host)
		c.created = append(c.created, ns.Name) // also when the answer is lost
		if _, err := c.client.Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
			words := withAdvice
			if host { // the other one was not refused
				words = withHostAdvice
			}
			return fmt.Errorf("create namespace %s: %w", ns.Name, words(withCause(ctx, err)))
		}
		if err := api.CopySecrets(ctx, c.client, c.PullSecrets(), c.objectMeta("", host)); err != nil {
			return withAdvice(withCause(ctx, err))
		}
	}
	return nil
}

// makePod creates a pod. It waits for the service account of a new namespace. If the pod exists already, it was created by an
// earlier request whose answer was lost. makePod fails if the cluster adds containers to the pod.
func (c *Cluster) makePod(ctx context.Context, s *podSpec) error {
	p := podObject(c.identity, c.options, *s)
	var made *corev1.Pod
	var last error
	err := wait.PollUntilContextTimeout(ctx, beat, accountLimit, true, func(ctx context.Context) (bool, error) {
		made, last = c.client.Pods(p.Namespace).Create(ctx, p, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(last) {
			made, last = c.client.Pods(p.Namespace).Get(ctx, p.Name, metav1.GetOptions{})
		}
		if last != nil && (api.Passing(last) || apierrors.IsForbidden(last) && strings.Contains(last.Error(), "error looking up service account")) {
			return false, nil
		}
		return true, last
	})
	if wait.Interrupted(err) && last != nil {
		return last
	}
	if err != nil {
		return err
	}
	return checkContainers(made)
}

// checkContainers fails if the cluster has injected containers into a pod, as service meshes do. The pod's traffic may then go
// through a proxy, whose cost would be attributed to the CNI.
func checkContainers(p *corev1.Pod) error {
	var others []string
	for _, list := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for _, container := range list {
			if container.Name != containerName {
				others = append(others, container.Name)
			}
		}
	}
	if others == nil {
		return nil
	}
	return advice.With(fmt.Errorf("the cluster adds containers to it: %s; a proxy would be measured, not the CNI", strings.Join(others, ", ")),
		"have the webhook that injects them leave out namespaces labelled "+LabelManagedBy+"="+ManagedBy)
}

// awaitPods waits until every pod is ready and stores the pods' addresses. It fails if a pod cannot become ready or is late,
// runs on a wrong node, or has no address of the wanted family. In a run over pairs, a node whose pod does not become
// ready is marked as away instead; awaitPods fails if fewer than two nodes remain.
func (c *Cluster) awaitPods(ctx context.Context) error {
	names := each.Of(c.place.presentPods(c.layout.pods), func(s *podSpec) string { return s.Name })
	pods, err := api.Await{
		Names: names, List: c.listPods, Done: func(_ *corev1.Pod, now api.State) bool { return now.Ready },
		Interval: beat, Limit: c.options.Ready, Patience: patience, Lost: c.place.awayMarker(c.options.Say),
	}.Pods(ctx)
	var late *api.LateError
	switch {
	case errors.As(err, &late):
		return c.lateError(ctx, late.Waiting)
	case err != nil:
		return fmt.Errorf("wait for the pods: %w", withAdvice(withCause(ctx, err)))
	}
	for _, s := range c.place.presentPods(c.layout.pods) {
		c.pods[s.Name] = standing{node: pods[s.Name].Spec.NodeName, addresses: api.Addresses(pods[s.Name])}
	}
	if c.place.mesh != nil {
		if c.place.client, c.place.server, err = c.place.firstTwoNodes(); err != nil {
			return err
		}
	}
	return c.checkPlacement()
}

// listPods returns the run's pods by name.
func (c *Cluster) listPods(ctx context.Context) (map[string]*corev1.Pod, error) {
	all := map[string]*corev1.Pod{}
	for _, ns := range c.created {
		pods, err := api.ListPods(ctx, c.client, ns, LabelRun+"="+c.run)
		if err != nil {
			return nil, err
		}
		maps.Copy(all, pods)
	}
	return all, nil
}

// lateError returns the error for the pods in waiting, which are not ready in time. It describes up to three of them.
func (c *Cluster) lateError(ctx context.Context, waiting map[string]api.State) error {
	const most = 3
	var lines []string
	wayOut := ""
	for i, name := range slices.Sorted(maps.Keys(waiting)) {
		if i == most {
			lines = append(lines, fmt.Sprintf("and %d more", len(waiting)-most))
			break
		}
		lines = append(lines, cmp.Or(c.podFault(ctx, name), "pod "+name+": nothing is known of it"))
		wayOut = cmp.Or(waiting[name].Advice, wayOut)
	}
	return advice.With(fmt.Errorf("%d pods are not ready after %s: %s", len(waiting), c.options.Ready, strings.Join(lines, "; ")), wayOut)
}

// checkPlacement fails if a pod is not on the node of its spec, or has no address of the wanted family.
func (c *Cluster) checkPlacement() error {
	for _, s := range c.place.presentPods(c.layout.pods) {
		p := c.pods[s.Name]
		if p.node != s.Node {
			return fmt.Errorf("pod %s runs on node %q and belongs on %q", s.Name, p.node, s.Node)
		}
		if api.PickFamily(p.addresses, c.options.Family) == "" {
			return advice.With(&ConfigError{fmt.Errorf("pod %s has no IPv%d address, but %s", s.Name, max(c.options.Family, 4), cmp.Or(strings.Join(p.addresses, ", "), "none"))},
				"this cluster does not have that family of IP")
		}
	}
	return nil
}

func (c *Cluster) makeService(ctx context.Context, s serviceSpec) error {
	ports := podPorts()
	if s.Host {
		ports = c.hostPorts[:podSlots]
	}
	svc, err := c.client.Services(c.namespace(s.Host)).Create(ctx, serviceObject(c.identity, c.options, s, ports), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	r := reachable{address: svc.Spec.ClusterIP}
	if s.Balancer() {
		r.address = "" // nothing is entered there
	}
	if s.NodePort() {
		if !sameNodePorts(svc) {
			return errors.New("the API server gave TCP and UDP different node ports, and a path has one")
		}
		r.nodePorts = tcpNodePorts(svc)
	}
	c.services[s] = r
	return nil
}
