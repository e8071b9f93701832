package plugins

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"

	"github.com/cnibench/cnibench/internal/env/lab/dataplane"
	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/kernel/sysctl"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// podBridge is the bridge that pods of a node are ports of.
const podBridge = "cni0"

// Bridge is the bridge plugin with a route per node:
//
//	pod eth0 ── veth1a2b3c4d ─ cni0 ─ node's stack ─ eth0 ── switch ── eth0 ─ node's stack ─ cni0 ─ veth ── pod
//
// Pods of one node meet in cni0 at layer 2, and still walk iptables there because of br_netfilter.
type Bridge struct{ dataplane.Nothing }

func (Bridge) Arrange(n *dataplane.Node, number, pods int) {
	n.PodCIDR = dataplane.Subnet(n.Cluster, number)
	ArrangeVeths(n, pods, n.MTU, n.PodCIDR.Bits())
}

// ArrangeVeths gives out the addresses of n.PodCIDR from its third on, with the given prefix length.
func ArrangeVeths(n *dataplane.Node, pods, mtu, bits int) {
	for i := range pods {
		addr := dataplane.Nth(n.PodCIDR, dataplane.FirstPod+i)
		n.Pods = append(n.Pods, dataplane.Pod{
			Name: dataplane.PodName(n, i), Addr: netip.PrefixFrom(addr, bits), MAC: dataplane.PodMAC(addr),
			HostDevice: dataplane.VethName("veth", dataplane.PodName(n, i), 8), MTU: mtu,
		})
	}
}

func (Bridge) Prepare(n dataplane.Node, at *link.Handle) error { return PrepareBridge(n, at, n.MTU) }

// PrepareBridge makes cni0 with the gateway's address and lets iptables see what it switches.
func PrepareBridge(n dataplane.Node, at *link.Handle, mtu int) error {
	gw := n.Gateway()
	return dataplane.Run(
		func() error { return bridgeNetfilter(n, at) },
		func() error { return dataplane.EnableForwarding(n, at) },
		func() error {
			return at.AddBridge(link.Bridge{Name: podBridge, MAC: dataplane.PodMAC(gw), MTU: mtu, MulticastSnooping: true})
		},
		func() error { return at.AddAddress(podBridge, netip.PrefixFrom(gw, n.PodCIDR.Bits())) },
	)
}

func bridgeNetfilter(n dataplane.Node, at *link.Handle) error {
	list := []sysctl.Setting{{Name: "net/bridge/bridge-nf-call-iptables", Value: "1"}}
	if n.IPv6() {
		list = append(list, sysctl.Setting{Name: "net/bridge/bridge-nf-call-ip6tables", Value: "1"})
	}
	err := sysctl.Set(at.NS(), list)
	if errors.Is(err, fs.ErrNotExist) {
		return advice.With(fmt.Errorf("the kernel does not show bridged packets to iptables, as a Kubernetes node must: %w", err),
			"modprobe br_netfilter")
	}
	return err
}

func (Bridge) AttachPod(n dataplane.Node, at *link.Handle, p dataplane.Pod, in *link.Handle) error {
	return AttachToBridge(BridgePort{Node: n, Pod: p}, at, in)
}

// notifyARP makes a pod tell its neighbours when its device comes up; notifyND is the same in IPv6.
var (
	notifyARP = sysctl.Setting{Name: "net/ipv4/conf/" + dataplane.NIC + "/arp_notify", Value: "1"}
	notifyND  = sysctl.Setting{Name: "net/ipv6/conf/" + dataplane.NIC + "/ndisc_notify", Value: "1", IfPresent: true}
)

// BridgePort is a pod on cni0.
type BridgePort struct {
	Node dataplane.Node
	Pod  dataplane.Pod
	// Hairpin lets a pod reach itself through its Service. ClusterRoute adds a route to the cluster's range.
	Hairpin, ClusterRoute bool
}

// AttachToBridge connects a pod to cni0.
func AttachToBridge(b BridgePort, at, in *link.Handle) error {
	p, gw := b.Pod, b.Node.Gateway()
	return dataplane.Run(
		func() error {
			return at.AddVeth(link.Veth{Name: p.HostDevice, Peer: dataplane.NIC, PeerMAC: p.MAC, PeerIn: in, MTU: p.MTU})
		},
		func() error { return at.AddPort(podBridge, p.HostDevice, b.Hairpin) },
		func() error { return sysctl.Set(in.NS(), []sysctl.Setting{notifyARP}) },
		func() error { return in.AddAddress(dataplane.NIC, p.Addr) },
		func() error {
			if !b.ClusterRoute {
				return nil
			}
			return in.AddRoute(link.Route{To: b.Node.Cluster, Via: gw, Dev: dataplane.NIC})
		},
		func() error {
			return in.AddRoute(link.Route{To: dataplane.Everywhere(gw), Via: gw, Dev: dataplane.NIC})
		},
	)
}

func (Bridge) JoinNodes(_ dataplane.Node, at *link.Handle, to dataplane.Node) error {
	return at.AddRoute(link.Route{To: to.PodCIDR, Via: to.Addr.Addr(), Dev: dataplane.NIC})
}

func (Bridge) NotServed(p plan.Path) string {
	if p.To == plan.Self {
		return "the bridge plugin's default has no hairpin: cni0 does not let a packet out of the port that it came in by"
	}
	return noMasquerade(p)
}

// noMasquerade is the answer of plugins that leave pod addresses as they are.
func noMasquerade(p plan.Path) string {
	if p.From == plan.Pod && p.To == plan.External {
		return "pod addresses are not masqueraded, and hosts outside have no route to them"
	}
	return ""
}
