package cilium

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/cilium/ebpf"
)

// family describes the differences between IPv4 and IPv6: the compiled programs, the names of tables whose keys are
// addresses, and the layout of these keys. Some tables have room for addresses of both families and are common.
type family struct {
	version         int // 4 or 6, as in the names of tables and programs
	bits            int // of an address
	number          uint8
	host, lxc, sock func() (*ebpf.CollectionSpec, error)
	// hooks has the programs of sock, by attach type.
	hooks map[ebpf.AttachType]string
}

// familyOf returns ipv6 for an IPv6 address, and ipv4 for any other address.
func familyOf(a netip.Addr) *family {
	if isV6(a) {
		return &ipv6
	}
	return &ipv4
}

var ipv4 = family{
	version: 4, bits: 32, number: 1, host: loadHost, lxc: loadLxc, sock: loadSock,
	hooks: map[ebpf.AttachType]string{
		ebpf.AttachCGroupInet4Connect: "connect4", ebpf.AttachCGroupUDP4Sendmsg: "sendmsg4",
		ebpf.AttachCGroupUDP4Recvmsg: "recvmsg4", ebpf.AttachCgroupInet4GetPeername: "getpeername4",
		ebpf.AttachCgroupInetSockRelease: "release4",
	},
}

var ipv6 = family{
	version: 6, bits: 128, number: 2, host: loadHost6, lxc: loadLxc6, sock: loadSock6,
	hooks: map[ebpf.AttachType]string{
		ebpf.AttachCGroupInet6Connect: "connect6", ebpf.AttachCGroupUDP6Sendmsg: "sendmsg6",
		ebpf.AttachCGroupUDP6Recvmsg: "recvmsg6", ebpf.AttachCgroupInet6GetPeername: "getpeername6",
		ebpf.AttachCgroupInetSockRelease: "release6",
	},
}

// ipcacheStatic is IPCACHE_STATIC of maps.h.
const ipcacheStatic = 32

// String returns "IPv4" or "IPv6".
func (f *family) String() string { return fmt.Sprintf("IPv%d", f.version) }

// tableName returns the name of a table for this family: %d in name becomes 4 or 6.
func (f *family) tableName(name string) string { return fmt.Sprintf(name, f.version) }

// has reports whether an address belongs to the family. An IPv4-mapped address belongs to none.
func (f *family) has(a netip.Addr) bool { return a.IsValid() && a.BitLen() == f.bits && !a.Is4In6() }

// hostPrefix returns the prefix that has only the address a.
func (f *family) hostPrefix(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, f.bits) }

// addressWords returns an address in the format for both families: IPv4 uses only the first of four words.
func addressWords(a netip.Addr) (w [4]uint32) {
	b := a.AsSlice()
	for i := range len(b) / 4 {
		w[i] = binary.NativeEndian.Uint32(b[4*i:])
	}
	return w
}

// maskWords returns the mask of a prefix of this many bits, in the format of addressWords.
func (f *family) maskWords(bits int) [4]uint32 {
	ones := netip.AddrFrom4([4]byte{255, 255, 255, 255})
	if f.bits == 128 {
		ones = netip.AddrFrom16([16]byte{255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255})
	}
	return addressWords(netip.PrefixFrom(ones, bits).Masked().Addr())
}

func (f *family) endpointKey(a netip.Addr) hostEndpointKey {
	return hostEndpointKey{Ip: addressWords(a), Family: f.number}
}

func (f *family) ipcacheKey(p netip.Prefix) hostIpcacheKey {
	return hostIpcacheKey{
		Prefixlen: ipcacheStatic + uint32(p.Bits()), Family: f.number, Ip: addressWords(p.Masked().Addr()),
	}
}

// lbKey returns the bytes of a struct lb_key. Its address has the length of the family.
func lbKey(front netip.AddrPort, proto Proto, slot, scope int) []byte {
	b := addrPortBytes(front)
	b = binary.NativeEndian.AppendUint16(b, uint16(slot))
	return append(b, uint8(proto), uint8(scope), 0, 0)
}

// lbBackend returns the bytes of a struct lb_backend.
func lbBackend(at netip.AddrPort, proto Proto) []byte {
	return append(addrPortBytes(at), uint8(proto), 0, 0, 0, 0, 0)
}

// lbFrontend returns the bytes of a struct lb_frontend.
func lbFrontend(at netip.AddrPort) []byte { return append(addrPortBytes(at), 0, 0) }

// addrPortBytes returns the bytes of an address and of a port, in network byte order.
func addrPortBytes(at netip.AddrPort) []byte {
	return binary.BigEndian.AppendUint16(at.Addr().AsSlice(), at.Port())
}

// bigEndianPort returns a port whose bytes in memory are in network order.
func bigEndianPort(port uint16) uint16 {
	return binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, port))
}

// flagByte returns 1 for true, 0 for false.
func flagByte(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}

// isV6 reports whether a is IPv6 and not an IPv4-mapped address, which never occurs in packets.
func isV6(a netip.Addr) bool { return a.Is6() && !a.Is4In6() }
