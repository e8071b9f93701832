package capture

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// The builders below write the headers byte by byte from the RFCs and share nothing with the decoder.

var (
	macA = []byte{2, 0, 0, 0, 0, 0xa}
	macB = []byte{0xee, 0xee, 0xee, 0xee, 0xee, 0xee}
	ipA  = netip.MustParseAddr("10.0.0.1")
	ipB  = netip.MustParseAddr("10.0.1.2")
)

func eth(typ uint16, payload []byte) []byte {
	return slices.Concat(macB, macA, binary.BigEndian.AppendUint16(nil, typ), payload)
}

type v4 struct {
	proto, ttl byte
	frag       uint16
	options    []byte
}

func (h v4) packet(payload []byte) []byte {
	n := 20 + len(h.options)
	b := []byte{0x40 | byte(n/4), 0}
	b = binary.BigEndian.AppendUint16(b, uint16(n+len(payload)))
	b = append(b, 0, 1)
	b = binary.BigEndian.AppendUint16(b, h.frag)
	b = append(b, h.ttl, h.proto, 0, 0)
	return slices.Concat(b, ipA.AsSlice(), ipB.AsSlice(), h.options, payload)
}

func udpHeader(src, dst uint16, payload []byte) []byte {
	b := binary.BigEndian.AppendUint16(nil, src)
	b = binary.BigEndian.AppendUint16(b, dst)
	b = binary.BigEndian.AppendUint16(b, uint16(8+len(payload)))
	return slices.Concat(b, []byte{0, 0}, payload)
}

func tcpHeader(src, dst uint16, flags byte) []byte {
	b := binary.BigEndian.AppendUint16(nil, src)
	b = binary.BigEndian.AppendUint16(b, dst)
	return append(b, 0, 0, 0, 1, 0, 0, 0, 2, 0x50, flags, 0xff, 0xff, 0, 0, 0, 0)
}

func vxlanHeader(flags byte, vni uint32, inner []byte) []byte {
	return slices.Concat([]byte{flags, 0, 0, 0}, binary.BigEndian.AppendUint32(nil, vni<<8), inner)
}

func v6Packet(next byte, payload []byte) []byte {
	b := []byte{0x60, 0, 0, 0, 0, byte(len(payload)), next, 61}
	return slices.Concat(b, netip.MustParseAddr("fd00::1").AsSlice(), netip.MustParseAddr("fd00::2").AsSlice(), payload)
}

// extension is an IPv6 extension header of 8 bytes and as many more as rest has, which must be a multiple of 8 and 6.
func extension(next byte, rest []byte, payload []byte) []byte {
	return slices.Concat([]byte{next, byte((len(rest) - 6) / 8)}, rest, payload)
}

// fragmentHeader is that of a part at an offset, with more to come.
func fragmentHeader(next byte, offset uint16, payload []byte) []byte {
	return slices.Concat([]byte{next, 0}, binary.BigEndian.AppendUint16(nil, offset|1), []byte{0, 0, 0, 7}, payload)
}

func TestDecode(t *testing.T) {
	ether := func(typ uint16) *Ethernet { return &Ethernet{Source: macA, Destination: macB, Type: typ} }
	ip := func(proto, ttl uint8, length int) *IP {
		return &IP{Source: ipA, Destination: ipB, Protocol: proto, TTL: ttl, Length: length}
	}
	innerFrame := eth(0x0800, v4{proto: 6, ttl: 63}.packet(tcpHeader(5000, 80, 0x12)))
	inner := &Frame{
		Length: len(innerFrame), Ethernet: ether(0x0800), IP: ip(6, 63, 40),
		TCP: &TCP{SourcePort: 5000, DestinationPort: 80, SYN: true, ACK: true},
	}
	vxlan := func(port uint16, flags byte) []byte {
		return eth(0x0800, v4{proto: 17, ttl: 64}.packet(udpHeader(41000, port, vxlanHeader(flags, 4096, innerFrame))))
	}
	geneve := func(port, protocol uint16) []byte {
		header := vxlanHeader(1, 4096, append(make([]byte, 4), innerFrame...)) // with an option of 4 bytes
		binary.BigEndian.PutUint16(header[2:], protocol)
		return eth(0x0800, v4{proto: 17, ttl: 64}.packet(udpHeader(41000, port, header)))
	}
	fragmented := ip(17, 64, 28)
	fragmented.Fragment = true
	later := ip(17, 64, 28)
	later.Fragment, later.Offset = true, 1480
	whole := ip(17, 64, 28)
	whole.DontFragment = true
	datagram := udpHeader(1, 2, nil)
	ip6 := func(proto uint8, length int) *IP {
		return &IP{
			Source: netip.MustParseAddr("fd00::1"), Destination: netip.MustParseAddr("fd00::2"), Protocol: proto, TTL: 61,
			Length: length, DontFragment: true,
		}
	}
	part := func(length, offset int) *IP {
		h := ip6(17, length)
		h.Fragment, h.Offset = true, offset
		return h
	}
	ether6 := &Ethernet{Source: macA, Destination: macB, Type: 0x86dd}
	dsr := []byte{0x1b, 18, 4: 9, 21: 7}

	for _, tc := range []struct {
		name  string
		bytes []byte
		want  Frame
	}{
		{"nothing", nil, Frame{}},
		{"cut Ethernet", eth(0x0800, nil)[:13], Frame{Length: 13}},
		{"unknown type", eth(0x88cc, []byte{1}), Frame{Length: 15, Ethernet: ether(0x88cc)}},
		{"ARP", eth(0x0806, make([]byte, 28)), Frame{Length: 42, Ethernet: ether(0x0806)}},
		{"UDP", eth(0x0800, v4{proto: 17, ttl: 64, frag: 0x4000}.packet(datagram)), Frame{Length: 42, Ethernet: ether(0x0800), IP: whole, UDP: &UDP{1, 2}}},
		{"first fragment", eth(0x0800, v4{proto: 17, ttl: 64, frag: 0x2000}.packet(datagram)), Frame{Length: 42, Ethernet: ether(0x0800), IP: fragmented, UDP: &UDP{1, 2}}},
		{"later fragment", eth(0x0800, v4{proto: 17, ttl: 64, frag: 185}.packet(datagram)), Frame{Length: 42, Ethernet: ether(0x0800), IP: later}},
		{"IP options", eth(0x0800, v4{proto: 1, ttl: 9, options: make([]byte, 12)}.packet([]byte{8, 0})), Frame{Length: 48, Ethernet: ether(0x0800), IP: withOptions(ip(1, 9, 34), make([]byte, 12)), ICMP: &ICMP{8, 0}}},
		{"header length below 20", eth(0x0800, append([]byte{0x44}, make([]byte, 30)...)), Frame{Length: 45, Ethernet: ether(0x0800)}},
		{"options cut", eth(0x0800, v4{proto: 17, ttl: 9, options: make([]byte, 40)}.packet(nil)[:30]), Frame{Length: 44, Ethernet: ether(0x0800), IP: ip(17, 9, 60)}},
		{"cut TCP", eth(0x0800, v4{proto: 6, ttl: 64}.packet(tcpHeader(1, 2, 0)[:13])), Frame{Length: 47, Ethernet: ether(0x0800), IP: ip(6, 64, 33)}},
		{"VXLAN", vxlan(4789, 8), Frame{Length: 104, Ethernet: ether(0x0800), IP: ip(17, 64, 90), UDP: &UDP{41000, 4789}, VXLAN: &VXLAN{4096}, Inner: inner}},
		{"VXLAN, old port", vxlan(8472, 8), Frame{Length: 104, Ethernet: ether(0x0800), IP: ip(17, 64, 90), UDP: &UDP{41000, 8472}, VXLAN: &VXLAN{4096}, Inner: inner}},
		{"Geneve with an option", geneve(6081, 0x6558), Frame{Length: 108, Ethernet: ether(0x0800), IP: ip(17, 64, 94), UDP: &UDP{41000, 6081}, Geneve: &Geneve{4096}, Inner: inner}},
		{"Geneve without Ethernet", geneve(6081, 0x0800), Frame{Length: 108, Ethernet: ether(0x0800), IP: ip(17, 64, 94), UDP: &UDP{41000, 6081}}},
		{"Geneve on another port", geneve(6082, 0x6558), Frame{Length: 108, Ethernet: ether(0x0800), IP: ip(17, 64, 94), UDP: &UDP{41000, 6082}}},
		{"VXLAN without a VNI", vxlan(4789, 0), Frame{Length: 104, Ethernet: ether(0x0800), IP: ip(17, 64, 90), UDP: &UDP{41000, 4789}}},
		{"VXLAN on another port", vxlan(4790, 8), Frame{Length: 104, Ethernet: ether(0x0800), IP: ip(17, 64, 90), UDP: &UDP{41000, 4790}}},
		{"IP in IP", eth(0x0800, v4{proto: 4, ttl: 64}.packet(v4{proto: 17, ttl: 63}.packet(datagram))), Frame{
			Length: 62, Ethernet: ether(0x0800), IP: ip(4, 64, 48),
			Inner: &Frame{Length: 28, IP: ip(17, 63, 28), UDP: &UDP{1, 2}},
		}},
		{"IPv6", eth(0x86dd, v6Packet(17, datagram)), Frame{Length: 62, Ethernet: ether6, UDP: &UDP{1, 2}, IP: ip6(17, 8)}},
		{"ICMPv6", eth(0x86dd, v6Packet(58, []byte{135, 0, 1, 2})), Frame{Length: 58, Ethernet: ether6, ICMP: &ICMP{135, 0}, IP: ip6(58, 4)}},
		{"multicast listener report", eth(0x86dd, v6Packet(0, extension(58, make([]byte, 6), []byte{143, 0}))), Frame{Length: 64, Ethernet: ether6, ICMP: &ICMP{143, 0}, IP: ip6(58, 10)}},
		{"destination options", eth(0x86dd, v6Packet(60, extension(17, dsr, datagram))), Frame{Length: 86, Ethernet: ether6, UDP: &UDP{1, 2}, IP: withOptions(ip6(17, 32), dsr)}},
		{"destination options cut", eth(0x86dd, v6Packet(60, extension(17, dsr, nil)[:20])), Frame{Length: 74, Ethernet: ether6, IP: ip6(60, 20)}},
		{"several extensions", eth(0x86dd, v6Packet(0, extension(43, make([]byte, 6), extension(60, make([]byte, 6), extension(6, make([]byte, 6), tcpHeader(5, 6, 2)))))), Frame{
			Length: 98, Ethernet: ether6, TCP: &TCP{SourcePort: 5, DestinationPort: 6, SYN: true}, IP: withOptions(ip6(6, 44), make([]byte, 6)),
		}},
		{"first IPv6 fragment", eth(0x86dd, v6Packet(44, fragmentHeader(17, 0, datagram))), Frame{Length: 70, Ethernet: ether6, UDP: &UDP{1, 2}, IP: part(16, 0)}},
		{"later IPv6 fragment", eth(0x86dd, v6Packet(44, fragmentHeader(17, 1432, datagram))), Frame{Length: 70, Ethernet: ether6, IP: part(16, 1432)}},
		{"no extension header kept", eth(0x86dd, v6Packet(0, nil)), Frame{Length: 54, Ethernet: ether6, IP: ip6(0, 0)}},
		{"VXLAN over IPv6", eth(0x86dd, v6Packet(17, udpHeader(41000, 8472, vxlanHeader(8, 4096, innerFrame)))), Frame{
			Length: 124, Ethernet: ether6, UDP: &UDP{41000, 8472}, VXLAN: &VXLAN{4096}, Inner: inner, IP: ip6(17, 70),
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := Decode(tc.bytes, len(tc.bytes))
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
				t.Errorf("want -, got +:\n%s", diff)
			}
		})
	}
}

// TestInnerLengthOfACutFrame: the length of the frame in a tunnel must come from the length of the frame on the wire,
// not from what was kept of it.
func withOptions(h *IP, options []byte) *IP {
	h.Options = options
	return h
}

func TestInnerLengthOfACutFrame(t *testing.T) {
	inner := eth(0x0800, v4{proto: 6, ttl: 63}.packet(append(tcpHeader(1, 2, 0x10), make([]byte, 1400)...)))
	outer := eth(0x0800, v4{proto: 17, ttl: 64}.packet(udpHeader(1, 4789, vxlanHeader(8, 1, inner))))
	got := Decode(outer[:snapLength], len(outer))
	if got.Length != len(outer) || got.Inner == nil || got.Inner.Length != len(inner) || got.Inner.TCP == nil {
		t.Errorf("cut frame of %d bytes around one of %d decodes as %s", len(outer), len(inner), &got)
	}
}

func TestTunnelsAreFollowedToADepth(t *testing.T) {
	b := v4{proto: 17, ttl: 1}.packet(udpHeader(1, 2, nil))
	for range maxDepth + 3 {
		b = v4{proto: 4, ttl: 64}.packet(b)
	}
	f := DecodeIP(b, len(b))
	depth := 0
	for at := &f; at.Inner != nil; at = at.Inner {
		depth++
	}
	if depth != maxDepth {
		t.Errorf("followed %d tunnels, want %d", depth, maxDepth)
	}
}

// FuzzDecode holds the decoder to being total, and to inventing nothing: a header is never reported from a shorter cut
// of the same bytes and then withdrawn when more of them are there.
func FuzzDecode(f *testing.F) {
	inner := eth(0x0800, v4{proto: 6, ttl: 63}.packet(tcpHeader(5000, 80, 2)))
	f.Add(eth(0x0800, v4{proto: 17, ttl: 64}.packet(udpHeader(1, 4789, vxlanHeader(8, 4096, inner)))), 1514)
	f.Add(eth(0x0800, v4{proto: 4, ttl: 64}.packet(v4{proto: 17}.packet(udpHeader(1, 8472, nil)))), 0)
	f.Add(eth(0x0806, make([]byte, 28)), -1)
	f.Add(eth(0x86dd, v6Packet(58, []byte{128, 0})), 62)
	f.Add(eth(0x86dd, v6Packet(0, extension(44, make([]byte, 6), fragmentHeader(60, 0, extension(17, make([]byte, 14), udpHeader(1, 4789, vxlanHeader(8, 1, inner))))))), 0)
	f.Add([]byte{}, 0)
	f.Fuzz(func(t *testing.T, b []byte, length int) {
		for _, decode := range []func([]byte, int) Frame{Decode, DecodeIP} {
			whole := decode(b, length)
			if whole.Length < len(b) {
				t.Fatalf("%d bytes decode to a frame of %d", len(b), whole.Length)
			}
			depth := 0
			for at := &whole; at.Inner != nil; at = at.Inner {
				if depth++; depth > maxDepth || at.Inner.Length >= at.Length || at.Inner.Length < 0 {
					t.Fatalf("depth %d, inner length %d in %d", depth, at.Inner.Length, at.Length)
				}
			}
			cut := decode(b[:len(b)/2], length)
			for at, of := &cut, &whole; at != nil; at, of = at.Inner, of.Inner {
				if of == nil || withdrawn(at, of) {
					t.Fatalf("half of %x decodes to %s, the whole to %s", b, &cut, &whole)
				}
			}
		}
	})
}

func withdrawn(cut, whole *Frame) bool {
	return cut.Ethernet != nil && whole.Ethernet == nil || cut.IP != nil && whole.IP == nil ||
		cut.UDP != nil && whole.UDP == nil || cut.TCP != nil && whole.TCP == nil ||
		cut.VXLAN != nil && whole.VXLAN == nil || cut.Geneve != nil && whole.Geneve == nil
}
