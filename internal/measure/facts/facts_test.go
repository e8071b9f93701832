package facts

import (
	"slices"
	"testing"
)

func TestDiffer(t *testing.T) {
	a := Facts{Kernel: "6.18", MTU: "1500", NIC: "wire"}
	b := Facts{Kernel: "6.18", MTU: "1450", Governor: "performance"}
	want := []string{Governor, MTU, NIC}
	slices.Sort(want)
	if got := a.Differ(b); !slices.Equal(got, want) {
		t.Errorf("Differ = %v, want %v", got, want)
	}
	if got := b.Differ(a); !slices.Equal(got, want) {
		t.Errorf("Differ is not symmetric: %v", got)
	}
	if got := a.Differ(a); len(got) != 0 {
		t.Errorf("a differs from itself in %v", got)
	}
	if got := Facts(nil).Differ(nil); len(got) != 0 {
		t.Errorf("nothing differs from nothing in %v", got)
	}
}
