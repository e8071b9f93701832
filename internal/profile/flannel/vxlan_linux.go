package flannel

import (
	"github.com/cnibench/cnibench/internal/dataplane"
	"github.com/cnibench/cnibench/internal/dataplane/policy"
	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/profile/plugins"
)

// VXLAN is flannel with its vxlan backend:
//
//	pod eth0 ── veth ─ cni0 ─ node's stack ─ flannel.1 ─ UDP 8472 ─ eth0 ── switch ── eth0 ─ flannel.1 ─ stack ─ cni0 ─ veth ── pod
//
// Each other node has three entries: a permanent neighbour entry of its tunnel address, a forwarding entry from that
// neighbour's MAC address to the node's address, and a route to its pods via the tunnel address. Conntrack tracks the outer
// packets like any other packets of the node.
type VXLAN struct{ dataplane.Nothing }

func (VXLAN) Arrange(n *dataplane.Node, number, pods int) {
	ArrangeTunnel(n, number)
	plugins.ArrangeVeths(n, pods, n.Tunnel.MTU, n.PodCIDR.Bits())
}

// ArrangeTunnel assigns the pod range and the device flannel.1 to the node. In IPv6 the device is called flannel-v6.1.
func ArrangeTunnel(n *dataplane.Node, number int) {
	n.PodCIDR = dataplane.Subnet(n.Cluster, number)
	device := "flannel.1"
	if n.IPv6() {
		device = "flannel-v6.1"
	}
	n.Tunnel = dataplane.Tunnel{
		Device: device, Addr: dataplane.Nth(n.PodCIDR, 0), MAC: dataplane.TunnelMAC(n), VNI: 1, Port: 8472, MTU: n.MTU - dataplane.VXLANOverhead(n),
	}
}

func (VXLAN) Prepare(n dataplane.Node) []link.Thing {
	return append(plugins.PrepareBridge(plugins.PodBridge, n, n.Tunnel.MTU), dataplane.PrepareVXLAN(n)...)
}

func (VXLAN) AttachPod(n dataplane.Node, p dataplane.Pod, in *link.Handle) []link.Thing {
	return plugins.AttachToBridge(plugins.BridgePort{Node: n, Pod: p, Hairpin: true, ClusterRoute: true}, in)
}

func (VXLAN) JoinNodes(from, to dataplane.Node) []link.Thing {
	return append(dataplane.JoinVXLAN(from, to), link.Route{To: to.PodCIDR, Via: to.Tunnel.Addr, Dev: from.Tunnel.Device, OnLink: true})
}

func (VXLAN) Rules(n dataplane.Node, _ []dataplane.Node) policy.Node {
	return policy.Node{Flannel: &policy.FlannelConfig{ClusterCIDR: n.Cluster, PodCIDR: n.PodCIDR}}
}
