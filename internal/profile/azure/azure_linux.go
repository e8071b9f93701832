package azure

import (
	"net"
	"net/netip"

	"github.com/cnibench/cnibench/internal/dataplane"
	"github.com/cnibench/cnibench/internal/dataplane/policy"
	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/profile/plugins"
)

// transparent is the Azure CNI in its transparent mode, which AKS uses on Linux in all configurations except with Cilium:
//
//	pod eth0 ── azv1a2b3c4d5e6 (proxy ARP) ─ node's stack ─ eth0 ── Azure's network ── eth0 ─ node's stack ─ azv… ── eth0 pod
//
// A pod has one gateway, 169.254.1.1, which no device has; the node's end answers for it. Each pod has a host route.
// The plugin also adds that answer to the pod's neighbour table, in a state that the kernel probes. Here the pod sends
// an ARP request.
type transparent struct{ dataplane.Nothing }

// gateway is the next hop of every pod.
var gateway = netip.MustParseAddr("169.254.1.1")

// hostMAC is the MAC address of the node's end of each pod's device.
var hostMAC = net.HardwareAddr{0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa}

func (transparent) Arrange(n *dataplane.Node, number, pods int) {
	n.PodCIDR = dataplane.Subnet(n.Cluster, number)
	n.AddPods(pods, n.MTU, "azv", 11, func(i int) netip.Prefix {
		return netip.PrefixFrom(dataplane.Nth(n.PodCIDR, dataplane.FirstPod+i), n.PodCIDR.Bits())
	})
}

func (transparent) AttachPod(_ dataplane.Node, p dataplane.Pod, in *link.Handle) []link.Thing {
	conf := "net/ipv4/conf/" + p.HostDevice
	return []link.Thing{
		link.Veth{Name: p.HostDevice, MAC: hostMAC, Peer: dataplane.NIC, PeerMAC: p.MAC, PeerIn: in, MTU: p.MTU},
		link.Route{To: dataplane.Single(p.Addr.Addr()), Dev: p.HostDevice, LinkScope: true},
		link.Settings{netns.Setting{Name: conf + "/proxy_arp", Value: "1"}},
		link.Inside{At: in, Things: []link.Thing{
			link.Address{Dev: dataplane.NIC, Addr: p.Addr, NoRoute: true},
			link.Route{To: dataplane.Single(gateway), Dev: dataplane.NIC, LinkScope: true},
			link.Route{To: dataplane.Everywhere(gateway), Via: gateway, Dev: dataplane.NIC},
		}},
	}
}

// JoinNodes returns a route to the pods of to, in place of Azure's network.
func (transparent) JoinNodes(from, to dataplane.Node) []link.Thing {
	return plugins.Bridge{}.JoinNodes(from, to)
}

func (transparent) Rules(n dataplane.Node, _ []dataplane.Node) policy.Node {
	return policy.Node{Azure: &policy.AzureConfig{Cluster: n.Cluster, Pods: n.PodCIDR, NodeAddr: n.Addr.Addr()}}
}
