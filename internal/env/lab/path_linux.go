package lab

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/dataplane"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/plan/condition"
	"github.com/cnibench/cnibench/internal/plan/mesh"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// Ends are the two ends of a path in one instance. The client is on the first node or is the external client.
type Ends struct {
	// Client and Server are names of hosts.
	Client, Server string
	// Address and Port are what the client dials. The server binds to ListenPort.
	Address          netip.Addr
	Port, ListenPort int
}

// Ends returns the ends of a path. It fails with a *control.NotServedError if the profile has no such path.
func (s instanceSpec) Ends(p plan.Path) (Ends, error) {
	reason := s.balancerRefusal(p)
	entered := s.nodePortPath(p)
	// If the nodes route it, a packet returns to the pod that sent it. A bridge would have to send it out of the port
	// that it came from.
	if routed := p.To == plan.Self && s.hasUnfilteredBridge(); reason == "" && !routed {
		reason = s.dataplane.NotServed(entered)
		if reason != "" && entered != p && s.announcerIndex() != 0 {
			reason = "externalTrafficPolicy Local: the node with the endpoint is called, and " + reason
		}
	}
	if reason == "" {
		reason = s.fileRefusal(p)
	}
	if reason == "" {
		reason = s.policyRefusal(entered)
	}
	if reason == "" && s.Lab.Conntrack == condition.ConntrackOff && p.ByService() && s.Profile.Services != ebpfServices {
		reason = "connections between pods are not tracked (conntrack=off), and replies of a Service's endpoint need tracking"
	}
	if reason == "" && s.hasUnfilteredBridge() && p.Neighbours() && p.To == plan.Service {
		reason = "netfilter does not see bridged packets (bridge-netfilter=off), and the bridge passes the endpoint's reply to the client past kube-proxy's translation"
	}
	if reason != "" {
		return Ends{}, s.notServedError(p, reason)
	}
	return s.Way(p), nil
}

// pairEnds returns the ends of a path between two nodes. For the zero pair it returns s.Ends(p). For another pair,
// the ends are its two nodes. Where the path begins or ends at a pod, it uses the first pod of the node. Such a
// path must lead to a host or a pod. pairEnds fails like s.Ends, or if a node is unknown.
func pairEnds(s instanceSpec, p plan.Path, pair mesh.Pair) (Ends, error) {
	e, err := s.Ends(p)
	if err != nil || pair.IsZero() {
		return e, err
	}
	at := map[string]dataplane.Node{}
	for _, n := range s.Nodes {
		at[n.Name] = n
	}
	from, here := at[pair.From]
	to, there := at[pair.To]
	if !here || !there {
		return e, fmt.Errorf("no such nodes: %s", pair)
	}
	e.Client, e.Server, e.Address = from.Name, to.Name, to.Addr.Addr()
	if p.From == plan.Pod {
		e.Client = from.Pods[0].Name
	}
	if p.To == plan.Pod {
		e.Server, e.Address = to.Pods[0].Name, to.Pods[0].Addr.Addr()
	}
	return e, nil
}

// memberNames returns the names of the hosts of a job's n members on a path. These are the first n nodes, or the
// first pod of each if the path begins at a pod. It fails with a *control.NotServedError if there are too few nodes
// or no such path.
func memberNames(s instanceSpec, p plan.Path, n int) ([]string, error) {
	if _, err := s.Ends(p); err != nil {
		return nil, err
	}
	if n > len(s.Nodes) {
		return nil, s.notServedError(p, fmt.Sprintf("it has %d nodes, and a job of %d members needs as many", len(s.Nodes), n))
	}
	return each.Of(s.Nodes[:n], func(node dataplane.Node) string {
		if p.From == plan.Pod {
			return node.Pods[0].Name
		}
		return node.Name
	}), nil
}

// hasUnfilteredBridge reports whether bridge-netfilter=off hides from netfilter the packets that the pods' bridge switches.
// It returns false for profiles where netfilter never sees such packets.
func (s instanceSpec) hasUnfilteredBridge() bool {
	return s.Lab.BridgeNetfilter == condition.BridgeNetfilterOff && s.Profile.FiltersBridge()
}

// policyRefusal returns why externalTrafficPolicy rules out a node port path. It returns "" if it does not.
func (s instanceSpec) policyRefusal(p plan.Path) string {
	if s.Lab.TrafficPolicy != condition.TrafficLocal || p.To != plan.NodePort {
		return ""
	}
	if p.Locality == plan.Remote {
		return "externalTrafficPolicy Local: the node that is called has no endpoint of the Service, and passes nothing on to another"
	}
	if _, switched := s.dataplane.(dataplane.Switched); switched {
		return "externalTrafficPolicy Local: the client's address is kept, so the pod answers it past the node, which alone could put the Service's address back"
	}
	if hasInterface(s.Nodes, func(d dataplane.Interface) bool { return d.Strict }) {
		return "externalTrafficPolicy Local: the client's address is kept, so the pod answers it through its own interface, where nothing puts the Service's address back"
	}
	return ""
}

// hasInterface reports whether a node has an interface besides its NIC for which is returns true.
func hasInterface(nodes []dataplane.Node, is func(dataplane.Interface) bool) bool {
	return slices.ContainsFunc(nodes, func(n dataplane.Node) bool { return slices.ContainsFunc(n.Interfaces, is) })
}

// Way returns the ends of a path, whether or not the profile serves it.
func (s instanceSpec) Way(p plan.Path) Ends {
	e := Ends{Port: agentPort, ListenPort: agentPort}
	switch p.From {
	case plan.Host:
		e.Client = s.Nodes[0].Name
	case plan.Pod:
		e.Client = s.Nodes[0].Pods[0].Name
	case plan.External:
		e.Client = s.External.Name
	}
	switch p.To {
	case plan.Host:
		n := s.Nodes[p.ServerNode()]
		e.Server, e.Address = n.Name, n.Addr.Addr()
	case plan.Pod:
		pod := s.Nodes[p.ServerNode()].Pods[1-p.ServerNode()]
		e.Server, e.Address = pod.Name, pod.Addr.Addr()
	case plan.External:
		e.Server, e.Address = s.External.Name, s.External.Addr.Addr()
	case plan.Service, plan.NodePort, plan.LoadBalancer, plan.Self:
		s.setServiceEnds(&e, p)
	}
	return e
}

// serviceOf returns the name of the Service that a path leads to; the path must lead to one.
func serviceOf(p plan.Path) string {
	switch {
	case p.To == plan.Self:
		return SelfService
	case p.ServerNode() == 1:
		return RemoteService
	}
	return LocalService
}

func (s instanceSpec) setServiceEnds(e *Ends, p plan.Path) {
	name := serviceOf(p)
	for _, svc := range s.Services {
		if svc.Name != name {
			continue
		}
		b := svc.Backends[0]
		e.Server, e.ListenPort = s.Nodes[b.Node].Pods[b.Pod].Name, svc.TargetPort
		e.Address, e.Port = s.dialAddress(svc, p)
	}
}

// dialAddress returns the address and port that the client of path p dials to reach a Service.
func (s instanceSpec) dialAddress(svc serviceSpec, p plan.Path) (netip.Addr, int) {
	switch p.To {
	case plan.NodePort:
		return s.Nodes[0].Addr.Addr(), svc.NodePort
	case plan.LoadBalancer:
		return svc.Balanced, svc.Port
	}
	return svc.VIP, svc.Port
}

func (s instanceSpec) notServedError(p plan.Path, reason string) error {
	return &control.NotServedError{Profile: s.Name, Path: p.String(), Reason: reason}
}
