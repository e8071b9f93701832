package cilium

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"

	"github.com/cnibench/cnibench/internal/kernel/bpf/bpftest"
	"github.com/cnibench/cnibench/internal/kernel/capture"
)

// Protocols of IPv6 headers.
const (
	hopByHop    = 0
	fragmentNo  = 44
	icmpV6      = 58
	destination = 60
)

// ip6 is where an IPv6 header ends in a frame.
const ip6 = 14 + 40

// extension is a header of eight bytes, or more if rest is longer, whose follower is next.
func extension(next uint8, rest ...byte) []byte {
	words := (len(rest) + 2 + 7) / 8
	return append(append([]byte{next, byte(words - 1)}, rest...), make([]byte, words*8-2-len(rest))...)
}

// fragment is a fragment header.
func fragment(next uint8, offset uint16, id uint32) []byte {
	b := binary.BigEndian.AppendUint16([]byte{next, 0}, offset)
	return binary.BigEndian.AppendUint32(b, id)
}

// behind puts extension headers, of which the first is of kind next, before the transport header.
func behind(p bpftest.Packet, next uint8, headers ...[]byte) []byte {
	return p.With(func(p *bpftest.Packet) { p.Next, p.Options = next, slices.Concat(headers...) }).Bytes()
}

// special6 are the packets of a pod that only IPv6 has.
func (b *bench) special6() []verdict {
	toB := b.toB
	from := func(src string) bpftest.Packet { return toB.With(func(p *bpftest.Packet) { p.Src = src }) }
	v4 := toB.Bytes()
	v4[12], v4[13] = 8, 0
	pad := extension(destination)
	return []verdict{
		{"IPv4", v4, shot, "unknown network protocol"},
		{"ARP", bpftest.ARP("10.20.1.10", "10.20.1.1"), shot, "unknown network protocol"},
		{"cut in the ports", toB.Bytes()[:ip6+2], shot, "transport header is cut off"},
		{"cut before the flags", toB.Bytes()[:ip6+10], shot, "transport header is cut off"},
		{"another version", badVersion(toB.Bytes()), shot, "malformed packet"},
		{"two extension headers", behind(toB, hopByHop, extension(destination), extension(6, 1, 8)), redirect, ""},
		{"four", behind(toB, destination, pad, pad, pad, extension(6)), redirect, ""},
		{"five", behind(toB, destination, pad, pad, pad, pad, extension(6)), shot, "extension headers are cut off or too many"},
		{"a cut one", behind(toB, destination, extension(6))[:ip6+6], shot, "extension headers are cut off or too many"},
		{"one that points behind the packet", behind(toB, destination, []byte{6, 255, 0, 0, 0, 0, 0, 0}), shot, "transport header is cut off"},
		{"nothing behind the headers", behind(toB, destination, extension(59)), shot, "unknown transport protocol"},
		{"a fragment without its first", behind(toB, fragmentNo, fragment(6, 0x0b8, 9)), shot, "fragment without its first"},
		{"a link-local source", from("fe80::1").Bytes(), shot, outcomes[linkLocal]},
		{"no source yet", from("::").Bytes(), shot, outcomes[linkLocal]},
	}
}

// solicitation asks for target, from src at the MAC that bpftest gives senders.
func solicitation(src, target netip.Addr) []byte {
	raw := append([]byte{135, 0, 0, 0, 0, 0, 0, 0}, target.AsSlice()...)
	raw = append(raw, 1, 1, 2, 0, 0, 0, 0, 1)
	p := bpftest.Packet{Src: src.String(), Dst: "ff02::1:ff00:1", Proto: icmpV6, TTL: 255, Raw: raw}
	frame := p.Bytes()
	sum := bpftest.Sum(append(slices.Concat(frame[14+8:ip6], []byte{0, 0, 0, byte(len(raw)), 0, 0, 0, icmpV6}), raw...))
	binary.BigEndian.PutUint16(frame[ip6+2:], sum)
	return frame
}

func TestGatewayAnswersSolicitations(t *testing.T) {
	b := newBench(t, numberings[1], overlay)
	prog := b.pods[0].Programs["from_container"]
	lladdr := netip.MustParseAddr("fe80::1:2")
	for _, c := range []struct {
		name        string
		src, target netip.Addr
		flags       byte
	}{
		{"the gateway", b.podA, b.router, 0xc0},
		{"the gateway, by link-local address", lladdr, b.router, 0xc0},
		{"another pod", b.podA, b.podB, 0x60},
	} {
		asked := solicitation(c.src, c.target)
		if bad := bpftest.Sums(asked); bad != "" {
			t.Fatal(bad)
		}
		v, out := bpftest.Run(t, prog, asked)
		f := capture.Decode(out, len(out))
		if v != redirect || f.ICMP == nil || f.ICMP.Type != 136 || f.IP.TTL != 255 || f.IP.Source != b.router ||
			f.IP.Destination != c.src || bpftest.Sums(out) != "" {
			t.Fatalf("%s: verdict %d: %s %s", c.name, v, f.String(), bpftest.Sums(out))
		}
		if !bytes.Equal(out[:6], asked[6:12]) || !bytes.Equal(out[6:12], macs[0]) {
			t.Errorf("%s: answer from % x to % x", c.name, out[6:12], out[:6])
		}
		want := slices.Concat([]byte{c.flags, 0, 0, 0}, c.target.AsSlice(), []byte{2, 1}, macs[0])
		if got := out[ip6+4:]; !bytes.Equal(got, want) {
			t.Errorf("%s: % x, want % x", c.name, got, want)
		}
	}
	bare := solicitation(b.podA, b.router)[:ip6+24]
	bare[19] = 24
	for _, c := range []verdict{
		{"the node's own address", solicitation(b.podA, b.own), pass, ""},
		{"nobody", solicitation(b.podA, b.remote), shot, outcomes[linkLocal]},
		{"its own address, before it has it", solicitation(netip.IPv6Unspecified(), b.podA), shot, outcomes[linkLocal]},
		{"a cut one", solicitation(b.podA, b.router)[:ip6+12], shot, "malformed packet"},
		{"one without its option", bare, shot, "malformed packet"},
	} {
		t.Run(c.name, func(t *testing.T) { b.judge(t, prog, c) })
	}
}

// TestFragments6FollowTheirFirst: the ports of the first lead the others to the same flow.
func TestFragments6FollowTheirFirst(t *testing.T) {
	b := newBench(t, numberings[1], overlay)
	prog := b.pods[0].Programs["from_container"]
	udp := b.toB.With(func(p *bpftest.Packet) { p.Proto = 17 })
	for i, offset := range []uint16{1, 0x00b9, 0x0170} {
		if got, _ := bpftest.Run(t, prog, behind(udp, fragmentNo, fragment(17, offset, 77))); got != redirect {
			t.Errorf("fragment %d: verdict %d", i, got)
		}
	}
	if got, _ := bpftest.Run(t, prog, behind(udp, fragmentNo, fragment(17, 0x00b8, 78))); got != shot {
		t.Errorf("another packet's fragment: verdict %d", got)
	}
}

// TestEcho is a ping between pods, and one to the world that is masqueraded, whose checksum covers the addresses.
func TestEcho(t *testing.T) {
	eachFamily(t, func(t *testing.T, where numbering) {
		b := newBench(t, where, func(o *Options) { o.Masquerade = where.cluster })
		ping := bpftest.Packet{Src: b.podA.String(), Dst: b.podB.String(), Proto: where.icmpProto, SrcPort: 7}
		if v, out := bpftest.Run(t, b.pods[0].Programs["from_container"], ping.Bytes()); v != redirect || bpftest.Sums(out) != "" {
			t.Errorf("verdict %d, %s", v, bpftest.Sums(out))
		}
		ping.Dst = b.client.String()
		v, out := bpftest.Run(t, b.host.Programs["to_netdev"], ping.Bytes())
		f := capture.Decode(out, len(out))
		if v != pass || f.IP.Source != b.own || f.IP.Destination != b.client || bpftest.Sums(out) != "" {
			t.Errorf("verdict %d: %s %s", v, f.String(), bpftest.Sums(out))
		}
		answer := echoReply(out)
		v, out = bpftest.Run(t, b.host.Programs["from_netdev"], answer)
		f = capture.Decode(out, len(out))
		if f.IP.Destination != b.podA || f.IP.Source != b.client || bpftest.Sums(out) != "" {
			t.Errorf("the answer: verdict %d: %s %s", v, f.String(), bpftest.Sums(out))
		}
	})
}

// echoReply turns a request round.
func echoReply(frame []byte) []byte {
	b := slices.Clone(frame)
	size, at := 4, 14+12
	icmp := 14 + 20
	request, reply := byte(8), byte(0)
	if b[14]>>4 == 6 {
		size, at, icmp = 16, 14+8, ip6
		request, reply = 128, 129
	}
	copy(b[at:], frame[at+size:at+2*size])
	copy(b[at+size:], frame[at:at+size])
	b[icmp] = reply
	// Only the type has changed in what is summed up: RFC 1624.
	sum := uint32(^binary.BigEndian.Uint16(b[icmp+2:])) + uint32(^(uint16(request) << 8)) + uint32(reply)<<8
	sum = sum>>16 + sum&0xffff
	binary.BigEndian.PutUint16(b[icmp+2:], ^uint16(sum>>16+sum))
	return b
}

// TestDSROption writes the option on one node and reads it on the other.
func TestDSROption(t *testing.T) {
	eachFamily(t, func(t *testing.T, where numbering) {
		b := newBench(t, where, func(o *Options) { o.Legacy, o.NodePort = false, NodePortDSR })
		far := netip.AddrPortFrom(b.remote, 80)
		front := netip.AddrPortFrom(b.own, 30000)
		for _, proto := range []Proto{TCP, UDP} {
			if err := b.SetService(Service{Frontend: front, Proto: proto, NodePort: true, Backends: []netip.AddrPort{far}}); err != nil {
				t.Fatal(err)
			}
		}
		in := bpftest.Packet{Src: b.client.String(), Dst: front.Addr().String(), SrcPort: 4000, DstPort: 30000, Payload: 12}
		for _, c := range []struct {
			name   string
			proto  uint8
			flags  uint8
			option bool
		}{{"syn", 6, bpftest.SYN, true}, {"ack", 6, bpftest.ACK, false}, {"syn ack", 6, bpftest.SYN | bpftest.ACK, false}, {"udp", 17, 0, true}} {
			frame := in.With(func(p *bpftest.Packet) { p.Proto, p.Flags = c.proto, c.flags }).Bytes()
			v, out := bpftest.Run(t, b.host.Programs["from_netdev"], frame)
			// There is no device to route by, but the packet is what it would be.
			if v != shot && v != redirect {
				t.Errorf("%s: verdict %d", c.name, v)
			}
			checkOption(t, c.name, where, out, len(frame), c.option)
		}
	})
}

// checkOption looks for the option that names the frontend, and at the packet behind it.
func checkOption(t *testing.T, name string, where numbering, out []byte, before int, want bool) {
	t.Helper()
	at, option := 14+20, slices.Concat([]byte{0x9a, 8, 0x75, 0x30}, where.node(1).AsSlice())
	if where.version == 6 {
		at, option = ip6, slices.Concat([]byte{2, 0x1b, 20}, where.node(1).AsSlice(), []byte{0x75, 0x30, 0, 0})
	}
	if !want {
		if len(out) != before || bpftest.Sums(out) != "" {
			t.Errorf("%s: %d bytes became %d, %s", name, before, len(out), bpftest.Sums(out))
		}
		return
	}
	if where.version == 6 {
		next := out[at]
		if out[20] != destination || next != 6 && next != 17 || !bytes.Equal(out[at+1:at+24], option) {
			t.Errorf("%s: % x", name, out[at:at+24])
		}
		if size := binary.BigEndian.Uint16(out[18:]); int(size) != len(out)-ip6 || len(out) != before+24 {
			t.Errorf("%s: %d bytes became %d, the header says %d", name, before, len(out), size)
		}
		// What is behind the header is as it was, so its checksum can be asked for without it.
		out = slices.Concat(out[:ip6], out[ip6+24:])
		out[20] = next
		binary.BigEndian.PutUint16(out[18:], uint16(len(out)-ip6))
	} else if !bytes.Equal(out[at:at+8], option) || len(out) != before+8 {
		t.Errorf("%s: %d bytes became %d, % x", name, before, len(out), out[at:at+8])
	}
	if bad := bpftest.Sums(out); bad != "" {
		t.Errorf("%s: %s", name, bad)
	}
}

// TestNeighboursOfTheNode: what IPv6 neighbours say to one another is for the stack, with every service of the wire on.
func TestNeighboursOfTheNode(t *testing.T) {
	where := numberings[1]
	b := newBench(t, where, func(o *Options) {
		o.Legacy, o.NodePort, o.Masquerade = false, NodePortSNAT, where.cluster
	})
	report := bpftest.Packet{
		Src: "fe80::1", Dst: "ff02::16", Proto: icmpV6, TTL: 1, Next: hopByHop, Options: extension(icmpV6, 5, 2, 0, 0),
		Raw: append([]byte{143, 0, 0, 0, 0, 0, 0, 0}, make([]byte, 12)...),
	}.Bytes()
	for _, prog := range []string{"from_netdev", "to_netdev", "from_host", "to_host"} {
		for name, frame := range map[string][]byte{
			"solicitation": solicitation(b.client, b.own), "report": report,
		} {
			b.judge(t, b.host.Programs[prog], verdict{name: name, frame: frame, want: pass})
		}
	}
}

// TestMaglevSpreads6 wants every word of the client's address to count.
func TestMaglevSpreads6(t *testing.T) {
	where := numberings[1]
	b := newBench(t, where, func(o *Options) { o.Legacy, o.NodePort, o.Maglev = false, NodePortSNAT, true })
	s := Service{
		Frontend: netip.AddrPortFrom(b.own, 30000), Proto: TCP, NodePort: true,
		Backends: []netip.AddrPort{netip.AddrPortFrom(b.podA, 80), netip.AddrPortFrom(b.podB, 80)},
	}
	if err := b.SetService(s); err != nil {
		t.Fatal(err)
	}
	for word := range 4 {
		served := map[netip.Addr]int{}
		for i := range byte(32) {
			client := netip.MustParseAddr("2001:db8::1").As16()
			client[4*word+3] ^= i
			in := bpftest.Packet{
				Src: netip.AddrFrom16(client).String(), Dst: b.own.String(), Proto: 6, SrcPort: 4000, DstPort: 30000, Flags: bpftest.SYN,
			}
			_, out := bpftest.Run(t, b.host.Programs["from_netdev"], in.Bytes())
			f := capture.Decode(out, len(out))
			served[f.IP.Destination]++
		}
		if served[b.podA] == 0 || served[b.podB] == 0 {
			t.Errorf("word %d of the client's address: served %v", word, served)
		}
	}
}
