package cilium

import (
	"net/netip"

	"github.com/cnibench/cnibench/internal/dataplane"
	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/plan/condition"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// encrypted is Cilium with WireGuard between nodes:
//
//	pod eth0 ── lxc [from_container_marked] ─ eth0 [to_netdev_sealing] ─ cilium_wg0 [to_wireguard] ─ UDP 51871 ─ eth0 ── switch ── ...
//	... ── eth0 ─ node's stack ─ cilium_wg0 [from_wireguard] ─ redirect_peer ── pod
//
// No route and no rule leads to cilium_wg0. The program at eth0 redirects packets from a pod to an address whose entry has a
// key. The addresses of nodes have no key, so packets from nodes, and from pods to nodes, are not encrypted.
//
// Over VXLAN all packets of the tunnel are encrypted: the stack passes the VXLAN packets within WireGuard to cilium_vxlan.
type encrypted struct{ ciliumPlane }

// Settings of the agent's WireGuard. Its device sends packets with the mark.
const (
	encryptedMark     = 0xe00
	encryptedPort     = 51871
	encryptedOverhead = 95
)

// The agent's routing rule for packets from its proxy. The route in its table leaves room for the encryption's headers.
const (
	fromProxyRule  = 10
	fromProxy      = 0xa00
	fromProxyTable = 2005
)

// Arrange lowers the MTUs of pods and tunnel by the encryption's overhead, and adds WireGuard's device, which has no
// address.
func (e encrypted) Arrange(n *dataplane.Node, number, pods int) {
	e.ciliumPlane.Arrange(n, number, pods)
	n.Below = n.Tunnel
	n.Below.MTU -= encryptedOverhead
	n.Tunnel = dataplane.Tunnel{Device: "cilium_wg0", Addr: n.Below.Addr, Port: encryptedPort, MTU: n.MTU - encryptedOverhead}
	n.Allowed = []netip.Prefix{dataplane.Single(n.Addr.Addr())}
	if !e.overlay { // then all known entries
		n.Allowed = append(n.Allowed, n.PodCIDR, dataplane.Single(n.Gateway()))
	}
	for i := range n.Pods {
		n.Pods[i].MTU -= encryptedOverhead
		if !e.overlay {
			n.Allowed = append(n.Allowed, n.Pods[i].Addr)
		}
	}
}

func (e encrypted) Prepare(n dataplane.Node) []link.Thing {
	t := n.Tunnel
	things := append(e.ciliumPlane.Prepare(n.Unencrypted()),
		link.WireGuard{Name: t.Device, MTU: t.MTU, Owner: n.Name, Port: t.Port, Mark: encryptedMark},
		link.Settings{{Name: "net/ipv4/conf/" + t.Device + "/rp_filter", Value: "0"}})
	if e.overlay {
		return things
	}
	return append(things, fromProxyRoutes(n, t.MTU, fromProxy)...)
}

// fromProxyRoutes returns a routing rule for each of marks, which the agent's proxy sets on its packets, and the routes that
// send these packets to cilium_host. The MTU of the default route is mtu, which leaves room for the encryption's headers.
func fromProxyRoutes(n dataplane.Node, mtu int, marks ...uint32) []link.Thing {
	gw := n.Gateway()
	things := each.Of(marks, func(mark uint32) link.Thing {
		return link.Rule{Priority: fromProxyRule, Mark: mark, Mask: markKind, Table: fromProxyTable}
	})
	return append(things,
		link.Route{To: dataplane.Single(gw), Dev: ciliumHost, LinkScope: true, Table: fromProxyTable},
		link.Route{To: dataplane.Everywhere(gw), Via: gw, Dev: ciliumHost, MTU: mtu, Table: fromProxyTable})
}

func (e encrypted) JoinNodes(from, to dataplane.Node) []link.Thing {
	return append(e.ciliumPlane.JoinNodes(from.Unencrypted(), to.Unencrypted()), link.WireGuardPeer{
		Device: from.Tunnel.Device, Owner: to.Name,
		Endpoint: netip.AddrPortFrom(to.Addr.Addr(), uint16(to.Tunnel.Port)), Allowed: to.Allowed,
	})
}

// encryptableEntry returns e with plain as its unencrypted dataplane, and with an entry for encryption by WireGuard. If
// plain routes natively, it also has an entry for IPsec.
func encryptableEntry(e dataplane.Entry, plain ciliumPlane) dataplane.Entry {
	x, sealed := e.Expect, plain
	sealed.wireguard, x.RouteMTU = true, true
	e.Dataplane = plain
	if plain.overlay { // packets that one node forwards to another are encrypted, too
		programs := *x.Programs
		programs.Entered = "there external plain; back node-1 plain"
		x.Programs = &programs
	} else {
		x.Diverted = "10 fwmark 0xa00/0xf00 lookup 2005, 9 fwmark 0x200/0xf00 lookup main"
	}
	e.Encrypted = map[condition.Encryption]dataplane.Entry{condition.EncryptionWireGuard: {Dataplane: encrypted{sealed}, Expect: x}}
	if !plain.overlay {
		e.Encrypted[condition.EncryptionIPsec] = ipsecEntry(x, plain)
	}
	return e
}
