package aws

import (
	"net"
	"net/netip"

	"github.com/cnibench/cnibench/internal/dataplane"
	"github.com/cnibench/cnibench/internal/dataplane/policy"
	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// vpc is the AWS VPC CNI with pods on the node's first interface:
//
//	pod eth0 ── eni1a2b3c4d5e6 ─ node's stack, ip rules ─ eth0 ── VPC ── eth0 ─ node's stack, ip rules ─ eni… ── eth0 pod
//
// A pod has a /32 and one gateway, 169.254.1.1, which no device has. The pod has a permanent neighbour entry for the
// gateway with the MAC address of the node's end. Each pod has a host route, and a routing rule before all others.
// Every route lookup of the node walks these rules.
//
// Pods have addresses of the VPC, so nothing is encapsulated. The VPC answers ARP requests for a pod with the MAC
// address of its node's interface; here nodes have permanent entries instead.
type vpc struct{ dataplane.Nothing }

// gateway is the next hop of every pod.
var gateway = netip.MustParseAddr("169.254.1.1")

// nodes and pods are the address ranges of the VPC. Hosts of the underlay outside both are outside the VPC.
var (
	nodes = netip.MustParsePrefix("172.18.0.0/25")
	pods  = netip.MustParsePrefix("172.18.128.0/17")
)

// Priorities of the plugin's routing rules.
const (
	podRule       = 512
	markRule      = 1024
	fromPodRule   = 1536
	interfaceRule = 32765
)

func (vpc) Arrange(n *dataplane.Node, number, count int) { addPods(n, number, count, policy.AWSVeth) }

// addPods adds count pods to the node with this number. prefix begins the names of the node's ends of their devices.
func addPods(n *dataplane.Node, number, count int, prefix string) {
	n.AddPods(count, n.MTU, prefix, 11, func(i int) netip.Prefix { return dataplane.Single(podAddr(number, i)) })
}

// podRange returns the range of the addresses of a node's pods.
func podRange(number int) netip.Prefix { return netip.PrefixFrom(podAddr(number, 0), 24).Masked() }

// podAddr returns the address of pod i, counted from 0, of the node with this number.
func podAddr(number, i int) netip.Addr {
	b := pods.Addr().As4()
	b[2], b[3] = b[2]+byte(number), byte(dataplane.FirstPod+i)
	return netip.AddrFrom4(b)
}

func (vpc) Prepare(dataplane.Node) []link.Thing {
	return []link.Thing{
		link.Settings{netns.Setting{Name: "net/ipv4/conf/" + dataplane.NIC + "/rp_filter", Value: "2"}},
		link.Rule{Priority: markRule, Mark: policy.AWSMark},
	}
}

func (vpc) AttachPod(_ dataplane.Node, p dataplane.Pod, in *link.Handle) []link.Thing {
	return append(connect(p, in),
		link.Route{To: p.Addr, Dev: p.HostDevice, LinkScope: true},
		link.Rule{Priority: podRule, To: p.Addr},
	)
}

// connect returns the device between a pod and its node, and what is in the pod.
func connect(p dataplane.Pod, in *link.Handle) []link.Thing {
	mac := dataplane.MACOf(0x0e, 0x01, p.Addr.Addr())
	return []link.Thing{
		link.Veth{Name: p.HostDevice, MAC: mac, Peer: dataplane.NIC, PeerMAC: p.MAC, PeerIn: in, MTU: p.MTU},
		link.Inside{At: in, Things: []link.Thing{
			link.Route{To: dataplane.Single(gateway), Dev: dataplane.NIC, LinkScope: true},
			link.Route{To: dataplane.Everywhere(gateway), Via: gateway, Dev: dataplane.NIC},
			link.Address{Dev: dataplane.NIC, Addr: p.Addr},
			link.StaticNeighbour{Dev: dataplane.NIC, Addr: gateway, MAC: mac},
		}},
	}
}

// JoinNodes returns neighbour entries for the pods of to, in place of the VPC's answers to ARP requests.
func (vpc) JoinNodes(_, to dataplane.Node) []link.Thing { return podNeighbours(to, to.MAC) }

// podNeighbours returns a permanent neighbour entry for each pod of node to, with the MAC address mac of its interface.
func podNeighbours(to dataplane.Node, mac net.HardwareAddr) []link.Thing {
	return each.Of(to.Pods, func(p dataplane.Pod) link.Thing {
		return link.StaticNeighbour{Dev: dataplane.NIC, Addr: p.Addr.Addr(), MAC: mac}
	})
}

func (vpc) Rules(n dataplane.Node, _ []dataplane.Node) policy.Node {
	return policy.Node{AWS: &policy.AWSConfig{VPC: []netip.Prefix{nodes, pods}, NodeAddr: n.Addr.Addr()}}
}
