package load

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cnibench/cnibench/internal/kernel/sock"
	"github.com/cnibench/cnibench/internal/kernel/thread"
	"github.com/cnibench/cnibench/internal/measure/sample"
)

// drainTime is how long Run waits for stragglers of a datagram stream.
const drainTime = 20 * time.Millisecond

// nudgeEvery is the time between signals to a thread that is still blocked after the window, because its peer is
// silent.
const nudgeEvery = 2 * time.Millisecond

// errGone is the error of a phase that ended early because no flow is left.
var errGone = errors.New("every flow has ended")

// edge is what Run reads at the start or the end of the window. Times are in ns.
type edge struct {
	at, process int64 // the time, and the CPU time of this process
	waited      int64 // how long the load threads have waited for their CPUs
	states      map[*worker]sock.TCPState
	drops       map[*worker]sock.Memory
}

// Run warms up, measures for the window and returns this side's observation. Run calls edges on its own goroutine, just
// before the window opens (false) and just after it has closed (true). A server continues to serve afterwards, until
// Close. Run returns within about 100 ms after ctx ends, with kind "cancelled". Every error is an *Error. A trial runs
// once.
func (t *Trial) Run(ctx context.Context, edges func(end bool)) (*sample.Observation, error) {
	if t.ran.Swap(true) {
		return nil, usageError("%s: a trial runs once", t.name())
	}
	if err := t.awaitFirstClient(ctx); err != nil {
		return nil, t.abortTrial(ctx, err)
	}
	rows := newRows(t)
	t.openGate()
	if err := t.warmUp(ctx, rows); err != nil {
		return nil, t.abortTrial(ctx, err)
	}
	begin := edge{states: t.readTCPStates(), drops: t.readDrops(), waited: t.cpuWait()}
	edges(false)
	rows.endPhase()
	begin.at, begin.process = t.now(), thread.ProcessCPUTime()
	t.edges[0].Store(begin.at)
	t.phase.Store(window)
	rows.beginWindow(begin.at)
	err := t.takeRowsFor(ctx, rows, t.o.Window)
	if err != nil && err != errGone {
		return nil, t.abortTrial(ctx, err)
	}
	waited := t.cpuWait() // threads of clients end soon
	end := edge{at: t.now(), process: thread.ProcessCPUTime()}
	t.edges[1].Store(end.at)
	t.phase.Store(drain)
	rows.endPhase()
	end.states, end.drops = t.readTCPStates(), t.readDrops()
	edges(true)
	if err := t.awaitSettledCounts(ctx, err != nil); err != nil {
		return nil, t.abortTrial(ctx, err)
	}
	end.waited = max(waited, t.cpuWait()) // the remaining threads have run since the window: no wait is pending
	return t.observeWindow(&begin, &end, rows)
}

// warmUp waits for the warm-up. In its middle, when congestion windows have grown, it sets CUBIC on the flows that
// began with Reno.
func (t *Trial) warmUp(ctx context.Context, rows *rows) error {
	if err := t.takeRowsFor(ctx, rows, t.o.Warmup/2); err != nil {
		return err
	}
	if err := t.switchToCUBIC(); err != nil {
		return err
	}
	return t.takeRowsFor(ctx, rows, t.o.Warmup-t.o.Warmup/2)
}

// awaitFirstClient waits for the first client of a server, at most t.o.Awaits. It does nothing if t.o.Awaits is 0, and
// fails if ctx ends.
func (t *Trial) awaitFirstClient(ctx context.Context) error {
	if t.o.Awaits == 0 {
		return nil
	}
	t.openGate()
	timer := time.NewTimer(t.o.Awaits)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
	case <-t.signals.met:
	}
	return nil
}

// noteClient tells awaitFirstClient that a client has connected.
func (t *Trial) noteClient() {
	select {
	case t.signals.met <- struct{}{}:
	default:
	}
}

// takeRowsFor waits for the time length and takes the progress rows meanwhile. It fails if ctx ends, and returns
// errGone if no flow is left.
func (t *Trial) takeRowsFor(ctx context.Context, rows *rows, length time.Duration) error {
	end := t.now() + int64(length)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for now := t.now(); now < end; now = t.now() {
		timer.Reset(time.Duration(min(end, rows.next) - now))
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-t.signals.gone:
			return errGone
		case <-timer.C:
		}
		rows.endRowIfDue(t.now())
	}
	return nil
}

// awaitSettledCounts waits until stragglers are in and every thread has marked the end of the window. early means that no flow
// is left, so there are no stragglers. It fails if ctx ends.
func (t *Trial) awaitSettledCounts(ctx context.Context, early bool) error {
	if t.work.straggles && !early {
		timer := time.NewTimer(drainTime)
		defer timer.Stop()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
		}
	}
	t.phase.Store(after)
	nudge := time.NewTicker(nudgeEvery)
	defer nudge.Stop()
	for _, w := range t.workers() {
		for w.count.seen.Load() < t.settledPhase() {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-t.signals.told: // a thread has marked its edge
			case <-nudge.C:
				thread.Kick(int(w.count.thread.Load()))
			}
		}
	}
	return nil
}

// settledPhase returns the phase from which a thread's counts are final: after if stragglers may change them, otherwise
// drain. So Run does not wait for a thread that blocks because its peer is silent.
func (t *Trial) settledPhase() int32 {
	if t.work.straggles {
		return after
	}
	return drain
}

// workers returns the current threads.
func (t *Trial) workers() []*worker {
	t.roster.mu.Lock()
	defer t.roster.mu.Unlock()
	return t.roster.workers[:len(t.roster.workers):len(t.roster.workers)]
}

// abortTrial stops the threads and returns the cause as an *Error: the end of ctx, or err with the most frequent failure of
// the lost flows.
func (t *Trial) abortTrial(ctx context.Context, err error) error {
	t.phase.Store(stop)
	if ctx.Err() != nil {
		return &Error{Kind: KindCancelled, Op: t.name(), Err: context.Cause(ctx)}
	}
	causes := [kinds]uint64{}
	for _, w := range t.workers() {
		if w.count.left.Load() > 0 {
			causes[w.cause]++
		}
	}
	return t.errorWithKind(causes, err)
}

// dominantKind returns the most frequent kind of failure. badStatus and protocol come first: a server that refuses a request
// and ends the connection also fails the next request. notOffered is ignored, because it is a consequence.
func dominantKind(counts [kinds]uint64) kind {
	for _, said := range []kind{badStatus, protocol} {
		if counts[said] > 0 {
			return said
		}
	}
	counts[notOffered] = 0
	return kind(slices.Index(counts[:], slices.Max(counts[:])))
}

// errorWithKind returns err with the most important kind of counts. If all counts are 0 it returns the trial's first
// failure outside the load threads, or else err as "no traffic".
func (t *Trial) errorWithKind(counts [kinds]uint64, err error) error {
	if k := dominantKind(counts); counts[k] > 0 {
		return &Error{Kind: k.String(), Op: t.name(), Err: fmt.Errorf("%w (%d x %s)", err, counts[k], k)}
	}
	t.roster.mu.Lock()
	defer t.roster.mu.Unlock()
	if t.roster.trouble != nil {
		return asError(t.name(), t.roster.trouble)
	}
	return &Error{Kind: KindNoTraffic, Op: t.name(), Err: err}
}
