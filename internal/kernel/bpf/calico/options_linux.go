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
	// NodeIP determines the address family of the node. Addresses of the other family are refused. Packets of the
	// other family pass unchanged, except that packets of pods are dropped.
	NodeIP netip.Addr
	// Wire is the node's data device (eth0). Tunnel is the external VXLAN device on port 4789; without it, no route may
	// be Tunneled.
	Wire, Tunnel string
	// ServiceDevice is the far end (bpfout.cali) of the veth pair through which the node sends its own UDP packets to
	// services; "" means none. The caller routes each service's address via 169.254.1.1 (IPv6: 2001:db8::1) dev
	// bpfin.cali, with NodeIP as the source, and adds a permanent neighbour for this next hop.
	ServiceDevice string
	// DSR lets a backend on another node answer a NodePort client directly. Without it, the answer passes the node that
	// received the client's packet. All nodes must have the same setting.
	DSR bool
	// Flows is the capacity of the flow table, which is LRU and allocated completely: 0 means 65,536 (the product has
	// 512,000). An entry takes about 170 bytes.
	Flows int
	// Connections is the number of additional entries for Connect.
	Connections int
	// Frontends and Endpoints are the numbers of Services and backends that the tables must hold. The tables have room
	// for at least the product's 65,536 and 262,144.
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

// Workload is a pod of this node. The caller adds a route to IP on the node, and a default route in the pod. With IPv4
// the next hop is 169.254.1.1, resolved by proxy_arp or by a permanent entry in the pod. With IPv6 it is the link-local
// address of Device.
type Workload struct {
	IP netip.Addr
	// Device is the host's end of the pod's veth pair.
	Device string
	// NATOutgoing marks packets to addresses outside all pools (0x3800000), for the node's masquerade rule.
	NATOutgoing bool
}

// RouteKind is the kind of destination behind a prefix.
type RouteKind int

// The kinds. AddWorkload adds the routes of local workloads.
const (
	RemoteWorkload RouteKind = iota // pods of the node NextHop, routed
	Tunneled                        // pods of the node NextHop, through the tunnel
	LocalHost                       // an address of this node, in addition to NodeIP
	RemoteHost                      // another node; VXLAN packets are accepted only from these
	Pool                            // addresses that are not masqueraded
)

// Route is one entry of the node's routing table in BPF.
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

// Rule is one rule of a workload's policy. All set fields must match.
type Rule struct {
	Allow bool
	Proto Proto
	Port  uint16 // destination; 0 is every port. Needs Proto
	Set   uint64 // the peer is in this set (SetIPSet); 0 is any peer
}

// Policy is what a workload may receive and send. The first matching rule decides; without a match traffic is denied. A
// nil list allows everything.
type Policy struct{ Ingress, Egress []Rule }

// Service is a frontend with its backends.
type Service struct {
	Frontend netip.AddrPort
	Proto    Proto
	// Local are the backends on this node; Remote are the others. The tables list the local backends first.
	Local, Remote []netip.AddrPort
	// LocalOnly sends packets from outside only to backends on this node (externalTrafficPolicy Local).
	LocalOnly bool
	// Affinity keeps a client with its backend for this long, in whole seconds; 0 means none.
	Affinity time.Duration
}
