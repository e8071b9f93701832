package load

import (
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/kernel/sock"
	"github.com/cnibench/cnibench/internal/kernel/thread"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
)

// counters are written by one load thread and read by Run.
type counters struct {
	operations, sent, received atomic.Uint64
	errors                     [kinds]atomic.Uint64
	seen                       atomic.Int32 // latest phase that the thread has marked
	thread                     atomic.Int32 // the thread's id
	left                       atomic.Int64 // when the flow was lost, 0 if it was not
}

// tally is a copy of the counters at an edge, with the time and the thread's CPU clock at the same instant.
type tally struct {
	operations, sent, received uint64
	errors                     [kinds]uint64
	at, cpu                    int64
}

// size is the payload of each operation in bytes. It is 0 for workloads whose payload varies; these count bytes.
type size struct{ sent, received uint64 }

// distributions are the round-trip and connect times. A workload without one of them has no histograms for it.
type distributions struct{ rtt, connect times }

// times are the times measured in the window. Those that began while the machine was undisturbed are separate from the
// others. Without a yardstick all are in others.
type times struct{ undisturbed, others *sample.Histogram }

func (w *worker) newTimes() times {
	n := times{others: sample.NewHistogram()}
	if w.trial.yard != nil && !w.trial.traits.Open() {
		n.undisturbed = sample.NewHistogram()
	}
	return n
}

// recordTime adds a time if the window is open.
func (w *worker) recordTime(to times, ns int64) {
	if w.phase != window {
		return
	}
	if to.undisturbed != nil && w.trial.yard.calm.Load() {
		to.undisturbed.Record(ns)
	} else {
		to.others.Record(ns)
	}
}

// worker is one load thread with its flow.
type worker struct {
	_     [128]byte // keep these cache lines to the thread
	count counters
	_     [128]byte

	trial   *Trial
	flow    flow
	index   int
	fd      int
	each    size
	leaveAt int32 // the phase at which the thread leaves
	phase   int32 // the phase that the thread knows of
	last    int64 // when the latest operation ended, for workloads that use it
	idle    bool  // the latest step completed nothing
	beside  bool  // the flow is not part of the workload
	spin    bool  // the thread polls instead of sleeping

	cpu  struct{ before, used int64 } // CPU time of the thread in ns: before its work for the load, and at the latest reading by Run
	nice int                          // the thread's priority, negative before others

	edges [2]tally // counters at the start and the end of the window
	cause kind     // why the flow was lost
	hist  distributions
}

// flow is the part of a workload on one thread.
type flow interface {
	// step does one operation and returns false if the thread has nothing more to do. When nothing happens it returns
	// at the next pulse.
	step(w *worker) bool
}

// starter is a flow with work at the start of its thread.
type starter interface{ begin(w *worker) }

// edged is a flow with its own counters. noteEdge is called just before the thread marks an edge of the window: 0 is
// the start, 1 the end.
type edged interface{ noteEdge(w *worker, edge int) }

// closer is a flow that has its own descriptors. It is closed when its thread has left.
type closer interface{ close() }

// spawnWorker starts the thread of a flow and returns when it is pinned.
func (t *Trial) spawnWorker(index, fd int) error {
	w := &worker{trial: t, index: index, fd: fd, leaveAt: stop, spin: t.traits.Spin}
	if t.o.Side == control.SideClient {
		w.leaveAt = drain
	}
	open := t.work.open
	if t.work.beside != nil && index == t.traits.Flows {
		open = t.work.beside
	}
	var err error
	if w.flow, err = open(w); err != nil {
		return err
	}
	ready := make(chan error, 1)
	t.roster.tasks.Go(func() { w.main(ready) })
	if err := <-ready; err != nil {
		w.close()
		return err
	}
	t.roster.mu.Lock()
	defer t.roster.mu.Unlock()
	t.roster.workers = append(t.roster.workers, w)
	return nil
}

// close closes what the flow has opened.
func (w *worker) close() {
	if f, ok := w.flow.(closer); ok {
		f.close()
	}
}

// main runs the thread. It sends nil to ready once the thread is set up, or the failure. The thread ends with its
// goroutine, because it is pinned.
func (w *worker) main(ready chan<- error) {
	runtime.LockOSThread()
	w.count.thread.Store(int32(thread.ID()))
	t := w.trial
	if len(t.o.CPUs) > 0 {
		if err := thread.SetCPUs([]int{t.o.CPUs[w.index%len(t.o.CPUs)]}); err != nil {
			ready <- asError("pin", err)
			return
		}
	}
	if err := thread.SharpTimers(); err != nil {
		ready <- asError("timer slack", err)
		return
	}
	w.nice = t.raisePriority()
	w.cpu.before = thread.CPUTime()
	w.cpu.used = w.cpu.before
	if !t.work.timed {
		pulse, err := thread.StartPulse(tick)
		if err != nil {
			ready <- asError("pulse", err)
			return
		}
		defer pulse.Stop()
	}
	if _, several := w.flow.(closer); !several && thread.OwnDescriptors(w.fd) == nil && w.fd >= 0 {
		defer sock.Close(w.fd)
	}
	ready <- nil
	if t.o.Side == control.SideClient || t.work.sends {
		<-t.signals.gate
	}
	w.last = t.now()
	if f, ok := w.flow.(starter); ok {
		f.begin(w)
	}
	var yard *yardstick
	if w.index == 0 {
		yard = t.yard
	}
	for n := uint64(0); w.shouldContinue() && w.flow.step(w); {
		before := n
		n = w.count.operations.Load()
		w.idle = n == before
		if yard != nil && yard.countStep() {
			yard.readIfDue(w)
		}
	}
	w.leave()
}

// shouldContinue reports whether the thread should do another operation. In a new phase it first marks the edges.
func (w *worker) shouldContinue() bool {
	p := w.trial.phase.Load()
	return p == w.phase || w.enterPhase(p)
}

// enterPhase marks the edges between the phase that the thread last saw and p. It returns false if the thread must leave.
func (w *worker) enterPhase(p int32) bool {
	for edge, begins := range [2]int32{window, drain} {
		if w.phase >= begins || p < begins {
			continue
		}
		if f, ok := w.flow.(edged); ok {
			f.noteEdge(w, edge)
		}
		w.edges[edge] = w.edgeTally(edge)
	}
	w.publishPhase(p)
	w.last = w.trial.now()
	return p < w.leaveAt
}

// leave marks the edges that are not marked yet. A flow that ends in the warm-up counts for nothing.
func (w *worker) leave() {
	if w.phase < drain {
		w.edges[1] = w.currentTally()
	}
	if w.phase < window {
		w.edges[0] = w.edges[1]
	}
	w.publishPhase(ended)
	r := &w.trial.roster
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lost++; r.lost == w.trial.threads {
		close(w.trial.signals.gone)
	}
}

// publishPhase tells Run that the thread has marked everything before p. Run may then read the thread's own data.
func (w *worker) publishPhase(p int32) {
	settled := w.trial.settledPhase()
	first := w.phase < settled && p >= settled
	w.phase = p
	w.count.seen.Store(p)
	if first {
		w.trial.signals.told <- struct{}{} // has room for every flow
	}
}

// edgeTally returns the tally at an edge. An idle thread may notice a new phase late. It has completed nothing since
// then, so its tally has the time at which Run changed the phase.
func (w *worker) edgeTally(edge int) tally {
	n := w.currentTally()
	if at := w.trial.edges[edge].Load(); w.idle && at != 0 {
		n.at = min(n.at, at)
	}
	return n
}

func (w *worker) currentTally() tally {
	c := &w.count
	n := tally{operations: c.operations.Load(), sent: c.sent.Load(), received: c.received.Load()}
	n.at, n.cpu = w.trial.now(), thread.CPUTime()
	n.sent += n.operations * w.each.sent
	n.received += n.operations * w.each.received
	for k := range n.errors {
		n.errors[k] = c.errors[k].Load()
	}
	return n
}

// isServer reports whether the thread is on the server's side.
func (w *worker) isServer() bool { return w.trial.o.Side == control.SideServer }

// countOperation counts an operation that began when the previous one ended and ended at now.
func (w *worker) countOperation(now int64) {
	w.count.operations.Add(1)
	w.recordTime(w.hist.rtt, now-w.last)
	w.last = now
}

// countFailure counts a failure after which the flow continues.
func (w *worker) countFailure(k kind) { w.count.errors[k].Add(1) }

// loseFlow notes that the flow is lost and why. It returns false, as step does for a thread with nothing more to do.
func (w *worker) loseFlow(k kind) bool {
	w.cause = k
	w.count.left.Store(max(w.trial.now(), 1))
	return false
}

// survivesStreamError handles a failed call on a TCP flow, and reports whether the flow continues.
func (w *worker) survivesStreamError(e syscall.Errno) bool {
	k := kindOfErrno(e)
	switch {
	case isRetryable(e):
		return true
	case w.isServer() && k == reset:
		return w.loseFlow(gone)
	}
	return w.loseFlow(k)
}

// survivesDatagramError handles a failed call on a datagram socket, and reports whether the flow continues. It counts
// the failure and pauses, unless the call would have blocked or was interrupted.
func (w *worker) survivesDatagramError(e syscall.Errno) bool {
	k := kindOfErrno(e)
	switch {
	case isRetryable(e):
		return true
	case k == tooLong || k == other:
		return w.loseFlow(k)
	}
	w.countFailure(k)
	w.pause()
	return true
}

// spinsAtOnce bounds the polls of a spinning thread between two checks of the phase. A sleeping thread checks it at
// each pulse.
const spinsAtOnce = 4096

// recv calls sock.Recv, without sleeping if the workload spins. Between two attempts it yields the CPU: to a peer, or
// to the softirq work that delivers the bytes. EINTR means that the thread should check the phase.
func (w *worker) recv(fd int, b []byte, flags int) (int, syscall.Errno) {
	if !w.spin {
		return sock.Recv(fd, b, flags)
	}
	for range spinsAtOnce {
		if n, e := sock.Recv(fd, b, flags|sock.DontWait); e != syscall.EAGAIN {
			return n, e
		}
		thread.Yield()
		if w.trial.phase.Load() != w.phase {
			break
		}
	}
	return 0, syscall.EINTR
}

// pause sleeps for 1 ms, so that a thread whose operation failed at once does not spin.
func (w *worker) pause() { w.sleepUntil(w.trial.now() + int64(time.Millisecond)) }

// sleepUntil sleeps until the trial's clock shows at, but not longer than a tick.
func (w *worker) sleepUntil(at int64) {
	at = min(at, w.trial.now()+int64(tick))
	thread.SleepUntil(w.trial.clock.Offset + at)
}

// work is how one side runs a workload.
type work struct {
	open func(w *worker) (flow, error) // returns the worker's flow
	// beside returns the flow of the last worker, which is not part of the workload. (optional)
	beside    func(w *worker) (flow, error)
	prepare   func(o *control.Prepare) error // refuses options and fills in defaults. (optional)
	threads   int                            // 0 is one for each flow
	buffer    int                            // of every socket in bytes, 0 for the default
	timeout   time.Duration                  // of one exchange, 0 for the default
	standing  bool                           // flows are connected once, before the trial
	sends     bool                           // sends without a request, so it must wait for Run
	timed     bool                           // its socket has timeouts, and its thread no pulse
	straggles bool                           // datagrams of the window may arrive after it
	mayIdle   bool                           // a side that completes nothing has not failed
	queues    bool                           // the server's threads take connections from one listener
}

// workOf returns how a side runs its workload. It fails for a workload that the engine cannot send.
func workOf(o *control.Prepare) (work, error) {
	client := o.Side == control.SideClient
	if !client && o.Side != control.SideServer {
		return work{}, usageError("side %q", o.Side)
	}
	if names := o.Workload.Traits().Names; names.Given() {
		return dnsWork(o.Workload.Traits(), client), nil
	}
	switch s := o.Workload.Spec.(type) {
	case plan.Stream:
		return streamWork(s, client), nil
	case plan.RR:
		return rrWork(s, client), nil
	case plan.CRR:
		return crrWork(s, client), nil
	case plan.Ping:
		return work{open: openPinger, timed: true}, nil // the server has no thread
	case plan.HTTP:
		return httpWork(s, client, len(o.CPUs)), nil
	case plan.TTFR:
		if client {
			return work{}, usageError("the clients of %s are new pods, which the environment makes", o.Workload)
		}
		return work{open: openAcceptor, queues: true, mayIdle: true}, nil
	}
	return work{}, usageError("the engine cannot send workload %q", o.Workload)
}

// specOf returns the settings of the worker's workload, which must be of the kind S.
func specOf[S plan.Spec](w *worker) S { return w.trial.o.Workload.Spec.(S) }
