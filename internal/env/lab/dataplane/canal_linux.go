package dataplane

import (
	"github.com/cnibench/cnibench/internal/env/lab/policy"
	"github.com/cnibench/cnibench/internal/kernel/link"
)

// canal is Calico's pods and policy over flannel's tunnel:
//
//	pod eth0 ── cali1a2b3c4d5e6 ─ node's stack with both products' chains ─ flannel.1 ─ UDP 8472 ─ eth0 ── switch ── ...
//
// There is no cni0, and unlike under Calico's own VXLAN the outer packets are tracked. The pod's MTU is the tunnel's.
type canal struct{ nothing }

func (canal) Arrange(n *Node, number, pods int) {
	arrangeFlannel(n, number)
	arrangeCali(n, pods, firstPod, n.Tunnel.MTU)
}

func (canal) Prepare(n Node, at *link.Handle) error {
	return run(
		func() error { return forwarding(n, at) },
		func() error { return prepareTunnel(n, at) },
	)
}

func (canal) AttachPod(_ Node, at *link.Handle, p Pod, in *link.Handle) error {
	return attachCali(at, p, in)
}

func (canal) JoinNodes(from Node, at *link.Handle, to Node) error {
	return flannel{}.JoinNodes(from, at, to)
}

func (canal) Rules(n Node, others []Node) policy.Node {
	return policy.Node{
		Flannel: &policy.FlannelConfig{ClusterCIDR: n.Cluster, PodCIDR: n.PodCIDR},
		Calico:  felix(n, others),
	}
}
