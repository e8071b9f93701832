package calico

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/cnibench/cnibench/internal/kernel/netns"
)

// Options describe a node. The devices must exist in NS when Load is called.
type Options struct {
	NS *netns.NS
	// NodeIP decides the family of all that the node handles: addresses of the other are refused, and its packets pass
	// unseen, except that those of pods are dropped.
	NodeIP netip.Addr
	// Wire is the node's data device (eth0), Tunnel the external VXLAN device on port 4789; empty means that no route
	// may be Tunneled.
	Wire, Tunnel string
	// ServiceDevice is the far end (bpfout.cali) of the veth pair to which the node routes its own UDP to services:
	// each service's address via 169.254.1.1 (with IPv6: 2001:db8::1) dev bpfin.cali, with NodeIP as the source and a
	// permanent neighbour for the gateway. Empty does without.
	ServiceDevice string
	// DSR lets a backend elsewhere answer a NodePort client directly instead of through the node it spoke to. All nodes
	// have to agree.
	DSR bool
	// Flows is the capacity of the flow table, which is LRU and allocated whole: 0 for 65,536 (the product has
	// 512,000), of about 170 bytes each.
	Flows int
	// Connections is the room beyond, for those of Connect.
	Connections int
	// Frontends and Endpoints are how many of Services the tables must hold; at least the product's 65,536 and 262,144.
	Frontends, Endpoints int
}

func (o Options) check() error {
	switch {
	case o.NS == nil:
		return errors.New("NS is missing")
	case familyOf(o.NodeIP) == nil:
		return fmt.Errorf("node address %q is neither IPv4 nor IPv6", o.NodeIP)
	case o.Wire == "":
		return errors.New("the wire is not named")
	}
	return nil
}

// Workload is a pod of this node; Device is the host's end of its veth pair. The node needs a route for the address to
// the device, and the pod one to 169.254.1.1, whose ARP the kernel answers (proxy_arp) or a permanent entry replaces;
// with IPv6 to the device's link-local address.
type Workload struct {
	IP     netip.Addr
	Device string
	// NATOutgoing marks packets that leave for an address in no pool (0x3800000), for the node's masquerade rule.
	NATOutgoing bool
}

// RouteKind says what lives behind a prefix.
type RouteKind int

// The kinds. Local workloads are announced by AddWorkload.
const (
	RemoteWorkload RouteKind = iota // pods of the node NextHop, routed
	Tunneled                        // pods of the node NextHop, through the tunnel
	LocalHost                       // an address of this node, beyond NodeIP
	RemoteHost                      // another node; VXLAN is taken from these alone
	Pool                            // addresses that are not masqueraded
)

// Route is one entry of the node's routing knowledge, which policy-free decisions are taken by.
type Route struct {
	Prefix  netip.Prefix
	Kind    RouteKind
	NextHop netip.Addr // of RemoteWorkload and Tunneled
}

// Proto is a transport protocol by its number in the IP header.
type Proto uint8

// The protocols that services and rules may name.
const (
	AnyProto Proto = 0
	TCP      Proto = 6
	UDP      Proto = 17
)

// Rule is one step of a workload's policy. All that is set has to match.
type Rule struct {
	Allow bool
	Proto Proto
	Port  uint16 // destination; 0 is every port. Needs Proto
	Set   uint64 // the peer is in this set (SetIPSet); 0 is everybody
}

// Policy is what a workload may receive and send. Rules are asked in order, the first that matches decides, none is a
// denial. A nil list allows all.
type Policy struct{ Ingress, Egress []Rule }

// Service is a frontend and who serves it.
type Service struct {
	Frontend netip.AddrPort
	Proto    Proto
	// Backends are all of them; Local are those of this node, which come first in the kernel's order.
	Local, Remote []netip.AddrPort
	// LocalOnly gives packets from outside a backend of this node or none (externalTrafficPolicy Local).
	LocalOnly bool
	// Affinity keeps a client with its backend for this long, in whole seconds; 0 does not.
	Affinity time.Duration
}
