package dataplane

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"

	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/kernel/sysctl"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// podBridge is the bridge that pods of a node are ports of.
const podBridge = "cni0"

// bridge is the bridge plugin with a route per node:
//
//	pod eth0 ── veth1a2b3c4d ─ cni0 ─ node's stack ─ eth0 ── switch ── eth0 ─ node's stack ─ cni0 ─ veth ── pod
//
// Pods of one node meet in cni0 at layer 2, and still walk iptables there because of br_netfilter.
type bridge struct{ nothing }

func (bridge) Arrange(n *Node, number, pods int) {
	n.PodCIDR = subnet(n.Cluster, number)
	arrangeVeths(n, pods, n.MTU, n.PodCIDR.Bits())
}

// arrangeVeths gives out the addresses of n.PodCIDR from its third on, with the given prefix length.
func arrangeVeths(n *Node, pods, mtu, bits int) {
	for i := range pods {
		addr := nth(n.PodCIDR, firstPod+i)
		n.Pods = append(n.Pods, Pod{
			Name: podName(n, i), Addr: netip.PrefixFrom(addr, bits), MAC: podMAC(addr),
			HostDevice: vethName("veth", podName(n, i), 8), MTU: mtu,
		})
	}
}

func (bridge) Prepare(n Node, at *link.Handle) error { return prepareBridge(n, at, n.MTU) }

// prepareBridge makes cni0 with the gateway's address and lets iptables see what it switches.
func prepareBridge(n Node, at *link.Handle, mtu int) error {
	gw := n.gateway()
	return run(
		func() error { return bridgeNetfilter(n, at) },
		func() error { return forwarding(n, at) },
		func() error {
			return at.AddBridge(link.Bridge{Name: podBridge, MAC: podMAC(gw), MTU: mtu, MulticastSnooping: true})
		},
		func() error { return at.AddAddress(podBridge, netip.PrefixFrom(gw, n.PodCIDR.Bits())) },
	)
}

func bridgeNetfilter(n Node, at *link.Handle) error {
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

func (bridge) AttachPod(n Node, at *link.Handle, p Pod, in *link.Handle) error {
	return attachToBridge(bridgePort{node: n, pod: p}, at, in)
}

// bridgePort is a pod on cni0.
type bridgePort struct {
	node Node
	pod  Pod
	// hairpin lets a pod reach itself through its Service; clusterRoute adds a route to the cluster's range.
	hairpin, clusterRoute bool
}

func attachToBridge(b bridgePort, at, in *link.Handle) error {
	p, gw := b.pod, b.node.gateway()
	return run(
		func() error {
			return at.AddVeth(link.Veth{Name: p.HostDevice, Peer: NIC, PeerMAC: p.MAC, PeerIn: in, MTU: p.MTU})
		},
		func() error { return at.AddPort(podBridge, p.HostDevice, b.hairpin) },
		func() error { return announce(p, in) },
		func() error { return in.AddAddress(NIC, p.Addr) },
		func() error {
			if !b.clusterRoute {
				return nil
			}
			return in.AddRoute(link.Route{To: b.node.Cluster, Via: gw, Dev: NIC})
		},
		func() error { return in.AddRoute(link.Route{To: everywhere(gw), Via: gw, Dev: NIC}) },
	)
}

func (bridge) JoinNodes(_ Node, at *link.Handle, to Node) error {
	return at.AddRoute(link.Route{To: to.PodCIDR, Via: to.Addr.Addr(), Dev: NIC})
}

func (bridge) NotServed(p plan.Path) string {
	if p.To == plan.Self {
		return "the bridge plugin's default has no hairpin: cni0 does not let a packet out of the port that it came in by"
	}
	return noMasquerade(p)
}

// noMasquerade is the answer of plugins that leave pod addresses as they are.
func noMasquerade(p plan.Path) string {
	if p.From == plan.Pod && p.To == plan.External {
		return "nobody masquerades pod addresses, and the world outside has no route to them"
	}
	return ""
}
