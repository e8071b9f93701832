package load

import (
	"math"
	"math/rand/v2"
)

// schedule says when the requests of one flow fall due, on the trial's clock in ns.
//
// In an open loop, events follow each other at a constant distance or as a Poisson process, whatever becomes of the
// requests, and each event is a burst of requests (of one, as a rule). In a closed loop requests are due as soon as the
// responses allow: a burst when nothing is under way, or one whenever fewer than depth are.
type schedule struct {
	gap    float64 // mean distance of events; 0 in a closed loop
	random *rand.PCG
	next   float64 // when the next event falls due
	burst  int
	left   int // requests of the latest event that were not taken yet
	depth  int
	latest int64 // when the latest event fell due
}

// newSchedule returns an open loop of perSecond requests per second in bursts, as a Poisson process if it is given a
// source of chance. It begins at first.
func newSchedule(perSecond float64, burst int, random *rand.PCG) schedule {
	return schedule{gap: 1e9 * float64(burst) / perSecond, burst: burst, random: random}
}

// start begins an open loop at now. A constant one has its first event a share of the gap later, so that flows do not send
// at the same instants.
func (s *schedule) start(now int64, share float64) {
	if s.gap == 0 {
		return
	}
	s.next = float64(now) + s.gap*share
	if s.random != nil {
		s.next = float64(now) + s.distance()
	}
}

// distance draws the time between two events.
func (s *schedule) distance() float64 {
	if s.random == nil {
		return s.gap
	}
	// 53 bits make a number of [0, 1); of what is left to 1, which is never 0, the logarithm is finite.
	u := float64(s.random.Uint64()>>11) / (1 << 53)
	return -math.Log(1-u) * s.gap
}

// due says whether a request is due, with underWay requests without a response, and when it fell due. It stays due until
// it is taken.
func (s *schedule) due(now int64, underWay int) (int64, bool) {
	if s.left > 0 {
		return s.latest, true
	}
	switch {
	case s.gap > 0:
		if s.next > float64(now) {
			return 0, false
		}
		s.latest = int64(math.Ceil(s.next))
		s.next += s.distance()
		s.left = s.burst
	case s.depth > 0:
		if underWay >= s.depth {
			return 0, false
		}
		s.latest, s.left = now, 1
	default:
		if underWay > 0 {
			return 0, false
		}
		s.latest, s.left = now, s.burst
	}
	return s.latest, true
}

// take takes the request that is due.
func (s *schedule) take() { s.left-- }

// wake returns when the next request falls due; far away in a closed loop.
func (s *schedule) wake() int64 {
	switch {
	case s.left > 0:
		return s.latest
	case s.gap > 0:
		return int64(math.Ceil(s.next))
	}
	return math.MaxInt64
}

// manyEvents is from when on events are not drawn one by one to be counted.
const manyEvents = 100_000

// behind returns how many requests of an open loop are due at now and not taken.
func (s *schedule) behind(now int64) uint64 {
	if s.gap == 0 {
		return 0
	}
	n := uint64(s.left)
	if late := float64(now) - s.next; late > manyEvents*s.gap {
		return n + uint64(late/s.gap)*uint64(s.burst) // of so many, chance is no matter
	}
	ahead := *s
	if s.random != nil {
		random := *s.random
		ahead.random = &random
	}
	for ; ahead.next <= float64(now); ahead.next += ahead.distance() {
		n += uint64(s.burst)
	}
	return n
}
