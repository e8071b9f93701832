package cilium

import (
	"net/netip"
	"testing"
)

// numbering is what a test's world is numbered by: everything is tested with either family.
type numbering struct {
	*family
	networks []string // for bpftest.Exchange: a stream, datagrams
	// cluster holds the pods of all nodes, node the node's own; both start with these bytes.
	cluster   netip.Prefix
	nodeBits  int
	vip       netip.Addr
	loopback  netip.Addr
	overhead  int    // of VXLAN between nodes of this family
	wire      string // what addresses of nodes start with
	icmpProto uint8
	dsrOption byte
	// crossed tunnels go between the nodes' addresses of the other family.
	crossed bool
}

var numberings = []numbering{
	{
		family: &ipv4, networks: []string{"tcp4", "udp4"},
		cluster: netip.MustParsePrefix("10.20.0.0/16"), nodeBits: 24, vip: netip.MustParseAddr("10.96.0.10"),
		loopback: netip.MustParseAddr("169.254.42.1"), overhead: 50, wire: "10.10.0.", icmpProto: 1, dsrOption: 0x9a,
	},
	{
		family: &ipv6, networks: []string{"tcp6", "udp6"},
		cluster: netip.MustParsePrefix("fd00:20::/32"), nodeBits: 64, vip: netip.MustParseAddr("fd00:96::a"),
		loopback: netip.MustParseAddr("100:0:0:1::2a01"), overhead: 70, wire: "fd00:10:10::", icmpProto: 58, dsrOption: 0x1b,
	},
}

// eachFamily runs a test with either family.
func eachFamily(t *testing.T, test func(*testing.T, numbering)) {
	t.Helper()
	for _, n := range numberings {
		t.Run(n.String(), func(t *testing.T) { test(t, n) })
	}
}

// gateway is the pods' next hop on a node, counted from 0.
func (n numbering) gateway(node int) netip.Addr { return n.member(node, 1) }

// pod is the address of pod i, on its node.
func (n numbering) pod(node, i int) netip.Addr { return n.member(node, byte(10+i)) }

func (n numbering) member(node int, last byte) netip.Addr {
	b := n.cluster.Addr().AsSlice()
	third := 2 // 10.20.x.
	if n.version == 6 {
		third = 5 // fd00:20:x::
	}
	b[third], b[len(b)-1] = byte(node+1), last
	a, _ := netip.AddrFromSlice(b)
	return a
}

func (n numbering) subnet(node int) netip.Prefix {
	return netip.PrefixFrom(n.gateway(node), n.nodeBits).Masked()
}

// wildcard is a port at every address.
func (n numbering) wildcard(port uint16) netip.AddrPort {
	a := netip.IPv4Unspecified()
	if n.version == 6 {
		a = netip.IPv6Unspecified()
	}
	return netip.AddrPortFrom(a, port)
}

// node is the address of a node, or of the client with number 9, on the wire.
func (n numbering) node(number byte) netip.Addr {
	a := netip.MustParseAddr(n.wire + "0")
	b := a.AsSlice()
	b[len(b)-1] = number
	a, _ = netip.AddrFromSlice(b)
	return a
}

// other is the family that this one is not.
func (n numbering) other() numbering {
	if n.version == 4 {
		return numberings[1]
	}
	return numberings[0]
}

// wirePrefix is the address of a node with the length of the wire's prefix.
func (n numbering) wirePrefix(number byte) netip.Prefix {
	return netip.PrefixFrom(n.node(number), n.nodeBits)
}
