package load

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestPacerKeepsTheRate drives a pacer by a clock that advances in random steps and checks that what was sent never
// leaves the schedule: not one datagram early, and none late when the steps are short.
func TestPacerKeepsTheRate(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, perSecond := range []float64{0.5, 3, 89_285.7, 1e6, 3e7} {
		p := newPacer(1000, perSecond)
		now := int64(0)
		for range 20_000 {
			n := p.dueCount(now)
			p.noteSent(n)
			if now < 1000 {
				if n != 0 {
					t.Fatalf("%v/s: %d datagrams before the start", perSecond, n)
				}
			} else if want := math.Floor(float64(now-1000)/1e9*perSecond) + 1; math.Abs(float64(p.done)-want) > 1 {
				t.Fatalf("%v/s at %d: %d sent, %v scheduled", perSecond, now, p.done, want)
			}
			now += rng.Int64N((catchUp - 1) * quantum)
		}
		if p.skipped != 0 {
			t.Errorf("%v/s: %d given up although the steps were short", perSecond, p.skipped)
		}
	}
}

func TestPacerGivesUpWhatAStallMissed(t *testing.T) {
	p := newPacer(0, 1e6)
	p.noteSent(p.dueCount(0))
	// A stall of one second at a million a second: its last 10 ms are sent at four times the rate, in no larger bursts than a
	// quantum has.
	now, caught := int64(1e9), uint64(0)
	for late := true; late; {
		n := p.dueCount(now)
		if most := uint64(catchUp*quantum/1000) + 1; n > most {
			t.Fatalf("burst of %d after a stall, want at most %d", n, most)
		}
		p.noteSent(n)
		if again := p.dueCount(now); n > 0 && again != 0 {
			t.Errorf("%d more are due at once", again)
		}
		caught += n
		now = p.wakeTime(now)
		late = float64(now)/1000-float64(p.done) > quantum/1000
	}
	if took := now - 1e9; took < backlogNs/catchUp || took > backlogNs/(catchUp-1)+quantum {
		t.Errorf("caught up within %d ns", took)
	}
	if stall := uint64(backlogNs / 1000); p.skipped != 1e6-stall-1 || p.done != 1+p.skipped+caught {
		t.Errorf("done %d, skipped %d, caught up %d: the account does not close", p.done, p.skipped, caught)
	}
}

func TestPacerWakesForTheNextDatagram(t *testing.T) {
	p := newPacer(0, 1000)
	p.noteSent(p.dueCount(0))
	for _, c := range []struct{ now, want int64 }{
		{0, 1e6},                 // the next falls due after a millisecond
		{950_000, 1_050_000},     // within a quantum: a quantum
		{1e6 - 1, 1e6 - 1 + 1e5}, // never less than a quantum
	} {
		if got := p.wakeTime(c.now); got != c.want {
			t.Errorf("wake(%d) = %d, want %d", c.now, got, c.want)
		}
		if p.dueCount(p.wakeTime(c.now)) == 0 {
			t.Errorf("woken at %d for nothing", p.wakeTime(c.now))
		}
	}
}
