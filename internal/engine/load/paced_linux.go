package load

import (
	"math/rand/v2"
	"syscall"

	"github.com/cnibench/cnibench/internal/kernel/sock"
	"github.com/cnibench/cnibench/internal/kernel/thread"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
)

// The common part of clients that send by a schedule, or have several requests under way on a flow. A thread sends and
// receives, and neither waits for the other: calls on its sockets return at once. It only waits in awaitWork. A response
// time counts from the scheduled time of the request. So it includes the delay of a request that went out late.
//
// A thread with nothing under way sleeps until shortly before the next request, then reads the clock, because a
// processor takes some microseconds to wake up. With a response under way it does not, because the peer may need the
// CPU.

const (
	// sendsAtOnce and receivesAtOnce bound what a step does in one direction before it turns to the other.
	sendsAtOnce    = 16
	receivesAtOnce = 16
	// flightRoom is the number of requests under way that all flows together can store. flightMost and flightLeast
	// bound the number for one flow.
	flightRoom, flightMost, flightLeast = 1 << 20, 1 << 16, 2048
	// leastAhead and mostAhead bound, in ns, how long before a request is due a thread starts to read the clock.
	// aheadStep determines how fast this time adapts.
	leastAhead, mostAhead, aheadStep = 1_000, 60_000, 1_000
)

// pace is the part of a flow that sends by a schedule.
type pace struct {
	schedule schedule
	lag      *sample.Histogram // of an open loop
	// stalled means that requests wait for room on the path, so their lag is not the sender's.
	stalled bool
	taken   uint64
	ahead   int64    // how long before a request is due the thread wakes up
	until   int64    // latest time at which awaitWork returns while requests are under way, 0 for no limit
	edges   [2]offer // at the window's edges
}

var _ interface {
	starter
	edged
} = (*pace)(nil)

// offer counts the requests that were scheduled and sent since the trial began.
type offer struct{ due, sent uint64 }

// initSchedule sets up the flow's part of the workload's schedule.
func (p *pace) initSchedule(w *worker) {
	o := &w.trial.traits
	*p = pace{ahead: mostAhead / 2}
	burst := max(o.Burst, 1)
	switch {
	case o.Arrival == plan.Saturate:
		p.schedule = schedule{depth: plan.SaturationDepth}
		return
	case !o.Open():
		p.schedule = schedule{burst: burst}
		return
	}
	p.lag = sample.NewHistogram()
	var random *rand.PCG
	if o.Arrival == plan.Poisson {
		// Every trial draws a new schedule, so that repetitions show how much depends on the draw.
		random = rand.NewPCG(rand.Uint64(), rand.Uint64())
	}
	p.schedule = newSchedule(o.Rate/float64(w.trial.pacers), burst, random)
}

func (p *pace) paced() *pace { return p }

// begin starts the schedule when the thread does.
func (p *pace) begin(w *worker) {
	p.schedule.start(w.trial.now(), float64(w.index)/float64(w.trial.pacers))
}

// dueRequest returns the scheduled time of the next request and the present time. ok is false if the request is not
// due, or if the flow has no room for it. A request that is due without room stalls the flow.
func (p *pace) dueRequest(w *worker, underWay int, room bool) (due, now int64, ok bool) {
	now = w.trial.now()
	due, ok = p.schedule.dueTime(now, underWay)
	if !ok || !room {
		p.stalled = ok
	}
	return due, now, ok && room
}

// noteSent notes that the request scheduled at due is sent at now.
func (p *pace) noteSent(w *worker, due, now int64) {
	p.schedule.takeRequest()
	p.taken++
	if p.lag != nil && !p.stalled && w.phase == window {
		p.lag.Record(now - due)
	}
}

// takePlace removes the request that is due from the schedule, and a free place for it from free. ok is false if
// nothing is due or no place is free.
func (p *pace) takePlace(w *worker, free *[]uint32, underWay int) (tag uint32, due, now int64, ok bool) {
	last := len(*free) - 1
	if due, now, ok = p.dueRequest(w, underWay, last >= 0); !ok {
		return 0, 0, 0, false
	}
	p.noteSent(w, due, now)
	tag = (*free)[last]
	*free = (*free)[:last]
	return tag, due, now, true
}

// noteEdge stores the numbers of requests scheduled and sent at an edge of the window: 0 is its start, 1 its end.
func (p *pace) noteEdge(w *worker, edge int) {
	p.edges[edge] = offer{p.taken + p.schedule.overdueCount(w.trial.now()), p.taken}
}

// countResponse counts a response that arrived at now to the request scheduled at due.
func (w *worker) countResponse(due, now int64) {
	w.count.operations.Add(1)
	w.recordTime(w.hist.rtt, now-due)
	w.last = now
}

// awaitWork waits until fd reports one of the events what or a request is due, at most for a tick.
func (p *pace) awaitWork(w *worker, fd int, what int16, underWay int) {
	if w.spin {
		thread.Yield()
		return
	}
	now := w.trial.now()
	switch _, ready := p.schedule.dueTime(now, underWay); {
	case ready && (!p.stalled || underWay == 0 && what&sock.Output == 0):
		// Send at once: a response has just arrived (closed loop), or the thread is late (open loop), or everything was
		// answered and nothing would wake the thread.
	case p.stalled:
		// The next step tries the call again, whatever the result.
		_ = sock.Await(fd, what, int64(tick))
	case underWay > 0:
		limit := min(p.schedule.wakeTime()-now, int64(tick))
		if p.until > 0 {
			limit = min(limit, max(p.until-now, 0))
		}
		_ = sock.Await(fd, what, limit)
	default:
		p.sleepUntilDue(w, p.schedule.wakeTime())
	}
}

// sleepUntilDue sleeps until shortly before due and reads the clock from then on. A pulse ends the sleep early.
func (p *pace) sleepUntilDue(w *worker, due int64) {
	now := w.trial.now()
	if target := due - p.ahead; target > now {
		w.sleepUntil(target)
		now = w.trial.now()
		if now < target {
			return // a pulse came: check the phase
		}
		// ahead follows the 95th percentile of how late the thread wakes up, step by step.
		if now-target > p.ahead {
			p.ahead = min(p.ahead+aheadStep*19/20, mostAhead)
		} else {
			p.ahead = max(p.ahead-aheadStep/20, leastAhead)
		}
	}
	for now < due {
		now = w.trial.now()
	}
}

// flightSize returns how many requests under way a flow can store, a power of 2.
func (t *Trial) flightSize() int {
	size := flightMost
	for size > flightLeast && size*t.traits.Flows > flightRoom {
		size /= 2
	}
	return size
}

// isRetryable reports whether e is the errno of a call that would have blocked or was interrupted.
func isRetryable(e syscall.Errno) bool { return e == syscall.EAGAIN || e == syscall.EINTR }

// flight keeps the times of a flow's requests that are under way, in a ring of fixed size. Requests are numbered from
// 0.
type flight struct {
	slots      []request
	head, next uint64 // [head, next) are under way, except those answered out of order
	count      int
}

// request has the scheduled and the actual time of a request. An empty slot has due 0.
type request struct{ due, sent int64 }

// newFlight returns a flight with room for size requests, a power of 2.
func newFlight(size int) flight { return flight{slots: make([]request, size)} }

func (f *flight) slot(sequence uint64) *request { return &f.slots[sequence%uint64(len(f.slots))] }

func (f *flight) isFull() bool { return f.next-f.head == uint64(len(f.slots)) }

// pushRequest notes a request, for which there is room, and returns its number.
func (f *flight) pushRequest(due, sent int64) uint64 {
	n := f.next
	*f.slot(n) = request{max(due, 1), sent}
	f.next++
	f.count++
	return n
}

// removeRequest removes a request and returns its scheduled time. ok is false if no such request is under way.
func (f *flight) removeRequest(sequence uint64) (due int64, ok bool) {
	if sequence-f.head >= f.next-f.head {
		return 0, false
	}
	s := f.slot(sequence)
	if due = s.due; due == 0 {
		return 0, false
	}
	s.due = 0
	f.count--
	for f.head < f.next && f.slot(f.head).due == 0 {
		f.head++
	}
	return due, true
}

// oldestSentTime returns the time at which the oldest request was sent. ok is false if none is under way.
func (f *flight) oldestSentTime() (sent int64, ok bool) {
	if f.count == 0 {
		return 0, false
	}
	return f.slot(f.head).sent, true
}
