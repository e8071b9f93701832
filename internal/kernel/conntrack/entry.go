package conntrack

import (
	"math/bits"
	"net/netip"
)

// Protocols of a Tuple, by their numbers in the IP header.
const (
	TCP = 6
	UDP = 17
)

// Tuple identifies one direction of a connection. Ports are 0 for a protocol without ports.
type Tuple struct {
	Source, Destination         netip.Addr
	SourcePort, DestinationPort uint16
	Protocol                    uint8
}

// Entry is one tracked connection.
type Entry struct {
	// Original is the direction of the first packet as it arrived. Reply is the expected direction of its answer:
	// Reply.Source is where the packet really went, and Reply.Destination is the client that the far end sees.
	Original, Reply Tuple
	// Replied means that a packet of the reply direction was seen.
	Replied bool
	// Offloaded means that a flowtable forwards its packets.
	Offloaded bool
	// Mark is the connection's mark.
	Mark   uint32
	Labels Labels
}

// Labels are the labels of a connection, a bit for each.
type Labels [2]uint64

// Numbers returns the numbers of the labels, ascending.
func (l Labels) Numbers() (list []int) {
	for word, rest := range l {
		for ; rest != 0; rest &= rest - 1 {
			list = append(list, 64*word+bits.TrailingZeros64(rest))
		}
	}
	return list
}

// Matches reports whether t has the fields of want. A zero field of want matches anything.
func (t Tuple) Matches(want Tuple) bool {
	return (want.Protocol == 0 || want.Protocol == t.Protocol) &&
		(!want.Source.IsValid() || want.Source == t.Source) &&
		(!want.Destination.IsValid() || want.Destination == t.Destination) &&
		(want.SourcePort == 0 || want.SourcePort == t.SourcePort) &&
		(want.DestinationPort == 0 || want.DestinationPort == t.DestinationPort)
}

// Select returns the entries whose original tuple matches, in their order.
func Select(entries []Entry, want Tuple) []Entry {
	var found []Entry
	for _, e := range entries {
		if e.Original.Matches(want) {
			found = append(found, e)
		}
	}
	return found
}
