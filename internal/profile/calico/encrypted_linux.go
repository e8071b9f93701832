package calico

import (
	"net/netip"
	"slices"

	"github.com/cnibench/cnibench/internal/dataplane"
	"github.com/cnibench/cnibench/internal/dataplane/policy"
	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/plan/condition"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// encrypted is Calico with WireGuard between nodes:
//
//	pod eth0 ── cali1a2b3c4d5e6 ─ node's stack with Calico's chains ─ wireguard.cali ─ UDP 51820 ─ eth0 ── switch ── ...
//
// A routing rule sends every packet to table 1 first, except packets with the mark of WireGuard itself. That table
// routes to the pods and tunnel addresses of other nodes by wireguard.cali. For those of this node it has throw routes,
// so that the main table follows. The device of the encapsulation and its routes in the main table remain, but no
// packet between encrypting nodes uses them. Addresses of nodes are not in table 1: packets between nodes, and from
// pods to other nodes, are not encrypted.
type encrypted struct{ calico }

// Felix's settings of WireGuard: priority and table of the routing rule, mark, port and overhead. The mark is the first bit
// that its netfilter rules do not use.
const (
	encryptedRule     = 99
	encryptedTable    = 1
	encryptedMark     = 0x200000
	encryptedPort     = 51820
	encryptedOverhead = 60
)

// Arrange assigns an address to WireGuard's device, before those of the pods.
func (e encrypted) Arrange(n *dataplane.Node, number, pods int) {
	e.calico.Arrange(n, number, pods+1)
	own := n.Pods[0].Addr.Addr()
	n.Below, n.Pods = n.Tunnel, nil
	n.Tunnel = dataplane.Tunnel{Device: "wireguard.cali", Addr: own, Port: encryptedPort, MTU: n.MTU - encryptedOverhead}
	ArrangePods(n, pods, 2, n.Tunnel.MTU)
	// The pods and tunnel addresses of the node, which others reach by WireGuard.
	n.Allowed = append(slices.Clone(n.Blocks), dataplane.Single(own))
	if n.Below.Device != "" {
		n.Allowed = append(n.Allowed, dataplane.Single(n.Below.Addr))
	}
}

func (e encrypted) Prepare(n dataplane.Node) []link.Thing {
	t := n.Tunnel
	things := append(e.calico.Prepare(n.Unencrypted()),
		link.WireGuard{Name: t.Device, MTU: t.MTU, Owner: n.Name, Port: t.Port, Mark: encryptedMark},
		link.Address{Dev: t.Device, Addr: dataplane.Single(t.Addr)},
		link.Rule{Priority: encryptedRule, Mark: encryptedMark, Not: true, Table: encryptedTable})
	return append(things, each.Of(n.Allowed, func(p netip.Prefix) link.Thing {
		return link.Route{To: p, Throw: true, Table: encryptedTable, Protocol: link.ProtocolCalico}
	})...)
}

func (e encrypted) JoinNodes(from, to dataplane.Node) []link.Thing {
	things := append(e.calico.JoinNodes(from.Unencrypted(), to.Unencrypted()), link.WireGuardPeer{
		Device: from.Tunnel.Device, Owner: to.Name,
		Endpoint: netip.AddrPortFrom(to.Addr.Addr(), uint16(to.Tunnel.Port)), Allowed: to.Allowed,
	})
	return append(things, each.Of(to.Allowed, func(p netip.Prefix) link.Thing {
		return link.Route{To: p, Dev: from.Tunnel.Device, LinkScope: true, Table: encryptedTable, Protocol: link.ProtocolCalico}
	})...)
}

func (e encrypted) Rules(n dataplane.Node, others []dataplane.Node) policy.Node {
	rules := e.calico.Rules(n.Unencrypted(), others)
	rules.Calico.WireGuard = true
	rules.Calico.NodeAddrs = append(rules.Calico.NodeAddrs, n.Tunnel.Addr)
	return rules
}

// encryptableEntry returns e with plain as its unencrypted dataplane, and with an entry for encryption by WireGuard.
func encryptableEntry(e dataplane.Entry, plain calico) dataplane.Entry {
	x := e.Expect
	x.TunnelTracked, x.Diverted = true, "99 not fwmark 0x200000/0x200000 lookup 1"
	x.Served = dataplane.Paths(dataplane.Direct, dataplane.Entering(dataplane.NodeAddress, dataplane.TunnelEnd), dataplane.HairpinNode, dataplane.Masqueraded)
	if plain.vxlan {
		x.Remote = &dataplane.Route{Device: "vxlan.calico", OnLink: true, Protocol: dataplane.ProtocolFelix}
	}
	e.Dataplane = plain
	e.Encrypted = map[condition.Encryption]dataplane.Entry{condition.EncryptionWireGuard: {Dataplane: encrypted{plain}, Expect: x}}
	return e
}
