package cilium

import (
	"errors"
	"net"
	"net/netip"
	"slices"

	"github.com/cnibench/cnibench/internal/dataplane"
	"github.com/cnibench/cnibench/internal/dataplane/policy"
	"github.com/cnibench/cnibench/internal/dataplane/service"
	"github.com/cnibench/cnibench/internal/kernel/bpf/cilium"
	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// ciliumPlane is Cilium in place of kube-proxy, routing natively or over VXLAN. BPF programs at both ends of the node
// pass a packet from one to the other:
//
//	pod eth0 ── lxc1a2b3c4d5e6f [from_container] ─ redirect_neigh ─ eth0 ── switch ── eth0 [from_netdev] ─ redirect_peer ── pod
//	pod eth0 ── lxc1a2b3c4d5e6f [from_container] ─ cilium_vxlan ─ UDP 8472 ─ eth0 ── switch ── ... [from_overlay] ─ redirect_peer ── pod
//
// With legacy host routing the node's stack is between them, as in any router: from_container ─ FORWARD ─ eth0, and at
// the other end eth0 ─ FORWARD ─ cilium_host [from_host] ─ lxc ── pod. In either mode, packets between pods of one node
// are redirected from one device to the other.
//
// With netkit devices from_container runs while the pod still sends, and pods have no MAC addresses. From there a
// packet for a pod of the same node is sent to that pod's device, since redirect_peer only works for packets received
// by a device:
//
//	pod eth0 [from_container] ─ redirect ─ lxc1a2b3c4d5e6f ── pod
//
// A Service is translated when a process calls connect(), so its address is on no device. A node port is translated by
// from_netdev. The node reaches its pods through cilium_host, whose address is also the pods' gateway; the program of
// the pod's device answers ARP for it.
type ciliumPlane struct {
	dataplane.Nothing
	// overlay sends packets between nodes over VXLAN.
	overlay bool
	// legacy forwards packets by the node's stack.
	legacy bool
	// dsr sends replies of node ports directly to the client, and chooses backends by Maglev.
	dsr bool
	// netkit connects pods by netkit pairs in place of veths.
	netkit bool
	// wireguard and ipsec encrypt packets between nodes; see the types encrypted and ipsec.
	wireguard, ipsec bool
}

// Names of Cilium's own devices.
const (
	ciliumHost = "cilium_host"
	ciliumNet  = "cilium_net"
)

const (
	// proxyRule is the priority of the agent's routing rule for its proxy, toProxy the mark of packets for the proxy.
	proxyRule = 9
	toProxy   = 0x200
	// markKind is the mask of the bits of a mark that tell the kind of a packet.
	markKind = 0xf00
)

// firstIdentity is the identity of the cluster's first address. Cilium numbers the identities of a cluster from 256 to
// 65,535.
const firstIdentity = 256

// podIdentity returns Cilium's number for the pod with this address, which policies refer to and packets carry as VNI. In
// the lab every pod has a different one.
func podIdentity(pod netip.Addr) int {
	if pod.Is6() {
		b := pod.As16()
		return firstIdentity + int(b[7])<<8 + int(b[15])
	}
	b := pod.As4()
	return firstIdentity + int(b[2])<<8 + int(b[3])
}

func (c ciliumPlane) Arrange(n *dataplane.Node, number, pods int) {
	n.PodCIDR = dataplane.Subnet(n.Cluster, number)
	mtu := n.MTU
	if c.overlay {
		mtu -= dataplane.VXLANOverhead(n)
		n.Tunnel = dataplane.Tunnel{Device: "cilium_vxlan", Addr: n.Gateway(), MAC: dataplane.TunnelMAC(n), Port: 8472, MTU: mtu}
	}
	n.AddPods(pods, mtu, "lxc", 12, func(i int) netip.Prefix { return dataplane.Single(dataplane.Nth(n.PodCIDR, dataplane.FirstPod+i)) })
	if c.netkit { // at layer 3
		for i := range n.Pods {
			n.Pods[i].MAC = nil
		}
	}
}

func (c ciliumPlane) Prepare(n dataplane.Node) []link.Thing {
	gw := n.Gateway()
	things := []link.Thing{
		link.Veth{Name: ciliumHost, Peer: ciliumNet, MTU: n.MTU, NoARP: true},
		ciliumSettings(n),
		link.Address{Dev: ciliumHost, Addr: dataplane.Single(gw)},
	}
	if !n.IPv6() {
		things = append(things,
			link.Route{To: dataplane.Single(gw), Dev: ciliumHost, LinkScope: true}, // Linux adds it for an IPv6 address itself
			// The agent's rule for its proxy exists without a proxy too. With any rule, a namespace searches the list
			// of rules for every route lookup.
			link.Rule{Priority: proxyRule, Mark: toProxy, Mask: markKind})
	}
	things = append(things, ciliumHostRoute(n, n.PodCIDR))
	if c.overlay {
		// Unlike in other CNIs, the device has the wire's MTU; routes have the smaller one.
		things = append(things, link.VXLAN{Name: n.Tunnel.Device, MAC: n.Tunnel.MAC, MTU: n.MTU, Port: n.Tunnel.Port})
	}
	return things
}

// ciliumHostRoute returns a route through cilium_host. In IPv4 the next hop is the address of cilium_host itself, which IPv6
// does not allow.
func ciliumHostRoute(n dataplane.Node, to netip.Prefix) link.Route {
	r := link.Route{To: to, Dev: ciliumHost, Source: n.Gateway()}
	if !n.IPv6() {
		r.Via = n.Gateway()
	}
	return r
}

// ciliumSettings returns the settings of the pair of devices cilium_host and cilium_net.
func ciliumSettings(n dataplane.Node) link.Settings {
	if n.IPv6() {
		return link.Settings{
			{Name: "net/ipv6/conf/" + ciliumHost + "/forwarding", Value: "1"}, {Name: "net/ipv6/conf/" + ciliumNet + "/forwarding", Value: "1"},
		}
	}
	list := link.Settings{{Name: "net/ipv4/fib_multipath_use_neigh", Value: "1", IfPresent: true}}
	for _, device := range []string{ciliumHost, ciliumNet} {
		conf := "net/ipv4/conf/" + device
		list = append(list,
			netns.Setting{Name: conf + "/forwarding", Value: "1"}, netns.Setting{Name: conf + "/rp_filter", Value: "0"},
			netns.Setting{Name: conf + "/accept_local", Value: "1"}, netns.Setting{Name: conf + "/send_redirects", Value: "0"})
	}
	return list
}

func (c ciliumPlane) AttachPod(n dataplane.Node, p dataplane.Pod, in *link.Handle) []link.Thing {
	gw := n.Gateway()
	way := link.Route{To: dataplane.Everywhere(gw), Via: gw, Dev: dataplane.NIC}
	if c.overlay || c.wireguard || c.ipsec {
		way.MTU = p.MTU
	}
	var pair link.Thing = link.Veth{Name: p.HostDevice, Peer: dataplane.NIC, PeerMAC: p.MAC, PeerIn: in, MTU: n.MTU}
	if c.netkit {
		pair = link.Netkit{Name: p.HostDevice, Peer: dataplane.NIC, PeerIn: in, MTU: n.MTU}
	}
	return []link.Thing{
		pair,
		link.Settings{{Name: "net/ipv4/conf/" + p.HostDevice + "/rp_filter", Value: "0"}},
		link.Inside{At: in, Things: []link.Thing{
			link.Address{Dev: dataplane.NIC, Addr: p.Addr},
			link.Route{To: dataplane.Single(gw), Dev: dataplane.NIC, LinkScope: true},
			way,
		}},
	}
}

func (c ciliumPlane) JoinNodes(from, to dataplane.Node) []link.Thing {
	if c.overlay {
		r := ciliumHostRoute(from, to.PodCIDR)
		r.MTU = from.Tunnel.MTU
		return []link.Thing{r}
	}
	return []link.Thing{link.Route{To: to.PodCIDR, Via: to.Addr.Addr(), Dev: dataplane.NIC}}
}

func (c ciliumPlane) Rules(dataplane.Node, []dataplane.Node) policy.Node {
	return policy.Node{Cilium: &policy.CiliumConfig{VXLAN: c.overlay, WireGuard: c.wireguard}}
}

// policySpare is how many entries a pod's policy table can hold in addition to two for each policy.
const policySpare = 64

// lbSpare is how many additional entries the tables of Services can hold, for later changes.
const lbSpare = 1024

func (c ciliumPlane) programOptions(p dataplane.Programming) cilium.Options {
	o := cilium.Options{
		NS: p.NS, NodeIP: p.Node.Addr.Addr(), Gateway: p.Node.Gateway(), Wire: dataplane.NIC, Overlay: p.Node.Tunnel.Device,
		Pair: [2]string{ciliumHost, ciliumNet}, Legacy: c.legacy, Masquerade: p.Node.Cluster,
		NodePort: cilium.NodePortSNAT, Sizes: cilium.AgentSizes(),
	}
	if c.wireguard {
		o.Encryption.WireGuard, o.Overlay = o.Overlay, p.Node.Below.Device
	}
	if c.ipsec {
		o.Encryption.IPsec = ipsecKey
	}
	frontends, endpoints := p.Entries()
	o.Sizes.LB = frontends + endpoints + lbSpare
	o.Sizes.Policy = 2*p.Policies + policySpare
	o.Sizes.FlowsTCP += p.Connections
	if c.dsr {
		o.NodePort, o.Maglev = cilium.NodePortDSR, true
	}
	return o
}

// Program loads the programs that Cilium's agent loads, adds pods, policies and the other nodes, and serves the Services.
func (c ciliumPlane) Program(p dataplane.Programming) (dataplane.Programs, error) {
	group, err := p.Sockets()
	if err != nil {
		return dataplane.Programs{}, err
	}
	plane, err := cilium.Load(c.programOptions(p))
	if err != nil {
		return dataplane.Programs{}, err
	}
	err = dataplane.Run(
		func() error { return c.addEndpoints(plane, p.Node) },
		func() error { return addPolicies(plane, p) },
		func() error { return c.addRemoteNodes(plane, p.Others) },
		func() error { return addServices(plane, p) },
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
		Pods: c.podPrograms(plane, p),
	}, nil
}

// noMAC is the MAC address of an endpoint whose device has none.
var noMAC = make(net.HardwareAddr, 6)

// addEndpoints adds the pods of a node concurrently, because the verifier takes most of the time.
func (c ciliumPlane) addEndpoints(plane *cilium.Node, n dataplane.Node) error {
	return each.AtOnce(n.Pods, func(i int, pod dataplane.Pod) error { return plane.AddEndpoint(c.podEndpoint(uint16(i+1), pod)) })
}

// podEndpoint returns the description of a pod for the node's programs. id is the pod's number on the node.
func (c ciliumPlane) podEndpoint(id uint16, pod dataplane.Pod) cilium.Endpoint {
	e := cilium.Endpoint{
		ID: id, Identity: cilium.Identity(podIdentity(pod.Addr.Addr())), IP: pod.Addr.Addr(), Device: pod.HostDevice, MAC: pod.MAC,
	}
	if c.netkit {
		e.Netkit, e.MAC = true, noMAC
	}
	return e
}

// podPrograms returns the functions that add pods to a running node and remove them. The id of an added pod is its
// identity, because the ids from 1 belong to the pods that the node began with.
func (c ciliumPlane) podPrograms(plane *cilium.Node, p dataplane.Programming) *dataplane.PodPrograms {
	id := func(pod dataplane.Pod) uint16 { return uint16(podIdentity(pod.Addr.Addr())) }
	return &dataplane.PodPrograms{
		Add: func(pod dataplane.Pod) error { return plane.AddEndpoint(c.podEndpoint(id(pod), pod)) },
		Police: func(pod dataplane.Pod) error {
			if p.Policies == 0 {
				return nil
			}
			return plane.SetPolicy(id(pod), policyRules(p))
		},
		Remove: func(pod dataplane.Pod) error { return plane.RemoveEndpoint(id(pod)) },
		Learn:  func(o dataplane.Node, pod dataplane.Pod) error { return c.addRemotePod(plane, o, pod) },
		Forget: func(_ dataplane.Node, pod dataplane.Pod) error {
			return plane.DeleteIPCache(dataplane.Single(pod.Addr.Addr()))
		},
	}
}

// localIdentities is the smallest of Cilium's identities for addresses outside the cluster.
const localIdentities = 1 << 24

// addPolicies adds the policies that select every pod to each pod's own table. Policies that select no pod have no entries.
func addPolicies(plane *cilium.Node, p dataplane.Programming) error {
	if p.Policies == 0 {
		return nil
	}
	rules := policyRules(p)
	for i := range p.Node.Pods {
		if err := plane.SetPolicy(uint16(i+1), rules); err != nil {
			return err
		}
	}
	return nil
}

// policyRules returns the policies that select every pod, in both directions.
func policyRules(p dataplane.Programming) []cilium.Rule {
	var rules []cilium.Rule
	for _, egress := range []bool{false, true} {
		for i := range p.Policies - 1 {
			rules = append(rules, cilium.Rule{Identity: cilium.Identity(localIdentities + i + 1), Egress: egress, Proto: cilium.TCP})
		}
		rules = append(rules,
			cilium.Rule{Egress: egress, Proto: cilium.TCP, Port: policy.DeniedPort, Deny: true},
			cilium.Rule{Egress: egress})
	}
	return rules
}

// addRemoteNodes adds the addresses of the other nodes, of their devices cilium_host and of their pods to the programs'
// tables, each with its identity. With IPsec it also adds the numbers of the nodes.
func (c ciliumPlane) addRemoteNodes(plane *cilium.Node, others []dataplane.Node) error {
	if c.ipsec {
		if err := addNodeNumbers(plane, others); err != nil {
			return err
		}
	}
	for _, o := range others {
		if err := plane.SetIPCache(dataplane.Single(o.Addr.Addr()), cilium.RemoteNode, netip.Addr{}); err != nil {
			return err
		}
		if err := plane.SetIPCache(dataplane.Single(o.Gateway()), cilium.RemoteNode, c.tunnelEndpoint(o)); err != nil {
			return err
		}
		for _, pod := range o.Pods {
			if err := c.addRemotePod(plane, o, pod); err != nil {
				return err
			}
		}
	}
	return nil
}

// addRemotePod adds the identity of a pod of another node.
func (c ciliumPlane) addRemotePod(plane *cilium.Node, o dataplane.Node, pod dataplane.Pod) error {
	return plane.SetIPCache(pod.Addr, cilium.Identity(podIdentity(pod.Addr.Addr())), c.tunnelEndpoint(o))
}

// tunnelEndpoint returns the address of node o if packets for its pods are encapsulated or encrypted by IPsec, and otherwise
// an invalid address.
func (c ciliumPlane) tunnelEndpoint(o dataplane.Node) netip.Addr {
	if c.overlay || c.ipsec { // IPsec finds the node by it
		return o.Addr.Addr()
	}
	return netip.Addr{}
}

func addServices(plane *cilium.Node, p dataplane.Programming) error {
	for _, s := range p.Services {
		vip, outside := p.Frontends(s)
		local, remote := dataplane.Backends(s)
		front := cilium.Service{Frontend: vip, Proto: ciliumProtocol(s), Backends: slices.Concat(local, remote), Affinity: dataplane.Affinity(s)}
		if err := plane.SetService(front); err != nil {
			return err
		}
		front.NodePort, front.Local, front.LocalBackends = true, s.ExternalTrafficPolicyLocal, local
		for _, front.Frontend = range outside {
			if err := plane.SetService(front); err != nil {
				return err
			}
		}
	}
	return nil
}

// removeServices removes all frontends of Services from the tables of the programs.
func removeServices(plane *cilium.Node, p dataplane.Programming, list []service.Service) error {
	return p.EachFrontend(list, func(s service.Service, at netip.AddrPort) error { return plane.DeleteService(at, ciliumProtocol(s)) })
}

// setChurnPolicy adds the policy that churn creates to every pod, or removes it if in is false: an entry in each direction.
func setChurnPolicy(plane *cilium.Node, p dataplane.Programming, in bool) error {
	for i := range p.Node.Pods {
		for _, egress := range []bool{false, true} {
			r := cilium.Rule{Egress: egress, Proto: cilium.TCP, Port: policy.ChurnedPort, Deny: true}
			if err := plane.SetRule(uint16(i+1), r, in); err != nil {
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
