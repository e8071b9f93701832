package control

import (
	"slices"
	"testing"
)

// TestPinned: two sides on one machine do not share a CPU if there are two, a side alone has the idlest, and more
// threads have more CPUs.
func TestPinned(t *testing.T) {
	one, two := Hello{Machine: "m", Idle: []int{3, 1, 0, 2}}, Hello{Machine: "n", Idle: []int{7, 6}}
	for _, tt := range []struct {
		own, other    Hello
		threads, turn int
		want          []int
	}{
		{one, one, 1, 0, []int{3}}, {one, one, 1, 1, []int{1}}, {one, one, 8, 0, []int{3, 0}}, {one, two, 1, 1, []int{3}},
		{two, one, 2, 0, []int{7, 6}}, {Hello{Machine: "m", Idle: []int{5}}, one, 4, 1, []int{5}}, {Hello{}, one, 4, 1, nil},
	} {
		if got := pinned(tt.own, tt.other, tt.threads, tt.turn); !slices.Equal(got, tt.want) {
			t.Errorf("%+v: got %v", tt, got)
		}
	}
}
