package dataplane

import (
	"fmt"

	"github.com/cnibench/cnibench/internal/env/lab/policy"
	"github.com/cnibench/cnibench/internal/kernel/link"
)

// vxlanOverhead is what VXLAN adds to a packet, in bytes: IP 20 or 40, UDP 8, VXLAN 8, Ethernet 14.
func vxlanOverhead(n *Node) int {
	if n.IPv6() {
		return 70
	}
	return 50
}

// flannel is flannel with its vxlan backend:
//
//	pod eth0 ── veth ─ cni0 ─ node's stack ─ flannel.1 ─ UDP 8472 ─ eth0 ── switch ── eth0 ─ flannel.1 ─ stack ─ cni0 ─ veth ── pod
//
// The way to another node is three entries: its tunnel address as a permanent neighbour, that neighbour's MAC address
// behind the node's address, and a route to its pods via the tunnel address. The outer packets are tracked like any
// other of the node's.
type flannel struct{ nothing }

func (flannel) Arrange(n *Node, number, pods int) {
	arrangeFlannel(n, number)
	arrangeVeths(n, pods, n.Tunnel.MTU, n.PodCIDR.Bits())
}

// arrangeFlannel gives the node its range and its flannel.1, which in IPv6 is called flannel-v6.1.
func arrangeFlannel(n *Node, number int) {
	n.PodCIDR = subnet(n.Cluster, number)
	device := "flannel.1"
	if n.IPv6() {
		device = "flannel-v6.1"
	}
	n.Tunnel = Tunnel{
		Device: device, Addr: nth(n.PodCIDR, 0), MAC: tunnelMAC(n), VNI: 1, Port: 8472, MTU: n.MTU - vxlanOverhead(n),
	}
}

func (flannel) Prepare(n Node, at *link.Handle) error {
	return run(
		func() error { return prepareBridge(n, at, n.Tunnel.MTU) },
		func() error { return prepareTunnel(n, at) },
	)
}

// prepareTunnel makes the node's VXLAN device with its address.
func prepareTunnel(n Node, at *link.Handle) error {
	t := n.Tunnel
	return run(
		func() error {
			return at.AddVXLAN(link.VXLAN{
				Name: t.Device, MAC: t.MAC, MTU: t.MTU, VNI: t.VNI, Port: t.Port, Parent: NIC, Local: n.Addr.Addr(),
			})
		},
		func() error { return at.AddAddress(t.Device, single(t.Addr)) },
	)
}

func (flannel) AttachPod(n Node, at *link.Handle, p Pod, in *link.Handle) error {
	return attachToBridge(bridgePort{node: n, pod: p, hairpin: true, clusterRoute: true}, at, in)
}

func (flannel) JoinNodes(from Node, at *link.Handle, to Node) error {
	return run(
		func() error { return joinTunnel(from, at, to) },
		func() error {
			return at.AddRoute(link.Route{To: to.PodCIDR, Via: to.Tunnel.Addr, Dev: from.Tunnel.Device, OnLink: true})
		},
	)
}

// joinTunnel tells from's VXLAN device of the one of to.
func joinTunnel(from Node, at *link.Handle, to Node) error {
	err := run(
		func() error { return at.AddNeighbour(from.Tunnel.Device, to.Tunnel.Addr, to.Tunnel.MAC) },
		func() error { return at.AddForwarding(from.Tunnel.Device, to.Tunnel.MAC, to.Addr.Addr()) },
	)
	if err != nil {
		return fmt.Errorf("join %s to %s: %w", from.Name, to.Name, err)
	}
	return nil
}

func (flannel) Rules(n Node, _ []Node) policy.Node {
	return policy.Node{Flannel: &policy.FlannelConfig{ClusterCIDR: n.Cluster, PodCIDR: n.PodCIDR}}
}
