package kube

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/env/kube/api"
	"github.com/cnibench/cnibench/internal/env/kube/detect"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// lifeline is how long an agent waits for its controller's keepalives before it ends. The network between them may fail
// without closing their connection.
const lifeline = 15 * time.Second

// isHostProfile reports whether v is the profile host or its twin.
func isHostProfile(v plan.Variant) bool { return v.Profile() == profileHost }

// Endpoints returns the ends of a route. Servers behind a Service have its address and port. It fails with a
// *control.NotServedError if the cluster has no such route.
func (c *Cluster) Endpoints(r plan.Route) (ends control.Ends, err error) {
	at, why := c.place.ends(c.options, r)
	if why == "" && r.NewPods && isHostProfile(r.Variant) {
		why = "its pods share the network of their node: nothing is attached"
	}
	if why == "" && r.Rests != "" && isHostProfile(r.Variant) {
		why = "its nodes are those of the CNI that runs there"
	}
	if why != "" {
		return ends, c.notServedError(r, why)
	}
	if ends.Client, err = c.podEndpoint(r.Variant, at.client); err != nil {
		return ends, err
	}
	for _, pod := range at.servers {
		server, err := c.podEndpoint(r.Variant, pod)
		if err != nil {
			return ends, err
		}
		server.Port = server.ListenPort
		if at.service != "" {
			if why, err := c.setServiceAddress(&server, serviceSpec{Name: at.service, Host: isHostPod(pod)}); err != nil {
				return ends, err
			} else if why != "" {
				return ends, c.notServedError(r, why)
			}
		}
		ends.Servers = append(ends.Servers, server)
	}
	return ends, nil
}

func (c *Cluster) notServedError(r plan.Route, why string) error {
	return &control.NotServedError{Profile: r.Variant, Path: r.Path.String(), Reason: why}
}

// podEndpoint returns the endpoint of a pod for a profile, with the pod's own address to dial and to listen on. It fails if
// the pod was not created.
func (c *Cluster) podEndpoint(profile plan.Variant, pod string) (control.Endpoint, error) {
	c.mu.Lock()
	s, ok := c.pods[pod]
	c.mu.Unlock()
	if !ok {
		return control.Endpoint{}, fmt.Errorf("the cluster was raised without pod %s", pod)
	}
	address := api.PickFamily(s.addresses, c.options.Family)
	name := profile.String() + "/" + pod
	if c.place.mesh != nil {
		name += " on node " + s.node
	}
	return control.Endpoint{
		Name: name, Address: address, ListenAddress: address, ListenPort: c.listenPort(profile, pod), CPUs: c.options.CPUs,
		Lifeline: lifeline,
		Start:    func(ctx context.Context) (io.ReadWriteCloser, error) { return c.startAgent(ctx, pod) },
	}, nil
}

// listenPort returns the port on which servers of a profile listen in a pod. It differs between a profile and its twin. In
// a host-network pod it also differs between the profile host and a CNI's profile.
func (c *Cluster) listenPort(profile plan.Variant, pod string) int {
	slot := 0
	if profile.IsTwin() {
		slot = 1
	}
	if !isHostPod(pod) {
		return podPorts()[slot]
	}
	if !isHostProfile(profile) {
		slot += 2
	}
	return c.hostPorts[slot]
}

// setServiceAddress sets the server's address to that of its Service. For a NodePort it sets the first node's address and
// the node port. why is the reason if a Service of type LoadBalancer has no address. It fails if the Service was not
// created, has no such port, or if the node has no address of the wanted family.
func (c *Cluster) setServiceAddress(server *control.Endpoint, s serviceSpec) (why string, err error) {
	c.mu.Lock()
	r, ok := c.services[s]
	c.mu.Unlock()
	if !ok {
		return "", fmt.Errorf("the cluster was raised without Service %s", s.Name)
	}
	server.Address = r.address
	if !s.NodePort() {
		return r.why, nil
	}
	if server.Port = r.nodePorts[server.ListenPort]; server.Port == 0 {
		return "", fmt.Errorf("no node port of Service %s leads to port %d", s.Name, server.ListenPort)
	}
	// A path to a NodePort enters at the first node.
	var addresses []string
	for _, n := range c.place.nodes {
		if n.Name == c.place.client {
			addresses = api.NodeAddresses(n)
		}
	}
	if server.Address = api.PickFamily(addresses, c.options.Family); server.Address == "" {
		return "", fmt.Errorf("node %s has no internal address of that family, but %s", c.place.client, cmp.Or(strings.Join(addresses, ", "), "none"))
	}
	return "", nil
}

// rolled is the suffix of the names of Services whose backends Roll changes. Each has the same backends as the Service without
// the suffix. Only workloads that roll use them, so a change that a node has not yet noticed disturbs no other trial.
const rolled = "-rolled"

// Roll adds a backend to its Service if in is true, and removes it otherwise. It changes only the pod's label that the
// Service selects, so the pod and its agent keep running. Roll returns when the API server has stored the change.
// Controllers and nodes learn of the change later; that delay is measured.
func (c *Cluster) Roll(ctx context.Context, b control.Backend, in bool) error {
	e, why := c.place.ends(c.options, b.Route)
	if why == "" && b.Index >= len(e.servers) {
		why = fmt.Sprintf("it has no backend %d", b.Index+1)
	}
	if why != "" {
		return fmt.Errorf("%s: %s", b.Route, why)
	}
	pod := e.servers[b.Index]
	var label any // null removes the label
	if in {
		label = isBehind
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]any{labelBehind + e.service: label}}})
	if err != nil {
		return err
	}
	_, err = c.client.Pods(c.namespace(isHostPod(pod))).Patch(ctx, pod, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("change the labels of pod %s: %w", pod, withAdvice(withCause(ctx, err)))
	}
	return nil
}

// Nodes returns the client's node, and the server's node if the cluster has one.
func (c *Cluster) Nodes() []string {
	return slices.DeleteFunc([]string{c.place.client, c.place.server}, func(name string) bool { return name == "" })
}

// NodesOf returns the nodes of a route's ends: the client's, then the servers'. It fails with a *control.NotServedError if
// the cluster has no such route.
func (c *Cluster) NodesOf(r plan.Route) ([]string, error) {
	at, why := c.place.ends(c.options, r)
	if why != "" {
		return nil, c.notServedError(r, why)
	}
	return each.Of(append([]string{at.client}, at.servers...), c.place.nodeOf), nil
}

// Ground returns the input for the proofs of package detect: the pods that are ready, and the plan's paths between them that
// use no Service. In a run over pairs it has only the pods of the first two nodes.
func (c *Cluster) Ground(profile string) detect.Ground {
	g := detect.Ground{Profile: profile}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, spec := range c.layout.pods {
		s, ok := c.pods[spec.Name]
		if !ok || c.place.mesh != nil && !slices.Contains(c.Nodes(), spec.Node) {
			continue
		}
		e := detect.End{Pod: spec.Name, Node: spec.Node, By: c, Host: spec.Host()}
		e.Address, _ = netip.ParseAddr(api.PickFamily(s.addresses, c.options.Family)) // unknown is the zero address
		switch {
		case spec.Name == podClient, spec.Name == hostClient, c.place.mesh != nil && spec.Node == c.place.client:
			e.Role = "client"
		case spec.Name == podServer, spec.Name == hostServer, c.place.mesh != nil:
			e.Role = "server"
		}
		g.Ends = append(g.Ends, e)
	}
	for _, p := range c.options.Paths {
		if p.To != plan.Pod && p.To != plan.Host {
			continue
		}
		e, why := c.place.ends(c.options, plan.Single(plan.Variant{}, p))
		if why != "" {
			continue
		}
		r := detect.Route{Path: p.String(), Client: e.client, Server: e.servers[0]}
		again := func(other detect.Route) bool { return other.Client == r.Client && other.Server == r.Server }
		if r.Client != r.Server && !slices.ContainsFunc(g.Routes, again) {
			g.Routes = append(g.Routes, r)
		}
	}
	return g
}
