package load

import (
	"slices"
	"testing"
	"time"
)

// BenchmarkClock is where docs/reference/numbers.md has the error of the clock from: the time between two readings that follow each
// other, which is the least that a round trip can seem to take, and the coarsest step in it.
func BenchmarkClock(b *testing.B) {
	c := clock{base: time.Now()}
	var steps []int64
	last := c.now()
	for range b.N {
		now := c.now()
		steps = append(steps, now-last)
		last = now
	}
	slices.Sort(steps)
	least := int64(0)
	for _, s := range steps {
		if s > 0 {
			least = s
			break
		}
	}
	b.ReportMetric(float64(steps[len(steps)/2]), "ns-median")
	b.ReportMetric(float64(least), "ns-smallest-step")
	b.ReportMetric(float64(steps[len(steps)*999/1000]), "ns-p99.9")
}

// TestClockNeverGoesBack reads the clock from a thread that is moved between CPUs: differences are never negative.
func TestClockNeverGoesBack(t *testing.T) {
	c := clock{base: time.Now()}
	last := c.now()
	for range 1_000_000 {
		now := c.now()
		if now < last {
			t.Fatalf("%d ns after %d ns", now, last)
		}
		last = now
	}
}
