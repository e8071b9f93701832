package dataplane

import (
	"maps"
	"net/netip"
	"time"

	"github.com/cnibench/cnibench/internal/plan"
)

// Expectation is what an observer of a profile must find under the default conditions.
type Expectation struct {
	// Attach is the connection of a pod to its node, nil if pods have no network of their own.
	Attach *Attachment
	// Programs describes the BPF programs, nil for none.
	Programs *ExpectedPrograms
	// Tracked says that conntrack tracks packets between pods, on every node that they cross. TrackedBetween says that it
	// tracks only those between nodes. TunnelTracked says that it also tracks the tunnel's packets, in each direction by an
	// entry without replies.
	Tracked, TrackedBetween, TunnelTracked bool
	// Identity returns the VNI of a pod's packets if that is the pod's identity; nil otherwise.
	Identity func(pod netip.Addr) int
	// RouteMTU means that the tunnel's device has the MTU of the underlay and no neighbours: routes set the MTU.
	RouteMTU bool
	// Unsaid means that only the paths are known: a profile file contains no more.
	Unsaid bool
	Signs
	// Untouched means that the nodes' rules do not count packets between pods.
	Untouched bool
	// Blackhole is the protocol of the route that drops packets to a node's unused pod addresses, 0 for no such route.
	Blackhole int
	// Remote is the route to another node's pods.
	Remote *Route
	// Served are the paths that work, with the client that the server sees. Datagrams are the paths on which it sees
	// another client over UDP.
	Served, Datagrams Clients
	// Refused are the paths that must not work.
	Refused []plan.Path
}

// Signs are what some CNIs leave on a node.
type Signs struct {
	// PodRules means that each node has a routing rule for every pod. PodTable is the table of a second rule for what the
	// pod sends, and of one for the address of the node's second interface; 0 for none.
	PodRules bool
	PodTable int
	// Leave are the devices by which the client's node, or the node that the client entered, sends packets to the wire, by
	// path.
	Leave map[plan.Path]string
	// Marks are the marks of connections on the client's node, or on the node that the client entered, by path. Label is
	// that of connections between pods, on every node that they cross; 0 for none.
	Marks map[plan.Path]uint32
	Label int
	// AffinityAfter is how long after a client's first connection to a Service session affinity holds; 0 is at once.
	AffinityAfter time.Duration
	// Firewall means that each node walks a list of rules for its pods, and a routing rule for their range.
	Firewall bool
	// Diverted is the entry of the routing policy, with its priority, that leads packets into the tunnel before the main
	// table does; "" for none.
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
	// ProxyARP means that the host side answers for any address.
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
	// NoGateway: the pod is on the node's own network.
	NoGateway Gateway = iota
	// FirstAddress: the first address of the node's pod range, held by a device of the node.
	FirstAddress
	// RangeAddress: the address of the node's pod range itself, held by the node's end of each pod's device.
	RangeAddress
	// LinkLocal: Calico's 169.254.1.1 at ee:ee:ee:ee:ee:ee, which no device has. In IPv6 it is the address in fe80::/64
	// that results from that MAC address.
	LinkLocal
	// Pinned: 169.254.1.1, which no device has. The pod has a permanent entry for it with the MAC address of the node's
	// end.
	Pinned
	// Answered: 169.254.1.1, which no device has. The node's end answers for it with its own MAC address.
	Answered
)

// Route is the shape of the route to the pods of another node.
type Route struct {
	// Device is the name of the device, "" for the profile's tunnel.
	Device string
	OnLink bool
	// Protocol is 0 for any.
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

// ExpectedPrograms says what BPF programs do with packets.
type ExpectedPrograms struct {
	// VIP says where packets have a Service's address: "nowhere" if sockets translate it.
	VIP string
	// Doorstep says which packets to a pod pass the node's end of its device. DoorstepSame is the same for packets from a
	// pod of its node, "" for no difference.
	Doorstep, DoorstepSame string
	// Forwards means that the node's stack forwards packets between nodes.
	Forwards bool
	// Entered says how a packet from outside reaches the other node's backend, and how the reply returns. BACKEND is the
	// identity of that backend.
	Entered string
	// Maglev means that every node chooses the same backend for the same client.
	Maglev bool
	// Mute means that a datagram to a Service without endpoints is dropped silently.
	Mute bool
	// Option says which packets carry the frontend in an IP option.
	Option string
}

// Packets to a pod that pass the node's end of its device.
const (
	NoPackets    = "nothing"
	FirstPackets = "the first packets of a flow"
	AllPackets   = "every packet"
)

// Client is the client that a backend sees.
type Client int

// Clients that a backend can see.
const (
	// OwnAddress: the client's own address.
	OwnAddress Client = iota
	// NodeAddress: the address of the client's node, or of the node that the client entered.
	NodeAddress
	// TunnelEnd: the address of that node's tunnel device.
	TunnelEnd
	// FirstOfRange: the first address of that node's pod range.
	FirstOfRange
	// OfRange: the address of that node's pod range itself.
	OfRange
	// AnyAddress: any address.
	AnyAddress
)

// Clients says for each path which client the backend sees.
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

// Paths joins tables of served paths; a later one wins.
func Paths(tables ...Clients) Clients {
	served := Clients{}
	for _, t := range tables {
		maps.Copy(served, t)
	}
	return served
}

// Direct holds for every profile with pods behind their node: between pods, to the pod's own node and to Services the
// client's address is not translated.
var Direct = Clients{
	HostHostSame: OwnAddress, HostHostCross: OwnAddress, PodHostSame: OwnAddress,
	PodPodSame: OwnAddress, PodPodCross: OwnAddress, PodSvcLocal: OwnAddress, PodSvcRemote: OwnAddress,
}

// Entering returns the paths on which the outgoing device determines the source address: the node is the client or
// masquerades for a Service. near is the address towards pods of the node, far towards those of another node.
func Entering(near, far Client) Clients {
	return Clients{
		HostPodSame: near, HostSvcLocal: near, ExtPortLocal: near,
		HostPodCross: far, HostSvcRemote: far, ExtPortRemote: far,
	}
}

var (
	// Masqueraded are a pod's paths out of the cluster, with the address of its node.
	Masqueraded = Clients{PodHostCross: NodeAddress, PodExternal: NodeAddress}
	// Unmasqueraded: the underlay has routes to the pods, the external network does not.
	Unmasqueraded = Clients{PodHostCross: OwnAddress}
	// HairpinGateway and HairpinNode: a pod reaches itself through its Service, masqueraded with the node's address towards
	// the pod.
	HairpinGateway = Clients{PodSelf: FirstOfRange}
	HairpinNode    = Clients{PodSelf: NodeAddress}
)
