package thread

import (
	"math"
	"slices"
	"testing"
	"time"
)

// ripeClock returns a clock when the counter has been compared for long enough.
func ripeClock() Clock {
	c := NewClock(true)
	for begin := time.Now(); haveTicks && c.scale == 0 && time.Since(begin) < 100*time.Millisecond; {
		c = NewClock(true)
	}
	return c
}

// BenchmarkClock has the error of the clock that the documents give: the time between two readings that follow each
// other, which is the least that a round trip can seem to take, and the coarsest step in it.
func BenchmarkClock(b *testing.B) {
	c := ripeClock()
	var steps []int64
	last := c.Now()
	for range b.N {
		now := c.Now()
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
	c := ripeClock()
	last := c.Now()
	for range 1_000_000 {
		now := c.Now()
		if now < last {
			t.Fatalf("%d ns after %d ns", now, last)
		}
		last = now
	}
}

// TestCounterAgrees: over 50 ms the counter and the kernel's clock differ by less than 1 in 1000.
func TestCounterAgrees(t *testing.T) {
	c := ripeClock()
	if c.scale == 0 {
		t.Skip("the kernel's clock does not go by a counter of the CPU")
	}
	kernel := NewClock(false)
	begin, from := c.Now(), kernel.Now()
	for kernel.Now()-from < int64(50*time.Millisecond) {
	}
	own, real := float64(c.Now()-begin), float64(kernel.Now()-from)
	if math.Abs(own/real-1) > 0.001 {
		t.Errorf("%.0f ns by the counter, %.0f ns by the kernel", own, real)
	}
}
