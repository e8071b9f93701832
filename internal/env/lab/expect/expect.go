// Package expect has the words in which a profile's folder says what an observer of the lab must find. Package selftest
// looks for it.
//
// What the profile's record says is not repeated here: encapsulation, the tunnel's device, the engines of Services and
// policy.
package expect

import (
	"maps"
	"net/netip"

	"github.com/cnibench/cnibench/internal/plan"
)

// Expectation is what an observer of a profile must find under the default conditions.
type Expectation struct {
	// Attach is how a pod is connected to its node, nil when pods have no network of their own.
	Attach *Attachment
	// Programs is what BPF programs do with packets, nil where there are none.
	Programs *Programs
	// Tracked says whether conntrack follows packets between pods, on every node that they cross. TrackedBetween says that
	// it follows only those between nodes. TunnelTracked says that it follows the tunnel's packets too: then in each
	// direction by an entry that no reply reaches.
	Tracked, TrackedBetween, TunnelTracked bool
	// Identity returns the VNI of a pod's packets where it is the pod's identity, nil elsewhere.
	Identity func(pod netip.Addr) int
	// RouteMTU says that the tunnel's device has the MTU of the underlay and no neighbours: routes leave the room.
	RouteMTU bool
	// Untouched says that the nodes' rules count nothing when pods talk.
	Untouched bool
	// Blackhole is the protocol of the route that drops the rest of a node's own pod addresses, 0 for no such route.
	Blackhole int
	// Remote is the route to another node's pods.
	Remote *Route
	// Served are the paths that work, with the client that the far end sees. Datagrams are those on which UDP shows another
	// client than TCP does.
	Served, Datagrams Clients
	// Refused are the paths that must not work.
	Refused []plan.Path
}

// Attachment is the way from a pod's eth0 into its node.
type Attachment struct {
	// Bridge is the node's bridge that holds the pods' devices, "" when there is none.
	Bridge string
	// Gateway is the next hop of the pod's default route.
	Gateway Gateway
	// SameTTL and CrossTTL are what is left of 64 at a pod of the same node and of another.
	SameTTL, CrossTTL int
	// ProxyARP says that the host side answers for any address.
	ProxyARP bool
	// OwnMAC says that the pod's MAC address is the one on the wire.
	OwnMAC bool
	// Switched says that the pod is connected to the switch, where it meets its node and the other pods of the node.
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
	// LinkLocal: Calico's 169.254.1.1 at ee:ee:ee:ee:ee:ee, which no device holds; in IPv6 the address in fe80::/64 that
	// the node's end of the link has by that MAC address.
	LinkLocal
)

// Route is the shape of the route to the pods of another node.
type Route struct {
	// Device is the name of the device, "" for the profile's tunnel.
	Device string
	OnLink bool
	// Protocol is 0 for any.
	Protocol int
	// Shared says that one route leads to the pods of all nodes.
	Shared bool
}

// Protocol numbers of routes that daemons make.
const (
	ProtocolBird  = 12
	ProtocolFelix = 80
)

// Programs is what BPF programs do with packets on their way.
type Programs struct {
	// VIP is where a Service's own address is seen: "nowhere" when sockets translate.
	VIP string
	// Doorstep is how much of the traffic to a pod passes the node's end of the pod's device. DoorstepSame is the same for
	// traffic from a pod of its node, "" for no difference.
	Doorstep, DoorstepSame string
	// Forwards says that the node's stack forwards packets between nodes.
	Forwards bool
	// Entered is how a packet from outside reaches the other node's backend, and the reply back. BACKEND stands for the
	// identity of the pod that answers.
	Entered string
	// Maglev says that every node chooses the same backend for the same client.
	Maglev bool
	// Mute says that a datagram to a Service without endpoints is dropped without an answer.
	Mute bool
	// Option says which packets carry the frontend in an IP option.
	Option string
}

// How much of the traffic to a pod passes the node's end of its device.
const (
	NoPackets    = "nothing"
	FirstPackets = "the first packets of a flow"
	AllPackets   = "every packet"
)

// Client is the client that a backend sees.
type Client int

// Clients that a backend can see.
const (
	// Own: the client's own address.
	Own Client = iota
	// Node: the address of the node that the client is on, or that the client entered.
	Node
	// TunnelEnd: the address of that node's tunnel device.
	TunnelEnd
	// FirstOfRange: the first address of that node's pod range.
	FirstOfRange
)

// Clients says for each path which client the backend sees.
type Clients map[plan.Path]Client

// The paths, by short names that keep the tables readable.
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

// Direct is the same under every profile with pods behind their node: no translation of the client's address between
// pods, from a pod to its own node, nor on the way to a Service.
var Direct = Clients{
	HostHostSame: Own, HostHostCross: Own, PodHostSame: Own,
	PodPodSame: Own, PodPodCross: Own, PodSvcLocal: Own, PodSvcRemote: Own,
}

// Entering are the paths on which the source address depends on the device that a packet leaves by, because a node sends
// its own traffic or masquerades for a Service. near is that address towards a pod of the node, far towards a pod of
// another node.
func Entering(near, far Client) Clients {
	return Clients{
		HostPodSame: near, HostSvcLocal: near, ExtPortLocal: near,
		HostPodCross: far, HostSvcRemote: far, ExtPortRemote: far,
	}
}

var (
	// Masqueraded are a pod's ways out of the cluster's range where the node lends its address.
	Masqueraded = Clients{PodHostCross: Node, PodExternal: Node}
	// Unmasqueraded: the underlay knows the pods' addresses, the world outside does not.
	Unmasqueraded = Clients{PodHostCross: Own}
	// HairpinGateway and HairpinNode are how a pod reaches itself through its Service: masqueraded, as the address that the
	// node has towards it.
	HairpinGateway = Clients{PodSelf: FirstOfRange}
	HairpinNode    = Clients{PodSelf: Node}
)
