package conntrack

import (
	"net/netip"
	"time"
)

// Protocols as numbers, as tuples carry them.
const (
	TCP = 6
	UDP = 17
)

// Tuple is what identifies one direction of a connection. Ports are 0 for a protocol without.
type Tuple struct {
	Source, Destination         netip.Addr
	SourcePort, DestinationPort uint16
	Protocol                    uint8
}

// Status is the kernel's set of ip_conntrack_status bits.
type Status uint32

// The bits that matter here, with the kernel's values.
const (
	SeenReply Status = 1 << 1
	Assured   Status = 1 << 2
	Confirmed Status = 1 << 3
	// SourceNAT and DestinationNAT say which end of the original direction is translated.
	SourceNAT      Status = 1 << 4
	DestinationNAT Status = 1 << 5
)

// Entry is one tracked connection.
type Entry struct {
	// Original is the direction of the first packet as that packet came in; Reply is how its answer is expected, so
	// that Reply.Source is where the packet really went and Reply.Destination whom the far end sees.
	Original, Reply Tuple
	Status          Status
	Mark            uint32
	// Timeout is how much longer the entry lives without traffic, in whole seconds.
	Timeout time.Duration
}

// Unreplied says that no packet of the reply direction was seen.
func (e Entry) Unreplied() bool { return e.Status&SeenReply == 0 }

// Matches says whether t has what want has. A zero field of want takes anything.
func (t Tuple) Matches(want Tuple) bool {
	return (want.Protocol == 0 || want.Protocol == t.Protocol) &&
		(!want.Source.IsValid() || want.Source == t.Source) &&
		(!want.Destination.IsValid() || want.Destination == t.Destination) &&
		(want.SourcePort == 0 || want.SourcePort == t.SourcePort) &&
		(want.DestinationPort == 0 || want.DestinationPort == t.DestinationPort)
}

// Select returns the entries whose original tuple matches, in the order given.
func Select(entries []Entry, want Tuple) []Entry {
	var found []Entry
	for _, e := range entries {
		if e.Original.Matches(want) {
			found = append(found, e)
		}
	}
	return found
}
