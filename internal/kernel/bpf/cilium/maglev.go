package cilium

import (
	"encoding/binary"
	"hash/fnv"
	"net/netip"
	"slices"
)

// maglevSize is the number of slots of a table: a prime, so that every skip visits every slot.
const maglevSize = 16381

// maglevTable returns the index into backends for each slot of a service, nil without backends. Every node computes
// the same table from the same set of backends, in any order. Removing one of n backends changes about 1/n of the
// slots.
func maglevTable(backends []netip.AddrPort) []int {
	if len(backends) == 0 {
		return nil
	}
	type walk struct{ next, skip uint64 }
	walks := make([]walk, len(backends))
	for i, b := range backends {
		walks[i] = walk{maglevHash(b, 1) % maglevSize, maglevHash(b, 2)%(maglevSize-1) + 1}
	}
	turns := sortedByAddress(backends)
	table := make([]int, maglevSize)
	for i := range table {
		table[i] = -1
	}
	for filled := 0; ; {
		for _, i := range turns {
			w := &walks[i]
			for table[w.next] >= 0 {
				w.next = (w.next + w.skip) % maglevSize
			}
			table[w.next] = i
			if filled++; filled == maglevSize {
				return table
			}
		}
	}
}

// sortedByAddress returns the indexes of backends in the order of their addresses. So the table does not depend on the
// order of the argument.
func sortedByAddress(backends []netip.AddrPort) []int {
	order := make([]int, len(backends))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return backends[a].Compare(backends[b]) })
	return order
}

// maglevHash returns a hash of a backend. Each seed gives another hash.
func maglevHash(b netip.AddrPort, seed byte) uint64 {
	h := fnv.New64a()
	a := b.Addr().As16()
	h.Write([]byte{seed})
	h.Write(a[:])
	h.Write(binary.BigEndian.AppendUint16(nil, b.Port()))
	// FNV gives similar inputs similar high bits; one multiplication round spreads them.
	x := h.Sum64()
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	return x ^ x>>33
}
