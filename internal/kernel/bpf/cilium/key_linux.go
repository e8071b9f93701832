package cilium

import (
	"encoding/binary"
	"net/netip"
)

// be16 is a port as it lies in a packet.
func be16(port uint16) uint16 {
	return binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, port))
}

func flag(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}

// isV6 excludes IPv4 addresses in IPv6 clothing, which are on no wire.
func isV6(a netip.Addr) bool { return a.Is6() && !a.Is4In6() }
