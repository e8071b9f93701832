package conntrack

import "fmt"

// Stats are the counters of a namespace's connection tracking, summed over CPUs. The kernel's counters have 32 bits
// for each CPU and wrap around.
type Stats struct {
	// Invalid packets belong to no connection.
	Invalid uint64
	// InsertFailed counts new connections that could not be inserted because another had the same addresses and ports.
	// Drop counts packets dropped for that or any other reason.
	InsertFailed, Drop uint64
	// Clashes counts packets of new connections that another CPU inserted at the same moment; the kernel lets them
	// pass.
	Clashes uint64
	// EarlyDrop counts connections that were removed to make room for others: the table was full.
	EarlyDrop uint64
	// ChainTooLong counts packets that were dropped because too many connections share a bucket of the table.
	ChainTooLong uint64
}

// Refused returns how many packets were dropped because the table was full: those dropped without a conflict with
// another connection.
func (s Stats) Refused() uint64 {
	if s.Drop < s.InsertFailed {
		return 0
	}
	return s.Drop - s.InsertFailed
}

// Attribute numbers of the counters, from include/uapi/linux/netfilter/nfnetlink_conntrack.h.
const (
	statInvalid      = 4
	statInsertFailed = 9
	statDrop         = 10
	statEarlyDrop    = 11
	statClashResolve = 14
	statChainTooLong = 15
)

// addCounters adds the counters of one CPU. b is a message of the dump, without its netlink header.
func (s *Stats) addCounters(b []byte) error {
	d, err := attributeDecoder(b)
	if err != nil {
		return fmt.Errorf("conntrack statistics: %w", err)
	}
	counters := map[uint16]*uint64{
		statInvalid: &s.Invalid, statInsertFailed: &s.InsertFailed, statDrop: &s.Drop, statEarlyDrop: &s.EarlyDrop,
		statChainTooLong: &s.ChainTooLong, statClashResolve: &s.Clashes,
	}
	for d.Next() {
		if c := counters[d.Type()]; c != nil {
			*c += uint64(d.Uint32())
		}
	}
	if err := d.Err(); err != nil {
		return fmt.Errorf("conntrack statistics: %w", err)
	}
	return nil
}
