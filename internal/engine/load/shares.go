package load

import (
	"github.com/cnibench/cnibench/internal/engine/httpwire"
	"github.com/cnibench/cnibench/internal/measure/sample"
)

const (
	// maxBackends is how many names a thread counts; otherBackends is the name for all others.
	maxBackends   = 256
	otherBackends = "(others)"
	// shareSlots is the size of the table, which stays at least half empty. One more slot counts all other names.
	shareSlots = 2 * maxBackends
	noShare    = -1
)

// shares counts responses and connections by the name of the backend, on one thread. It is a hash table of fixed size,
// so that counting never allocates.
type shares struct {
	slots [shareSlots + 1]share
	names int
}

type share struct {
	name                  [httpwire.MaxName]byte
	length                int
	requests, connections uint64
}

func (s *share) hasName(name []byte) bool {
	return s.length == len(name) && string(s.name[:s.length]) == string(name)
}

// findOrAddSlot returns the slot that counts name, and adds name if it is new. It returns noShare for an empty name, and the
// last slot if name has no slot of its own. likely is a slot to try first, or noShare. A new name is copied, so
// name may be a part of a buffer.
func (s *shares) findOrAddSlot(name []byte, likely int) int {
	if len(name) == 0 {
		return noShare
	}
	if likely != noShare && s.slots[likely].hasName(name) {
		return likely
	}
	if len(name) > httpwire.MaxName {
		return shareSlots
	}
	// FNV-1a
	hash := uint32(2166136261)
	for _, c := range name {
		hash = (hash ^ uint32(c)) * 16777619
	}
	for i := hash % shareSlots; ; i = (i + 1) % shareSlots {
		slot := &s.slots[i]
		switch {
		case slot.hasName(name):
			return int(i)
		case slot.length > 0:
		case s.names == maxBackends:
			return shareSlots
		default:
			s.names++
			slot.length = copy(slot.name[:], name)
			return int(i)
		}
	}
}

// countResponse counts a response of the backend in slot. first means that it is the first response of its connection.
func (s *shares) countResponse(slot int, first bool) {
	if slot == noShare {
		return
	}
	s.slots[slot].requests++
	if first {
		s.slots[slot].connections++
	}
}

// addCountsTo adds the counts of each backend to m, by the name of the backend.
func (s *shares) addCountsTo(m map[string]sample.Backend) {
	for i := range s.slots {
		slot := &s.slots[i]
		if slot.requests == 0 {
			continue
		}
		name := string(slot.name[:slot.length])
		if i == shareSlots {
			name = otherBackends
		}
		b := m[name]
		b.Requests += slot.requests
		b.Connections += slot.connections
		m[name] = b
	}
}
