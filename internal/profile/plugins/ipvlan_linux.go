package plugins

import (
	"github.com/cnibench/cnibench/internal/dataplane"
	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/plan"
)

// ipvlan gives each pod a device on top of the node's NIC that shares the NIC's MAC address, in l2 mode, and an address
// of the underlay. The driver finds the device of a packet by its IP address:
//
//	pod eth0 (ipvlan) ─ eth0 ── switch ── eth0 ─ (ipvlan) eth0 pod
//
// As with macvlan, packets do not pass the node's stack and its rules, and packets between pods of one node stay inside
// the driver. A node and its own pods cannot reach each other: neither sees the other's ARP requests.
type ipvlan struct{ dataplane.Nothing }

func (ipvlan) Arrange(n *dataplane.Node, number, pods int) {
	ArrangeOnUnderlay(n, number, pods)
	for i := range n.Pods {
		n.Pods[i].MAC = n.MAC
	}
}

func (ipvlan) AttachPod(_ dataplane.Node, p dataplane.Pod, in *link.Handle) []link.Thing {
	return []link.Thing{link.Child{Name: dataplane.NIC, IPvlan: true, MTU: p.MTU, Parent: dataplane.NIC, In: in}, Announced(p, in)}
}

func (ipvlan) NotServed(p plan.Path) string {
	return unservedReason(p, "an ipvlan", "an ipvlan device in l2 mode and the node that it stands on do not see each other's ARP requests")
}
