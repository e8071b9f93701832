package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/cnibench/cnibench/internal/env/kube/api"
	"github.com/cnibench/cnibench/internal/vocab/advice"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// placement has the nodes that a run uses.
type placement struct {
	// client and server are the names of the client's and the server's node. third is the node of a client that is on
	// neither of them. A name is "" if the cluster has no such node.
	client, server, third string
	// why is the reason if there is no server node, or no third node.
	why string
	// nodes are the chosen nodes. The nodes of client, server and third come first, if they are set.
	nodes []corev1.Node
	// members are the nodes of the largest job's members: first the client's and the server's node, then others. In a run
	// over pairs they are all nodes of the run.
	members []string
	// mesh is set only in a run over pairs of nodes.
	mesh *attendance
}

// controlRoles are the labels of control-plane nodes. The control plane disturbs the measurement, and k3s and RKE2 do
// not taint such nodes.
var controlRoles = []string{"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master", "node-role.kubernetes.io/etcd"}

// isControlPlane reports whether a node is a control-plane node.
func isControlPlane(n corev1.Node) bool {
	return slices.ContainsFunc(controlRoles, func(label string) bool { _, has := n.Labels[label]; return has })
}

// controlPlanes lists the chosen nodes that are control-plane nodes.
func (p placement) controlPlanes() string {
	var all []string
	for _, n := range p.nodes {
		if isControlPlane(n) {
			all = append(all, n.Name)
		}
	}
	return strings.Join(all, ", ")
}

// choosePlacement chooses the nodes of a run's client and server, a third node, and more nodes for a job. It prefers nodes
// without the control plane, then nodes of the same zone, instance type and architecture, then the order of names. It fails
// if no node can take pods, if too few can for a job, or if a node that o names cannot.
func choosePlacement(nodes []corev1.Node, o Options) (placement, error) {
	named := func(name string) bool { return name == o.ClientNode || name == o.ServerNode }
	var fit []corev1.Node
	var faults []error
	unfit := map[string]string{}
	seen := map[string]bool{}
	for _, n := range nodes {
		seen[n.Name] = true
		why := unsuitableReason(n, o)
		switch {
		case why == "":
			fit = append(fit, n)
		case named(n.Name):
			faults = append(faults, fmt.Errorf("node %s: %s", n.Name, why))
		default:
			unfit[n.Name] = why
		}
	}
	for _, name := range []string{o.ClientNode, o.ServerNode} {
		if name != "" && !seen[name] {
			faults = append(faults, fmt.Errorf("there is no node %q; there are %s", name, nodeNames(nodes)))
		}
	}
	if err := errors.Join(faults...); err != nil {
		return placement{}, &ConfigError{err}
	}
	if o.Pairs.File() != "" {
		return meshPlacement(nodes, unfit, o)
	}
	if len(fit) == 0 {
		return placement{}, advice.With(fmt.Errorf("no node can take pods: %s", unfitReasons(unfit)), "look at kubectl get nodes; a taint is passed by a toleration")
	}
	if o.Pairs.Given() {
		return meshPlacement(fit, unfit, o)
	}
	slices.SortFunc(fit, func(a, b corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	p := pickEnds(fit, o, unfit)
	if o.Members > 0 {
		if len(fit) < o.Members {
			return placement{}, &ConfigError{fmt.Errorf("a job of %d members needs a node each, and %s", o.Members, tooFewNodesMessage(number.Counted(len(fit), "node"), unfit))}
		}
		p.chooseMembers(fit, o.Members)
	}
	return p, nil
}

// chooseMembers chooses the nodes for the n members of a job: the client's and the server's node, then the nodes in fit that
// have the highest fitness together with the client's node. It adds them to p.members, and to p.nodes if they are missing
// there.
func (p *placement) chooseMembers(fit []corev1.Node, n int) {
	first := p.nodes[0]
	rest := slices.Clone(fit)
	slices.SortStableFunc(rest, func(a, b corev1.Node) int { return fitness(first, b) - fitness(first, a) })
	for _, node := range append([]corev1.Node{p.nodes[0], p.nodes[1]}, rest...) {
		if len(p.members) == n {
			break
		}
		if slices.Contains(p.members, node.Name) {
			continue
		}
		p.members = append(p.members, node.Name)
		if !slices.ContainsFunc(p.nodes, func(chosen corev1.Node) bool { return chosen.Name == node.Name }) {
			p.nodes = append(p.nodes, node)
		}
	}
}

// pickEnds chooses the client's, the server's and the third node by their fitness from fit. fit is sorted by name. unfit has
// the other nodes of the cluster with the reasons, for messages.
func pickEnds(fit []corev1.Node, o Options, unfit map[string]string) placement {
	var client, server *corev1.Node
	best := -1
	for i := range fit {
		for j := range fit {
			a, b := &fit[i], &fit[j]
			if i == j || o.ClientNode != "" && a.Name != o.ClientNode || o.ServerNode != "" && b.Name != o.ServerNode {
				continue
			}
			if s := fitness(*a, *b); s > best {
				client, server, best = a, b, s
			}
		}
	}
	if client == nil {
		return placement{client: fit[0].Name, nodes: fit[:1], why: tooFewNodesMessage("one node", unfit)}
	}
	p := placement{client: client.Name, server: server.Name, nodes: []corev1.Node{*client, *server}}
	best = -1
	for i := range fit {
		n := &fit[i]
		if n.Name == p.client || n.Name == p.server {
			continue
		}
		if s := fitness(*client, *n); s > best {
			best, p.third = s, n.Name
			p.nodes = append(p.nodes[:2:2], *n)
		}
	}
	if p.third == "" {
		p.why = tooFewNodesMessage("two nodes", unfit)
	}
	return p
}

// tooFewNodesMessage returns a message that no nodes except those in the text nodes can take pods. It adds why the nodes in
// unfit cannot.
func tooFewNodesMessage(nodes string, unfit map[string]string) string {
	if len(unfit) == 0 {
		return nodes + " alone can take pods"
	}
	return nodes + " alone can take pods: " + unfitReasons(unfit)
}

// fitness returns a score for two nodes as the ends of a path; higher is better. How few of them are control-plane nodes
// counts most, then their likeness.
func fitness(a, b corev1.Node) int {
	score := likeness(a, b)
	for _, n := range []corev1.Node{a, b} {
		if !isControlPlane(n) {
			score += mostLike + 1
		}
	}
	return score
}

// mostLike is the maximum of likeness.
const mostLike = 1<<3 - 1

// likeness returns a score of what two nodes have in common: the zone counts most, then the instance type, then the
// architecture.
func likeness(a, b corev1.Node) int {
	score := 0
	for weight, label := range []string{corev1.LabelArchStable, corev1.LabelInstanceTypeStable, corev1.LabelTopologyZone} {
		if a.Labels[label] == b.Labels[label] {
			score += 1 << weight
		}
	}
	return score
}

// unsuitableReason returns why a node cannot take the pods of a run, "" if it can.
func unsuitableReason(n corev1.Node, o Options) string {
	if n.DeletionTimestamp != nil {
		return "it is being deleted"
	}
	if n.Spec.Unschedulable {
		return "it is cordoned"
	}
	if os := n.Labels[corev1.LabelOSStable]; os != "" && os != string(corev1.Linux) {
		return "it runs " + os
	}
	for key, value := range o.NodeSelector {
		if n.Labels[key] != value {
			return fmt.Sprintf("it has no label %s=%s", key, value)
		}
	}
	if why := api.Unready(n); why != "" {
		return "it " + why
	}
	for _, t := range n.Spec.Taints {
		if t.Effect != corev1.TaintEffectPreferNoSchedule && !isTolerated(&t, tolerations(o)) {
			return "it has the taint " + t.ToString() + ", which is not tolerated"
		}
	}
	return ""
}

func isTolerated(t *corev1.Taint, by []corev1.Toleration) bool {
	return slices.ContainsFunc(by, func(have corev1.Toleration) bool { return have.ToleratesTaint(klog.Background(), t, false) })
}

// unfitReasons lists nodes with the reason why each is unsuitable.
func unfitReasons(unfit map[string]string) string {
	var all []string
	for name, why := range unfit {
		all = append(all, name+": "+why)
	}
	slices.Sort(all)
	return cmp.Or(strings.Join(all, "; "), "the cluster has no nodes")
}

// nodeNames lists the names of the nodes, sorted. Of more than ten it lists ten and counts the others.
func nodeNames(nodes []corev1.Node) string {
	all := each.Of(nodes, func(n corev1.Node) string { return n.Name })
	slices.Sort(all)
	const most = 10
	if len(all) > most {
		return strings.Join(all[:most], ", ") + fmt.Sprintf(" and %d more", len(all)-most)
	}
	return cmp.Or(strings.Join(all, ", "), "none")
}

// chooseNodes lists the cluster's nodes and stores the run's placement.
func (c *Cluster) chooseNodes(ctx context.Context) error {
	list, err := c.client.Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list the nodes: %w", withAdvice(withCause(ctx, err)))
	}
	c.place, err = choosePlacement(list.Items, c.options)
	return err
}

// chooseNodesAndImage chooses the run's nodes, and then the image, which may depend on the nodes. It stores both.
func (c *Cluster) chooseNodesAndImage(ctx context.Context) error {
	if err := c.chooseNodes(ctx); err != nil {
		return err
	}
	return c.chooseImage(ctx)
}
