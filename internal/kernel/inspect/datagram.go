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

// MarkLength is the minimum length of a mark in bytes. Other traffic does not carry so long a mark by chance, and
// only a client that knows the mark gets an answer.
const MarkLength = 8

// Kinds of a datagram. Every answer has the Echo's counts.
const (
	// kindAsk is a question that requests an answer of a given size.
	kindAsk = 'a'
	// kindAnswer is the answer to a question.
	kindAnswer = 'r'
	// kindTooBig is sent instead of an answer that is too large for a device or a router.
	kindTooBig = 'b'
	// kindCheck is a question that the Echo counts, and whose content it compares.
	kindCheck = 'c'
	// kindCounts is a question that only requests the counts; the Echo does not count it.
	kindCounts = 't'
	// kindBare is like kindCheck, but the question and its answer have no checksum.
	kindBare = 'n'
)

// Sizes of the headers before a datagram, in bytes.
const (
	headerIPv4, headerIPv6 = 20 + 8, 40 + 8
)

// header is the length of the fields after the mark of every datagram: kind, number and size. An answer has further
// fields.
const header = 1 + 4 + 4

// datagram is the content of a UDP datagram between an asker and an Echo.
type datagram struct {
	kind   byte
	number uint32
	// size is the requested length of the answer in a question, and the length of the question in an answer.
	size uint32
	// to is, in an answer, the sender of the question as the Echo saw it.
	to netip.AddrPort
	// ttl is, in an answer, the TTL with which the question arrived; 0 is unknown.
	ttl byte
	// echoCounts are the counts in an answer.
	echoCounts echoCounts
}

// echoCounts are the counts that an Echo keeps for each sender of questions of kindCheck and kindBare.
type echoCounts struct {
	// came is the number of these questions that arrived, readable or not. wrong is how many of them were changed.
	came, wrong uint32
	// overrun is the number of datagrams of any sender that did not fit into the Echo's socket buffer.
	overrun uint32
}

// filling has the random bytes with which paddingBytes pads datagrams and parts of streams. The number of a datagram or
// part determines the offset of its padding in filling.
var filling = func() []byte {
	b := make([]byte, 1<<16)
	_, _ = rand.NewChaCha8([32]byte{'c', 'n', 'i'}).Read(b) // it never fails
	return append(b, b...)
}()

// paddingBytes returns the n bytes of padding of the datagram or part with this number; n is 65,536 at most.
func paddingBytes(number uint32, n int) []byte {
	at := int(number*7919) % (len(filling) / 2)
	return filling[at : at+n]
}

// isQuestion reports whether d is a question.
func (d datagram) isQuestion() bool {
	return d.kind == kindAsk || d.kind == kindCounts || d.isCounted()
}

// isCounted reports whether d is a question that the Echo counts.
func (d datagram) isCounted() bool { return d.kind == kindCheck || d.kind == kindBare }

// encode returns the mark and the bytes of d. It pads them to at least length bytes.
func (d datagram) encode(mark []byte, length int) []byte {
	b := append([]byte(nil), mark...)
	b = append(b, d.kind)
	b = binary.BigEndian.AppendUint32(b, d.number)
	b = binary.BigEndian.AppendUint32(b, d.size)
	if !d.isQuestion() {
		text := d.to.String()
		b = append(b, byte(len(text)))
		b = append(append(b, text...), d.ttl)
		for _, n := range []uint32{d.echoCounts.came, d.echoCounts.wrong, d.echoCounts.overrun} {
			b = binary.BigEndian.AppendUint32(b, n)
		}
	}
	if len(b) < length {
		b = append(b, paddingBytes(d.number, length-len(b))...)
	}
	return b
}

// errForeign means that a datagram or stream does not begin with the mark of this run.
var errForeign = errors.New("a datagram without the mark")

// decodeDatagram decodes a datagram and returns its padding. It fails with errForeign if the mark is missing. It also
// fails if the datagram is cut short or of an unknown kind.
func decodeDatagram(mark, b []byte) (d datagram, filled []byte, err error) {
	rest, ok := bytes.CutPrefix(b, mark)
	if !ok {
		return d, nil, errForeign
	}
	if len(rest) < header {
		return d, nil, fmt.Errorf("a datagram of %d bytes is cut short", len(b))
	}
	d = datagram{kind: rest[0], number: binary.BigEndian.Uint32(rest[1:]), size: binary.BigEndian.Uint32(rest[5:])}
	rest = rest[header:]
	if d.isQuestion() {
		return d, rest, nil
	}
	if d.kind != kindAnswer && d.kind != kindTooBig {
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
	d.echoCounts = echoCounts{binary.BigEndian.Uint32(counts), binary.BigEndian.Uint32(counts[4:]), binary.BigEndian.Uint32(counts[8:])}
	return d, rest[end+after:], err
}

// isPadding reports whether filled is the unchanged padding of the datagram or part with this number.
func isPadding(number uint32, filled []byte) bool {
	return bytes.Equal(filled, paddingBytes(number, len(filled)))
}

// Protocols and ports that identify an encapsulation.
const (
	protocolGRE = 47
	protocolESP = 50
	geneve      = 6081
)

// wireguard has the UDP ports of WireGuard: those of flannel and Calico (51820, 51821 for IPv6), and of Cilium.
var wireguard = []uint16{51820, 51821, 51871}

// tally counts frames by encapsulation.
type tally struct {
	// port is the UDP port that datagrams with the mark use without an encapsulation; 0 means any port.
	port uint16
	// marked counts the frames with the mark, sealed the encrypted frames.
	marked, sealed map[netstate.Wrapping]int
}

func (t *tally) add(f *capture.Frame) {
	if f.IP == nil {
		return
	}
	w := netstate.Wrapping{Source: f.IP.Source.String(), Destination: f.IP.Destination.String()}
	switch {
	case f.Marked:
		w.Kind, w.Port, w.VNI = t.encapsulationOf(f)
		t.marked[w]++
	case f.IP.Protocol == protocolESP:
		w.Kind = netstate.ESP
		t.sealed[w]++
	case f.UDP != nil && slices.Contains(wireguard, f.UDP.DestinationPort):
		w.Kind, w.Port = netstate.WireGuard, f.UDP.DestinationPort
		t.sealed[w]++
	}
}

// encapsulationOf returns the kind of encapsulation of a frame with the mark, and its UDP port and VNI. A port or VNI
// that it does not have is 0.
func (t *tally) encapsulationOf(f *capture.Frame) (kind string, port uint16, vni uint32) {
	switch {
	case f.VXLAN != nil:
		return netstate.VXLAN, f.UDP.DestinationPort, f.VXLAN.VNI
	case f.Geneve != nil:
		return netstate.Geneve, f.UDP.DestinationPort, f.Geneve.VNI
	case f.UDP != nil && f.UDP.DestinationPort == geneve:
		return netstate.Geneve, geneve, 0
	case f.Inner != nil:
		return netstate.IPIP, 0, 0
	case f.IP.Protocol == protocolGRE:
		return netstate.GRE, 0, 0
	case f.UDP != nil && t.port != 0 && f.UDP.DestinationPort != t.port && f.UDP.SourcePort != t.port:
		return netstate.UDP, f.UDP.DestinationPort, 0
	}
	return netstate.Bare, 0, 0
}

// sortedWrappings returns the counted encapsulations, most frames first.
func sortedWrappings(counted map[netstate.Wrapping]int) []netstate.Wrapping {
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
