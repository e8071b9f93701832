package ipvs

import (
	"fmt"
	"net/netip"
	"time"
)

// Protocol is a transport protocol by its number in the IP header.
type Protocol uint16

// The protocols of a server.
const (
	TCP  Protocol = 6
	UDP  Protocol = 17
	SCTP Protocol = 132
)

// String returns "tcp", "udp" or "sctp", or "protocol" and the number.
func (p Protocol) String() string {
	switch p {
	case TCP:
		return "tcp"
	case UDP:
		return "udp"
	case SCTP:
		return "sctp"
	}
	return fmt.Sprintf("protocol %d", uint16(p))
}

// Server is a virtual server of IPVS.
type Server struct {
	Protocol Protocol
	Addr     netip.AddrPort
	// Affinity is how long a client keeps its backend, in whole seconds; 0 means no affinity.
	Affinity time.Duration
	// Backends get new connections in turn. Without backends, the port is closed to clients.
	Backends []netip.AddrPort
	// Connections is how many open or recently closed connections List found; Apply ignores it.
	Connections int
}

// String returns protocol and address, for example "tcp 10.96.0.10:80".
func (s Server) String() string { return fmt.Sprintf("%s %s", s.Protocol, s.Addr) }

// key identifies a server in its namespace.
type key struct {
	protocol Protocol
	addr     netip.AddrPort
}

func (s Server) key() key { return key{s.Protocol, s.Addr} }

// backend is the kernel's state of one backend.
type backend struct {
	addr netip.AddrPort
	// weight is 0 for a backend that gets no new connections. connections counts its open and recently closed
	// connections.
	weight, connections uint32
}
