package containerd

import (
	"encoding/binary"
	"maps"
	"slices"
)

// message is a protocol buffer in the making: fields one after the other, each with its number. Answers are not read;
// that they came is all that matters.
type message []byte

// Wire types of a field.
const (
	varint = 0
	sized  = 2
)

func (m *message) number(field uint64, v int64) {
	if v == 0 {
		return
	}
	*m = binary.AppendUvarint(*m, field<<3|varint)
	*m = binary.AppendUvarint(*m, uint64(v))
}

func (m *message) bytes(field uint64, b []byte) {
	*m = binary.AppendUvarint(*m, field<<3|sized)
	*m = binary.AppendUvarint(*m, uint64(len(b)))
	*m = append(*m, b...)
}

func (m *message) text(field uint64, s string)     { m.bytes(field, []byte(s)) }
func (m *message) nested(field uint64, in message) { m.bytes(field, in) }

// labels are a map of text to text, in the order of its keys.
func (m *message) labels(field uint64, labels map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		var entry message
		entry.text(1, key)
		entry.text(2, labels[key])
		m.nested(field, entry)
	}
}
