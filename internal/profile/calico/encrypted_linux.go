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
// An entry of the routing policy sends each packet to table 1 first, but those that WireGuard itself sends, by their mark. The table
// leads to the pods and tunnel addresses of other nodes by wireguard.cali; for those of the node it says to look on. Encapsulation,
// its routes in the main table and its device stay, and no packet between encrypting nodes gets there. Addresses of nodes are not in
// the table: what nodes say to each other, and pods to other nodes, is in the clear.
type encrypted struct{ calico }

// The numbers by which Felix leads packets to WireGuard. The mark is the first bit that its rules leave.
const (
	encryptedRule     = 99
	encryptedTable    = 1
	encryptedMark     = 0x200000
	encryptedPort     = 51820
	encryptedOverhead = 60
)

// Arrange gives WireGuard's device an address of its own, before those of pods.
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

// withEncryption returns a profile that can encrypt.
func withEncryption(e dataplane.Entry, plain calico) dataplane.Entry {
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
