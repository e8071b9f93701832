package conntrack

import (
	"encoding/binary"
	"fmt"

	"github.com/mdlayher/netlink"
)

// Stats are what a namespace's connection tracking counted, in packets, summed over CPUs. The kernel's counters have 32
// bits for each CPU and begin anew after that.
type Stats struct {
	// Invalid packets belong to no connection.
	Invalid uint64
	// InsertFailed counts new connections that could not be entered, since another had the same addresses and ports, and
	// Drop what was dropped for that or any other reason.
	InsertFailed, Drop uint64
	// EarlyDrop counts connections that were forgotten to make room for others: the table was full.
	EarlyDrop uint64
	// ChainTooLong counts packets that were dropped because too many connections share a bucket of the table.
	ChainTooLong uint64
}

// Refused is how many packets were dropped because the table was full: what was dropped without having met another
// connection.
func (s Stats) Refused() uint64 {
	if s.Drop < s.InsertFailed {
		return 0
	}
	return s.Drop - s.InsertFailed
}

func (s *Stats) add(o Stats) {
	s.Invalid += o.Invalid
	s.InsertFailed += o.InsertFailed
	s.Drop += o.Drop
	s.EarlyDrop += o.EarlyDrop
	s.ChainTooLong += o.ChainTooLong
}

// Attribute numbers of the counters, from include/uapi/linux/netfilter/nfnetlink_conntrack.h.
const (
	statInvalid      = 4
	statInsertFailed = 9
	statDrop         = 10
	statEarlyDrop    = 11
	statChainTooLong = 15
)

// decodeStats reads one CPU's message of a dump, without its netlink header.
func decodeStats(b []byte) (Stats, error) {
	var s Stats
	if len(b) < headerLength {
		return s, fmt.Errorf("conntrack message of %d bytes has no header", len(b))
	}
	d, err := netlink.NewAttributeDecoder(b[headerLength:])
	if err != nil {
		return s, fmt.Errorf("conntrack statistics: %w", err)
	}
	d.ByteOrder = binary.BigEndian
	for d.Next() {
		switch d.Type() {
		case statInvalid:
			s.Invalid = uint64(d.Uint32())
		case statInsertFailed:
			s.InsertFailed = uint64(d.Uint32())
		case statDrop:
			s.Drop = uint64(d.Uint32())
		case statEarlyDrop:
			s.EarlyDrop = uint64(d.Uint32())
		case statChainTooLong:
			s.ChainTooLong = uint64(d.Uint32())
		}
	}
	if err := d.Err(); err != nil {
		return s, fmt.Errorf("conntrack statistics: %w", err)
	}
	return s, nil
}
