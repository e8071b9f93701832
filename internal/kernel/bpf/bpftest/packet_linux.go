package bpftest

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/cilium/ebpf"
)

// Packet describes a frame to build. A zero TTL or Flags means the usual value, see the fields.
type Packet struct {
	Src, Dst         string // IPv4 or IPv6
	Proto            uint8
	SrcPort, DstPort uint16
	Flags            uint8 // TCP; ACK if zero
	TTL              uint8 // 64 if zero; NoTTL makes it zero
	NoTTL            bool
	FragOff          uint16 // IPv4: flags and offset as in the header
	ID               uint16
	Options          []byte // IPv4: options, a multiple of four bytes; IPv6: extension headers
	Next             uint8  // IPv6: the type of the first extension header in Options
	Payload          int    // bytes behind the transport header
	Raw              []byte // instead of a transport header and payload
}

// TCP flags.
const (
	FIN = 0x01
	SYN = 0x02
	RST = 0x04
	ACK = 0x10
)

// With calls change on a copy of p, and returns the copy.
func (p Packet) With(change func(*Packet)) Packet {
	change(&p)
	return p
}

// Reply returns the packet with source and destination exchanged.
func (p Packet) Reply() Packet {
	p.Src, p.Dst, p.SrcPort, p.DstPort = p.Dst, p.Src, p.DstPort, p.SrcPort
	return p
}

// Bytes returns the Ethernet frame, with correct checksums.
func (p Packet) Bytes() []byte {
	body := p.Raw
	src, dst := netip.MustParseAddr(p.Src), netip.MustParseAddr(p.Dst)
	if body == nil {
		body = p.transportBytes(src, dst)
	}
	if src.Is6() {
		return p.ipv6Frame(src, dst, body)
	}
	ip := make([]byte, 20, 20+len(p.Options))
	ip[0] = 0x40 | byte(5+len(p.Options)/4)
	binary.BigEndian.PutUint16(ip[2:], uint16(20+len(p.Options)+len(body)))
	binary.BigEndian.PutUint16(ip[4:], p.ID)
	binary.BigEndian.PutUint16(ip[6:], p.FragOff)
	ip[8] = p.TTL
	if p.TTL == 0 && !p.NoTTL {
		ip[8] = 64
	}
	ip[9] = p.Proto
	copy(ip[12:], src.AsSlice())
	copy(ip[16:], dst.AsSlice())
	ip = append(ip, p.Options...)
	binary.BigEndian.PutUint16(ip[10:], Sum(ip))
	frame := []byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0}
	return append(append(frame, ip...), body...)
}

func (p Packet) ipv6Frame(src, dst netip.Addr, body []byte) []byte {
	frame := []byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x86, 0xdd}
	frame = binary.BigEndian.AppendUint16(append(frame, 0x60, 0, 0, 0), uint16(len(p.Options)+len(body)))
	next, hops := p.Proto, p.TTL
	if p.Options != nil {
		next = p.Next
	}
	if hops == 0 && !p.NoTTL {
		hops = 64
	}
	frame = append(append(append(frame, next, hops), src.AsSlice()...), dst.AsSlice()...)
	return append(append(frame, p.Options...), body...)
}

func (p Packet) transportBytes(src, dst netip.Addr) []byte {
	var h []byte
	at := -1
	switch p.Proto {
	case 6:
		h = make([]byte, 20)
		h[12], h[13], at = 0x50, p.Flags, 16
		if p.Flags == 0 {
			h[13] = ACK
		}
	case 17:
		h = make([]byte, 8)
		binary.BigEndian.PutUint16(h[4:], uint16(8+p.Payload))
		at = 6
	case 1:
		h = []byte{8, 0, 0, 0, byte(p.SrcPort >> 8), byte(p.SrcPort), 0, 1}
	case 58:
		h = []byte{128, 0, 0, 0, byte(p.SrcPort >> 8), byte(p.SrcPort), 0, 1}
		h = append(h, make([]byte, p.Payload)...)
		binary.BigEndian.PutUint16(h[2:], Sum(append(pseudoHeader(src, dst, p.Proto, len(h)), h...)))
		return h
	default:
		h = make([]byte, 8)
	}
	if at >= 0 {
		binary.BigEndian.PutUint16(h, p.SrcPort)
		binary.BigEndian.PutUint16(h[2:], p.DstPort)
	}
	h = append(h, make([]byte, p.Payload)...)
	if at >= 0 {
		binary.BigEndian.PutUint16(h[at:], Sum(append(pseudoHeader(src, dst, p.Proto, len(h)), h...)))
	}
	return h
}

func pseudoHeader(src, dst netip.Addr, proto uint8, length int) []byte {
	b := append(src.AsSlice(), dst.AsSlice()...)
	if src.Is6() {
		return append(binary.BigEndian.AppendUint32(b, uint32(length)), 0, 0, 0, proto)
	}
	return binary.BigEndian.AppendUint16(append(b, 0, proto), uint16(length))
}

// Sum returns the Internet checksum of b. It is 0 if b includes its own, correct checksum.
func Sum(b []byte) uint16 {
	var sum uint32
	for i := 0; i+1 < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	if len(b)%2 == 1 {
		sum += uint32(b[len(b)-1]) << 8
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

// Sums checks the checksums of the IPv4 header and of TCP, UDP or ICMPv6. It returns what is wrong, "" if all are
// right. An IPv6 frame must have no extension headers.
func Sums(frame []byte) string {
	ip := frame[14:]
	if ip[0]>>4 == 6 {
		body := ip[40 : 40+int(binary.BigEndian.Uint16(ip[4:]))]
		src, dst := netip.AddrFrom16([16]byte(ip[8:24])), netip.AddrFrom16([16]byte(ip[24:40]))
		if proto := ip[6]; proto == 6 || proto == 17 || proto == 58 {
			if Sum(append(pseudoHeader(src, dst, proto, len(body)), body...)) != 0 {
				return "the transport checksum is wrong"
			}
		}
		return ""
	}
	size := int(ip[0]&15) * 4
	if Sum(ip[:size]) != 0 {
		return "the IP header's checksum is wrong"
	}
	body := ip[size:binary.BigEndian.Uint16(ip[2:])]
	if proto := ip[9]; proto == 6 || proto == 17 {
		if Sum(append(pseudoHeader(netip.AddrFrom4([4]byte(ip[12:16])), netip.AddrFrom4([4]byte(ip[16:20])), proto, len(body)), body...)) != 0 {
			return "the transport checksum is wrong"
		}
	}
	return ""
}

// ARP returns the frame of an ARP request of sender for target.
func ARP(sender, target string) []byte {
	s, g := netip.MustParseAddr(sender).As4(), netip.MustParseAddr(target).As4()
	b := []byte{255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 0, 1, 8, 6, 0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1}
	b = append(b, s[:]...)
	b = append(b, 0, 0, 0, 0, 0, 0)
	return append(b, g[:]...)
}

// Run runs a program once on a frame. It returns the program's verdict and the resulting frame.
func Run(t *testing.T, prog *ebpf.Program, frame []byte) (verdict uint32, out []byte) {
	t.Helper()
	opts := &ebpf.RunOptions{Data: frame, DataOut: make([]byte, len(frame)+256), Repeat: 1}
	verdict, err := prog.Run(opts)
	if err != nil {
		t.Fatalf("test run: %v", err)
	}
	return verdict, opts.DataOut
}
