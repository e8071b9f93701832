package control

import (
	"slices"
	"testing"

	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/plan/condition"
)

// TestPinned: two sides on one machine share a CPU where there are few or where that is asked for, else they do not; a side
// alone has the idlest, and more threads have more CPUs.
func TestPinned(t *testing.T) {
	one, two, few := Hello{Machine: "m", Idle: []int{3, 1, 0, 2}}, Hello{Machine: "n", Idle: []int{7, 6}}, Hello{Machine: "f", Idle: []int{0, 1}}
	for _, tt := range []struct {
		own, other    Hello
		threads, turn int
		placement     condition.Placement
		want          []int
	}{
		{one, one, 1, 0, "auto", []int{3}}, {one, one, 1, 1, "auto", []int{1}}, {one, one, 8, 0, "split", []int{3, 0}},
		{one, one, 8, 1, "one", []int{3}}, {one, two, 1, 1, "one", []int{3}}, {two, one, 2, 0, "auto", []int{7, 6}},
		{few, few, 1, 0, "auto", []int{1}}, {few, few, 1, 1, "auto", []int{1}}, {few, few, 1, 1, "split", []int{1}}, {few, few, 1, 0, "split", []int{0}},
		{Hello{Machine: "m", Idle: []int{5}}, one, 4, 1, "split", []int{5}}, {Hello{}, one, 4, 1, "auto", nil},
	} {
		ask := Prepare{Workload: plan.Workload{Spec: plan.Stream{Flows: tt.threads}}, Manner: Manner{Placement: tt.placement}}
		if got := chooseCPUs(tt.own, tt.other, ask, tt.turn); !slices.Equal(got, tt.want) {
			t.Errorf("%+v: got %v", tt, got)
		}
	}
}
