package sample

import (
	"math"
	"testing"
	"testing/quick"
)

func TestTime(t *testing.T) {
	sum := Sum(map[int]map[string]int64{
		0: {User: 10, Nice: 1, System: 20, Idle: 50, IOWait: 4, IRQ: 3, SoftIRQ: 7, Steal: 5, Guest: 9, GuestNice: 1},
		3: {User: 1, Idle: 99},
	})
	for name, c := range map[string]struct{ got, want int64 }{
		"busy":       {sum.Busy(), 42},
		"interrupts": {sum.Interrupts(), 10},
		"total":      {sum.Total(), 200},
	} {
		if c.got != c.want {
			t.Errorf("%s = %d, want %d", name, c.got, c.want)
		}
	}
	if got := Sum[map[string]int64](nil); got.Total() != 0 {
		t.Errorf("no CPU has %d ns", got.Total())
	}
}

// TestGuestIsNotCountedTwice: the kernel adds guest time to user as well.
func TestGuestIsNotCountedTwice(t *testing.T) {
	with, without := Time{User: 10, Guest: 10}, Time{User: 10}
	if with.Busy() != without.Busy() || with.Total() != without.Total() {
		t.Error("guest time counts beside user")
	}
}

func TestShare(t *testing.T) {
	for _, c := range []struct {
		part, whole int64
		want        float64
		ok          bool
	}{{1, 4, 0.25, true}, {0, 4, 0, true}, {5, 4, 1, true}, {-1, 4, 0, true}, {1, 0, 0, false}, {1, -4, 0, false}} {
		got, ok := Share(c.part, c.whole)
		if got != c.want || ok != c.ok {
			t.Errorf("Share(%d, %d) = %v, %v", c.part, c.whole, got, ok)
		}
	}
}

func TestLessIdle(t *testing.T) {
	for _, c := range []struct {
		part, whole int64
		idle        float64
		want        int64
	}{{50, 100, 0.1, 40}, {50, 100, 0, 50}, {5, 100, 0.1, 0}, {0, 0, 0.5, 0}} {
		if got := LessIdle(c.part, c.whole, c.idle); got != c.want {
			t.Errorf("LessIdle(%d, %d, %v) = %d, want %d", c.part, c.whole, c.idle, got, c.want)
		}
	}
}

func TestDemand(t *testing.T) {
	if got, ok := Demand(900, 3); got != 300 || !ok {
		t.Errorf("Demand = %v, %v", got, ok)
	}
	for _, units := range []float64{0, -1, math.NaN()} {
		if got, ok := Demand(900, units); ok {
			t.Errorf("%v units cost %v each", units, got)
		}
	}
	if _, ok := Demand(0, 3); ok {
		t.Error("work without CPU time has a demand")
	}
}

// TestDemandScales: twice the work for twice the time costs the same.
func TestDemandScales(t *testing.T) {
	scales := func(ns uint32, units uint16) bool {
		one, ok1 := Demand(int64(ns), float64(units))
		two, ok2 := Demand(2*int64(ns), 2*float64(units))
		return ok1 == ok2 && one == two
	}
	if err := quick.Check(scales, nil); err != nil {
		t.Error(err)
	}
}
