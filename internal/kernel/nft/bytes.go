package nft

import (
	"encoding/binary"
	"net"
	"net/netip"
)

// protocols are the numbers of the transport protocols.
var protocols = map[L4]byte{"tcp": 6, "udp": 17, "sctp": 132, "ipv6-icmp": 58, "4": 4}

// deviceSize is the size of a device's name in the kernel.
const deviceSize = 16

// valueBytes is a value as it stands in a register.
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

// size is the length of a value of the type in bytes.
func (t Type) size(family Family) int {
	switch t {
	case Addr:
		if family == IPv6 {
			return 16
		}
		return 4
	case Proto, ICMPType:
		return 1
	case Port:
		return 2
	}
	return deviceSize
}

// magic is nft's own number of the type. The kernel keeps it for nft, which prints sets by it.
func (t Type) magic(family Family) uint32 {
	switch t {
	case Addr:
		if family == IPv6 {
			return 8
		}
		return 7
	case Proto:
		return 12
	case Port:
		return 13
	case ICMPType:
		return 29
	}
	return 41
}

// padded is n rounded up to whole registers of four bytes.
func padded(n int) int { return (n + 3) &^ 3 }

// keyBytes joins the parts of a key, each at the start of a register when there are several.
func keyBytes(parts []Value) []byte {
	if len(parts) == 1 {
		return valueBytes(parts[0])
	}
	var key []byte
	for _, p := range parts {
		b := valueBytes(p)
		key = append(key, b...)
		key = append(key, make([]byte, padded(len(b))-len(b))...)
	}
	return key
}

// keyShape returns the length of a key of these types and nft's number for it.
func keyShape(types []Type, family Family) (length int, magic uint32) {
	if len(types) == 1 {
		return types[0].size(family), types[0].magic(family)
	}
	for _, t := range types {
		length += padded(t.size(family))
		magic = magic<<6 | t.magic(family)
	}
	return length, magic
}

// mask is the network mask of p.
func mask(p netip.Prefix) []byte { return net.CIDRMask(p.Bits(), p.Addr().BitLen()) }

// after returns the first address above p; above the last address it is not valid.
func after(p netip.Prefix) netip.Addr {
	b := p.Masked().Addr().AsSlice()
	for i, m := range mask(p) {
		b[i] |= ^m
	}
	last, _ := netip.AddrFromSlice(b)
	return last.Next()
}
