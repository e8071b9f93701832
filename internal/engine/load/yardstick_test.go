//go:build linux

package load

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/kernel/thread"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// A pinned trial has readings of the yardstick in its slices at both sides, and percentiles of undisturbed times. One without
// CPUs has neither.
func TestYardstick(t *testing.T) {
	cpus, err := thread.CPUs()
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
		if p := client.Undisturbed[metric.RTT+".p50"]; pinned != (p > 0) || p > 1.5*float64(client.RTT.Quantile(0.5)) {
			t.Errorf("pinned %v: undisturbed median of %g ns, of all times %d", pinned, p, client.RTT.Quantile(0.5))
		}
		for _, side := range []*sample.Observation{client, server} {
			read := slices.ContainsFunc(side.Intervals, func(i sample.Interval) bool { return !i.Warmup && i.YardNs > 0 })
			if read != pinned {
				t.Errorf("%s, pinned %v: slices with a reading: %v", side.Side, pinned, read)
			}
		}
	}
}

// TestYardstickQuickReading: one reading that happens to be quick, the first one, is not the machine's full speed: times
// after it are undisturbed all the same. No time is, before half of the span has been read.
func TestYardstickQuickReading(t *testing.T) {
	y := &yardstick{fastest: math.MaxInt64}
	y.addReading(700)
	if y.calm.Load() {
		t.Error("one reading shows the full speed")
	}
	for range 2 * yardSpan {
		y.addReading(1000)
	}
	if !y.calm.Load() || y.fastest != 1000 {
		t.Errorf("a steady machine is disturbed beside one quick reading; the fastest state is %d ns", y.fastest)
	}
	for range yardSpan {
		y.addReading(1200)
	}
	if y.calm.Load() {
		t.Error("a slow machine is undisturbed")
	}
}
