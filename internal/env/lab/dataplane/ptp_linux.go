package dataplane

import (
	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/plan"
)

// ptp is the ptp plugin with a route per node. Every pod has a link of its own to the node, and the node's end of each
// bears the same gateway address:
//
//	pod eth0 ── veth1a2b3c4d (gateway/32) ─ node's stack ─ eth0 ── switch ── eth0 ─ node's stack ─ veth ── pod
//
// Pods of one node reach each other through the node's stack, at layer 3.
type ptp struct{ nothing }

func (ptp) Arrange(n *Node, number, pods int) {
	n.PodCIDR = subnet(n.Cluster, number)
	arrangeVeths(n, pods, n.MTU, n.PodCIDR.Bits())
}

func (ptp) Prepare(n Node, at *link.Handle) error { return forwarding(n, at) }

func (ptp) AttachPod(n Node, at *link.Handle, p Pod, in *link.Handle) error {
	gw := n.gateway()
	return run(
		func() error {
			return at.AddVeth(link.Veth{Name: p.HostDevice, Peer: NIC, PeerMAC: p.MAC, PeerIn: in, MTU: p.MTU})
		},
		func() error { return at.AddAddress(p.HostDevice, single(gw)) },
		func() error {
			return at.AddRoute(link.Route{To: single(p.Addr.Addr()), Dev: p.HostDevice, LinkScope: true})
		},
		// The plugin takes the route away that the kernel makes for the address's range; an address of its own has none.
		func() error { return in.AddAddressNoRoute(NIC, p.Addr) },
		func() error {
			return in.AddRoute(link.Route{To: single(gw), Dev: NIC, LinkScope: true, Source: p.Addr.Addr()})
		},
		func() error {
			return in.AddRoute(link.Route{To: n.PodCIDR, Via: gw, Dev: NIC, Source: p.Addr.Addr()})
		},
		func() error { return in.AddRoute(link.Route{To: everywhere(gw), Via: gw, Dev: NIC}) },
	)
}

func (ptp) JoinNodes(_ Node, at *link.Handle, to Node) error {
	return at.AddRoute(link.Route{To: to.PodCIDR, Via: to.Addr.Addr(), Dev: NIC})
}

func (ptp) NotServed(p plan.Path) string { return noMasquerade(p) }
