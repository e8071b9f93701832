package conntrack

import (
	"net/netip"
	"strings"
	"testing"
)

// TestFill: what was added is there, replied to and counted, in either version of IP. A second time it is refused.
func TestFill(t *testing.T) {
	const many = 600 // more than one batch
	for name, ends := range map[string][2]string{"IPv4": {"198.18.0.1", "10.0.0.1"}, "IPv6": {"2001:db8::1", "2001:db8::2"}} {
		ns := node(t, translate)
		tuple := func(i int) Tuple {
			return Tuple{Source: netip.MustParseAddr(ends[0]), SourcePort: uint16(1024 + i), Destination: netip.MustParseAddr(ends[1]), DestinationPort: 1, Protocol: TCP}
		}
		if err := Fill(ns, many, tuple); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		entries, err := List(ns)
		if n, bad := Count(ns); err != nil || bad != nil || n != many || len(entries) != many {
			t.Fatalf("%s: %d entries, %d counted, %v %v", name, len(entries), n, err, bad)
		}
		last := Select(entries, tuple(many-1))
		if len(last) != 1 || !last[0].Replied || last[0].Reply != tuple(many-1).replyTuple() {
			t.Errorf("%s: %+v", name, last)
		}
		if err := Fill(ns, many, tuple); err == nil || !strings.Contains(err.Error(), "exist") {
			t.Errorf("%s: the same again: %v", name, err)
		}
		if err := Fill(ns, 1<<30, tuple); err == nil || !strings.Contains(err.Error(), "room") {
			t.Errorf("%s: more than the machine tracks: %v", name, err)
		}
	}
}
