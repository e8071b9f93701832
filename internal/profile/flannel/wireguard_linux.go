package flannel

import (
	"net/netip"

	"github.com/cnibench/cnibench/internal/dataplane"
	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/profile/plugins"
)

// wireguard is flannel with its wireguard backend: pods and rules as with vxlan, and between nodes a tunnel that
// encrypts:
//
//	pod eth0 ── veth ─ cni0 ─ node's stack ─ flannel-wg ─ UDP 51820 ─ eth0 ── switch ── ...
//
// One route leads to the pods of all nodes; the device finds a pod's node by its list of peers.
type wireguard struct{ VXLAN }

const (
	// wireguardOverhead is the room that flannel reserves for either family: IPv6 40, UDP 8, WireGuard 32.
	wireguardOverhead = 80
	wireguardPort     = 51820
	wireguardPort6    = 51821
)

func (wireguard) Arrange(n *dataplane.Node, number, pods int) {
	n.PodCIDR = dataplane.Subnet(n.Cluster, number)
	n.Tunnel = dataplane.Tunnel{Device: "flannel-wg", Addr: dataplane.Nth(n.PodCIDR, 0), Port: wireguardPort, MTU: n.MTU - wireguardOverhead}
	n.Allowed = []netip.Prefix{n.PodCIDR}
	if n.IPv6() {
		n.Tunnel.Device, n.Tunnel.Port = "flannel-wg-v6", wireguardPort6
	}
	plugins.ArrangeVeths(n, pods, n.Tunnel.MTU, n.PodCIDR.Bits())
}

func (wireguard) Prepare(n dataplane.Node) []link.Thing {
	t := n.Tunnel
	return append(plugins.PrepareBridge(plugins.PodBridge, n, t.MTU),
		link.WireGuard{Name: t.Device, MTU: t.MTU, Owner: n.Name, Port: t.Port},
		link.Address{Dev: t.Device, Addr: dataplane.Single(t.Addr)},
		link.Route{To: n.Cluster, Dev: t.Device, LinkScope: true},
	)
}

func (wireguard) JoinNodes(from, to dataplane.Node) []link.Thing {
	return []link.Thing{link.WireGuardPeer{
		Device: from.Tunnel.Device, Owner: to.Name,
		Endpoint: netip.AddrPortFrom(to.Addr.Addr(), uint16(to.Tunnel.Port)), Allowed: to.Allowed,
	}}
}
