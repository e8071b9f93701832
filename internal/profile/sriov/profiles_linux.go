package sriov

import (
	"strings"

	"github.com/cnibench/cnibench/internal/dataplane"
	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/profile/plugins"
)

// Profiles has the entries of the family's profiles in the lab.
var Profiles = []dataplane.Entry{
	{Profile: "sriov", Dataplane: sriov{}, Expect: dataplane.Expectation{
		Untouched: true, Served: dataplane.Paths(plugins.OnUnderlay, ownNode), Refused: []plan.Path{dataplane.PodSvcLocal, dataplane.PodSvcRemote, dataplane.PodSelf},
		Attach: &dataplane.Attachment{SameTTL: 64, CrossTTL: 64, OwnMAC: true, Switched: true},
	}},
}

// ownNode has the paths between a pod and its own node. They work here, unlike with macvlan and ipvlan.
var ownNode = dataplane.Clients{
	dataplane.PodHostSame: dataplane.OwnAddress, dataplane.HostPodSame: dataplane.OwnAddress, dataplane.HostSvcLocal: dataplane.OwnAddress, dataplane.ExtPortLocal: dataplane.NodeAddress,
}

// sriov is a model, because the lab has no such hardware. A virtual function of the NIC, which SR-IOV moves into the pod, is
// one end of a veth here; the other end is a port of the switch. The switch also models the one inside the NIC:
//
//	pod eth0 ── switch ── eth0 pod
//	              └────── eth0 node
//
// Packets bypass the node's stack and its rules. Unlike with macvlan, a node and its own pods reach each other, because the
// NIC switches between its functions.
type sriov struct{ dataplane.Nothing }

func (sriov) Arrange(n *dataplane.Node, number, pods int) { plugins.ArrangeOnUnderlay(n, number, pods) }

// PlugPod returns a veth between the pod and a port of the switch, which is named after the pod: "node-1-pod-2".
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
