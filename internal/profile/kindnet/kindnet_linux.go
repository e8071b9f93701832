package kindnet

import (
	"net/netip"

	"github.com/cnibench/cnibench/internal/dataplane"
	"github.com/cnibench/cnibench/internal/dataplane/policy"
	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/profile/plugins"
)

// kindnetd is kind's daemon: the ptp plugin and routes, masquerading by iptables, and the policy agent.
//
//	pod eth0 ── veth1a2b3c4d (gateway/32) ─ node's stack, policy agent ─ eth0 ── switch ── eth0 ─ node's stack ─ veth ── pod
type kindnetd struct{ plugins.PTP }

func (kindnetd) Rules(n dataplane.Node, _ []dataplane.Node) policy.Node {
	return policy.Node{Kindnet: &policy.KindnetConfig{Pods: []netip.Prefix{n.Cluster}, Kindnetd: true}}
}

// NotServed returns "" for every path: unlike with the ptp plugin alone, the daemon masquerades.
func (kindnetd) NotServed(plan.Path) string { return "" }

// kindnet connects pods as the ptp plugin does, with its own plugin: the pod has a /32 and two routes, and the gateway
// is the address of the node's pod range itself. It masquerades by nftables.
type kindnet struct{ kindnetd }

func (kindnet) Arrange(n *dataplane.Node, number, pods int) {
	n.PodCIDR = dataplane.Subnet(n.Cluster, number)
	n.AddPods(pods, n.MTU, "knet", 8, func(i int) netip.Prefix {
		return dataplane.Single(dataplane.Nth(n.PodCIDR, dataplane.FirstPod+i))
	})
}

func (kindnet) AttachPod(n dataplane.Node, p dataplane.Pod, in *link.Handle) []link.Thing {
	gw := n.PodCIDR.Masked().Addr()
	toAll := link.Route{To: dataplane.Everywhere(gw), Via: gw, Dev: dataplane.NIC}
	if !n.IPv6() {
		toAll.Source = p.Addr.Addr()
	}
	return []link.Thing{
		link.Veth{Name: p.HostDevice, Peer: dataplane.NIC, PeerMAC: p.MAC, PeerIn: in, MTU: p.MTU},
		link.Inside{At: in, Things: []link.Thing{
			link.Address{Dev: dataplane.NIC, Addr: p.Addr},
			link.Route{To: dataplane.Single(gw), Dev: dataplane.NIC, LinkScope: true},
			toAll,
		}},
		link.Address{Dev: p.HostDevice, Addr: dataplane.Single(gw)},
		link.Route{To: p.Addr, Dev: p.HostDevice, HostScope: true, Source: gw},
	}
}

// Rules returns kindnet's rules. They have the pod ranges of all nodes, which the daemon takes from the Node objects.
func (kindnet) Rules(n dataplane.Node, others []dataplane.Node) policy.Node {
	ranges := []netip.Prefix{n.PodCIDR}
	for _, o := range others {
		ranges = append(ranges, o.PodCIDR)
	}
	devices := []string{dataplane.NIC}
	for _, p := range n.Pods {
		devices = append(devices, p.HostDevice)
	}
	return policy.Node{Kindnet: &policy.KindnetConfig{Pods: ranges, Devices: devices}}
}
