package lab

import (
	"errors"
	"fmt"

	"github.com/cnibench/cnibench/internal/kernel/conntrack"
	"github.com/cnibench/cnibench/internal/plan"
)

// Full returns how often the tables of a profile's nodes were full since the lab was raised: the number of dropped
// packets or forgotten connections, by a description of the table. An error may come with a partial result. LRU maps of
// BPF programs evict the oldest entry, as in the products, and are never full.
func (l *Lab) Full(profile plan.Variant) (map[string]uint64, error) {
	inst, err := l.up(profile)
	if err != nil {
		return nil, err
	}
	full := map[string]uint64{}
	var errs []error
	for _, n := range inst.Nodes {
		errs = append(errs, n.full(full))
	}
	return full, errors.Join(errs...)
}

// full adds the counters of a node.
func (n *Node) full(to map[string]uint64) error {
	drops, err := n.programs.Drops()
	if err != nil {
		return fmt.Errorf("%s: %w", n.Name, err)
	}
	for _, d := range drops {
		if d.Full {
			to[n.Name+": BPF programs: "+d.Reason()] += d.Packets
		}
	}
	s, err := conntrack.ReadStats(n.NS)
	if err != nil {
		return fmt.Errorf("%s: %w", n.Name, err)
	}
	for what, count := range map[string]uint64{
		"packets of new connections dropped (nf_conntrack_max)":         s.Refused(),
		"connections forgotten to make room for new (nf_conntrack_max)": s.EarlyDrop,
		"packets dropped, too many connections in a bucket":             s.ChainTooLong,
	} {
		to[n.Name+": conntrack table: "+what] = count
	}
	return nil
}
