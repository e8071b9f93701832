package load

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// fire takes every request that falls due until end, looking at the clock each step ns, and returns when they fell due.
func fire(s *schedule, end, step int64) []int64 {
	var due []int64
	for now := int64(0); now < end; now += step {
		for at, ok := s.dueTime(now, 0); ok; at, ok = s.dueTime(now, 0) {
			due = append(due, at)
			s.takeRequest()
		}
	}
	return due
}

func TestConstantScheduleKeepsItsTimes(t *testing.T) {
	for _, perSecond := range []float64{7, 1000, 33_333, 3e6} {
		s := newSchedule(perSecond, 1, nil)
		s.start(0, 0)
		const end = int64(1e9)
		due := fire(&s, end, 10_007)
		if want := perSecond; math.Abs(float64(len(due))-want) > 1+want*2e-5 {
			t.Errorf("%g per second: %d requests in a second", perSecond, len(due))
		}
		for i, at := range due {
			if want := float64(i) * 1e9 / perSecond; math.Abs(float64(at)-want) > 1.5 {
				t.Fatalf("%g per second: request %d due at %d, want %.1f", perSecond, i, at, want)
			}
		}
	}
}

// TestPoissonScheduleIsPoisson: the distances have the mean, the spread and the memory of an exponential distribution,
// and however late somebody looks, the times are the same.
func TestPoissonScheduleIsPoisson(t *testing.T) {
	const perSecond, end = 100_000, int64(2e9)
	draw := func(step int64) []int64 {
		s := newSchedule(perSecond, 1, rand.NewPCG(3, 4))
		s.start(0, 0)
		return fire(&s, end, step)
	}
	due := draw(1000)
	n := float64(len(due))
	if want := perSecond * 2.0; math.Abs(n-want) > 5*math.Sqrt(want) {
		t.Fatalf("%g requests, want about %g", n, want)
	}
	mean := 1e9 / float64(perSecond)
	var longer, squares float64
	for i := 1; i < len(due); i++ {
		d := float64(due[i] - due[i-1])
		squares += (d - mean) * (d - mean)
		if d > mean {
			longer++
		}
	}
	if cv := math.Sqrt(squares/n) / mean; math.Abs(cv-1) > 0.02 {
		t.Errorf("coefficient of variation %.3f, want 1", cv)
	}
	if share := longer / n; math.Abs(share-1/math.E) > 0.01 {
		t.Errorf("%.3f of the distances are above the mean, want %.3f", share, 1/math.E)
	}
	if late := draw(777_777); !slices.Equal(late, due[:len(late)]) {
		t.Error("the times depend on who looks when")
	}
}

func TestBurstsFallDueTogether(t *testing.T) {
	s := newSchedule(10_000, 5, nil)
	s.start(0, 0)
	due := fire(&s, 1e8, 1000)
	if len(due) != 1000 {
		t.Fatalf("%d requests, want 1000", len(due))
	}
	for i, at := range due {
		if at != due[i-i%5] || i >= 5 && at-due[i-5] != 500_000 {
			t.Fatalf("request %d due at %d", i, at)
		}
	}
}

func TestClosedSchedules(t *testing.T) {
	saturate := schedule{depth: 3}
	for underWay := range 5 {
		if _, ok := saturate.dueTime(9, underWay); ok != (underWay < 3) {
			t.Errorf("saturate with %d under way: %v", underWay, ok)
		}
		saturate.left = 0
	}
	burst := schedule{burst: 4}
	for underWay := range 4 {
		if at, ok := burst.dueTime(9, underWay); !ok || at != 9 {
			t.Errorf("burst with %d under way is not due", underWay)
		}
		burst.takeRequest()
	}
	if _, ok := burst.dueTime(10, 4); ok {
		t.Error("a burst is due before the responses of the one before")
	}
	if burst.overdueCount(1e12) != 0 || burst.wakeTime() != math.MaxInt64 {
		t.Error("a closed loop is never behind")
	}
}

// TestBehindCountsWhatIsDue holds overdueCount to what dueTime would give out.
func TestBehindCountsWhatIsDue(t *testing.T) {
	for name, s := range map[string]schedule{
		"constant": newSchedule(12_345, 1, nil), "poisson": newSchedule(12_345, 1, rand.NewPCG(1, 2)), "bursts": newSchedule(12_345, 7, rand.NewPCG(1, 2)),
	} {
		s.start(0, 0.5)
		for _, now := range []int64{0, 1e6, 55_555_555, 1e9} {
			behind := s.overdueCount(now)
			if behind != s.overdueCount(now) {
				t.Fatalf("%s: counting changes the schedule", name)
			}
			var taken uint64
			for _, ok := s.dueTime(now, 0); ok; _, ok = s.dueTime(now, 0) {
				s.takeRequest()
				taken++
			}
			if taken != behind || s.overdueCount(now) != 0 {
				t.Errorf("%s at %d: behind by %d, %d were due", name, now, behind, taken)
			}
		}
	}
	s := newSchedule(1e6, 1, nil)
	s.start(0, 0)
	if got := s.overdueCount(10e9); got < 9_999_998 || got > 10_000_001 {
		t.Errorf("far behind: %d", got)
	}
}

func TestFlight(t *testing.T) {
	f := newFlight(4)
	for i := range int64(4) {
		if f.isFull() || f.pushRequest(100+i, 200+i) != uint64(i) {
			t.Fatalf("push %d", i)
		}
	}
	if !f.isFull() {
		t.Error("room for a fifth")
	}
	for _, n := range []uint64{4, 1 << 63, math.MaxUint64} {
		if _, ok := f.removeRequest(n); ok {
			t.Errorf("request %d was never made", n)
		}
	}
	if due, ok := f.removeRequest(2); !ok || due != 102 {
		t.Errorf("answer to 2: %d %v", due, ok)
	}
	if _, ok := f.removeRequest(2); ok {
		t.Error("a second answer to 2")
	}
	if sent, ok := f.oldestSentTime(); !ok || sent != 200 || f.count != 3 || !f.isFull() {
		t.Errorf("oldest %d %v, %d under way", sent, ok, f.count)
	}
	f.removeRequest(0)
	f.removeRequest(1)
	if sent, _ := f.oldestSentTime(); sent != 203 || f.head != 3 {
		t.Errorf("oldest %d, head %d", sent, f.head)
	}
	f.removeRequest(3)
	if _, ok := f.oldestSentTime(); ok || f.count != 0 || f.isFull() {
		t.Error("something is left")
	}
}
