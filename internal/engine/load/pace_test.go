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
			n := p.due(now)
			p.sent(n)
			if now < 1000 {
				if n != 0 {
					t.Fatalf("%v/s: %d datagrams before the start", perSecond, n)
				}
			} else if want := math.Floor(float64(now-1000)/1e9*perSecond) + 1; math.Abs(float64(p.done)-want) > 1 {
				t.Fatalf("%v/s at %d: %d sent, %v scheduled", perSecond, now, p.done, want)
			}
			now += rng.Int64N(backlogNs / 2)
		}
		if p.skipped != 0 {
			t.Errorf("%v/s: %d given up although the steps were short", perSecond, p.skipped)
		}
	}
}

func TestPacerGivesUpWhatAStallMissed(t *testing.T) {
	p := newPacer(0, 1e6)
	p.sent(p.due(0))
	n := p.due(1e9) // a stall of one second at a million a second
	if limit := uint64(backlogNs/1000) + 1; n != limit {
		t.Errorf("burst of %d after a stall, want the backlog of %d", n, limit)
	}
	p.sent(n)
	if p.done != 1e6+1 || p.skipped != 1e6-n {
		t.Errorf("done %d, skipped %d: the account does not close", p.done, p.skipped)
	}
	if got := p.due(1e9); got != 0 {
		t.Errorf("%d more are due at once", got)
	}
}

func TestPacerWakesForTheNextDatagram(t *testing.T) {
	p := newPacer(0, 1000)
	p.sent(p.due(0))
	for _, c := range []struct{ now, want int64 }{
		{0, 1e6},                 // the next falls due after a millisecond
		{950_000, 1_050_000},     // within a quantum: a quantum
		{1e6 - 1, 1e6 - 1 + 1e5}, // never less than a quantum
	} {
		if got := p.wake(c.now); got != c.want {
			t.Errorf("wake(%d) = %d, want %d", c.now, got, c.want)
		}
		if p.due(p.wake(c.now)) == 0 {
			t.Errorf("woken at %d for nothing", p.wake(c.now))
		}
	}
}
