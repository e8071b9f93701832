package nft

import (
	"encoding/binary"
	"net"
	"net/netip"
)

// protocols has the IP numbers of the transport protocols.
var protocols = map[L4]byte{"tcp": 6, "udp": 17, "sctp": 132, "ipv6-icmp": 58, "4": 4}

// deviceSize is the size of a device's name in the kernel, in bytes.
const deviceSize = 16

// valueBytes returns a value in the format of a register. It returns nil if v has none of the types of a Value.
func valueBytes(v Value) []byte {
	switch v := v.(type) {
	case netip.Addr:
		return v.AsSlice()
	case netip.Prefix:
		return v.Masked().Addr().AsSlice()
	case L4:
		return []byte{protocols[v]}
	case uint16:
		return binary.BigEndian.AppendUint16(nil, v)
	case uint8:
		return []byte{v}
	case string:
		b := make([]byte, deviceSize)
		copy(b, v)
		return b
	}
	return nil
}

// shape is how nft and the kernel describe a Type.
type shape struct {
	// name is the name of the type in the language of nft.
	name string
	// size is the length of its values in bytes.
	size int
	// magic is nft's number for the type. The kernel only stores it; nft needs it to print a set.
	magic uint32
}

var shapes = [...]shape{
	Addr: {"ipv4_addr", 4, 7}, Proto: {"inet_proto", 1, 12}, Port: {"inet_service", 2, 13},
	Device: {"ifname", deviceSize, 41}, ICMPType: {"icmpv6_type", 1, 29},
	Addr6: {"ipv6_addr", 16, 8},
}

func (t Type) shape(family Family) shape {
	if t == Addr && family == IPv6 {
		return shapes[Addr6]
	}
	return shapes[t]
}

// paddedLength returns n rounded up to whole registers of four bytes.
func paddedLength(n int) int { return (n + 3) &^ 3 }

// keyBytes returns the key with these parts, in the kernel's format. Each of several parts starts at a register.
func keyBytes(parts []Value) []byte {
	if len(parts) == 1 {
		return valueBytes(parts[0])
	}
	var key []byte
	for _, p := range parts {
		b := valueBytes(p)
		key = append(key, b...)
		key = append(key, make([]byte, paddedLength(len(b))-len(b))...)
	}
	return key
}

// keyShape returns the length of a key of these types and nft's number for it.
func keyShape(types []Type, family Family) (length int, magic uint32) {
	if len(types) == 1 {
		s := types[0].shape(family)
		return s.size, s.magic
	}
	for _, t := range types {
		s := t.shape(family)
		length += paddedLength(s.size)
		magic = magic<<6 | s.magic
	}
	return length, magic
}

// networkMask returns the network mask of p, in the length of its addresses.
func networkMask(p netip.Prefix) []byte { return net.CIDRMask(p.Bits(), p.Addr().BitLen()) }

// firstAddrAfter returns the first address after p. It returns the zero Addr if p includes the last address.
func firstAddrAfter(p netip.Prefix) netip.Addr {
	b := p.Masked().Addr().AsSlice()
	for i, m := range networkMask(p) {
		b[i] |= ^m
	}
	last, _ := netip.AddrFromSlice(b)
	return last.Next()
}
