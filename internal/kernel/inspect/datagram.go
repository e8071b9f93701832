package inspect

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
)

// MarkLength is the least number of bytes of a mark. Other traffic does not carry so long a mark by chance, and only a
// client that knows the mark gets an answer.
const MarkLength = 8

// Kinds of a datagram.
const (
	// asks wants an answer of a given size.
	asks = 'a'
	// answers has that size.
	answers = 'r'
	// tooBig says that an answer of that size does not leave the machine.
	tooBig = 'b'
)

// Sizes of the headers before a datagram, in bytes.
const (
	headerIPv4, headerIPv6 = 20 + 8, 40 + 8
)

// header is what every datagram begins with behind its mark: kind, number and a size; an answer then has the address
// that it goes to.
const header = 1 + 4 + 4

// datagram is one message of this package.
type datagram struct {
	kind   byte
	number uint32
	// size is the wanted length of an answer in a question, the length of the question in an answer.
	size uint32
	// to is where an answer goes.
	to netip.AddrPort
}

// encode writes d with the mark, filled up with zeros to length bytes where that is more.
func (d datagram) encode(mark []byte, length int) []byte {
	b := append([]byte(nil), mark...)
	b = append(b, d.kind)
	b = binary.BigEndian.AppendUint32(b, d.number)
	b = binary.BigEndian.AppendUint32(b, d.size)
	if d.kind != asks {
		text := d.to.String()
		b = append(b, byte(len(text)))
		b = append(b, text...)
	}
	if len(b) < length {
		b = append(b, make([]byte, length-len(b))...)
	}
	return b
}

// errForeign means that a datagram is not of this run.
var errForeign = errors.New("a datagram without the mark")

func decode(mark, b []byte) (datagram, error) {
	rest, ok := bytes.CutPrefix(b, mark)
	if !ok {
		return datagram{}, errForeign
	}
	if len(rest) < header {
		return datagram{}, fmt.Errorf("a datagram of %d bytes is cut short", len(b))
	}
	d := datagram{kind: rest[0], number: binary.BigEndian.Uint32(rest[1:]), size: binary.BigEndian.Uint32(rest[5:])}
	switch rest = rest[header:]; {
	case d.kind == asks:
		return d, nil
	case d.kind != answers && d.kind != tooBig:
		return datagram{}, fmt.Errorf("a datagram of unknown kind %q", d.kind)
	case len(rest) == 0 || len(rest) < 1+int(rest[0]):
		return datagram{}, fmt.Errorf("an answer of %d bytes is cut short", len(b))
	default:
		to, err := netip.ParseAddrPort(string(rest[1 : 1+int(rest[0])]))
		d.to = to
		return d, err
	}
}
