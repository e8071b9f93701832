package follow

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/measure/journey"
)

// recordSize is the size of struct record in bytes.
const recordSize = 40

// hosts has the names of namespaces by their inode.
type hosts map[uint32]string

// decodeRecord decodes a record of the programs, in the byte order of this machine. It fails if a field has an unknown
// value.
func (names hosts) decodeRecord(b []byte) (journey.Event, error) {
	if len(b) != recordSize {
		return journey.Event{}, fmt.Errorf("a record of %d bytes, want %d", len(b), recordSize)
	}
	n := binary.NativeEndian
	host, ok := names[n.Uint32(b[12:])]
	if !ok {
		return journey.Event{}, fmt.Errorf("a record of an unknown namespace, %d", n.Uint32(b[12:]))
	}
	e := journey.Event{
		Time: n.Uint64(b), Transaction: n.Uint32(b[8:]), Host: host, Index: n.Uint32(b[16:]), Sequence: n.Uint32(b[20:]),
		Length: n.Uint16(b[24:]), Took: n.Uint16(b[26:]), Point: journey.Point(b[28]), Direction: journey.Direction(b[30]),
		Flags: b[31], Depth: b[32], Vain: b[33],
	}
	switch {
	case e.Point < journey.Send || e.Point > journey.Deliver:
		return e, fmt.Errorf("a record of an unknown point, %d", e.Point)
	case b[29] >= journey.Hooks:
		return e, fmt.Errorf("a record of an unknown hook, %d", b[29])
	case e.Direction != journey.Request && e.Direction != journey.Response:
		return e, errors.New("a record without a direction")
	}
	if e.Point == journey.HookBegin || e.Point == journey.HookEnd {
		e.Hook = journey.Hook(b[29]) + 1
	}
	return e, nil
}

// cString returns the C string in b, with "?" for bytes that are not UTF-8.
func cString(b []byte) string {
	if end := slices.Index(b, 0); end >= 0 {
		b = b[:end]
	}
	return strings.ToValidUTF8(string(b), "?")
}
