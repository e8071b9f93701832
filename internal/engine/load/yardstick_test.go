//go:build linux

package load

import (
	"slices"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/kernel/affinity"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
)

// A pinned trial has readings of the yardstick in its slices at both sides, and one without CPUs has none.
func TestYardstick(t *testing.T) {
	cpus, err := affinity.Get()
	if err != nil {
		t.Fatal(err)
	}
	for _, pinned := range []bool{true, false} {
		o := options(plan.Workload{Spec: plan.RR{}})
		o.Interval = 20 * time.Millisecond
		if pinned {
			o.CPUs = cpus[:1]
		}
		client, server := trial(t, o)
		for _, side := range []*sample.Observation{client, server} {
			read := slices.ContainsFunc(side.Intervals, func(i sample.Interval) bool { return !i.Warmup && i.YardNs > 0 })
			if read != pinned {
				t.Errorf("%s, pinned %v: slices with a reading: %v", side.Side, pinned, read)
			}
		}
	}
}
