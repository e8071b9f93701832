package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/cnibench/cnibench/internal/env/kube/api"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/plan/mesh"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// attendance records which nodes take part in a run over pairs of nodes.
type attendance struct {
	nodes []mesh.Node
	// leftOut lists the nodes that do not take part because they are unsuitable, with the reasons.
	leftOut string
	mu      sync.Mutex
	// away has the nodes that cannot be measured now, by name.
	away map[string]absence
}

// absence is why a node cannot be measured.
type absence struct {
	why string
	// soon means that the node's pods are starting.
	soon bool
	// asked is when the API server was last asked about the node.
	asked time.Time
}

const (
	// askAgain is the time between two requests to the API server about a node that is away, askSoon the time if the
	// node's pods are starting.
	askAgain, askSoon = 10 * time.Second, time.Second
	// backLimit bounds the wait for starting pods.
	backLimit = 30 * time.Second
)

// mustAskAgain reports whether the node was away and it is time to ask the API server about it again.
func (a absence) mustAskAgain() bool {
	limit := askAgain
	if a.soon {
		limit = askSoon
	}
	return a.why != "" && time.Since(a.asked) > limit
}

// meshPlacement returns the placement of a run over pairs. It chooses the nodes that some pair of the plan may include.
// unfit has the nodes that cannot take pods, with the reasons; a chosen node in unfit counts as away and may come back. It
// fails if the nodes do not fit the plan's pairs.
func meshPlacement(nodes []corev1.Node, unfit map[string]string, o Options) (placement, error) {
	if faults := o.Pairs.Fits(each.Of(nodes, func(n corev1.Node) string { return n.Name })); faults != nil {
		var err error = faults
		if len(unfit) > 0 {
			err = fmt.Errorf("%w (%s)", err, unfitReasons(unfit))
		}
		return placement{}, &ConfigError{err}
	}
	among := o.Pairs.Among(each.Of(nodes, func(n corev1.Node) string { return n.Name }), o.Seed)
	p := placement{mesh: &attendance{away: map[string]absence{}}}
	others := maps.Clone(unfit)
	for _, n := range nodes {
		if !among[n.Name] {
			continue
		}
		p.nodes = append(p.nodes, n)
		p.mesh.nodes = append(p.mesh.nodes, mesh.Node{Name: n.Name, Labels: nodeProperties(n)})
		if why := unfit[n.Name]; why != "" {
			p.mesh.away[n.Name] = absence{why: why}
			delete(others, n.Name)
		}
	}
	mesh.Order(p.mesh.nodes)
	p.members = each.Of(p.mesh.nodes, func(n mesh.Node) string { return n.Name })
	if len(others) > 0 && o.Pairs.File() == "" {
		p.mesh.leftOut = unfitReasons(others)
		o.Say("left out: %s", p.mesh.leftOut)
	}
	return p, nil
}

// nodeProperties returns the properties of a node in which nodes may differ: zone, instance type, architecture, kernel,
// system.
func nodeProperties(n corev1.Node) map[string]string {
	all := map[string]string{
		"zone": n.Labels[corev1.LabelTopologyZone], "instance type": n.Labels[corev1.LabelInstanceTypeStable],
		"arch": n.Labels[corev1.LabelArchStable], "kernel": n.Status.NodeInfo.KernelVersion, "system": n.Status.NodeInfo.OSImage,
	}
	maps.DeleteFunc(all, func(_, value string) bool { return value == "" })
	return all
}

// absenceOf returns why a node cannot be measured; the zero absence if it can.
func (a *attendance) absenceOf(node string) absence {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.away[node]
}

// setAbsence stores why a node cannot be measured now; the zero absence means that it can.
func (a *attendance) setAbsence(node string, now absence) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if delete(a.away, node); now.why != "" {
		now.asked = time.Now()
		a.away[node] = now
	}
}

// startingNodes returns the nodes whose pods are starting.
func (a *attendance) startingNodes() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.DeleteFunc(slices.Sorted(maps.Keys(a.away)), func(node string) bool { return !a.away[node].soon })
}

// presentPods returns pods without the pods whose node is away.
func (p placement) presentPods(pods []*podSpec) []*podSpec {
	if p.mesh == nil {
		return pods
	}
	return slices.DeleteFunc(slices.Clone(pods), func(s *podSpec) bool { return p.mesh.absenceOf(s.Node).why != "" })
}

// awayMarker returns a function that marks the node of a pod as away, for pods that do not become ready. If the run is not
// over pairs, awayMarker returns nil, because such a run needs all of its pods.
func (p placement) awayMarker(say func(string, ...any)) func(pod, why string) {
	if p.mesh == nil {
		return nil
	}
	return func(pod, why string) {
		node := p.nodeOf(pod)
		if p.mesh.absenceOf(node).why == "" {
			say("node %s is away: %s", node, why)
		}
		p.mesh.setAbsence(node, absence{why: why})
	}
}

// firstTwoNodes returns the first two members that are not away. It fails if there are fewer.
func (p placement) firstTwoNodes() (first, second string, err error) {
	var there []string
	away := map[string]string{}
	for _, node := range p.members {
		if a := p.mesh.absenceOf(node); a.why != "" {
			away[node] = a.why
		} else {
			there = append(there, node)
		}
	}
	if len(there) < 2 {
		return "", "", errors.New(tooFewNodesMessage(cmp.Or(strings.Join(there, ", "), "no node"), away))
	}
	return there[0], there[1], nil
}

// ringRoutes returns routes unchanged if the run is not over pairs. In a run over pairs it returns each route once for every
// node: from that node to the next one, and from the last node to the first.
func (p placement) ringRoutes(routes []plan.Route) []plan.Route {
	if p.mesh == nil {
		return routes
	}
	var all []plan.Route
	for i, node := range p.members {
		for _, r := range routes {
			r.Pair = mesh.Pair{From: node, To: p.members[(i+1)%len(p.members)]}
			all = append(all, r)
		}
	}
	return all
}

// pairEnds returns the pods at the ends of a route over a pair of nodes. For a route without a pair it uses p.client and
// p.server. why is the reason if a node of the pair does not take part in the run.
func (p placement) pairEnds(r plan.Route) (e ends, why string) {
	if r.Pair.IsZero() {
		r.Pair = mesh.Pair{From: p.client, To: p.server}
	}
	for i, node := range []string{r.Pair.From, r.Pair.To} {
		at := slices.Index(p.members, node)
		if at < 0 {
			return e, fmt.Sprintf("node %q takes no part in the run", node)
		}
		pod := member + strconv.Itoa(at+1)
		if isHostProfile(r.Variant) || []plan.Role{r.Path.From, r.Path.To}[i] == plan.Host {
			pod = inHost + pod
		}
		if i == 0 {
			e.client = pod
		} else {
			e.servers = []string{pod}
		}
	}
	return e, ""
}

// Mesh is a Cluster in which a run measures pairs of nodes. A node may go away and come back; then its pods are created
// again.
type Mesh struct{ *Cluster }

// Nodes returns the nodes that take part, with the properties in which they may differ.
func (m Mesh) Nodes() []mesh.Node { return slices.Clone(m.place.mesh.nodes) }

// Away returns a node of the pair that cannot be measured now, and why. Both are "" if both nodes can be measured. failed
// means that a trial of the pair has just failed; Away then asks the API server about both nodes. Otherwise it asks only
// about nodes that were away, at most once in askAgain or askSoon.
func (m Mesh) Away(ctx context.Context, p mesh.Pair, failed bool) (node, why string) {
	for _, node := range []string{p.From, p.To} {
		was := m.place.mesh.absenceOf(node)
		if failed || was.mustAskAgain() {
			was = m.updateAbsence(ctx, node, was)
		}
		if was.why != "" {
			return node, was.why
		}
	}
	return "", ""
}

// Await waits, at most backLimit, until the pods that are starting are ready or have failed.
func (m Mesh) Await(ctx context.Context) {
	// If they do not become ready, their pairs stay away.
	_ = wait.PollUntilContextTimeout(ctx, askSoon, backLimit, true, func(ctx context.Context) (bool, error) {
		for _, node := range m.place.mesh.startingNodes() {
			m.updateAbsence(ctx, node, m.place.mesh.absenceOf(node))
		}
		return len(m.place.mesh.startingNodes()) == 0, nil
	})
}

// updateAbsence asks the API server whether a node can be measured, stores the answer and returns it. If ctx ends, it
// returns was.
func (m Mesh) updateAbsence(ctx context.Context, node string, was absence) absence {
	now := m.nodeAbsence(ctx, node)
	if ctx.Err() != nil {
		return was
	}
	m.place.mesh.setAbsence(node, now)
	return now
}

// nodeAbsence asks the API server whether a node can be measured; the zero absence means that it can. If the node can take
// pods, nodeAbsence creates missing pods again, without waiting for them.
func (m Mesh) nodeAbsence(ctx context.Context, node string) absence {
	ctx, stop := context.WithTimeout(ctx, askLimit)
	defer stop()
	list, err := m.client.Nodes().List(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", node).String()})
	if err != nil {
		return absence{why: "the API server does not say how it is: " + plainRequestError(err).Error()}
	}
	at := slices.IndexFunc(list.Items, func(n corev1.Node) bool { return n.Name == node })
	if at < 0 {
		return absence{why: "it is not a node of the cluster"}
	}
	unfit := unsuitableReason(list.Items[at], m.options)
	var all []string
	soon := unfit == ""
	for _, s := range m.layout.pods {
		if s.Node != node {
			continue
		}
		if why, comes := m.podAbsence(ctx, s, unfit == ""); why != "" {
			all, soon = append(all, why), soon && comes
		}
	}
	if why := api.Unready(list.Items[at]); why != "" {
		all = append(all, "it "+why)
	} else if len(all) > 0 && unfit != "" {
		all = append(all, unfit)
	}
	return absence{why: strings.Join(slices.Compact(all), "; "), soon: soon}
}

// podAbsence returns why a pod cannot be used. If the pod can be used, podAbsence stores its addresses and returns "". soon
// reports whether the pod may become ready without help. podAbsence deletes a pod that was evicted, or that ended after it
// was ready. If anew is true, it creates a missing pod again.
func (m Mesh) podAbsence(ctx context.Context, s *podSpec, anew bool) (why string, soon bool) {
	pods := m.client.Pods(m.namespace(s.Host()))
	p, err := pods.Get(ctx, s.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && !anew:
		return "its pods are gone", false
	case apierrors.IsNotFound(err):
		if err := m.makePod(ctx, s); err != nil {
			return "make a pod: " + err.Error(), true
		}
		return "its pods are made anew", true
	case err != nil:
		return "the API server does not say how its pods are: " + plainRequestError(err).Error(), true
	}
	m.mu.Lock()
	_, stood := m.pods[s.Name]
	m.mu.Unlock()
	now := api.StateOf(p)
	switch {
	case now.Ready:
	case now.Ended && p.DeletionTimestamp == nil && (stood || p.Status.Reason != ""):
		if err := pods.Delete(ctx, s.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(1))}); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Sprintf("pod %s: %s; it cannot be removed: %s", s.Name, now.Why, plainRequestError(err)), true
		}
		return "pod " + s.Name + ": " + now.Why, true
	default: // a program that ended before it was ever ready would do so again
		return "pod " + s.Name + ": " + cmp.Or(now.Why, unreadyReason(p), "it is not ready"), !now.Hopeless || p.DeletionTimestamp != nil
	}
	addresses := api.Addresses(p)
	if api.PickFamily(addresses, m.options.Family) == "" {
		return fmt.Sprintf("pod %s has no IPv%d address", s.Name, max(m.options.Family, 4)), true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pods[s.Name] = standing{node: s.Node, addresses: addresses}
	return "", false
}
