package sriov

import (
	"strings"

	"github.com/cnibench/cnibench/internal/dataplane"
	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/profile/plugins"
)

// Profiles are those of the family in the lab.
var Profiles = []dataplane.Entry{
	{Profile: "sriov", Dataplane: sriov{}, Expect: dataplane.Expectation{
		Untouched: true, Served: dataplane.Paths(plugins.OnUnderlay, ownNode), Refused: []plan.Path{dataplane.PodSvcLocal, dataplane.PodSvcRemote, dataplane.PodSelf},
		Attach: &dataplane.Attachment{SameTTL: 64, CrossTTL: 64, OwnMAC: true, Switched: true},
	}},
}

// ownNode are the paths between a pod and its own node, which need more than a device on the node's NIC.
var ownNode = dataplane.Clients{
	dataplane.PodHostSame: dataplane.OwnAddress, dataplane.HostPodSame: dataplane.OwnAddress, dataplane.HostSvcLocal: dataplane.OwnAddress, dataplane.ExtPortLocal: dataplane.NodeAddress,
}

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

// PlugPod names the port after the pod: "node-1-pod-2".
func (sriov) PlugPod(bridge string, p dataplane.Pod, in *link.Handle) []link.Thing {
	port := strings.ReplaceAll(p.Name, "/", "-")
	return []link.Thing{
		link.Veth{Name: port, Peer: dataplane.NIC, PeerMAC: p.MAC, PeerIn: in, MTU: p.MTU},
		link.Port{Bridge: bridge, Dev: port},
		plugins.Announced(p, in),
	}
}

func (sriov) NotServed(p plan.Path) string {
	return plugins.NoServices(p, "an SR-IOV")
}
