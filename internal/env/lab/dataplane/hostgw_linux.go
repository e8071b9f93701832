package dataplane

import (
	"github.com/cnibench/cnibench/internal/kernel/link"
)

// hostGW is flannel with its host-gw backend: pods and rules as with vxlan, and between nodes of one layer 2 a plain
// route for each other node, without a tunnel:
//
//	pod eth0 ── veth ─ cni0 ─ node's stack ─ eth0 ── switch ── eth0 ─ node's stack ─ cni0 ─ veth ── pod
type hostGW struct{ flannel }

func (hostGW) Arrange(n *Node, number, pods int) { bridge{}.Arrange(n, number, pods) }

func (hostGW) Prepare(n Node, at *link.Handle) error { return bridge{}.Prepare(n, at) }

func (hostGW) JoinNodes(from Node, at *link.Handle, to Node) error {
	return bridge{}.JoinNodes(from, at, to)
}
