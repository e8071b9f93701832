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

// encode is the message for one server, and one of its backends if there is one.
func encode(s Server, b *backend) ([]byte, error) {
	e := netlink.NewAttributeEncoder()
	e.Nested(attrService, func(e *netlink.AttributeEncoder) error {
		s.encode(e)
		return nil
	})
	if b != nil {
		e.Nested(attrDest, func(e *netlink.AttributeEncoder) error {
			b.encode(e)
			return nil
		})
	}
	return e.Encode()
}

func (s Server) encode(e *netlink.AttributeEncoder) {
	var flags, timeout uint32
	if s.Affinity > 0 {
		flags, timeout = flagPersistent, uint32(s.Affinity/time.Second)
	}
	// Affinity is by a client's whole address: a mask in IPv4, a length in IPv6.
	family, mask := uint16(inet), uint32(0xffffffff)
	if s.Addr.Addr().Is6() {
		family, mask = inet6, 128
	}
	e.Uint16(svcFamily, family)
	e.Uint16(svcProtocol, uint16(s.Protocol))
	e.Bytes(svcAddr, union(s.Addr.Addr()))
	e.Bytes(svcPort, port(s.Addr))
	e.String(svcScheduler, roundRobin)
	word := binary.NativeEndian.AppendUint32(nil, flags)
	e.Bytes(svcFlags, binary.NativeEndian.AppendUint32(word, 0xffffffff)) // which of the flags are meant: all
	e.Uint32(svcTimeout, timeout)
	e.Uint32(svcNetmask, mask)
}

func (b backend) encode(e *netlink.AttributeEncoder) {
	family := uint16(inet)
	if b.addr.Addr().Is6() {
		family = inet6
	}
	e.Uint16(destAddrFamily, family)
	e.Bytes(destAddr, union(b.addr.Addr()))
	e.Bytes(destPort, port(b.addr))
	e.Uint32(destMethod, masquerading)
	e.Uint32(destWeight, b.weight)
	e.Uint32(destUpper, 0)
	e.Uint32(destLower, 0)
}

// union is an address in the kernel's room for one of either version.
func union(a netip.Addr) []byte {
	b := make([]byte, 16)
	copy(b, a.AsSlice())
	return b
}

func port(a netip.AddrPort) []byte { return binary.BigEndian.AppendUint16(nil, a.Port()) }

// decodeServer reads the answer about one server, without its backends.
func decodeServer(data []byte) (Server, error) {
	var s Server
	var place place
	err := nested(data, attrService, func(d *netlink.AttributeDecoder) {
		switch d.Type() {
		case svcFamily:
			place.family = d.Uint16()
		case svcProtocol:
			s.Protocol = Protocol(d.Uint16())
		case svcTimeout:
			s.Affinity = time.Duration(d.Uint32()) * time.Second
		case svcFlags:
			if b := d.Bytes(); len(b) >= 4 {
				place.flags = binary.NativeEndian.Uint32(b)
			}
		default:
			place.read(d, svcAddr, svcPort)
		}
	})
	if place.flags&flagPersistent == 0 {
		s.Affinity = 0
	}
	if err == nil {
		s.Addr, err = place.addrPort()
	}
	if err != nil {
		return Server{}, fmt.Errorf("answer about a virtual server: %w", err)
	}
	return s, nil
}

// decodeBackend reads the answer about one backend of a server, of whose version of IP it is unless it says otherwise.
func decodeBackend(data []byte, of Server) (backend, error) {
	var b backend
	place := place{family: inet}
	if of.Addr.Addr().Is6() {
		place.family = inet6
	}
	err := nested(data, attrDest, func(d *netlink.AttributeDecoder) {
		switch d.Type() {
		case destAddrFamily:
			place.family = d.Uint16()
		case destWeight:
			b.weight = d.Uint32()
		case destActive, destInactive:
			b.connections += d.Uint32()
		default:
			place.read(d, destAddr, destPort)
		}
	})
	if err == nil {
		b.addr, err = place.addrPort()
	}
	if err != nil {
		return backend{}, fmt.Errorf("answer about a backend: %w", err)
	}
	return b, nil
}

// place is an address as it comes in parts.
type place struct {
	family     uint16
	addr, port []byte
	flags      uint32
}

func (p *place) read(d *netlink.AttributeDecoder, addr, port uint16) {
	switch d.Type() {
	case addr:
		p.addr = d.Bytes()
	case port:
		p.port = d.Bytes()
	}
}

func (p *place) addrPort() (netip.AddrPort, error) {
	length := 4
	switch p.family {
	case inet:
	case inet6:
		length = 16
	default:
		return netip.AddrPort{}, fmt.Errorf("address family %d, want that of IPv4 or IPv6", p.family)
	}
	if len(p.addr) < length || len(p.port) < 2 {
		return netip.AddrPort{}, fmt.Errorf("address of %d bytes and port of %d, want %d and 2", len(p.addr), len(p.port), length)
	}
	a, _ := netip.AddrFromSlice(p.addr[:length])
	return netip.AddrPortFrom(a, binary.BigEndian.Uint16(p.port)), nil
}

// nested calls read for each attribute inside the one of the given type.
func nested(data []byte, attr uint16, read func(*netlink.AttributeDecoder)) error {
	d, err := netlink.NewAttributeDecoder(data)
	if err != nil {
		return err
	}
	for d.Next() {
		if d.Type() != attr {
			continue
		}
		d.Nested(func(d *netlink.AttributeDecoder) error {
			for d.Next() {
				read(d)
			}
			return nil
		})
	}
	return d.Err()
}
