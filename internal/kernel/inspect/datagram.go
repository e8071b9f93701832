package inspect

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/kernel/capture"
	"github.com/cnibench/cnibench/internal/measure/netstate"
)

// MarkLength is the least number of bytes of a mark. Other traffic does not carry so long a mark by chance, and only a
// client that knows the mark gets an answer.
const MarkLength = 8

// Kinds of a datagram.
const (
	// asks requests an answer of a given size.
	asks = 'a'
	// answers has that size.
	answers = 'r'
	// tooBig reports that an answer of that size cannot leave the machine.
	tooBig = 'b'
	// checks is a question that counts, and whose content is compared; its answer has the counts. tells requests only
	// the counts.
	checks = 'c'
	tells  = 't'
	// bares is the same as checks without a checksum, also in the answer.
	bares = 'n'
)

// Sizes of the headers before a datagram, in bytes.
const (
	headerIPv4, headerIPv6 = 20 + 8, 40 + 8
)

// header is the begin of every datagram after its mark: kind, number and a size. An answer also has the address that it
// is sent to.
const header = 1 + 4 + 4

// datagram is one message of this package.
type datagram struct {
	kind   byte
	number uint32
	// size is in a question the requested length of the answer, in an answer the length of the question.
	size uint32
	// to is the destination of an answer. ttl is the TTL with which the question arrived; 0 is unknown.
	to  netip.AddrPort
	ttl byte
	// heard has the Echo's counts of the questions from here.
	heard heard
}

// heard counts checks at an Echo: received ones, those with other content, and those without room in its socket.
type heard struct{ came, wrong, overrun uint32 }

// filling pads datagrams and blocks, starting at an offset that depends on their number.
var filling = func() []byte {
	b := make([]byte, 1<<16)
	_, _ = rand.NewChaCha8([32]byte{'c', 'n', 'i'}).Read(b) // it never fails
	return append(b, b...)
}()

// fill returns n bytes of the filling of a number; n is 65,536 at most.
func fill(number uint32, n int) []byte {
	at := int(number*7919) % (len(filling) / 2)
	return filling[at : at+n]
}

// asking reports whether d is a question.
func (d datagram) asking() bool { return d.kind == asks || d.kind == tells || d.counts() }

// counts reports whether d is a question that counts.
func (d datagram) counts() bool { return d.kind == checks || d.kind == bares }

// encode writes d with the mark, padded to length bytes if that is more.
func (d datagram) encode(mark []byte, length int) []byte {
	b := append([]byte(nil), mark...)
	b = append(b, d.kind)
	b = binary.BigEndian.AppendUint32(b, d.number)
	b = binary.BigEndian.AppendUint32(b, d.size)
	if !d.asking() {
		text := d.to.String()
		b = append(b, byte(len(text)))
		b = append(append(b, text...), d.ttl)
		for _, n := range []uint32{d.heard.came, d.heard.wrong, d.heard.overrun} {
			b = binary.BigEndian.AppendUint32(b, n)
		}
	}
	if len(b) < length {
		b = append(b, fill(d.number, length-len(b))...)
	}
	return b
}

// errForeign means that a datagram is not of this run.
var errForeign = errors.New("a datagram without the mark")

// decode reads a datagram. The rest of b is its filling.
func decode(mark, b []byte) (d datagram, filled []byte, err error) {
	rest, ok := bytes.CutPrefix(b, mark)
	if !ok {
		return d, nil, errForeign
	}
	if len(rest) < header {
		return d, nil, fmt.Errorf("a datagram of %d bytes is cut short", len(b))
	}
	d = datagram{kind: rest[0], number: binary.BigEndian.Uint32(rest[1:]), size: binary.BigEndian.Uint32(rest[5:])}
	rest = rest[header:]
	if d.asking() {
		return d, rest, nil
	}
	if d.kind != answers && d.kind != tooBig {
		return d, nil, fmt.Errorf("a datagram of unknown kind %q", d.kind)
	}
	const after = 1 + 3*4 // TTL and counts
	if len(rest) == 0 || len(rest) < 1+int(rest[0])+after {
		return d, nil, fmt.Errorf("an answer of %d bytes is cut short", len(b))
	}
	end := 1 + int(rest[0])
	d.to, err = netip.ParseAddrPort(string(rest[1:end]))
	d.ttl = rest[end]
	counts := rest[end+1:]
	d.heard = heard{binary.BigEndian.Uint32(counts), binary.BigEndian.Uint32(counts[4:]), binary.BigEndian.Uint32(counts[8:])}
	return d, rest[end+after:], err
}

// filledFor reports whether a filling belongs to a number.
func filledFor(number uint32, filled []byte) bool {
	return bytes.Equal(filled, fill(number, len(filled)))
}

// Protocols and ports that identify a wrapping.
const (
	protocolGRE = 47
	protocolESP = 50
	geneve      = 6081
)

// wireguard are the ports of flannel and Calico (51820, 51821 for IPv6), and of Cilium.
var wireguard = []uint16{51820, 51821, 51871}

// tally counts frames by how they are wrapped.
type tally struct {
	port           uint16
	marked, sealed map[netstate.Wrapping]int
}

func (t *tally) add(f *capture.Frame) {
	if f.IP == nil {
		return
	}
	w := netstate.Wrapping{Source: f.IP.Source.String(), Destination: f.IP.Destination.String()}
	switch {
	case f.Marked:
		w.Kind, w.Port, w.VNI = t.kind(f)
		t.marked[w]++
	case f.IP.Protocol == protocolESP:
		w.Kind = netstate.ESP
		t.sealed[w]++
	case f.UDP != nil && slices.Contains(wireguard, f.UDP.DestinationPort):
		w.Kind, w.Port = netstate.WireGuard, f.UDP.DestinationPort
		t.sealed[w]++
	}
}

// kind returns the encapsulation of a frame with the mark.
func (t *tally) kind(f *capture.Frame) (kind string, port uint16, vni uint32) {
	switch {
	case f.VXLAN != nil:
		return netstate.VXLAN, f.UDP.DestinationPort, f.VXLAN.VNI
	case f.Inner != nil:
		return netstate.IPIP, 0, 0
	case f.IP.Protocol == protocolGRE:
		return netstate.GRE, 0, 0
	case f.UDP != nil && f.UDP.DestinationPort == geneve:
		return netstate.Geneve, geneve, 0
	case f.UDP != nil && t.port != 0 && f.UDP.DestinationPort != t.port && f.UDP.SourcePort != t.port:
		return netstate.UDP, f.UDP.DestinationPort, 0
	}
	return netstate.Bare, 0, 0
}

// sorted lists the counts, most frames first.
func sorted(counted map[netstate.Wrapping]int) []netstate.Wrapping {
	var list []netstate.Wrapping
	for w, n := range counted {
		w.Frames = n
		list = append(list, w)
	}
	slices.SortFunc(list, func(a, b netstate.Wrapping) int {
		return cmp.Or(b.Frames-a.Frames, strings.Compare(a.Kind, b.Kind), strings.Compare(a.Source, b.Source), strings.Compare(a.Destination, b.Destination), int(a.VNI)-int(b.VNI))
	})
	return list
}
