package flannel

import (
	"github.com/cnibench/cnibench/internal/dataplane"
	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/profile/plugins"
)

// hostGW is flannel with its host-gw backend: pods and rules as with vxlan, and a route for each other node in place of a
// tunnel. The nodes must be on the same layer 2 network:
//
//	pod eth0 ── veth ─ cni0 ─ node's stack ─ eth0 ── switch ── eth0 ─ node's stack ─ cni0 ─ veth ── pod
type hostGW struct{ VXLAN }

func (hostGW) Arrange(n *dataplane.Node, number, pods int) { plugins.Bridge{}.Arrange(n, number, pods) }

func (hostGW) Prepare(n dataplane.Node) []link.Thing { return plugins.Bridge{}.Prepare(n) }

func (hostGW) JoinNodes(from, to dataplane.Node) []link.Thing {
	return plugins.Bridge{}.JoinNodes(from, to)
}
