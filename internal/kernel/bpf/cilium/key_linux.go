package cilium

import (
	"encoding/binary"
	"net/netip"
)

// familyV4 and ipcacheStatic are FAMILY_V4 and IPCACHE_STATIC of maps.h.
const (
	familyV4      = 1
	ipcacheStatic = 32
)

// be32 is an IPv4 address as the word that lies in a packet.
func be32(a netip.Addr) uint32 {
	b := a.As4()
	return binary.NativeEndian.Uint32(b[:])
}

// be16 is a port as it lies in a packet.
func be16(port uint16) uint16 {
	return binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, port))
}

func mask(bits int) uint32 {
	return binary.NativeEndian.Uint32(binary.BigEndian.AppendUint32(nil, ^uint32(0)<<(32-bits)))
}

func flag(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}

func endpointKey(a netip.Addr) hostEndpointKey {
	return hostEndpointKey{Ip: be32(a), Family: familyV4}
}

func ipcacheKey(p netip.Prefix) hostIpcacheKey {
	return hostIpcacheKey{
		Prefixlen: ipcacheStatic + uint32(p.Bits()), Family: familyV4, Ip: be32(p.Masked().Addr()),
	}
}
