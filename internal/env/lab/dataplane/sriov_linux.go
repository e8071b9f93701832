package dataplane

import (
	"strings"

	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/plan"
)

// sriov is a model, for there is no such hardware in a namespace: a virtual function of the NIC, moved into the pod, is
// one end of a veth whose other end is a port of the switch, and the switch is the one inside the NIC too:
//
//	pod eth0 ── switch ── eth0 pod
//	              └────── eth0 node
//
// The node's stack and its rules are not on the way. Unlike under macvlan a node and its own pods reach each other, as
// the NIC switches between its functions.
type sriov struct{ nothing }

func (sriov) Arrange(n *Node, number, pods int) { arrangeOnUnderlay(n, number, pods) }

func (sriov) Prepare(n Node, at *link.Handle) error { return forwarding(n, at) }

// PlugPod names the port after the pod: "node-1-pod-2".
func (sriov) PlugPod(to Switch, p Pod, in *link.Handle) error {
	port := strings.ReplaceAll(p.Name, "/", "-")
	return run(
		func() error {
			return to.At.AddVeth(link.Veth{Name: port, Peer: NIC, PeerMAC: p.MAC, PeerIn: in, MTU: p.MTU})
		},
		func() error { return to.At.AddPort(to.Bridge, port, false) },
		func() error { return announce(p, in) },
		func() error { return in.AddAddress(NIC, p.Addr) },
	)
}

func (sriov) NotServed(p plan.Path) string {
	return noServices(p, "an SR-IOV")
}
