package thread

import (
	"math/bits"
	"os"
	"strings"
	"time"
)

// Clock counts ns since NewClock. With a CPU counter it neither enters the kernel nor reads the kernel's pages. A
// reading then takes 10 ns; a reading of the kernel's clock takes 30 ns and touches seven pages.
type Clock struct {
	// Offset is the time of CLOCK_MONOTONIC, in ns, at which this clock showed 0.
	Offset int64
	base   time.Time
	// ticks is the counter at which this clock showed 0. scale is ns per tick in units of 2^-32; scale 0 means that the
	// clock uses the kernel's clock instead.
	ticks, scale uint64
}

// exact bounds the relative error of the measured rate of the CPU's counter, which is at most 1/exact.
const exact = 50_000

// birth is the start of the program by both clocks.
var birth = readBothClocks()

// NewClock returns a clock. If counter is true, it uses the CPU's counter, provided that the kernel's clock does so.
// Then the counters of all CPUs agree and have a constant rate. Such a clock may drift from CLOCK_MONOTONIC by 1 in
// 50,000, so do not use it for a schedule.
func NewClock(counter bool) Clock {
	c := Clock{base: time.Now(), Offset: Monotonic()}
	if !counter || !haveTicks {
		return c
	}
	source, err := os.ReadFile("/sys/devices/system/clocksource/clocksource0/current_clocksource")
	now := readBothClocks()
	if elapsed := now.at - birth.at; err == nil && strings.TrimSpace(string(source)) == ticksSource &&
		(birth.within+now.within)*exact < now.ticks-birth.ticks {
		// The quotient is less than 2^32, since every counter is fast enough.
		c.scale, _ = bits.Div64(uint64(elapsed)>>32, uint64(elapsed)<<32, now.ticks-birth.ticks)
		c.ticks = ticks()
	}
	return c
}

// Now returns the time since NewClock in ns.
func (c *Clock) Now() int64 {
	if c.scale == 0 {
		return int64(time.Since(c.base))
	}
	return c.At(ticks())
}

// Counts reports whether the clock uses the CPU's counter.
func (c *Clock) Counts() bool { return c.scale != 0 }

// At returns the time in ns at which the counter had the value ticks, for a clock that Counts.
func (c *Clock) At(ticks uint64) int64 {
	high, low := bits.Mul64(ticks-c.ticks, c.scale)
	return int64(high<<32 | low>>32)
}

// instant is one moment by the kernel's clock (at) and by the CPU's counter (ticks). within is the uncertainty in
// ticks.
type instant struct {
	at            time.Duration
	ticks, within uint64
}

var zero = time.Now()

// readBothClocks reads both clocks several times and returns the pair with the least uncertainty.
func readBothClocks() (closest instant) {
	closest.within = ^uint64(0)
	for range 5 {
		before := ticks()
		at := time.Since(zero)
		if took := ticks() - before; took < closest.within {
			closest = instant{at, before + took/2, took}
		}
	}
	return closest
}
