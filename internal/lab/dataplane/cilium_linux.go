package dataplane

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"

	"github.com/cnibench/cnibench/internal/kernel/bpf/cilium"
	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/kernel/sysctl"
	"github.com/cnibench/cnibench/internal/lab/policy"
	"github.com/cnibench/cnibench/internal/lab/service"
)

// ciliumPlane is Cilium in place of kube-proxy, routing natively or over VXLAN. BPF programs at both ends of the node
// pass a packet from one to the other:
//
//	pod eth0 ── lxc1a2b3c4d5e6f [from_container] ─ redirect_neigh ─ eth0 ── switch ── eth0 [from_netdev] ─ redirect_peer ── pod
//	pod eth0 ── lxc1a2b3c4d5e6f [from_container] ─ cilium_vxlan ─ UDP 8472 ─ eth0 ── switch ── ... [from_overlay] ─ redirect_peer ── pod
//
// With legacy host routing the node's stack is between them, as in any router: from_container ─ FORWARD ─ eth0, and at
// the other end eth0 ─ FORWARD ─ cilium_host [from_host] ─ lxc ── pod. Pods of one node are handed from one device to the
// other in either mode.
//
// A Service is translated when a process calls connect(), so its address is on no device. A node port is translated by
// from_netdev. The node's own way to its pods is cilium_host, whose address is the pods' gateway too; the program of the
// pod's device answers ARP for it.
type ciliumPlane struct {
	nothing
	// overlay is over VXLAN; legacy goes through the node's stack; dsr answers node ports directly, with Maglev.
	overlay, legacy, dsr bool
}

// Names of Cilium's own devices.
const (
	ciliumHost = "cilium_host"
	ciliumNet  = "cilium_net"
)

// firstIdentity is that of the cluster's first address. Cilium numbers the identities of a cluster from 256 to 65,535.
const firstIdentity = 256

// Identity is who the pod with this address is to Cilium: the number that its policy goes by, and that its packets bear
// as VNI. Here every pod is somebody of its own.
func Identity(pod netip.Addr) int {
	b := pod.As4()
	return firstIdentity + int(b[2])<<8 + int(b[3])
}

func (c ciliumPlane) Arrange(n *Node, number, pods int) {
	n.PodCIDR = subnet(n.Cluster, number)
	mtu := n.MTU
	if c.overlay {
		mtu -= vxlanOverhead
		n.Tunnel = Tunnel{Device: "cilium_vxlan", Addr: n.gateway(), MAC: tunnelMAC(n), Port: 8472, MTU: mtu}
	}
	for i := range pods {
		addr := nth(n.PodCIDR, firstPod+i)
		n.Pods = append(n.Pods, Pod{
			Name: podName(n, i), Addr: single(addr), MAC: podMAC(addr),
			HostDevice: vethName("lxc", podName(n, i), 12), MTU: mtu,
		})
	}
}

func (c ciliumPlane) Prepare(n Node, at *link.Handle) error {
	gw := n.gateway()
	steps := []func() error{
		func() error { return forwarding(at) },
		func() error {
			return at.AddVeth(link.Veth{Name: ciliumHost, Peer: ciliumNet, MTU: n.MTU, NoARP: true})
		},
		func() error {
			list := []sysctl.Setting{{Name: "net/ipv4/fib_multipath_use_neigh", Value: "1", IfPresent: true}}
			for _, device := range []string{ciliumHost, ciliumNet} {
				conf := "net/ipv4/conf/" + device
				list = append(list,
					sysctl.Setting{Name: conf + "/forwarding", Value: "1"}, sysctl.Setting{Name: conf + "/rp_filter", Value: "0"},
					sysctl.Setting{Name: conf + "/accept_local", Value: "1"}, sysctl.Setting{Name: conf + "/send_redirects", Value: "0"})
			}
			return sysctl.Set(at.NS(), list)
		},
		func() error { return at.AddAddress(ciliumHost, single(gw)) },
		func() error { return at.AddRoute(link.Route{To: single(gw), Dev: ciliumHost, LinkScope: true}) },
		func() error { return at.AddRoute(link.Route{To: n.PodCIDR, Via: gw, Dev: ciliumHost, Source: gw}) },
	}
	if c.overlay {
		steps = append(steps, func() error {
			// Unlike elsewhere the device has the MTU of the wire; routes have the one that leaves room.
			return at.AddExternalVXLAN(link.ExternalVXLAN{Name: n.Tunnel.Device, MAC: n.Tunnel.MAC, MTU: n.MTU, Port: n.Tunnel.Port})
		})
	}
	return run(steps...)
}

func (c ciliumPlane) AttachPod(n Node, at *link.Handle, p Pod, in *link.Handle) error {
	gw := n.gateway()
	way := link.Route{To: everywhere, Via: gw, Dev: NIC}
	if c.overlay {
		way.MTU = p.MTU
	}
	return run(
		func() error {
			return at.AddVeth(link.Veth{Name: p.HostDevice, Peer: NIC, PeerMAC: p.MAC, PeerIn: in, MTU: n.MTU})
		},
		func() error {
			return sysctl.Set(at.NS(), []sysctl.Setting{{Name: "net/ipv4/conf/" + p.HostDevice + "/rp_filter", Value: "0"}})
		},
		func() error { return in.AddAddress(NIC, p.Addr) },
		func() error { return in.AddRoute(link.Route{To: single(gw), Dev: NIC, LinkScope: true}) },
		func() error { return in.AddRoute(way) },
	)
}

func (c ciliumPlane) JoinNodes(from Node, at *link.Handle, to Node) error {
	if c.overlay {
		gw := from.gateway()
		return at.AddRoute(link.Route{To: to.PodCIDR, Via: gw, Dev: ciliumHost, Source: gw, MTU: from.Tunnel.MTU})
	}
	return at.AddRoute(link.Route{To: to.PodCIDR, Via: to.Addr.Addr(), Dev: NIC})
}

func (c ciliumPlane) Rules(Node, []Node) policy.Node {
	return policy.Node{Cilium: &policy.CiliumConfig{VXLAN: c.overlay}}
}

// ciliumSizes are a lab's: a table that is allocated whole costs memory on each node of each profile. Flows take 10 MB
// here, 80 MB by Cilium's default.
var ciliumSizes = cilium.Sizes{FlowsTCP: 65536, FlowsAny: 16384, SNAT: 32768, Stats: 1024}

func (c ciliumPlane) options(p Programming) cilium.Options {
	o := cilium.Options{
		NS: p.NS, NodeIP: p.Node.Addr.Addr(), Gateway: p.Node.gateway(), Wire: NIC, Overlay: p.Node.Tunnel.Device,
		HostDevice: ciliumHost, NetDevice: ciliumNet, Legacy: c.legacy, Masquerade: p.Node.Cluster,
		NodePort: cilium.NodePortSNAT, Sizes: ciliumSizes,
	}
	if c.dsr {
		o.NodePort, o.Maglev = cilium.NodePortDSR, true
	}
	return o
}

// Program loads what Cilium's agent does, tells it of the other nodes and serves the Services.
func (c ciliumPlane) Program(p Programming) (Programs, error) {
	group, err := p.sockets()
	if err != nil {
		return Programs{}, err
	}
	plane, err := cilium.Load(c.options(p))
	if err != nil {
		return Programs{}, err
	}
	err = run(
		func() error { return addEndpoints(plane, p.Node) },
		func() error { return c.announce(plane, p.Others) },
		func() error { return serveCilium(plane, p) },
		func() error { return plane.AttachCgroup(group) },
	)
	if err != nil {
		return Programs{}, errors.Join(err, plane.Close())
	}
	return Programs{Closer: plane, Drops: func() ([]string, error) { return ciliumDrops(plane) }}, nil
}

// addEndpoints adds the pods side by side: most of the time is the verifier's.
func addEndpoints(plane *cilium.Node, n Node) error {
	errs := make([]error, len(n.Pods))
	var all sync.WaitGroup
	for i, pod := range n.Pods {
		all.Go(func() {
			errs[i] = plane.AddEndpoint(cilium.Endpoint{
				ID: uint16(i + 1), Identity: cilium.Identity(Identity(pod.Addr.Addr())), IP: pod.Addr.Addr(),
				Device: pod.HostDevice, MAC: pod.MAC,
			})
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// announce tells who lives at the other nodes: themselves, the addresses of their cilium_host, their pods.
func (c ciliumPlane) announce(plane *cilium.Node, others []Node) error {
	for _, o := range others {
		var tunnel netip.Addr
		if c.overlay {
			tunnel = o.Addr.Addr()
		}
		if err := plane.SetIPCache(single(o.Addr.Addr()), cilium.RemoteNode, netip.Addr{}); err != nil {
			return err
		}
		if err := plane.SetIPCache(single(o.gateway()), cilium.RemoteNode, tunnel); err != nil {
			return err
		}
		for _, pod := range o.Pods {
			if err := plane.SetIPCache(pod.Addr, cilium.Identity(Identity(pod.Addr.Addr())), tunnel); err != nil {
				return err
			}
		}
	}
	return nil
}

func serveCilium(plane *cilium.Node, p Programming) error {
	for _, s := range p.Services {
		vip, nodePorts := p.frontends(s)
		local, remote := backends(s)
		front := cilium.Service{Frontend: vip, Proto: ciliumProtocol(s), Backends: slices.Concat(local, remote)}
		if err := plane.SetService(front); err != nil {
			return err
		}
		front.NodePort = true
		for _, front.Frontend = range nodePorts {
			if err := plane.SetService(front); err != nil {
				return err
			}
		}
	}
	return nil
}

func ciliumProtocol(s service.Service) cilium.Proto {
	if s.Protocol == "udp" {
		return cilium.UDP
	}
	return cilium.TCP
}

func ciliumDrops(plane *cilium.Node) ([]string, error) {
	counters, err := plane.Counters()
	var drops []string
	for _, c := range counters {
		if c.Drop && c.Packets > 0 {
			drops = append(drops, fmt.Sprintf("%s: %s: %d packets", c.Direction, c.Outcome, c.Packets))
		}
	}
	return drops, err
}
