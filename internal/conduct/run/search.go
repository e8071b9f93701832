package run

import (
	"math"

	"github.com/cnibench/cnibench/internal/measure/result"
)

// Bounds of a throughput search.
const (
	// finest is the gap between the highest rate that held and the lowest that failed, as a share, at which the search ends.
	finest = 0.01
	// attempts is how many probes must fail before a rate has failed: a single disturbance does not fail a rate. With a
	// loss of plainLoss, plain attempts are enough.
	attempts, plain = 3, 2
	plainLoss       = 0.01
	// confirmations is how many consecutive probes of the whole window must hold at a rate. If every other window loses
	// something, one rate in eight is still confirmed.
	confirmations = 3
	// backOff is the share by which the search first goes down from a rate that was not confirmed. Each further step is at
	// most twice as large.
	backOff = 0.02
	// reached is the share of the intended rate that the sender must offer for the probe to count for that rate.
	// unreached is how many probes offer less before the rate is out of reach of the sender or the machine.
	reached, unreached = 0.98, 4
	// mostSettled is how often the search lowers its rate to what the sender offered. Then it gives up: the sender does not
	// get its CPU, so the probes show nothing about the path.
	mostSettled = 4
	// steepest is the largest factor by which the search lowers a rate that failed, while no rate has held.
	steepest = 32
	// mostProbes bounds a search, whatever the path does.
	mostProbes = 60
	// fewestDatagrams is the least number of datagrams in a probe that can show a loss. Lower rates are not tried.
	fewestDatagrams = 100
	// flatOuts is how many probes that send as fast as possible must hold. Their number is fixed: stopping when two agree, or
	// taking the best, would favour the path whose results scatter more.
	flatOuts = 3
)

// search finds the highest rate that holds, by bisection, and confirms it. It sends nothing itself: next returns the
// rate to try, recordProbe takes the result. The bisection is from RFC 2544 26.1. We add that a rate fails only after
// several failures, and that a result is confirmed by repetition, because a busy machine sometimes loses packets at
// any rate. If the first result is not confirmed, the search goes down until it confirms a rate. Then it tries the
// first result again, because the disturbance may be over. Last, it narrows the gap between the highest confirmed
// rate and the lowest rate that failed, by probes of the whole window.
//
// Rates are in bit/s; 0 is as fast as the sender can. If that holds, there is nothing to bisect, and the result is the
// median rate of such probes.
type search struct {
	// least is the lowest rate worth trying.
	least float64
	// rate is the current rate. failed counts its probes that lost too much, short those that offered too little.
	rate          float64
	failed, short int
	// most is the highest rate offered by probes that offered too little. settled is how often the search has lowered
	// its rate to what the sender offered.
	most    float64
	settled int
	// low is the highest rate that held, high the lowest that failed or could not be reached; 0 for none.
	// confirmed is the highest confirmed rate, 0 for none.
	// top is the first rate that was not confirmed, to be tried again: 0 for none, -1 after it was tried again.
	low, high, confirmed, top float64
	// all has the rates that held.
	all []float64
	// confirming is true while low is repeated. held counts the repetitions that held.
	confirming bool
	held       int
	// step is the share by which descend goes down at most. probes counts all probes.
	step   float64
	probes int
	// over is true after the search has ended, found if a rate is confirmed.
	over, found bool
}

// newSearch returns a search that begins at rate most (0 for as fast as possible). It tries no rate below least. Both are in
// bit/s.
func newSearch(most, least float64) *search { return &search{rate: most, least: least, step: backOff} }

// next returns the rate to try, and whether the probe is to confirm the result. ok is false when the search is over.
func (s *search) next() (rate float64, confirming, ok bool) {
	return s.rate, s.confirming, !s.over
}

// recordProbe takes the result of a probe at the rate that next returned, and chooses the next rate or ends the search.
func (s *search) recordProbe(p result.Probe) {
	if s.probes++; s.probes >= mostProbes {
		defer func() { s.over = true }()
	}
	switch {
	case !p.Held:
		s.failed++
		plainly := float64(p.Lost) >= plainLoss*float64(p.Expected)
		if s.failed >= attempts || plainly && s.failed >= plain || s.confirming && s.rate > 0 {
			s.failRate(p)
		}
	case s.rate == 0:
		s.countFlatOut()
	case p.Offered < reached*s.rate:
		// A rate above what the sender has offered cannot be shown to hold.
		s.most = max(s.most, p.Offered)
		if s.short++; s.short >= unreached {
			s.lowerRateToOffered()
		}
	case s.confirming:
		if s.held++; s.held >= confirmations {
			s.low, s.confirmed, s.found = s.rate, s.rate, true
			s.refine()
		}
	default:
		s.low, s.all = s.rate, append(s.all, s.rate)
		s.narrow()
	}
}

// lowerRateToOffered lowers the rate to the most that the sender has offered, and begins to confirm that rate. It ends
// the search if a rate is confirmed already, or if the sender has offered less too often.
func (s *search) lowerRateToOffered() {
	if s.confirmed > 0 {
		s.over = true // the sender cannot show more
		return
	}
	s.low = max(s.low, s.most)
	if s.confirming {
		s.low = s.most
	}
	s.high = s.low
	s.settled++
	s.beginConfirming()
	s.over = s.settled >= mostSettled
}

// countFlatOut counts a probe that was sent as fast as possible and held. The search ends after flatOuts of them.
func (s *search) countFlatOut() {
	s.confirming = true
	s.held++
	s.over = s.held >= flatOuts
	s.found = s.over
}

// failRate notes that the current rate is too high, and chooses a lower one. It ends the search if that is below least.
func (s *search) failRate(p result.Probe) {
	high := s.rate
	if s.rate == 0 || 0 < p.Offered && p.Offered < s.rate {
		high = p.Offered
	}
	if s.confirming && s.rate > 0 {
		s.high = high
		s.descend()
		return
	}
	if s.low == 0 {
		// What arrived is the best guess at what the path can carry, unless it is almost nothing or almost everything.
		s.high = high
		s.try(min(max(p.Delivered, high/steepest), (1-backOff)*high))
		s.over = s.rate < s.least
		return
	}
	s.high, s.low = high, min(s.low, high)
	s.narrow()
}

// descend begins to confirm a rate below low, which was not confirmed: the highest lower rate that has held, but at
// most step below low. The step doubles each time. If a lower rate is confirmed already, descend calls refine
// instead.
func (s *search) descend() {
	if s.confirmed > 0 {
		s.refine()
		return
	}
	if s.top == 0 {
		s.top = s.low
	}
	floor, below := (1-s.step)*s.low, (1-finest)*s.low
	s.low = floor
	for _, rate := range s.all {
		if rate <= below {
			s.low = max(s.low, rate)
		}
	}
	s.step = min(2*s.step, 0.5)
	s.beginConfirming()
	s.over = s.rate < s.least
}

// refine begins to confirm a rate above the confirmed rate. The first time it is top. Later it is the geometric mean of the
// confirmed rate and the lowest rate that failed. It ends the search when the gap between these two rates is small enough.
func (s *search) refine() {
	switch {
	case s.top > s.confirmed:
		s.low, s.top = s.top, -1
	case s.high-s.confirmed > finest*s.high:
		s.low = math.Sqrt(s.confirmed * s.high)
	default:
		s.over = true
		return
	}
	s.beginConfirming()
}

// narrow chooses the geometric mean of low and high as the next rate. If the gap is small enough, it begins to confirm low
// instead.
func (s *search) narrow() {
	if s.high-s.low <= finest*s.high {
		s.beginConfirming()
		return
	}
	s.try(math.Sqrt(s.low * s.high))
}

// try sets the next rate and resets the counts of its probes.
func (s *search) try(rate float64) {
	s.rate, s.confirming, s.failed, s.short, s.most = rate, false, 0, 0, 0
}

// beginConfirming starts to confirm low.
func (s *search) beginConfirming() {
	s.try(s.low)
	s.confirming, s.held = true, 0
}
