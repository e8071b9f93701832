package selftest

import (
	"maps"
	"slices"

	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/profile"
)

// expectation is what an observer of a profile must find.
type expectation struct {
	// ipv6 says that everybody has IPv6 addresses; see inIPv6.
	ipv6 bool
	// tunnel is nil when pods' packets cross the wire as they are.
	tunnel *tunnel
	// attach is how a pod hangs on its node; nil when pods have no network of their own.
	attach *attachment
	// bpf is what programs do with packets, nil where there are none.
	bpf *programmed
	// tracked says whether conntrack follows packets between pods, on every node that they cross; trackedBetween that it
	// follows those between nodes alone.
	tracked, trackedBetween bool
	// policed says whether Calico's chains of both pods count them.
	policed bool
	// nft says that Calico's chains and kube-proxy's stand in nftables, and nothing of them in iptables.
	nft bool
	// proxyNFT says the same of kube-proxy's alone. No table has it: it is a condition that a lab is raised under.
	proxyNFT bool
	// proxyIPVS says that kube-proxy is in ipvs mode. No table has it either.
	proxyIPVS bool
	// local is what keptLocal says.
	local bool
	// testServices says that there are Services for the self-test alone. No table has it.
	testServices bool
	// unbacked says that the programs drop packets for a Service because it has no backend for them.
	unbacked bool
	// policies is how many policies select every pod. No table has it: it is a condition that a lab is raised under.
	policies int
	// untouched says that the nodes' rules count nothing when pods talk.
	untouched bool
	// blackhole is who made the route that drops what is left of a node's own pod addresses, 0 for no such route.
	blackhole int
	// remote is the route to another node's pods.
	remote *remoteRoute
	// served are the paths that work, with whom the far end takes the client for; datagrams are those on which UDP shows
	// somebody else than TCP does.
	served, datagrams map[plan.Path]witness
	// refused are the paths that must not work.
	refused []plan.Path
}

// tunnel is the device that encapsulates, and what its packets look like.
type tunnel struct {
	device    string
	port, vni int
	// tracked says that the outer packets are tracked too: then in each direction by an entry that no reply reaches.
	tracked bool
	// ipip says that it is IP in IP, without port and VNI.
	ipip bool
	// sealed says that it is WireGuard: of what is inside the wire shows neither addresses nor ports.
	sealed bool
	// external says that VNI and addresses come with each packet; identity that the VNI is the sending pod's, and routed
	// that the device has the MTU of the underlay, and no neighbours: routes leave the room.
	external, identity, routed bool
}

// attachment is the way from a pod's eth0 into its node.
type attachment struct {
	// bridge is the node's bridge that holds the pods' devices, "" when there is none.
	bridge string
	// gateway is what the pod's default route points at.
	gateway gateway
	// sameTTL and crossTTL are what is left of 64 at a pod of the same node and of another.
	sameTTL, crossTTL int
	// proxyARP says that the host side answers for any address.
	proxyARP bool
	// ownMAC says that the pod's MAC address is the one on the wire.
	ownMAC bool
	// netkit says that the pod hangs on its node by a pair of such devices.
	netkit bool
	// switched says that the pod hangs on the switch, where its node and the other pods of the node meet it.
	switched bool
}

func (x expectation) switched() bool { return x.attach != nil && x.attach.switched }

// keptLocal is what is to be found when the Services' externalTrafficPolicy is Local: the backend sees the client outside,
// and the node that is called uses no backend elsewhere.
func (x expectation) keptLocal() expectation {
	x.local, x.served, x.refused = true, maps.Clone(x.served), slices.Clone(x.refused)
	if _, ok := x.served[extPortRemote]; ok {
		delete(x.served, extPortRemote)
		x.unbacked = x.bpf != nil
		x.refused = append(x.refused, extPortRemote)
	}
	if _, ok := x.served[extPortLocal]; ok {
		x.served[extPortLocal] = client
	}
	if x.switched() {
		// The pod answers the client itself, from an address that the client did not call.
		delete(x.served, extPortLocal)
		x.refused = append(x.refused, extPortLocal)
	}
	return x
}

// balanced adds the path to a load balancer, by what is to be found on those to node ports: the balancer's address is that
// of the first node, and with the policy Local that of the node with the backend.
func (x expectation) balanced() expectation {
	like := extPortRemote
	if x.local {
		like = extPortLocal
	}
	if who, ok := x.served[like]; ok && !x.proxyIPVS {
		x.served = maps.Clone(x.served)
		x.served[extBalanced] = who
	}
	return x
}

type gateway int

const (
	// noGateway: the pod stands on the node's own network.
	noGateway gateway = iota
	// firstAddress: the first address of the node's pod range, held by a device of the node.
	firstAddress
	// linkLocal: Calico's 169.254.1.1 at ee:ee:ee:ee:ee:ee, held by nobody; in IPv6 the address fe80::/64 that the node's
	// end of the link has by that MAC address.
	linkLocal
)

// remoteRoute is the shape of the route to the pods of another node.
type remoteRoute struct {
	device   string
	onLink   bool
	protocol int // 0 for any
	// shared says that one route leads to the pods of all nodes.
	shared bool
}

// witness is who a backend says that it talks to.
type witness int

const (
	// client: the client's own address.
	client witness = iota
	// clientNode: the address of the node that the client is on, or that the client entered.
	clientNode
	// tunnelEnd: the address of that node's tunnel device.
	tunnelEnd
	// gatewayAddress: the first address of that node's pod range.
	gatewayAddress
)

// Protocol numbers of routes that daemons make.
const (
	protocolBird  = 12
	protocolFelix = 80
)

// The paths, by short names that keep the tables below readable.
var (
	hostHostSame  = plan.Path{From: plan.Host, To: plan.Host, Locality: plan.SameNode}
	hostHostCross = plan.Path{From: plan.Host, To: plan.Host, Locality: plan.CrossNode}
	podHostSame   = plan.Path{From: plan.Pod, To: plan.Host, Locality: plan.SameNode}
	podHostCross  = plan.Path{From: plan.Pod, To: plan.Host, Locality: plan.CrossNode}
	hostPodSame   = plan.Path{From: plan.Host, To: plan.Pod, Locality: plan.SameNode}
	hostPodCross  = plan.Path{From: plan.Host, To: plan.Pod, Locality: plan.CrossNode}
	podPodSame    = plan.Path{From: plan.Pod, To: plan.Pod, Locality: plan.SameNode}
	podPodCross   = plan.Path{From: plan.Pod, To: plan.Pod, Locality: plan.CrossNode}
	hostSvcLocal  = plan.Path{From: plan.Host, To: plan.Service, Locality: plan.Local}
	hostSvcRemote = plan.Path{From: plan.Host, To: plan.Service, Locality: plan.Remote}
	podSvcLocal   = plan.Path{From: plan.Pod, To: plan.Service, Locality: plan.Local}
	podSvcRemote  = plan.Path{From: plan.Pod, To: plan.Service, Locality: plan.Remote}
	extPortLocal  = plan.Path{From: plan.External, To: plan.NodePort, Locality: plan.Local}
	extPortRemote = plan.Path{From: plan.External, To: plan.NodePort, Locality: plan.Remote}
	extBalanced   = plan.Path{From: plan.External, To: plan.LoadBalancer}
	podExternal   = plan.Path{From: plan.Pod, To: plan.External}
	podSelf       = plan.Path{From: plan.Pod, To: plan.Self}
)

// paths joins tables of served paths; a later one wins.
func paths(tables ...map[plan.Path]witness) map[plan.Path]witness {
	served := map[plan.Path]witness{}
	for _, t := range tables {
		maps.Copy(served, t)
	}
	return served
}

// direct is the same under every profile with pods behind their node: between pods nobody rewrites the client's
// address, nor where a pod calls its own node, nor on the way to a Service.
var direct = map[plan.Path]witness{
	hostHostSame: client, hostHostCross: client, podHostSame: client,
	podPodSame: client, podPodCross: client, podSvcLocal: client, podSvcRemote: client,
}

// entering are the paths on which the source address depends on the device that a packet leaves by, because a node sends
// of its own accord or masquerades for a Service: near is that address towards a pod of the node, far towards one of
// another node.
func entering(near, far witness) map[plan.Path]witness {
	return map[plan.Path]witness{
		hostPodSame: near, hostSvcLocal: near, extPortLocal: near,
		hostPodCross: far, hostSvcRemote: far, extPortRemote: far,
	}
}

var (
	// masqueraded are a pod's ways out of the cluster's range where the node lends its address.
	masqueraded = map[plan.Path]witness{podHostCross: clientNode, podExternal: clientNode}
	// unmasqueraded: pods' addresses are known on the underlay, but not to the world outside.
	unmasqueraded = map[plan.Path]witness{podHostCross: client}

	// A pod reaches itself through its Service only masqueraded, as whoever the node is towards it. The bridge plugin by
	// itself does not let a frame back out of the port that it came in by. A host-network pod is its node either way.
	hairpinGateway = map[plan.Path]witness{podSelf: gatewayAddress}
	hairpinNode    = map[plan.Path]witness{podSelf: clientNode}

	// onUnderlay are the paths of pods with addresses of the underlay, past their node: nothing translates for them, and a
	// Service is reached through a node only. pastNode are those that this costs, ownNode those between a pod and its
	// own node, which need more than a device on the node's NIC.
	onUnderlay = map[plan.Path]witness{
		hostHostSame: client, hostHostCross: client, podPodSame: client, podPodCross: client, podHostCross: client,
		hostPodCross: client, podExternal: client, hostSvcRemote: client, extPortRemote: clientNode,
	}
	pastNode = []plan.Path{podHostSame, hostPodSame, podSvcLocal, podSvcRemote, podSelf}
	ownNode  = map[plan.Path]witness{podHostSame: client, hostPodSame: client, hostSvcLocal: client, extPortLocal: clientNode}

	calicoAttach = attachment{gateway: linkLocal, sameTTL: 63, crossTTL: 62, proxyARP: true}
)

// expectations is keyed by the name of the profile.
var expectations = map[string]expectation{
	profile.Raw: {served: map[plan.Path]witness{hostHostSame: client, hostHostCross: client}},
	profile.Host: {
		tracked: true,
		// The pods are the node, so everybody is seen as who he is. What is translated to the node itself goes to INPUT,
		// and only POSTROUTING masquerades.
		served: map[plan.Path]witness{
			hostHostSame: client, hostHostCross: client, podHostSame: client, podHostCross: client, hostPodSame: client, hostPodCross: client,
			podPodSame: client, podPodCross: client, podExternal: client,
			hostSvcLocal: client, hostSvcRemote: client, podSvcLocal: client, podSvcRemote: client,
			extPortLocal: client, extPortRemote: clientNode, podSelf: client,
		},
	},
	"bridge": {
		tracked: true, served: paths(direct, entering(gatewayAddress, clientNode), unmasqueraded),
		refused: []plan.Path{podSelf},
		attach:  &attachment{bridge: "cni0", gateway: firstAddress, sameTTL: 64, crossTTL: 62},
		remote:  &remoteRoute{device: "eth0"},
	},
	"ptp": {
		tracked: true, served: paths(direct, entering(gatewayAddress, clientNode), hairpinGateway, unmasqueraded),
		attach: &attachment{gateway: firstAddress, sameTTL: 63, crossTTL: 62},
		remote: &remoteRoute{device: "eth0"},
	},
	"flannel-vxlan": {
		tracked: true, served: paths(direct, entering(gatewayAddress, tunnelEnd), hairpinGateway, masqueraded),
		tunnel: &tunnel{device: "flannel.1", port: 8472, vni: 1, tracked: true},
		attach: &attachment{bridge: "cni0", gateway: firstAddress, sameTTL: 64, crossTTL: 62},
		remote: &remoteRoute{device: "flannel.1", onLink: true},
	},
	"canal": {
		tracked: true, policed: true, served: paths(direct, entering(clientNode, tunnelEnd), hairpinNode, masqueraded),
		tunnel: &tunnel{device: "flannel.1", port: 8472, vni: 1, tracked: true},
		attach: &calicoAttach,
		remote: &remoteRoute{device: "flannel.1", onLink: true},
	},
	"calico-vxlan": {
		tracked: true, policed: true, served: paths(direct, entering(clientNode, tunnelEnd), hairpinNode, masqueraded),
		tunnel:    &tunnel{device: "vxlan.calico", port: 4789, vni: 4096},
		attach:    &calicoAttach,
		blackhole: protocolFelix,
		remote:    &remoteRoute{device: "vxlan.calico", onLink: true, protocol: protocolFelix},
	},
	// Where the chains stand is all that differs from calico-vxlan.
	"calico-nftables": {
		tracked: true, policed: true, nft: true, served: paths(direct, entering(clientNode, tunnelEnd), hairpinNode, masqueraded),
		tunnel:    &tunnel{device: "vxlan.calico", port: 4789, vni: 4096},
		attach:    &calicoAttach,
		blackhole: protocolFelix,
		remote:    &remoteRoute{device: "vxlan.calico", onLink: true, protocol: protocolFelix},
	},
	"calico-underlay": {
		tracked: true, policed: true, served: paths(direct, entering(clientNode, clientNode), hairpinNode, masqueraded),
		attach:    &calicoAttach,
		blackhole: protocolBird,
		remote:    &remoteRoute{device: "eth0", protocol: protocolBird},
	},
	"macvlan": {
		untouched: true, served: onUnderlay, refused: pastNode,
		attach: &attachment{sameTTL: 64, crossTTL: 64, ownMAC: true},
	},
	"flannel-host-gw": {
		tracked: true, served: paths(direct, entering(gatewayAddress, clientNode), hairpinGateway, masqueraded),
		attach: &attachment{bridge: "cni0", gateway: firstAddress, sameTTL: 64, crossTTL: 62},
		remote: &remoteRoute{device: "eth0"},
	},
	"ipvlan": {
		untouched: true, served: onUnderlay, refused: pastNode,
		attach: &attachment{sameTTL: 64, crossTTL: 64},
	},
	"sriov": {
		untouched: true, served: paths(onUnderlay, ownNode), refused: []plan.Path{podSvcLocal, podSvcRemote, podSelf},
		attach: &attachment{sameTTL: 64, crossTTL: 64, ownMAC: true, switched: true},
	},
	"calico-ipip": {
		tracked: true, policed: true, served: paths(direct, entering(clientNode, tunnelEnd), hairpinNode, masqueraded),
		tunnel:    &tunnel{device: "tunl0", ipip: true},
		attach:    &calicoAttach,
		blackhole: protocolBird,
		remote:    &remoteRoute{device: "tunl0", onLink: true, protocol: protocolBird},
	},
	"flannel-wireguard": {
		tracked: true, served: paths(direct, entering(gatewayAddress, tunnelEnd), hairpinGateway, masqueraded),
		tunnel: &tunnel{device: "flannel-wg", port: 51820, sealed: true, tracked: true},
		attach: &attachment{bridge: "cni0", gateway: firstAddress, sameTTL: 64, crossTTL: 62},
		remote: &remoteRoute{device: "flannel-wg", shared: true},
	},
	"calico-ebpf": {
		served: calicoBPFPaths, datagrams: calicoBPFDatagrams, tunnel: calicoBPFTunnel, attach: &calicoBPFAttach,
		blackhole: protocolFelix,
		remote:    &remoteRoute{device: "vxlan.calico", onLink: true, protocol: protocolFelix},
		bpf: &programmed{
			vip: "udp beside the client", doorstep: openers, option: "none", mute: true,
			entered: "there external plain, node-1 vxlan udp 4789 vni 13242816; back node-1 plain, node-2 vxlan udp 4789 vni 13242816",
		},
	},
	"calico-ebpf-dsr": {
		served: calicoBPFPaths, datagrams: calicoBPFDatagrams, tunnel: calicoBPFTunnel, attach: &calicoBPFAttach,
		blackhole: protocolFelix,
		remote:    &remoteRoute{device: "vxlan.calico", onLink: true, protocol: protocolFelix},
		bpf: &programmed{
			vip: "udp beside the client", doorstep: openers, option: "none", mute: true,
			entered: "there external plain, node-1 vxlan udp 4789 vni 13242816; back node-2 plain",
		},
	},
	"cilium-vxlan": {
		// A node has no way to a pod of another but the tunnel, so what leaves it for a node bears the node's address.
		served: paths(bySockets(gatewayAddress, gatewayAddress, gatewayAddress), masqueraded),
		attach: &attachment{gateway: firstAddress, sameTTL: 63, crossTTL: 63},
		tunnel: &tunnel{device: "cilium_vxlan", port: 8472, external: true, identity: true, routed: true},
		remote: &remoteRoute{device: "cilium_host"},
		bpf: &programmed{
			vip: "nowhere", doorstep: peerOnly, option: "none",
			entered: "there external plain, node-1 vxlan udp 8472 vni 2; back node-1 plain, node-2 vxlan udp 8472 vni BACKEND",
		},
	},
	"cilium-native": {
		untouched: true, served: bySockets(gatewayAddress, clientNode, clientNode), attach: &ciliumAttach,
		remote: &remoteRoute{device: "eth0"},
		bpf: &programmed{
			vip: "nowhere", doorstep: peerOnly, option: "none",
			entered: "there external plain, node-1 plain; back node-1 plain, node-2 plain",
		},
	},
	"cilium-netkit": {
		untouched: true, served: bySockets(gatewayAddress, clientNode, clientNode),
		attach: &attachment{gateway: firstAddress, sameTTL: 63, crossTTL: 62, netkit: true},
		remote: &remoteRoute{device: "eth0"},
		bpf: &programmed{
			// What a pod of the node sends is no device's ingress, and redirect_peer out of its reach.
			vip: "nowhere", doorstep: peerOnly, doorstepSame: allOfIt, option: "none",
			entered: "there external plain, node-1 plain; back node-1 plain, node-2 plain",
		},
	},
	"cilium-native-legacy": {
		trackedBetween: true, served: bySockets(gatewayAddress, clientNode, clientNode),
		// Two stacks forward, and the delivery to the pod counts as a hop too.
		attach: &attachment{gateway: firstAddress, sameTTL: 63, crossTTL: 61},
		remote: &remoteRoute{device: "eth0"},
		bpf: &programmed{
			vip: "nowhere", doorstep: allOfIt, forwards: true, option: "none",
			entered: "there external plain, node-1 plain; back node-1 plain, node-2 plain",
		},
	},
	"cilium-native-dsr": {
		untouched: true, served: bySockets(gatewayAddress, clientNode, client), attach: &ciliumAttach,
		remote: &remoteRoute{device: "eth0"},
		bpf: &programmed{
			vip: "nowhere", doorstep: peerOnly, option: "tcp syn, udp", maglev: true,
			entered: "there external plain, node-1 plain; back node-2 plain",
		},
	},
}
