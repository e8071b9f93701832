package dataplane

import (
	"maps"
	"net/netip"
	"time"

	"github.com/cnibench/cnibench/internal/plan"
)

// Expectation describes what an observer must find in the lab with a profile under the default conditions.
type Expectation struct {
	// Attach is the connection of a pod to its node, nil if pods have no network of their own.
	Attach *Attachment
	// Programs describes the BPF programs, nil for none.
	Programs *ExpectedPrograms
	// Tracked means that conntrack tracks packets between pods, on every node that they cross.
	Tracked bool
	// TrackedBetween means that conntrack tracks packets between pods only if they cross nodes.
	TrackedBetween bool
	// TunnelTracked means that conntrack also tracks the tunnel's packets: each direction has an entry without replies.
	TunnelTracked bool
	// Identity returns the VNI of a pod's packets, which is the pod's identity. It is nil if the VNI is not.
	Identity func(pod netip.Addr) int
	// RouteMTU means that the tunnel's device has the MTU of the underlay and no neighbour entries. Routes have the
	// smaller MTU.
	RouteMTU bool
	// Unsaid means that a profile file describes only the paths, so that nothing else is checked.
	Unsaid bool
	Signs
	// Untouched means that the nodes' rules do not count packets between pods.
	Untouched bool
	// Blackhole is the protocol number of the route that drops packets to a node's unused pod addresses; 0 if there is none.
	Blackhole int
	// Remote is the route to another node's pods.
	Remote *Route
	// Served has the paths that work, with the client address that the server sees. Datagrams has the paths on which the
	// server sees another address over UDP.
	Served, Datagrams Clients
	// Refused are the paths that must not work.
	Refused []plan.Path
}

// Signs are rules, routes and marks on a node that only some CNIs have.
type Signs struct {
	// PodRules means that each node has a routing rule for packets to each of its pods.
	PodRules bool
	// PodTable is the routing table for packets from pods and from the node's second interface; 0 if they have no rules.
	// With Branches, each pod has a table of its own.
	PodTable int
	// Branches means that pods have interfaces of their own (Branch). Strict means that all packets of pods leave the node
	// through them, also to the node and its other pods: the node looks up local addresses after the pods' rules.
	Branches, Strict bool
	// Leave has the devices, by path, through which the client's node (or the node that the client entered) sends packets to
	// the wire.
	Leave map[plan.Path]string
	// Marks has the conntrack mark of connections, by path, on the client's node (or the node that the client entered).
	Marks map[plan.Path]uint32
	// Label is the conntrack label of connections between pods, on every node that they cross; 0 for none.
	Label int
	// AffinityAfter is the time after a client's first connection to a Service from which session affinity holds; 0 is at
	// once.
	AffinityAfter time.Duration
	// Firewall means that each node has kube-router's firewall: packets walk a list of the node's pods to the chain of their
	// pod. The node also has a routing rule for packets from its pod range.
	Firewall bool
	// Agent means that AWS's network policy agent runs if there are policies. Each pod's device then has its programs.
	Agent bool
	// Diverted lists the routing rules, with priorities, that lead packets into the tunnel before the main table; "" for
	// none.
	Diverted string
}

// Attachment is the connection of a pod's eth0 to its node.
type Attachment struct {
	// Bridge is the node's bridge with the pods' devices, "" without one.
	Bridge string
	// Gateway is the next hop of the pod's default route.
	Gateway Gateway
	// SameTTL and CrossTTL are the remaining TTL (of 64) at a pod of the same node and of another node.
	SameTTL, CrossTTL int
	// ProxyARP means that the node's end of the pod's device answers ARP requests for any address.
	ProxyARP bool
	// HostMAC is the MAC address of the node's end of each pod's device, "" if they differ.
	HostMAC string
	// OwnMAC means that frames on the wire have the pod's MAC address.
	OwnMAC bool
	// Switched means that the pod is connected to the switch, not to its node.
	Switched bool
}

// Gateway is a kind of next hop of pods.
type Gateway int

// Kinds of gateways.
const (
	// NoGateway means that the pod is on the node's own network.
	NoGateway Gateway = iota
	// FirstAddress is the first address of the node's pod range, which a device of the node has.
	FirstAddress
	// RangeAddress is the address of the node's pod range itself, which the node's end of each pod's device has.
	RangeAddress
	// LinkLocal is Calico's 169.254.1.1 at ee:ee:ee:ee:ee:ee, which no device has. In IPv6 it is the address in fe80::/64
	// that results from that MAC address.
	LinkLocal
	// Pinned is 169.254.1.1, which no device has. The pod has a permanent entry for it with the MAC address of the node's
	// end.
	Pinned
	// Answered is 169.254.1.1, which no device has. The node's end answers for it with its own MAC address.
	Answered
)

// Route describes the route to the pods of another node.
type Route struct {
	// Device is the name of the device, "" for the profile's tunnel.
	Device string
	OnLink bool
	// Protocol is the number of the daemon that made the route, 0 for any.
	Protocol int
	// Shared means that one route leads to the pods of all nodes.
	Shared bool
}

// Protocol numbers of routes that daemons make.
const (
	ProtocolBird  = 12
	ProtocolFelix = 80
	ProtocolZebra = 17
)

// ExpectedPrograms describes what BPF programs do with packets.
type ExpectedPrograms struct {
	// VIP describes on which devices packets have the address of a Service: "nowhere" if sockets translate it.
	VIP string
	// Doorstep is which packets to a pod pass the node's end of the pod's device: NoPackets, FirstPackets or AllPackets.
	// DoorstepSame is the same for packets from another pod of the node; "" means Doorstep.
	Doorstep, DoorstepSame string
	// Forwards means that the node's stack forwards packets between nodes.
	Forwards bool
	// Entered describes how a packet from outside reaches the backend on the other node, and how the reply returns. BACKEND
	// in it is the identity of that backend.
	Entered string
	// Maglev means that every node chooses the same backend for the same client.
	Maglev bool
	// Mute means that a datagram to a Service without endpoints is dropped silently.
	Mute bool
	// Option says which packets carry the frontend of a Service in an IP option: "none", or for example "tcp syn, udp".
	Option string
}

// Packets to a pod that pass the node's end of its device.
const (
	NoPackets    = "nothing"
	FirstPackets = "the first packets of a flow"
	AllPackets   = "every packet"
)

// Client is the kind of client address that a backend sees.
type Client int

// Clients that a backend can see. The node of an external client is the node that it entered.
const (
	// OwnAddress is the client's own address.
	OwnAddress Client = iota
	// NodeAddress is the address of the client's node.
	NodeAddress
	// TunnelEnd is the address of the tunnel device of the client's node.
	TunnelEnd
	// FirstOfRange is the first address of the pod range of the client's node.
	FirstOfRange
	// OfRange is the address of the pod range itself of the client's node, such as 10.42.1.0.
	OfRange
	// AnyAddress means that any address is accepted.
	AnyAddress
)

// Clients has for each path the client that the backend sees.
type Clients map[plan.Path]Client

// Short names of the paths.
var (
	HostHostSame  = plan.Path{From: plan.Host, To: plan.Host, Locality: plan.SameNode}
	HostHostCross = plan.Path{From: plan.Host, To: plan.Host, Locality: plan.CrossNode}
	PodHostSame   = plan.Path{From: plan.Pod, To: plan.Host, Locality: plan.SameNode}
	PodHostCross  = plan.Path{From: plan.Pod, To: plan.Host, Locality: plan.CrossNode}
	HostPodSame   = plan.Path{From: plan.Host, To: plan.Pod, Locality: plan.SameNode}
	HostPodCross  = plan.Path{From: plan.Host, To: plan.Pod, Locality: plan.CrossNode}
	PodPodSame    = plan.Path{From: plan.Pod, To: plan.Pod, Locality: plan.SameNode}
	PodPodCross   = plan.Path{From: plan.Pod, To: plan.Pod, Locality: plan.CrossNode}
	HostSvcLocal  = plan.Path{From: plan.Host, To: plan.Service, Locality: plan.Local}
	HostSvcRemote = plan.Path{From: plan.Host, To: plan.Service, Locality: plan.Remote}
	PodSvcLocal   = plan.Path{From: plan.Pod, To: plan.Service, Locality: plan.Local}
	PodSvcRemote  = plan.Path{From: plan.Pod, To: plan.Service, Locality: plan.Remote}
	ExtPortLocal  = plan.Path{From: plan.External, To: plan.NodePort, Locality: plan.Local}
	ExtPortRemote = plan.Path{From: plan.External, To: plan.NodePort, Locality: plan.Remote}
	ExtBalanced   = plan.Path{From: plan.External, To: plan.LoadBalancer}
	PodExternal   = plan.Path{From: plan.Pod, To: plan.External}
	PodSelf       = plan.Path{From: plan.Pod, To: plan.Self}
)

// Paths returns one table of served paths with the entries of all tables. A later table overrides an earlier one.
func Paths(tables ...Clients) Clients {
	served := Clients{}
	for _, t := range tables {
		maps.Copy(served, t)
	}
	return served
}

// Direct has the paths on which the client's address is not translated, in every profile that connects pods to their node:
// between hosts, between pods, to the pod's own node, and from pods to Services.
var Direct = Clients{
	HostHostSame: OwnAddress, HostHostCross: OwnAddress, PodHostSame: OwnAddress,
	PodPodSame: OwnAddress, PodPodCross: OwnAddress, PodSvcLocal: OwnAddress, PodSvcRemote: OwnAddress,
}

// Entering returns which client address a server sees on each path from a node, or through a node port, to pods and
// Services: near on the node's own pods; far on pods of other nodes, usually the address of the outgoing device.
func Entering(near, far Client) Clients {
	return Clients{
		HostPodSame: near, HostSvcLocal: near, ExtPortLocal: near,
		HostPodCross: far, HostSvcRemote: far, ExtPortRemote: far,
	}
}

var (
	// Masqueraded has the paths from a pod to addresses that are not pods, masqueraded with the address of its node.
	Masqueraded = Clients{PodHostCross: NodeAddress, PodExternal: NodeAddress}
	// Unmasqueraded has the path that works without masquerading: the underlay has routes to pods, the external network has
	// none.
	Unmasqueraded = Clients{PodHostCross: OwnAddress}
	// HairpinGateway and HairpinNode have the path of a pod to itself through its Service, masqueraded with the address of
	// the pods' gateway or of the node.
	HairpinGateway = Clients{PodSelf: FirstOfRange}
	HairpinNode    = Clients{PodSelf: NodeAddress}
)
