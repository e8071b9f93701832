package lab

import (
	"maps"
	"slices"
	"testing"

	"github.com/cnibench/cnibench/internal/kernel/bpf/attach"
	"github.com/cnibench/cnibench/internal/plan"
)

// TestFullNamesTheTable lets the programs of a node say that they had no room; what they drop for other reasons is no
// matter of room.
func TestFullNamesTheTable(t *testing.T) {
	l := up(t, plan.Lab{}, "canal")
	count := func() map[string]uint64 {
		t.Helper()
		all, err := l.Full(plan.VariantOf("canal"))
		if err != nil {
			t.Fatal(err)
		}
		grown := maps.Clone(all)
		maps.DeleteFunc(grown, func(_ string, n uint64) bool { return n == 0 })
		if len(all) == len(grown) {
			t.Errorf("conntrack is not among %v", slices.Sorted(maps.Keys(all)))
		}
		return grown
	}
	if full := count(); len(full) > 0 {
		t.Errorf("a lab that was just raised: %v", full)
	}
	l.Instances()[0].Nodes[1].programs.Counters = func() ([]attach.Counter, error) {
		return []attach.Counter{{Outcome: "no free port", Drop: true, Packets: 3, Full: true}, {Outcome: "denied by policy", Drop: true, Packets: 4}}, nil
	}
	if full := count(); len(full) != 1 || full["node-2: BPF programs: no free port"] != 3 {
		t.Errorf("got %v", full)
	}
	if _, err := l.Full(plan.VariantOf("nosuch")); err == nil {
		t.Error("a profile that does not stand has tables")
	}
}
