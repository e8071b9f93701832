package plugins

import (
	"net/netip"

	"github.com/cnibench/cnibench/internal/dataplane"
	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/plan"
)

// macvlan gives each pod a device of its own on top of the node's NIC, in bridge mode, and an address of the underlay:
//
//	pod eth0 (macvlan) ─ eth0 ── switch ── eth0 ─ (macvlan) eth0 pod
//
// Packets do not pass the node's stack or its rules. Packets between pods of one node stay inside the driver. A node
// and its own pods cannot reach each other, because a NIC does not receive what it sends.
type macvlan struct{ dataplane.Nothing }

func (macvlan) Arrange(n *dataplane.Node, number, pods int) { ArrangeOnUnderlay(n, number, pods) }

// ArrangeOnUnderlay adds pods with addresses of the nodes' own network.
func ArrangeOnUnderlay(n *dataplane.Node, number, pods int) {
	for i := range pods {
		addr := underlayAddr(n.Addr.Addr(), number, dataplane.FirstPod+i)
		n.Pods = append(n.Pods, dataplane.Pod{
			Name: dataplane.PodName(n, i), Addr: netip.PrefixFrom(addr, n.Addr.Bits()), MAC: dataplane.PodMAC(addr), MTU: n.MTU,
		})
	}
}

// underlayAddr returns the address of a pod on the underlay: 172.18.node.pod, or fd00:172:18::node:pod.
func underlayAddr(node netip.Addr, number, pod int) netip.Addr {
	b := node.AsSlice()
	if node.Is6() {
		b[13], b[15] = byte(number), byte(pod)
	} else {
		b[2], b[3] = byte(number), byte(pod)
	}
	a, _ := netip.AddrFromSlice(b) // as long as the node's
	return a
}

func (macvlan) AttachPod(_ dataplane.Node, p dataplane.Pod, in *link.Handle) []link.Thing {
	return []link.Thing{link.Child{Name: dataplane.NIC, MAC: p.MAC, MTU: p.MTU, Parent: dataplane.NIC, In: in}, Announced(p, in)}
}

func (macvlan) NotServed(p plan.Path) string {
	return unservedReason(p, "a macvlan", "a macvlan device in bridge mode cannot talk to the node that it stands on")
}

// Announced returns the address of a pod on the underlay, with the settings by which the kernel announces it to its
// neighbours when the device comes up. Unlike bridge, macvlan and ipvlan announce IPv6 addresses, too.
func Announced(p dataplane.Pod, in *link.Handle) link.Thing {
	return link.Inside{At: in, Things: []link.Thing{link.Settings{notifyARP, notifyND}, link.Address{Dev: dataplane.NIC, Addr: p.Addr}}}
}

// NoServices returns why a path from a pod to a Service is not served if the pod's packets bypass its node, and "" for other
// paths. kind is the kind of the pod's device, with an article.
func NoServices(p plan.Path, kind string) string {
	if p.From == plan.Pod && (p.To == plan.Service || p.To == plan.Self) {
		return "nothing on " + kind + " pod's way translates a Service's address: the node's kube-proxy rules are bypassed"
	}
	return ""
}

// unservedReason returns why a path is not served if the pods' devices are on the node's NIC, "" if it is. kind is the
// kind of device. ownNode is the reason for paths between a node and its own pods.
func unservedReason(p plan.Path, kind, ownNode string) string {
	if reason := NoServices(p, kind); reason != "" {
		return reason
	}
	switch {
	case p.Locality == plan.SameNode && p.From != p.To:
		return ownNode
	case p.Locality == plan.Local && p.To != plan.Host:
		return ownNode + ", and the Service's endpoint is such a device"
	}
	return ""
}
