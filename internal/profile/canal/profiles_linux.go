package canal

import (
	"github.com/cnibench/cnibench/internal/dataplane"
	"github.com/cnibench/cnibench/internal/dataplane/policy"
	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/profile/calico"
	"github.com/cnibench/cnibench/internal/profile/flannel"
)

// Profiles has the entries of the family's profiles in the lab.
var Profiles = []dataplane.Entry{
	{Profile: "canal", Dataplane: canal{}, Expect: dataplane.Expectation{
		Tracked: true, TunnelTracked: true, Served: dataplane.Paths(dataplane.Direct, dataplane.Entering(dataplane.NodeAddress, dataplane.TunnelEnd), dataplane.HairpinNode, dataplane.Masqueraded),
		Attach: &calico.Attach,
		Remote: &dataplane.Route{OnLink: true},
	}},
}

// canal is Calico's pods and policy over flannel's tunnel:
//
//	pod eth0 ── cali1a2b3c4d5e6 ─ node's stack with both products' chains ─ flannel.1 ─ UDP 8472 ─ eth0 ── switch ── ...
//
// There is no cni0, and unlike under Calico's own VXLAN the outer packets are tracked. The pod's MTU is the tunnel's.
type canal struct{ dataplane.Nothing }

func (canal) Arrange(n *dataplane.Node, number, pods int) {
	flannel.ArrangeTunnel(n, number)
	calico.ArrangePods(n, pods, dataplane.FirstPod, n.Tunnel.MTU)
}

func (canal) Prepare(n dataplane.Node) []link.Thing { return dataplane.PrepareVXLAN(n) }

func (canal) AttachPod(_ dataplane.Node, p dataplane.Pod, in *link.Handle) []link.Thing {
	return calico.AttachPod(p, in)
}

func (canal) JoinNodes(from, to dataplane.Node) []link.Thing {
	return flannel.VXLAN{}.JoinNodes(from, to)
}

func (canal) Rules(n dataplane.Node, others []dataplane.Node) policy.Node {
	return policy.Node{
		Flannel: &policy.FlannelConfig{ClusterCIDR: n.Cluster, PodCIDR: n.PodCIDR},
		Calico:  calico.Felix(n, others),
	}
}
