package conntrack

import "testing"

// stats is a message of one CPU: attribute length and type in host order (little-endian here), values in network order.
const stats = "00000000" + // nfgenmsg
	"0800020000000001" + // found
	"0800040000000002" + // invalid
	"0800080000000004" + // insert
	"0800090000000008" + // insert failed
	"08000a0000000020" + // drop
	"08000b0000000040" + // early drop
	"08000c0000000080" + // error
	"08000d0000000100" + // search restart
	"08000e0000000200" + // clash resolved
	"08000f0000000400" // chain too long

func TestDecodeStats(t *testing.T) {
	var got Stats
	err := got.addCounters(fromHex(t, stats))
	want := Stats{Invalid: 2, InsertFailed: 8, Drop: 0x20, Clashes: 0x200, EarlyDrop: 0x40, ChainTooLong: 0x400}
	if err != nil || got != want {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	for name, b := range map[string]string{"no header": "0000", "cut attribute": stats[:len(stats)-4], "short counter": "00000000" + "0600040000020000"} {
		var s Stats
		if err := s.addCounters(fromHex(t, b)); err == nil {
			t.Errorf("%s: decoded to %+v", name, s)
		}
	}
}

// TestRefused tells a full table from connections that met others.
func TestRefused(t *testing.T) {
	for _, tc := range []struct {
		s    Stats
		want uint64
	}{
		{Stats{}, 0},
		{Stats{Drop: 5}, 5},
		{Stats{Drop: 5, InsertFailed: 5}, 0},
		{Stats{Drop: 5, InsertFailed: 2}, 3},
		{Stats{InsertFailed: 4}, 0}, // resolved: the packet went on
	} {
		if got := tc.s.Refused(); got != tc.want {
			t.Errorf("%+v: refused %d, want %d", tc.s, got, tc.want)
		}
	}
}

// FuzzDecodeStats holds the decoder to being total.
func FuzzDecodeStats(f *testing.F) {
	f.Add(fromHex(f, stats))
	f.Fuzz(func(t *testing.T, b []byte) {
		var s Stats
		if err := s.addCounters(b); err == nil && s.Refused() > s.Drop {
			t.Errorf("%+v: refused more than it dropped", s)
		}
	})
}
