package calico

import (
	"errors"
	"net"
	"net/netip"

	"github.com/cnibench/cnibench/internal/dataplane"
	"github.com/cnibench/cnibench/internal/dataplane/policy"
	"github.com/cnibench/cnibench/internal/dataplane/service"
	ebpf "github.com/cnibench/cnibench/internal/kernel/bpf/calico"
	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// calicoBPF is Calico with its eBPF dataplane over VXLAN:
//
//	pod eth0 ── cali1a2b3c4d5e6 [from-workload] ─ vxlan.calico ─ UDP 4789 ─ eth0 ── switch ── ... [vxlan.calico] ─ redirect_peer ── pod
//
// Pods are attached as with iptables. Policy judges the first packet of a flow at both pods' devices; once both sides
// allow it, packets go directly into the destination pod. TCP to a Service is translated when a process calls
// connect(), a pod's UDP at its device, and the node's own UDP at a pair of devices, bpfin.cali and bpfout.cali.
//
// A packet to a node port is sent to another node unchanged, in VXLAN with a separate VNI. The reply returns the same
// way, or with DSR directly to the client.
//
// With encapsulation only between subnets, programs route packets for a node of the same subnet:
//
//	pod eth0 ── cali1a2b3c4d5e6 [from-workload] ─ eth0 ── switch ── eth0 [from-host] ─ redirect_peer ── pod
//
// The device vxlan.calico exists in this mode, too, and pods have the MTU for its encapsulation.
type calicoBPF struct {
	calico
	dsr bool
	// sameSubnet means encapsulation only between subnets; the lab's nodes are in one subnet.
	sameSubnet bool
}

// The pair of devices through which a node's own datagrams reach a Service.
const (
	serviceIn  = "bpfin.cali"
	serviceOut = "bpfout.cali"
)

// serviceMAC returns the MAC address of bpfout.cali.
func serviceMAC(n dataplane.Node) net.HardwareAddr { return dataplane.MACOf(0x66, 0x01, n.Addr.Addr()) }

// serviceGateway returns the gateway of the routes into the pair of devices: an address that no device has.
func serviceGateway(n dataplane.Node) netip.Addr {
	if n.IPv6() {
		return netip.AddrFrom16([16]byte{0x20, 0x01, 0x0d, 0xb8, 15: 1})
	}
	return linkLocal
}

// calicoFlows is the capacity of a node's table of flows, which takes 11 MB; Calico's is 512,000.
const calicoFlows = 65536

// natSpare is how many additional entries the tables of Services can hold, for later changes.
const natSpare = 1024

func (calicoBPF) Prepare(n dataplane.Node) []link.Thing {
	t := n.Tunnel
	things := []link.Thing{
		link.VXLAN{Name: t.Device, MAC: t.MAC, MTU: t.MTU, Port: t.Port},
		link.Address{Dev: t.Device, Addr: dataplane.Single(t.Addr)},
		link.Veth{Name: serviceIn, Peer: serviceOut, PeerMAC: serviceMAC(n), MTU: t.MTU, NoARP: true},
		link.Route{To: dataplane.Single(serviceGateway(n)), Dev: serviceIn, LinkScope: true},
		link.StaticNeighbour{Dev: serviceIn, Addr: serviceGateway(n), MAC: serviceMAC(n)},
	}
	if !n.IPv6() { // IPv6 has no such source checks
		list := link.Settings{{Name: "net/ipv4/conf/" + dataplane.NIC + "/rp_filter", Value: "2"}}
		for _, device := range []string{dataplane.NIC, t.Device, serviceIn, serviceOut} {
			list = append(list, netns.Setting{Name: "net/ipv4/conf/" + device + "/accept_local", Value: "1"})
		}
		things = append(things, list)
	}
	return append(things, blackholeRoutes(n, link.ProtocolCalico)...)
}

func (calicoBPF) AttachPod(_ dataplane.Node, p dataplane.Pod, in *link.Handle) []link.Thing {
	things := AttachPod(p, in)
	if p.Addr.Addr().Is6() {
		return things
	}
	conf := "net/ipv4/conf/" + p.HostDevice
	return append(things, link.Settings{{Name: conf + "/rp_filter", Value: "0"}, {Name: conf + "/accept_local", Value: "1"}})
}

// JoinNodes returns the neighbour entry of to's tunnel and the routes to its pods. It needs no forwarding entry, because the
// programs choose the node of a packet.
func (c calicoBPF) JoinNodes(from, to dataplane.Node) []link.Thing {
	things := []link.Thing{link.StaticNeighbour{Dev: from.Tunnel.Device, Addr: to.Tunnel.Addr, MAC: to.Tunnel.MAC}}
	if c.sameSubnet {
		return append(things, each.Of(to.Blocks, func(b netip.Prefix) link.Thing {
			return link.Route{To: b, Via: to.Addr.Addr(), Dev: dataplane.NIC, OnLink: true, Protocol: link.ProtocolCalico}
		})...)
	}
	return append(things, vxlanRoutes(from, to)...)
}

func (calicoBPF) Rules(n dataplane.Node, _ []dataplane.Node) policy.Node {
	rules := Felix(n, nil)
	rules.VXLAN, rules.BPF = true, true
	return policy.Node{Calico: rules}
}

// Program loads the programs that Felix loads, adds pods, nodes, blocks and policies, and serves the Services.
func (c calicoBPF) Program(p dataplane.Programming) (dataplane.Programs, error) {
	group, err := p.Sockets()
	if err != nil {
		return dataplane.Programs{}, err
	}
	frontends, endpoints := p.Entries()
	plane, err := ebpf.Load(ebpf.Options{
		NS: p.NS, NodeIP: p.Node.Addr.Addr(), Wire: dataplane.NIC, Tunnel: p.Node.Tunnel.Device, ServiceDevice: serviceOut,
		DSR: c.dsr, Flows: calicoFlows, Frontends: frontends + natSpare, Endpoints: endpoints + natSpare,
		Connections: p.Connections,
	})
	if err != nil {
		return dataplane.Programs{}, err
	}
	err = dataplane.Run(
		func() error { return c.addPodsAndRoutes(plane, p) },
		func() error { return addPolicies(plane, p) },
		func() error { return addServices(plane, p) },
		func() error { return routeServices(p) },
		func() error { return plane.AttachCgroup(group) },
	)
	if err != nil {
		return dataplane.Programs{}, errors.Join(err, plane.Close())
	}
	return dataplane.Programs{
		Closer: plane, Counters: plane.Counters,
		Serve:    func(list []service.Service) error { p.Services = list; return addServices(plane, p) },
		Withdraw: func(list []service.Service) error { return removeServices(plane, p, list) },
		Deny:     func(in bool) error { return setChurnPolicy(plane, p, in) },
		Connect: func(count int) (int, error) {
			return plane.Connect(count, func(i int) (from, to netip.AddrPort) { return dataplane.Standing(p.Node, i) })
		},
		Pods: podPrograms(plane, p),
	}, nil
}

func podWorkload(pod dataplane.Pod) ebpf.Workload {
	return ebpf.Workload{IP: pod.Addr.Addr(), Device: pod.HostDevice, NATOutgoing: true}
}

// podPrograms returns the functions that add pods to a running node and remove them. Other nodes have routes to the node's
// blocks, so their tables need no entries for its pods.
func podPrograms(plane *ebpf.Node, p dataplane.Programming) *dataplane.PodPrograms {
	return &dataplane.PodPrograms{
		Add: func(pod dataplane.Pod) error { return plane.AddWorkload(podWorkload(pod)) },
		Police: func(pod dataplane.Pod) error {
			if p.Policies == 0 {
				return nil
			}
			return addPodPolicies(plane, p, pod)
		},
		Remove: func(pod dataplane.Pod) error { return plane.RemoveWorkload(pod.HostDevice) },
	}
}

// addPodsAndRoutes adds the pods of the node, and the routes to the pool, to the other nodes and to their blocks.
func (c calicoBPF) addPodsAndRoutes(plane *ebpf.Node, p dataplane.Programming) error {
	n := p.Node
	remote := ebpf.Tunneled
	if c.sameSubnet {
		remote = ebpf.RemoteWorkload
	}
	for _, pod := range n.Pods {
		if err := plane.AddWorkload(podWorkload(pod)); err != nil {
			return err
		}
	}
	list := []ebpf.Route{{Prefix: n.Cluster, Kind: ebpf.Pool}, {Prefix: dataplane.Single(n.Tunnel.Addr), Kind: ebpf.LocalHost}}
	for _, o := range p.Others {
		list = append(list, ebpf.Route{Prefix: dataplane.Single(o.Addr.Addr()), Kind: ebpf.RemoteHost})
		for _, b := range o.Blocks {
			list = append(list, ebpf.Route{Prefix: b, Kind: remote, NextHop: o.Addr.Addr()})
		}
	}
	for _, r := range list {
		if err := plane.SetRoute(r); err != nil {
			return err
		}
	}
	return nil
}

// addPolicies creates the sets of all policies, and generates the programs of every pod with the policies that select it.
func addPolicies(plane *ebpf.Node, p dataplane.Programming) error {
	for i := range p.Policies + p.PoliciesUnselected {
		if err := plane.SetIPSet(uint64(i+1), []netip.Prefix{dataplane.Single(p.Stranger(i))}); err != nil {
			return err
		}
	}
	if p.Policies == 0 {
		return nil
	}
	for _, pod := range p.Node.Pods {
		if err := addPodPolicies(plane, p, pod); err != nil {
			return err
		}
	}
	return nil
}

// addPodPolicies generates the programs of a pod with the policies that select it.
func addPodPolicies(plane *ebpf.Node, p dataplane.Programming, pod dataplane.Pod) error {
	return setRules(plane, pod, policyRules(p))
}

func setRules(plane *ebpf.Node, pod dataplane.Pod, rules []ebpf.Rule) error {
	return plane.SetPolicy(pod.HostDevice, ebpf.Policy{Ingress: rules, Egress: rules})
}

// setChurnPolicy adds the policy that churn creates to every pod, or removes it if in is false. It generates the programs of
// the pods again.
func setChurnPolicy(plane *ebpf.Node, p dataplane.Programming, in bool) error {
	var rules []ebpf.Rule
	switch {
	case p.Policies > 0:
		rules = policyRules(p)
	case in:
		rules = []ebpf.Rule{{Allow: true}}
	}
	if in {
		rules = append([]ebpf.Rule{{Proto: ebpf.TCP, Port: policy.ChurnedPort}}, rules...)
	}
	for _, pod := range p.Node.Pods {
		if err := setRules(plane, pod, rules); err != nil {
			return err
		}
	}
	return nil
}

// policyRules returns the rules of the policies that select every pod.
func policyRules(p dataplane.Programming) []ebpf.Rule {
	var rules []ebpf.Rule
	for i := range p.Policies - 1 {
		rules = append(rules, ebpf.Rule{Allow: true, Proto: ebpf.TCP, Set: uint64(i + 1)})
	}
	return append(rules, ebpf.Rule{Proto: ebpf.TCP, Port: policy.DeniedPort}, ebpf.Rule{Allow: true})
}

func calicoProtocol(s service.Service) ebpf.Proto {
	if s.Protocol == "udp" {
		return ebpf.UDP
	}
	return ebpf.TCP
}

// removeServices removes all frontends of Services from the tables of the programs.
func removeServices(plane *ebpf.Node, p dataplane.Programming, list []service.Service) error {
	return p.EachFrontend(list, func(s service.Service, at netip.AddrPort) error { return plane.DeleteService(at, calicoProtocol(s)) })
}

func addServices(plane *ebpf.Node, p dataplane.Programming) error {
	for _, s := range p.Services {
		vip, outside := p.Frontends(s)
		entry := ebpf.Service{Proto: calicoProtocol(s), LocalOnly: s.ExternalTrafficPolicyLocal, Affinity: dataplane.Affinity(s)}
		entry.Local, entry.Remote = dataplane.Backends(s)
		for _, entry.Frontend = range append([]netip.AddrPort{vip}, outside...) {
			if err := plane.SetService(entry); err != nil {
				return err
			}
		}
	}
	return nil
}

// routeServices routes the node's own UDP for Services into the veth pair bpfin/bpfout: the program at connect() translates
// only TCP.
func routeServices(p dataplane.Programming) error {
	at, err := link.Open(p.NS)
	if err != nil {
		return err
	}
	defer at.Close()
	for _, s := range p.Services {
		if s.Protocol != "udp" {
			continue
		}
		r := link.Route{To: dataplane.Single(s.VIP), Via: serviceGateway(p.Node), Dev: serviceIn, Source: p.Node.Addr.Addr()}
		if err := at.Add(r); err != nil {
			return err
		}
	}
	return nil
}
