package calico

import (
	"net"
	"net/netip"

	"github.com/cnibench/cnibench/internal/dataplane"
	"github.com/cnibench/cnibench/internal/dataplane/policy"
	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// calico is Calico with its iptables or its nftables dataplane, over VXLAN or without encapsulation:
//
//	pod eth0 ── cali1a2b3c4d5e6 ─ node's stack with Calico's chains ─ vxlan.calico ─ UDP 4789 ─ eth0 ── switch ── ...
//	pod eth0 ── cali1a2b3c4d5e6 ─ node's stack with Calico's chains ─ eth0 ── switch ── ...
//
// A pod has a /32 and one gateway, 169.254.1.1, which no device has: the node answers ARP for it on the pod's link
// because its default route uses another device. In IPv6 it has a /128, and the gateway is the link-local address of
// the node's end. The outer VXLAN packets are not tracked. Pods of one node reach each other through the node's stack.
type calico struct {
	dataplane.Nothing
	// vxlan means encapsulation in VXLAN. nft means that Calico's chains, and those of kube-proxy, are in nftables.
	vxlan, nft bool
}

// blockSize is the number of addresses in a block that Calico assigns to a node: a /26, or in IPv6 a /122.
const blockSize = 1 << blockLeft

// blockLeft is the number of low bits in which the addresses of a block differ.
const blockLeft = 6

// blockAt returns the block that begins with address number first of p, counted from 0.
func blockAt(p netip.Prefix, first int) netip.Prefix {
	a := dataplane.Nth(p, first)
	return netip.PrefixFrom(a, a.BitLen()-blockLeft)
}

var (
	// linkLocal is the gateway of every Calico pod in IPv4, which no device has.
	linkLocal = netip.AddrFrom4([4]byte{169, 254, 1, 1})
	// linkLocal6 is the gateway in IPv6: the link-local address of the node's end of the pod's link, derived from
	// caliMAC.
	linkLocal6 = netip.MustParseAddr("fe80::ecee:eeff:feee:eeee")
	// caliMAC is the MAC address of the node's end of every pod's link.
	caliMAC = net.HardwareAddr{0xee, 0xee, 0xee, 0xee, 0xee, 0xee}
)

func (c calico) Arrange(n *dataplane.Node, number, pods int) {
	n.PodCIDR = dataplane.Subnet(n.Cluster, number)
	mtu := n.MTU
	if c.vxlan {
		mtu -= dataplane.VXLANOverhead(n)
		device := "vxlan.calico"
		if n.IPv6() {
			device = "vxlan-v6.calico"
		}
		n.Tunnel = dataplane.Tunnel{
			Device: device, Addr: dataplane.Nth(n.PodCIDR, 0), MAC: dataplane.TunnelMAC(n), VNI: 4096, Port: 4789, MTU: mtu,
		}
	}
	arrangeBlocks(n, pods, mtu)
}

// arrangeBlocks assigns as many blocks to the node as its pods need, and addresses to the pods. The first address of the
// first block is the tunnel's, so the pods have the addresses from the second on.
func arrangeBlocks(n *dataplane.Node, pods, mtu int) {
	for used := 0; used <= pods; used += blockSize {
		n.Blocks = append(n.Blocks, blockAt(n.PodCIDR, used))
	}
	ArrangePods(n, pods, 1, mtu)
}

// blackholeRoutes returns the routes that drop packets to unused addresses of the node's own blocks.
func blackholeRoutes(n dataplane.Node, protocol int) []link.Thing {
	return each.Of(n.Blocks, func(b netip.Prefix) link.Thing { return link.Route{To: b, Blackhole: true, Protocol: protocol} })
}

// vxlanRoutes returns the routes of from to the blocks of to, by the VXLAN device.
func vxlanRoutes(from, to dataplane.Node) []link.Thing {
	var routes []link.Thing
	for _, b := range to.Blocks {
		routes = append(routes, link.Route{
			To: b, Via: to.Tunnel.Addr, Dev: from.Tunnel.Device, OnLink: true, Protocol: link.ProtocolCalico, MTU: from.Tunnel.MTU,
		})
	}
	return routes
}

// ArrangePods adds pods with single addresses of n.PodCIDR, beginning with address number first.
func ArrangePods(n *dataplane.Node, pods, first, mtu int) {
	n.AddPods(pods, mtu, "cali", 11, func(i int) netip.Prefix { return dataplane.Single(dataplane.Nth(n.PodCIDR, first+i)) })
}

func (c calico) Prepare(n dataplane.Node) []link.Thing {
	if c.vxlan {
		return append(dataplane.PrepareVXLAN(n), blackholeRoutes(n, link.ProtocolCalico)...)
	}
	return blackholeRoutes(n, link.ProtocolBird)
}

func (calico) AttachPod(_ dataplane.Node, p dataplane.Pod, in *link.Handle) []link.Thing {
	return AttachPod(p, in)
}

// AttachPod returns the devices, settings and routes that connect a Calico pod to its node.
func AttachPod(p dataplane.Pod, in *link.Handle) []link.Thing {
	inPod := []link.Thing{link.Address{Dev: dataplane.NIC, Addr: p.Addr}}
	if p.Addr.Addr().Is6() {
		inPod = append(inPod, link.Route{To: dataplane.Everywhere(linkLocal6), Via: linkLocal6, Dev: dataplane.NIC})
	} else {
		inPod = append(inPod,
			link.Route{To: dataplane.Single(linkLocal), Dev: dataplane.NIC, LinkScope: true},
			link.Route{To: dataplane.Everywhere(linkLocal), Via: linkLocal, Dev: dataplane.NIC})
	}
	return []link.Thing{
		link.Veth{Name: p.HostDevice, MAC: caliMAC, Peer: dataplane.NIC, PeerMAC: p.MAC, PeerIn: in, MTU: p.MTU},
		caliSettings(p),
		link.Route{To: dataplane.Single(p.Addr.Addr()), Dev: p.HostDevice, LinkScope: true},
		link.Inside{At: in, Things: inPod},
	}
}

// caliSettings returns the settings of the node's end of a Calico pod's link.
func caliSettings(p dataplane.Pod) link.Settings {
	if p.Addr.Addr().Is6() {
		conf := "net/ipv6/conf/" + p.HostDevice
		return link.Settings{
			{Name: conf + "/accept_ra", Value: "0"},
			{Name: conf + "/proxy_ndp", Value: "1"},
			{Name: conf + "/forwarding", Value: "1"},
		}
	}
	conf, neigh := "net/ipv4/conf/"+p.HostDevice, "net/ipv4/neigh/"+p.HostDevice
	return link.Settings{
		{Name: conf + "/route_localnet", Value: "1"},
		{Name: neigh + "/proxy_delay", Value: "0"},
		{Name: conf + "/proxy_arp", Value: "1"},
		{Name: conf + "/forwarding", Value: "1"},
	}
}

func (c calico) JoinNodes(from, to dataplane.Node) []link.Thing {
	if c.vxlan {
		return append(dataplane.JoinVXLAN(from, to), vxlanRoutes(from, to)...)
	}
	routes := each.Of(to.Blocks, func(b netip.Prefix) link.Thing {
		return link.Route{To: b, Via: to.Addr.Addr(), Dev: dataplane.NIC, Protocol: link.ProtocolBird}
	})
	return routes
}

func (c calico) Rules(n dataplane.Node, others []dataplane.Node) policy.Node {
	rules := Felix(n, others)
	rules.VXLAN, rules.NFTables = c.vxlan, c.nft
	rules.Pools = []netip.Prefix{n.Cluster}
	return policy.Node{Calico: rules}
}

// Felix returns the configuration of Calico's agent on node n: its addresses, the devices of its pods, and the other nodes.
func Felix(n dataplane.Node, others []dataplane.Node) *policy.CalicoConfig {
	c := &policy.CalicoConfig{IPv6: n.IPv6(), NodeAddrs: []netip.Addr{n.Addr.Addr()}}
	if n.Tunnel.Device != "" {
		c.NodeAddrs = append(c.NodeAddrs, n.Tunnel.Addr)
	}
	for _, p := range n.Pods {
		c.Devices = append(c.Devices, p.HostDevice)
	}
	for _, o := range others {
		c.Peers = append(c.Peers, o.Addr.Addr())
	}
	return c
}
