package explain

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/measure/sample"
)

// TestOthers: other tasks take as much for a unit of work as they have samples beside those of the path, and leave its
// demand as it is.
func TestOthers(t *testing.T) {
	s := Side{Samples: 300, Demand: Interval{Value: 30_000}, Foreign: 150}
	trials := []trial{
		{stacks: &sample.Stacks{Others: map[string]uint64{"gzip": 60, "kworker/1:1-events": 10}}},
		{stacks: &sample.Stacks{Others: map[string]uint64{"gzip": 30}}}, {stacks: &sample.Stacks{}},
	}
	s.Others = s.otherTasks(trials)
	want := []Other{{"gzip", 90, 9000, 0.225}, {"kworker/1:1-events", 10, 1000, 0.025}}
	if diff := cmp.Diff(want, s.Others); diff != "" || s.OtherTime() != 10_000 || s.Idle() != 50 {
		t.Errorf("%v for a unit, %d idle (-want +got):\n%s", s.OtherTime(), s.Idle(), diff)
	}
	if got := (&Side{}).otherTasks(trials); got != nil {
		t.Errorf("beside no sample: %v", got)
	}
}
