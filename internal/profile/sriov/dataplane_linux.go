package sriov

import (
	"strings"

	"github.com/cnibench/cnibench/internal/env/lab/dataplane"
	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/profile/plugins"
)

// sriov is a model, for there is no such hardware in a namespace: a virtual function of the NIC, moved into the pod, is
// one end of a veth whose other end is a port of the switch, and the switch is the one inside the NIC too:
//
//	pod eth0 ── switch ── eth0 pod
//	              └────── eth0 node
//
// The node's stack and its rules are not on the way. Unlike under macvlan a node and its own pods reach each other, as
// the NIC switches between its functions.
type sriov struct{ dataplane.Nothing }

func (sriov) Arrange(n *dataplane.Node, number, pods int) { plugins.ArrangeOnUnderlay(n, number, pods) }

func (sriov) Prepare(n dataplane.Node, at *link.Handle) error {
	return dataplane.EnableForwarding(n, at)
}

// PlugPod names the port after the pod: "node-1-pod-2".
func (sriov) PlugPod(to dataplane.Switch, p dataplane.Pod, in *link.Handle) error {
	port := strings.ReplaceAll(p.Name, "/", "-")
	return dataplane.Run(
		func() error {
			return to.At.AddVeth(link.Veth{Name: port, Peer: dataplane.NIC, PeerMAC: p.MAC, PeerIn: in, MTU: p.MTU})
		},
		func() error { return to.At.AddPort(to.Bridge, port, false) },
		func() error { return plugins.Announce(in) },
		func() error { return in.AddAddress(dataplane.NIC, p.Addr) },
	)
}

func (sriov) NotServed(p plan.Path) string {
	return plugins.NoServices(p, "an SR-IOV")
}
