package ipvs

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"time"

	"github.com/mdlayher/netlink"
)

// The numbers of linux/ip_vs.h.
const (
	familyName    = "IPVS"
	familyVersion = 1

	cmdNewService = 1
	cmdSetService = 2
	cmdDelService = 3
	cmdGetService = 4
	cmdNewDest    = 5
	cmdSetDest    = 6
	cmdDelDest    = 7
	cmdGetDest    = 8

	attrService = 1
	attrDest    = 2

	svcFamily    = 1
	svcProtocol  = 2
	svcAddr      = 3
	svcPort      = 4
	svcScheduler = 6
	svcFlags     = 7
	svcTimeout   = 8
	svcNetmask   = 9

	destAddr       = 1
	destPort       = 2
	destMethod     = 3
	destWeight     = 4
	destUpper      = 5
	destLower      = 6
	destActive     = 7
	destInactive   = 8
	destAddrFamily = 11
	flagPersistent = 1
	masquerading   = 0 // the forwarding method
	roundRobin     = "rr"

	// The kernel's numbers of the two versions of IP.
	inet  = 2
	inet6 = 10
)

// addrAttrs has the types of the three netlink attributes that encode an address and port: family, address, port.
type addrAttrs struct{ family, addr, port uint16 }

var (
	serverAttrs  = addrAttrs{svcFamily, svcAddr, svcPort}
	backendAttrs = addrAttrs{destAddrFamily, destAddr, destPort}
)

// familyOf returns the kernel's number of an address's version of IP.
func familyOf(a netip.Addr) uint16 {
	if a.Is6() {
		return inet6
	}
	return inet
}

func (p addrAttrs) encode(e *netlink.AttributeEncoder, at netip.AddrPort) {
	var room [16]byte // for an address of either version
	copy(room[:], at.Addr().AsSlice())
	e.Uint16(p.family, familyOf(at.Addr()))
	e.Bytes(p.addr, room[:])
	e.Bytes(p.port, binary.BigEndian.AppendUint16(nil, at.Port()))
}

// encodeMessage returns the message about a server, and about one of its backends if b is not nil.
func encodeMessage(s Server, b *backend) ([]byte, error) {
	e := netlink.NewAttributeEncoder()
	e.Nested(attrService, s.encode)
	if b != nil {
		e.Nested(attrDest, b.encode)
	}
	return e.Encode()
}

// encode adds the attributes of the server to e, which keeps its first error.
func (s Server) encode(e *netlink.AttributeEncoder) error {
	var flags, timeout uint32
	if s.Affinity > 0 {
		flags, timeout = flagPersistent, uint32(s.Affinity/time.Second)
	}
	// Affinity is by a client's whole address: a mask in IPv4, a length in IPv6.
	mask := uint32(0xffffffff)
	if s.Addr.Addr().Is6() {
		mask = 128
	}
	serverAttrs.encode(e, s.Addr)
	e.Uint16(svcProtocol, uint16(s.Protocol))
	e.String(svcScheduler, roundRobin)
	word := binary.NativeEndian.AppendUint32(nil, flags)
	e.Bytes(svcFlags, binary.NativeEndian.AppendUint32(word, 0xffffffff)) // mask of the flags to set: all
	e.Uint32(svcTimeout, timeout)
	e.Uint32(svcNetmask, mask)
	return nil
}

func (b backend) encode(e *netlink.AttributeEncoder) error {
	backendAttrs.encode(e, b.addr)
	e.Uint32(destMethod, masquerading)
	e.Uint32(destWeight, b.weight)
	e.Uint32(destUpper, 0)
	e.Uint32(destLower, 0)
	return nil
}

// decodeServer decodes the answer about one server, without its backends.
func decodeServer(data []byte) (s Server, err error) {
	a, err := nestedAttributes(data, attrService)
	if err == nil {
		s.Addr, err = a.addrPort(serverAttrs, 0)
	}
	if err != nil {
		return Server{}, fmt.Errorf("answer about a virtual server: %w", err)
	}
	s.Protocol = Protocol(a.number(svcProtocol))
	if a.number(svcFlags)&flagPersistent != 0 {
		s.Affinity = time.Duration(a.number(svcTimeout)) * time.Second
	}
	return s, nil
}

// decodeBackend decodes the answer about one backend of a server. If the answer has no address family, the backend has
// the server's.
func decodeBackend(data []byte, of Server) (b backend, err error) {
	a, err := nestedAttributes(data, attrDest)
	if err == nil {
		b.addr, err = a.addrPort(backendAttrs, familyOf(of.Addr.Addr()))
	}
	if err != nil {
		return backend{}, fmt.Errorf("answer about a backend: %w", err)
	}
	b.weight, b.connections = a.number(destWeight), a.number(destActive)+a.number(destInactive)
	return b, nil
}

// attributes has the contents of nested attributes, by type.
type attributes map[uint16][]byte

// nestedAttributes returns the attributes inside the attribute of the given type. The result is empty if data has no
// such attribute.
func nestedAttributes(data []byte, kind uint16) (attributes, error) {
	outer, err := netlink.UnmarshalAttributes(data)
	if err != nil {
		return nil, err
	}
	found := attributes{}
	for _, o := range outer {
		if o.Type&^netlink.Nested != kind {
			continue
		}
		inner, err := netlink.UnmarshalAttributes(o.Data)
		if err != nil {
			return nil, err
		}
		for _, i := range inner {
			found[i.Type] = i.Data
		}
	}
	return found, nil
}

// number returns the 32-bit or 16-bit number in an attribute, 0 if it is absent.
func (a attributes) number(kind uint16) uint32 {
	switch b := a[kind]; {
	case len(b) >= 4:
		return binary.NativeEndian.Uint32(b)
	case len(b) >= 2:
		return uint32(binary.NativeEndian.Uint16(b))
	}
	return 0
}

// addrPort decodes an address and port. family is used if the attributes have no address family. It fails if the
// family is unknown or a part is too short.
func (a attributes) addrPort(p addrAttrs, family uint16) (netip.AddrPort, error) {
	if _, has := a[p.family]; has {
		family = uint16(a.number(p.family))
	}
	addr, port, length := a[p.addr], a[p.port], 4
	switch family {
	case inet:
	case inet6:
		length = 16
	default:
		return netip.AddrPort{}, fmt.Errorf("address family %d, want that of IPv4 or IPv6", family)
	}
	if len(addr) < length || len(port) < 2 {
		return netip.AddrPort{}, fmt.Errorf("address of %d bytes and port of %d, want %d and 2", len(addr), len(port), length)
	}
	ip, _ := netip.AddrFromSlice(addr[:length])
	return netip.AddrPortFrom(ip, binary.BigEndian.Uint16(port)), nil
}
