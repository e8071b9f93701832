package capture

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"slices"
)

// Frame is one decoded frame. A header that is absent, truncated or of an unknown kind is nil; so is everything after
// it.
type Frame struct {
	// Device is the name of the device that the frame crossed, "" if Decode was called directly.
	Device string
	// Outgoing is true for a frame that the device's namespace sends, and false for a received one.
	Outgoing bool
	// Marked is true if the kept part of the frame contains the mark of Options, in any header or payload.
	Marked bool
	// Length is the number of bytes with the link header, even if only the first of them were kept. It exceeds the
	// device's MTU plus 14 for a super-frame that a later device segments.
	Length int

	Ethernet *Ethernet
	IP       *IP
	UDP      *UDP
	TCP      *TCP
	ICMP     *ICMP
	VXLAN    *VXLAN
	Geneve   *Geneve
	// Inner is the frame inside VXLAN or Geneve, or the packet inside IP in IP (which has no Ethernet header).
	Inner *Frame
}

// Ethernet is the header of an Ethernet frame.
type Ethernet struct {
	Source, Destination net.HardwareAddr
	// Type is the EtherType, for example 0x0800.
	Type uint16
	// VLAN is the number of the frame's VLAN (802.1Q), 0 without a tag. A capture sets it: the kernel keeps the tag apart
	// from the frame, whose length does not include it.
	VLAN int `json:",omitempty"`
}

// IP is the header of an IPv4 or IPv6 packet.
type IP struct {
	Source, Destination netip.Addr
	// Protocol is the protocol of the payload: 6 TCP, 17 UDP, 1 ICMP, 58 ICMPv6, 4 IP in IP. For IPv6 it is the protocol
	// after the extension headers. If the capture cut these off, it is the number of the first missing one.
	Protocol uint8
	// TTL is the hop limit for IPv6.
	TTL uint8
	// Length is the value in the packet's header: the length of the whole packet for IPv4, of the payload for IPv6. It is
	// 0 for a super-packet above 65535 bytes.
	Length int
	// Fragment is true for any part of a fragmented packet; Offset is that part's position in bytes.
	Fragment     bool
	Offset       int
	DontFragment bool
	// Options are the options of an IPv4 header, or of IPv6's destination options header, with their padding. They are
	// nil if there are none, or if they are truncated.
	Options []byte
}

// UDP is the header of a UDP datagram.
type UDP struct{ SourcePort, DestinationPort uint16 }

// TCP is the header of a TCP segment.
type TCP struct {
	SourcePort, DestinationPort uint16
	SYN, ACK, FIN, RST          bool
}

// ICMP is the type and code of an ICMP or ICMPv6 message.
type ICMP struct{ Type, Code uint8 }

// VXLAN is the header of a VXLAN tunnel.
type VXLAN struct{ VNI uint32 }

// Geneve is the header of a Geneve tunnel.
type Geneve struct{ VNI uint32 }

const (
	etherIPv4 = 0x0800
	etherIPv6 = 0x86dd

	protocolICMP   = 1
	protocolIPIP   = 4
	protocolTCP    = 6
	protocolUDP    = 17
	protocolICMPv6 = 58

	// IPv6 extension headers.
	extensionHopByHop    = 0
	extensionRouting     = 43
	extensionFragment    = 44
	extensionDestination = 60

	ethernetLength = 14

	// maxDepth is how many nested tunnels are decoded.
	maxDepth = 4
)

// snapLength is how many bytes of a frame a capture keeps: enough for two sets of headers from Ethernet to TCP, with
// options, and VXLAN between.
const snapLength = 256

// vxlanPorts are the destination ports of VXLAN: the one assigned by IANA and Linux's earlier one.
var vxlanPorts = []uint16{4789, 8472}

// genevePort is the destination port of Geneve, etherBridged its protocol number for Ethernet frames.
const (
	genevePort   = 6081
	etherBridged = 0x6558
)

// Decode decodes the headers of an Ethernet frame of length bytes. b has the first bytes of the frame. It never fails:
// a header that it cannot read is nil. A length below len(b) counts as len(b).
func Decode(b []byte, length int) Frame {
	f := Frame{Length: max(length, len(b))}
	decoder{missing: f.Length - len(b), depth: maxDepth}.decodeEthernet(&f, b)
	return f
}

// DecodeIP decodes the headers of an IP packet without a link header, such as a packet of an IP tunnel device.
// Otherwise it is like Decode.
func DecodeIP(b []byte, length int) Frame {
	f := Frame{Length: max(length, len(b))}
	decoder{missing: f.Length - len(b), depth: maxDepth}.decodeIP(&f, b)
	return f
}

// decoder decodes one header after the other. Each method gets the kept bytes from the start of its header.
type decoder struct {
	// missing is the number of bytes at the end of the frame that were not kept.
	missing int
	// depth is how many more nested tunnels are decoded.
	depth int
}

func (d decoder) decodeEthernet(f *Frame, b []byte) {
	if len(b) < ethernetLength {
		return
	}
	f.Ethernet = &Ethernet{
		Destination: bytes.Clone(b[0:6]),
		Source:      bytes.Clone(b[6:12]),
		Type:        binary.BigEndian.Uint16(b[12:14]),
	}
	b = b[ethernetLength:]
	if f.Ethernet.Type == etherIPv4 || f.Ethernet.Type == etherIPv6 {
		d.decodeIP(f, b)
	}
}

func (d decoder) decodeIP(f *Frame, b []byte) {
	if len(b) == 0 {
		return
	}
	switch b[0] >> 4 {
	case 4:
		d.decodeIPv4(f, b)
	case 6:
		d.decodeIPv6(f, b)
	}
}

func (d decoder) decodeIPv4(f *Frame, b []byte) {
	if len(b) < 20 {
		return
	}
	header := int(b[0]&0x0f) * 4
	if header < 20 {
		return
	}
	fragment := binary.BigEndian.Uint16(b[6:])
	f.IP = &IP{
		Source:       netip.AddrFrom4([4]byte(b[12:16])),
		Destination:  netip.AddrFrom4([4]byte(b[16:20])),
		Protocol:     b[9],
		TTL:          b[8],
		Length:       int(binary.BigEndian.Uint16(b[2:])),
		DontFragment: fragment&0x4000 != 0,
		Fragment:     fragment&0x3fff != 0,
		Offset:       int(fragment&0x1fff) * 8,
	}
	if header > 20 && len(b) >= header {
		f.IP.Options = slices.Clone(b[20:header])
	}
	// Only the first fragment has the header of its payload.
	if f.IP.Offset == 0 && len(b) >= header {
		d.decodeTransport(f, b[header:])
	}
}

func (d decoder) decodeIPv6(f *Frame, b []byte) {
	if len(b) < 40 {
		return
	}
	f.IP = &IP{
		Source:       netip.AddrFrom16([16]byte(b[8:24])),
		Destination:  netip.AddrFrom16([16]byte(b[24:40])),
		Protocol:     b[6],
		TTL:          b[7],
		Length:       int(binary.BigEndian.Uint16(b[4:])),
		DontFragment: true,
	}
	if b = f.IP.decodeExtensions(b[40:]); b != nil {
		d.decodeTransport(f, b)
	}
}

// decodeExtensions decodes IPv6 extension headers at the start of b, and returns the payload. It returns nil if the
// payload was not kept or begins in an earlier fragment.
func (ip *IP) decodeExtensions(b []byte) []byte {
	for {
		length := 8
		switch ip.Protocol {
		case extensionHopByHop, extensionRouting, extensionDestination:
			if len(b) < length {
				return nil
			}
			length += int(b[1]) * 8
		case extensionFragment:
			if len(b) < length {
				return nil
			}
			ip.Fragment, ip.Offset = true, int(binary.BigEndian.Uint16(b[2:])&^7)
		default:
			return b
		}
		if len(b) < length {
			return nil
		}
		if ip.Protocol == extensionDestination {
			ip.Options = slices.Clone(b[2:length])
		}
		ip.Protocol, b = b[0], b[length:]
		if ip.Offset > 0 {
			return nil
		}
	}
}

func (d decoder) decodeTransport(f *Frame, b []byte) {
	switch f.IP.Protocol {
	case protocolICMP, protocolICMPv6:
		if len(b) >= 2 {
			f.ICMP = &ICMP{Type: b[0], Code: b[1]}
		}
	case protocolTCP:
		f.TCP = decodeTCP(b)
	case protocolUDP:
		d.decodeUDP(f, b)
	case protocolIPIP:
		if f.Inner = d.newInnerFrame(b); f.Inner != nil {
			d.innerDecoder().decodeIP(f.Inner, b)
		}
	}
}

func decodeTCP(b []byte) *TCP {
	if len(b) < 14 {
		return nil
	}
	flags := b[13]
	return &TCP{
		SourcePort:      binary.BigEndian.Uint16(b),
		DestinationPort: binary.BigEndian.Uint16(b[2:]),
		FIN:             flags&0x01 != 0,
		SYN:             flags&0x02 != 0,
		RST:             flags&0x04 != 0,
		ACK:             flags&0x10 != 0,
	}
}

func (d decoder) decodeUDP(f *Frame, b []byte) {
	if len(b) < 8 {
		return
	}
	f.UDP = &UDP{SourcePort: binary.BigEndian.Uint16(b), DestinationPort: binary.BigEndian.Uint16(b[2:])}
	b = b[8:]
	if len(b) < 8 {
		return
	}
	header, vni := 8, binary.BigEndian.Uint32(b[4:])>>8
	switch port := f.UDP.DestinationPort; {
	// The I flag says that there is a VNI; without it the datagram only shares a port with VXLAN.
	case slices.Contains(vxlanPorts, port) && b[0]&0x08 != 0:
		f.VXLAN = &VXLAN{VNI: vni}
	case port == genevePort && binary.BigEndian.Uint16(b[2:]) == etherBridged:
		f.Geneve = &Geneve{VNI: vni}
		header += 4 * int(b[0]&0x3f) // its options
	default:
		return
	}
	b = b[min(header, len(b)):]
	if f.Inner = d.newInnerFrame(b); f.Inner != nil {
		d.innerDecoder().decodeEthernet(f.Inner, b)
	}
}

// newInnerFrame returns an undecoded frame for the contents of a tunnel. b has its kept bytes. It returns nil if b is
// empty, or inside more than maxDepth nested tunnels.
func (d decoder) newInnerFrame(b []byte) *Frame {
	if d.depth == 0 || len(b) == 0 {
		return nil
	}
	return &Frame{Length: len(b) + d.missing}
}

// innerDecoder returns the decoder for the frame inside a tunnel.
func (d decoder) innerDecoder() decoder { return decoder{missing: d.missing, depth: d.depth - 1} }

// Innermost returns the frame inside all tunnels; without tunnels it returns f.
func (f *Frame) Innermost() *Frame {
	for f.Inner != nil {
		f = f.Inner
	}
	return f
}

// Ports returns the source and destination port of TCP or UDP, zeros for anything else.
func (f *Frame) Ports() (source, destination uint16) {
	switch {
	case f.TCP != nil:
		return f.TCP.SourcePort, f.TCP.DestinationPort
	case f.UDP != nil:
		return f.UDP.SourcePort, f.UDP.DestinationPort
	}
	return 0, 0
}

// String returns all headers as JSON, for messages of tests.
func (f *Frame) String() string {
	text, err := json.Marshal(f)
	return cmp.Or(string(text), fmt.Sprint(err))
}
