package load

import (
	"math"
	"math/rand/v2"
)

// schedule gives the times of the requests of one flow, on the trial's clock in ns.
//
// In an open loop, events have a constant distance or are a Poisson process, independent of the responses. Each event
// is a burst of requests, by default of one. In a closed loop requests are due as soon as the responses allow: a burst
// when nothing is under way, or one request whenever fewer than depth are.
type schedule struct {
	gap    float64 // mean distance of events; 0 in a closed loop
	random *rand.PCG
	next   float64 // time of the next event
	burst  int
	left   int // requests of the latest event that are not taken yet
	depth  int
	latest int64 // time of the latest event
}

// newSchedule returns an open loop of perSecond requests per second in bursts. The bursts are a Poisson process if
// random is not nil.
func newSchedule(perSecond float64, burst int, random *rand.PCG) schedule {
	return schedule{gap: 1e9 * float64(burst) / perSecond, burst: burst, random: random}
}

// start begins an open loop at now. Without randomness, the first event is share x gap later. With a different share for
// each flow, flows do not send at the same instants.
func (s *schedule) start(now int64, share float64) {
	if s.gap == 0 {
		return
	}
	s.next = float64(now) + s.gap*share
	if s.random != nil {
		s.next = float64(now) + s.drawGap()
	}
}

// drawGap draws the time between two events.
func (s *schedule) drawGap() float64 {
	if s.random == nil {
		return s.gap
	}
	// u is in [0, 1), so 1-u is not 0 and its logarithm is finite.
	u := float64(s.random.Uint64()>>11) / (1 << 53)
	return -math.Log(1-u) * s.gap
}

// dueTime returns the scheduled time of the next request, and true if it is due. underWay is the number of requests
// without a response. The request remains due until takeRequest.
func (s *schedule) dueTime(now int64, underWay int) (int64, bool) {
	if s.left > 0 {
		return s.latest, true
	}
	switch {
	case s.gap > 0:
		if s.next > float64(now) {
			return 0, false
		}
		s.latest = int64(math.Ceil(s.next))
		s.next += s.drawGap()
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

// takeRequest removes the request that is due from the schedule.
func (s *schedule) takeRequest() { s.left-- }

// wakeTime returns the scheduled time of the next request. It returns math.MaxInt64 if only a response makes the next
// one due.
func (s *schedule) wakeTime() int64 {
	switch {
	case s.left > 0:
		return s.latest
	case s.gap > 0:
		return int64(math.Ceil(s.next))
	}
	return math.MaxInt64
}

// manyEvents is the largest number of events that overdueCount draws one by one.
const manyEvents = 100_000

// overdueCount returns how many requests of an open loop are due at now but not taken. It returns 0 in a closed loop.
func (s *schedule) overdueCount(now int64) uint64 {
	if s.gap == 0 {
		return 0
	}
	n := uint64(s.left)
	if late := float64(now) - s.next; late > manyEvents*s.gap {
		return n + uint64(late/s.gap)*uint64(s.burst) // the mean is exact enough for this many
	}
	ahead := *s
	if s.random != nil {
		random := *s.random
		ahead.random = &random
	}
	for ; ahead.next <= float64(now); ahead.next += ahead.drawGap() {
		n += uint64(s.burst)
	}
	return n
}

const (
	// quantum is the shortest sleep of a paced sender in ns. Datagrams that are due within one quantum are sent
	// together, so the sender never spins: its CPU time remains the cost of the path.
	quantum = 100_000
	// backlogNs is how far behind its schedule a stalled sender may catch up, in ns. It skips datagrams that were due
	// longer ago.
	backlogNs = 10_000_000
	// catchUp bounds the rate of a sender that is behind, as a multiple of its rate. Sent at once, the datagrams of a
	// few milliseconds would overflow the receiver's socket, and the sender would cause the loss.
	catchUp = 4
)

// pacer schedules the datagrams of one flow at a constant rate: datagram i is due at start + i*gap. Rates may be from
// one datagram in minutes to tens of millions per second. Times are in ns.
type pacer struct {
	start   int64
	gap     float64 // ns between datagrams
	done    uint64  // datagrams sent or given up
	skipped uint64  // datagrams given up
	next    int64   // when a new quantum begins
	left    uint64  // datagrams that may be sent before next
}

// newPacer starts a schedule at start for perSecond datagrams per second, which must be positive.
func newPacer(start int64, perSecond float64) pacer { return pacer{start: start, gap: 1e9 / perSecond} }

// dueCount returns how many datagrams may be sent now. After a stall, it skips and counts datagrams older than backlogNs,
// and spreads the rest over time.
func (p *pacer) dueCount(now int64) uint64 {
	if now < p.start {
		return 0
	}
	scheduled := uint64(float64(now-p.start)/p.gap) + 1
	if scheduled <= p.done {
		return 0
	}
	behind := scheduled - p.done
	if limit := uint64(math.Ceil(backlogNs/p.gap)) + 1; behind > limit {
		p.skipped += behind - limit
		p.done += behind - limit
		behind = limit
	}
	if now >= p.next {
		p.next, p.left = now+quantum, uint64(catchUp*quantum/p.gap)+1
	}
	return min(behind, p.left)
}

// noteSent notes that n datagrams went out, no more than were due.
func (p *pacer) noteSent(n uint64) { p.done, p.left = p.done+n, p.left-n }

// wakeTime returns when to call dueCount again if nothing is due: at the time of the next datagram, but at least a quantum
// from now.
func (p *pacer) wakeTime(now int64) int64 {
	return max(p.start+int64(math.Ceil(float64(p.done)*p.gap)), now+quantum)
}
