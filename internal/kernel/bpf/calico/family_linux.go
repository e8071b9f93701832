package calico

import (
	"encoding/binary"
	"net/netip"

	"github.com/cilium/ebpf"
)

// family describes the differences between IPv4 and IPv6. The C programs are compiled once for each family. Each family
// has its own tables.
type family struct {
	name    string
	address int    // bytes
	tables  string // prefix of their names

	mains, preamble, connect func() (*ebpf.CollectionSpec, error)
	// connectName is the program that is attached to the hook connectAt.
	connectName string
	connectAt   ebpf.AttachType
}

var (
	ipv4 = &family{
		name: "IPv4", address: 4, tables: "cali_v4_", mains: loadMains, preamble: loadPreamble, connect: loadConnect,
		connectName: "connect4", connectAt: ebpf.AttachCGroupInet4Connect,
	}
	ipv6 = &family{
		name: "IPv6", address: 16, tables: "cali_v6_", mains: loadMains6, preamble: loadPreamble6, connect: loadConnect6,
		connectName: "connect6", connectAt: ebpf.AttachCGroupInet6Connect,
	}
)

// familyOf returns the family of an address, nil if the address is invalid, IPv4-mapped or has a zone.
func familyOf(a netip.Addr) *family {
	switch {
	case a.Is4():
		return ipv4
	case a.Is6() && !a.Is4In6() && a.Zone() == "":
		return ipv6
	}
	return nil
}

// has reports whether an address belongs to the family.
func (f *family) has(a netip.Addr) bool { return familyOf(a) == f }

// addressBits returns the length of an address in bits.
func (f *family) addressBits() int { return 8 * f.address }

// zeroAddress returns zeros in the length of an address. In keys and values they mean "no address".
func (f *family) zeroAddress() []byte { return make([]byte, f.address) }

// encoder encodes keys and values of tables in the layout of the C structs. Addresses, ports and be64 are in network
// order, other fields in the machine's.
type encoder struct{ bytes []byte }

func (e *encoder) u8(v ...uint8) *encoder {
	e.bytes = append(e.bytes, v...)
	return e
}

func (e *encoder) u32(v ...uint32) *encoder {
	for _, v := range v {
		e.bytes = binary.NativeEndian.AppendUint32(e.bytes, v)
	}
	return e
}

func (e *encoder) be64(v uint64) *encoder {
	e.bytes = binary.BigEndian.AppendUint64(e.bytes, v)
	return e
}

func (e *encoder) port(v uint16) *encoder {
	e.bytes = binary.BigEndian.AppendUint16(e.bytes, v)
	return e
}

func (e *encoder) address(a netip.Addr) *encoder { return e.u8(a.AsSlice()...) }

// bigEndianPort returns a port as a program loads it from a packet's bytes.
func bigEndianPort(port uint16) uint16 {
	return binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, port))
}

// ifaceConfig is struct iface_config: the configuration of a preamble for its device.
type ifaceConfig struct {
	host   netip.Addr
	tunnel uint32
	policy uint32
	kind   kind
	dsr    bool
}

func (c ifaceConfig) encode() []byte {
	dsr := uint8(0)
	if c.dsr {
		dsr = 1
	}
	return new(encoder).address(c.host).u32(c.tunnel, c.policy).u8(uint8(c.kind), dsr, 0, 0).bytes
}

// routeKey returns the bytes of a struct route_key for the prefix p.
func routeKey(p netip.Prefix) []byte {
	return new(encoder).u32(uint32(p.Bits())).address(p.Masked().Addr()).bytes
}

// routeValue returns a struct route_value. An invalid hop is encoded as zeros.
func (f *family) routeValue(flags uint32, hop netip.Addr, ifindex uint32) []byte {
	address := f.zeroAddress()
	if hop.IsValid() {
		address = hop.AsSlice()
	}
	return new(encoder).u32(flags).u8(address...).u32(ifindex).bytes
}

// frontendKey returns a struct nat_fe_key that matches any client: its prefix ends before the client's address.
func (f *family) frontendKey(a netip.AddrPort, proto Proto) []byte {
	return new(encoder).u32(uint32(f.addressBits()+32)).address(a.Addr()).port(a.Port()).u8(uint8(proto), 0).u8(f.zeroAddress()...).bytes
}

// backendKey returns the bytes of a struct nat_be_key: the number of a service, and the ordinal of a backend.
func backendKey(id uint32, ordinal int) []byte {
	return new(encoder).u32(id, uint32(ordinal)).bytes
}

// backendValue returns the bytes of a struct nat_be_value for the backend a.
func backendValue(a netip.AddrPort) []byte {
	return new(encoder).address(a.Addr()).port(a.Port()).u8(0, 0).bytes
}

// affinityID returns the number of the service in a struct nat_aff_key.
func (f *family) affinityID(key []byte) uint32 { return binary.NativeEndian.Uint32(key[f.address:]) }

// affinityBackend returns the backend in a struct nat_aff_value, in the format of backendValue.
func (f *family) affinityBackend(value []byte) string { return string(value[8 : 8+f.address+4]) }

// setKey returns a struct set_key: the number of a set, and a prefix in the set.
func setKey(set uint64, p netip.Prefix) []byte {
	const number = 64 // bits
	return new(encoder).u32(number+uint32(p.Bits())).be64(set).address(p.Masked().Addr()).u8(0, 0, 0, 0).bytes
}

// setKeyAddr is the offset of the address in struct set_key, which is packed.
const setKeyAddr = 12

// stateSrc and the methods below are offsets of fields of struct state, as in state.h.
const stateSrc = 0

func (f *family) stateDst() int16      { return int16(f.address) }
func (f *family) stateDport() int16    { return int16(2*f.address + 2) }
func (f *family) stateProto() int16    { return int16(2*f.address + 4) }
func (f *family) stateAccepted() int16 { return int16(2*f.address + 8) }
