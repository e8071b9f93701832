package plugins

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"

	"github.com/cnibench/cnibench/internal/dataplane"
	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// PodBridge is the name of the bridge to which the pods of a node are connected.
const PodBridge = "cni0"

// Bridge is the bridge plugin with a route per node:
//
//	pod eth0 ── veth1a2b3c4d ─ cni0 ─ node's stack ─ eth0 ── switch ── eth0 ─ node's stack ─ cni0 ─ veth ── pod
//
// cni0 switches packets between pods of one node at layer 2. They still pass iptables there because of br_netfilter.
type Bridge struct{ dataplane.Nothing }

func (Bridge) Arrange(n *dataplane.Node, number, pods int) {
	n.PodCIDR = dataplane.Subnet(n.Cluster, number)
	ArrangeVeths(n, pods, n.MTU, n.PodCIDR.Bits())
}

// ArrangeVeths adds pods with veths. Their addresses are those of n.PodCIDR from number 2, with a prefix length of
// bits.
func ArrangeVeths(n *dataplane.Node, pods, mtu, bits int) {
	n.AddPods(pods, mtu, "veth", 8, func(i int) netip.Prefix {
		return netip.PrefixFrom(dataplane.Nth(n.PodCIDR, dataplane.FirstPod+i), bits)
	})
}

func (Bridge) Prepare(n dataplane.Node) []link.Thing { return PrepareBridge(PodBridge, n, n.MTU) }

// PrepareBridge returns a bridge with the address of the pods' gateway, and the step that makes iptables see bridged
// packets. The step fails if the kernel lacks br_netfilter.
func PrepareBridge(name string, n dataplane.Node, mtu int) []link.Thing {
	gw := n.Gateway()
	return []link.Thing{
		link.Step(func(at *link.Handle) error { return enableBridgeNetfilter(n, at) }),
		link.Bridge{Name: name, MAC: dataplane.PodMAC(gw), MTU: mtu, MulticastSnooping: true},
		link.Address{Dev: name, Addr: netip.PrefixFrom(gw, n.PodCIDR.Bits())},
	}
}

func enableBridgeNetfilter(n dataplane.Node, at *link.Handle) error {
	list := link.Settings{{Name: "net/bridge/bridge-nf-call-iptables", Value: "1"}}
	if n.IPv6() {
		list = append(list, netns.Setting{Name: "net/bridge/bridge-nf-call-ip6tables", Value: "1"})
	}
	err := at.Add(list)
	if errors.Is(err, fs.ErrNotExist) {
		return advice.With(fmt.Errorf("the kernel does not show bridged packets to iptables, as a Kubernetes node must: %w", err),
			"modprobe br_netfilter")
	}
	return err
}

func (Bridge) AttachPod(n dataplane.Node, p dataplane.Pod, in *link.Handle) []link.Thing {
	return AttachToBridge(BridgePort{Node: n, Pod: p}, in)
}

// notifyARP makes a pod announce its address to its neighbours when its device comes up; notifyND does the same in IPv6.
var (
	notifyARP = netns.Setting{Name: "net/ipv4/conf/" + dataplane.NIC + "/arp_notify", Value: "1"}
	notifyND  = netns.Setting{Name: "net/ipv6/conf/" + dataplane.NIC + "/ndisc_notify", Value: "1", IfPresent: true}
)

// BridgePort describes how a pod is connected to a bridge.
type BridgePort struct {
	// Bridge is the name of the bridge, "" for PodBridge.
	Bridge string
	Node   dataplane.Node
	Pod    dataplane.Pod
	// Hairpin lets a pod reach itself through its Service. ClusterRoute gives the pod a route to the range of all pods.
	Hairpin, ClusterRoute bool
}

// AttachToBridge returns the devices, addresses and routes that connect a pod to a bridge.
func AttachToBridge(b BridgePort, in *link.Handle) []link.Thing {
	p, gw := b.Pod, b.Node.Gateway()
	inPod := []link.Thing{link.Settings{notifyARP}, link.Address{Dev: dataplane.NIC, Addr: p.Addr}}
	if b.ClusterRoute {
		inPod = append(inPod, link.Route{To: b.Node.Cluster, Via: gw, Dev: dataplane.NIC})
	}
	return []link.Thing{
		link.Veth{Name: p.HostDevice, Peer: dataplane.NIC, PeerMAC: p.MAC, PeerIn: in, MTU: p.MTU},
		link.Port{Bridge: cmp.Or(b.Bridge, PodBridge), Dev: p.HostDevice, Hairpin: b.Hairpin},
		link.Inside{At: in, Things: append(inPod, link.Route{To: dataplane.Everywhere(gw), Via: gw, Dev: dataplane.NIC})},
	}
}

func (Bridge) JoinNodes(_, to dataplane.Node) []link.Thing {
	return []link.Thing{link.Route{To: to.PodCIDR, Via: to.Addr.Addr(), Dev: dataplane.NIC}}
}

func (Bridge) NotServed(p plan.Path) string {
	if p.To == plan.Self {
		return "the bridge plugin's default has no hairpin: cni0 does not let a packet out of the port that it came in by"
	}
	return noMasqueradeReason(p)
}

// noMasqueradeReason returns why plugins that do not masquerade do not serve a path, "" if they do.
func noMasqueradeReason(p plan.Path) string {
	if p.From == plan.Pod && p.To == plan.External {
		return "pod addresses are not masqueraded, and hosts outside have no route to them"
	}
	return ""
}
