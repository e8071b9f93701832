package plugins

import (
	"github.com/cnibench/cnibench/internal/dataplane"
	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/plan"
)

// PTP is the ptp plugin with a route per node. Every pod has its own link to the node, and the node's end of each has
// the same gateway address:
//
//	pod eth0 ── veth1a2b3c4d (gateway/32) ─ node's stack ─ eth0 ── switch ── eth0 ─ node's stack ─ veth ── pod
//
// Pods of one node reach each other through the node's stack, at layer 3.
type PTP struct{ dataplane.Nothing }

func (PTP) Arrange(n *dataplane.Node, number, pods int) {
	n.PodCIDR = dataplane.Subnet(n.Cluster, number)
	ArrangeVeths(n, pods, n.MTU, n.PodCIDR.Bits())
}

func (PTP) AttachPod(n dataplane.Node, p dataplane.Pod, in *link.Handle) []link.Thing {
	gw := n.Gateway()
	return []link.Thing{
		link.Veth{Name: p.HostDevice, Peer: dataplane.NIC, PeerMAC: p.MAC, PeerIn: in, MTU: p.MTU},
		link.Address{Dev: p.HostDevice, Addr: dataplane.Single(gw)},
		link.Route{To: dataplane.Single(p.Addr.Addr()), Dev: p.HostDevice, HostScope: true},
		link.Inside{At: in, Things: []link.Thing{
			// The plugin removes the route that the kernel adds for the address's range; a single address has none.
			link.Address{Dev: dataplane.NIC, Addr: p.Addr, NoRoute: true},
			link.Route{To: dataplane.Single(gw), Dev: dataplane.NIC, LinkScope: true, Source: p.Addr.Addr()},
			link.Route{To: n.PodCIDR, Via: gw, Dev: dataplane.NIC, Source: p.Addr.Addr()},
			link.Route{To: dataplane.Everywhere(gw), Via: gw, Dev: dataplane.NIC},
		}},
	}
}

func (PTP) JoinNodes(from, to dataplane.Node) []link.Thing { return (Bridge{}).JoinNodes(from, to) }

func (PTP) NotServed(p plan.Path) string { return noMasqueradeReason(p) }
