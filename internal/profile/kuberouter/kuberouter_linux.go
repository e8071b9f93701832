package kuberouter

import (
	"net/netip"
	"slices"

	"github.com/cnibench/cnibench/internal/dataplane"
	"github.com/cnibench/cnibench/internal/dataplane/policy"
	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/profile/plugins"
)

// kubeRouter is kube-router without its service proxy, as k0s has it, on nodes of one subnet:
//
//	pod eth0 ── veth1a2b3c4d ─ kube-bridge ─ node's stack, a list of rules for each local pod ─ eth0 ── switch ── ...
//
// The product learns a route to each other node by BGP; here the routes are static. Every packet of a pod, also of an
// established connection, walks a list with all pods of the node to the pod's own chain. A routing rule sends packets of
// pods through table 77, which has routes to nodes behind tunnels. Without other subnets it is empty.
type kubeRouter struct{ dataplane.Nothing }

// bridge is the name of the bridge to which the pods of a node are connected.
const bridge = "kube-bridge"

// The routing table for nodes behind tunnels, and the priority of the rule that leads to it.
const (
	tunnelTable = 77
	tunnelRule  = 32765
)

func (kubeRouter) Arrange(n *dataplane.Node, number, pods int) {
	plugins.Bridge{}.Arrange(n, number, pods)
}

func (kubeRouter) Prepare(n dataplane.Node) []link.Thing {
	return append(plugins.PrepareBridge(bridge, n, n.MTU), link.Rule{Priority: tunnelRule, From: n.PodCIDR, Table: tunnelTable})
}

func (kubeRouter) AttachPod(n dataplane.Node, p dataplane.Pod, in *link.Handle) []link.Thing {
	return plugins.AttachToBridge(plugins.BridgePort{Bridge: bridge, Node: n, Pod: p, Hairpin: true}, in)
}

func (kubeRouter) JoinNodes(_, to dataplane.Node) []link.Thing {
	return []link.Thing{link.Route{To: to.PodCIDR, Via: to.Addr.Addr(), Dev: dataplane.NIC, Protocol: dataplane.ProtocolZebra}}
}

func (kubeRouter) Rules(n dataplane.Node, others []dataplane.Node) policy.Node {
	c := policy.KubeRouterConfig{IPv6: n.IPv6(), Subnets: []netip.Prefix{n.PodCIDR}, NodeAddrs: []netip.Addr{n.Addr.Addr()}}
	for _, o := range others {
		c.Subnets, c.NodeAddrs = append(c.Subnets, o.PodCIDR), append(c.NodeAddrs, o.Addr.Addr())
	}
	// kube-router keeps pods in a map without order. The first pods are in the middle here, which is where a pod is on
	// average.
	half := len(n.Pods) / 2
	for _, p := range slices.Concat(n.Pods[half:], n.Pods[:half]) {
		c.Pods = append(c.Pods, policy.LocalPod{Name: p.Name, Addr: p.Addr.Addr()})
	}
	return policy.Node{KubeRouter: &c}
}
