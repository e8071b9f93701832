package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/kernel/sock"
	"github.com/cnibench/cnibench/internal/kernel/thread"
	"github.com/cnibench/cnibench/internal/plan"
)

const (
	tick             = 25 * time.Millisecond // bound of a blocking call of a load thread
	setupTick        = 50 * time.Millisecond // bound of a blocking call while setting up
	defaultSetup     = 3 * time.Second
	defaultTimeout   = time.Second
	defaultUDPReply  = 50 * time.Millisecond
	maxRows          = 100_000
	listenBacklog    = 4096
	receiveBuffer    = 4 << 20
	datagramsPerCall = 64
)

// The phases of a trial, in order; see the package comment.
const (
	warmup int32 = iota
	window
	drain
	after
	stop
	ended // of a thread: it has left
)

// Trial is one side of one trial, prepared. Run it once, then Close it.
type Trial struct {
	o       control.Prepare
	address netip.Addr
	port    int
	work    work
	traits  plan.Traits // of the workload; Flows counts both directions
	pacers  int         // threads that share the schedule of an open loop
	threads int         // load threads of this side
	clock   thread.Clock
	yard    *yardstick // nil if it is not read
	phase   atomic.Int32
	edges   [2]atomic.Int64 // when Run opened and closed the window
	ran     atomic.Bool
	signals signals
	roster  roster
	rolling rolling
	looks   map[*worker]glance // the latest readings of Stands
}

// signals are the channels between Run and the load threads.
type signals struct {
	gate chan struct{} // closed when senders may start
	open sync.Once
	met  chan struct{} // holds a value once a client has connected, if the server awaits one
	gone chan struct{} // closed when every flow has ended
	told chan struct{} // one value for each thread that has marked its end
}

// roster holds the threads and descriptors that the trial owns. Flows are added and removed while the server accepts.
// Load threads take the lock only when they leave.
type roster struct {
	mu      sync.Mutex
	workers []*worker
	fds     []int
	joined  int   // flows that have or will have a thread
	lost    int   // flows that have ended
	trouble error // first failure outside the load threads
	closed  bool
	tasks   sync.WaitGroup
}

// Prepare makes the sockets and the threads of one side. The server listens; the client of stream and rr has its flows
// connected and greeted, so that the server's threads run as well. It fails if ctx ends, or if a flow takes longer than
// o.Setup. Every error is an *Error.
func Prepare(ctx context.Context, o control.Prepare) (*Trial, error) {
	t, err := newTrial(o)
	if err != nil {
		return nil, err
	}
	QuiesceRuntime(t.threads)
	if t.o.Side == control.SideServer {
		err = t.startServer()
	} else {
		err = t.startClient(ctx)
	}
	if err != nil {
		// The caller needs the first failure; Close only frees the resources.
		_ = t.Close()
		return nil, asError("prepare "+t.name(), err)
	}
	return t, nil
}

func newTrial(o control.Prepare) (*Trial, error) {
	o.Workload = o.Workload.Normalize()
	t := &Trial{o: o, port: o.Port}
	if err := t.checkOptions(); err != nil {
		return nil, err
	}
	t.threads = cmp.Or(t.work.threads, t.traits.Flows)
	t.pacers = t.threads
	if t.work.beside != nil {
		t.threads++
	}
	t.signals.gate, t.signals.gone, t.signals.told = make(chan struct{}), make(chan struct{}), make(chan struct{}, t.threads)
	t.signals.met = make(chan struct{}, 1)
	t.clock = thread.NewClock(t.sidesAlternate())
	t.yard = newYardstick(t)
	return t, nil
}

// checkOptions fills in the defaults of the options, and returns an error for invalid options.
func (t *Trial) checkOptions() error {
	o := &t.o
	work, err := workOf(o)
	if err != nil {
		return err
	}
	if err := o.Workload.Validate(); err != nil {
		return usageError("%v", err)
	}
	t.work, t.traits = work, o.Workload.Traits()
	if t.traits.Bidirectional {
		t.traits.Flows *= 2 // as many flows in each direction; see openBidirectional
	}
	if o.Address != "" || o.Side == control.SideClient {
		if t.address, err = netip.ParseAddr(o.Address); err != nil {
			return usageError("address %q: %v", o.Address, err)
		}
	}
	switch {
	case o.Window < time.Millisecond:
		return usageError("window of %v, at least 1ms", o.Window)
	case min(o.Warmup, o.Interval, o.Timeout, o.Setup, o.Awaits) < 0:
		return usageError("a negative time")
	case o.Port < 0 || o.Port > 65535 || o.Port == 0 && o.Side == control.SideClient && !t.traits.Kernel():
		return usageError("port %d", o.Port)
	case o.Awaits > 0 && !t.canAwaitClient():
		return usageError("a %s of %s awaits no connection", o.Side, o.Workload)
	case t.traits.Open() && t.traits.Rate == 0:
		return usageError("%s has no rate", o.Workload)
	case o.Interval > 0 && (o.Warmup+o.Window)/o.Interval > maxRows:
		return usageError("interval of %v makes more than %d rows", o.Interval, maxRows)
	}
	o.Setup, o.Timeout = cmp.Or(o.Setup, defaultSetup), cmp.Or(o.Timeout, work.timeout, defaultTimeout)
	if work.prepare != nil {
		return work.prepare(o)
	}
	return nil
}

// canAwaitClient reports whether this side is a server that can wait for its first connection.
func (t *Trial) canAwaitClient() bool {
	_, http := t.o.Workload.Spec.(plan.HTTP)
	return http && t.o.Side == control.SideServer
}

// Port returns the port that the server listens on, or that the client dials; 0 for ping.
func (t *Trial) Port() int { return t.port }

// name describes the trial in errors.
func (t *Trial) name() string {
	at := "any"
	if t.address.IsValid() {
		at = t.address.String()
	}
	if !t.traits.Kernel() {
		at = fmt.Sprintf("%s port %d", at, t.port)
	}
	return fmt.Sprintf("%s %s %s", t.o.Workload, t.o.Side, at)
}

// sidesAlternate reports whether one client and one server take turns, each asleep while the other works.
func (t *Trial) sidesAlternate() bool {
	return t.traits.Exchanges() && !t.traits.Open() && !t.traits.Spin && t.traits.Flows == 1
}

// foremost is the nice value of the highest priority of a thread that is not a real-time thread.
const foremost = -20

// raisePriority sets the calling thread's nice value to foremost and returns it. It returns 0 if that was not asked for
// or is not permitted. Otherwise another program on the CPU would empty its caches between two requests, which no
// counter shows. Threads that do not take turns keep their priority: they would keep ksoftirqd from its work, which
// belongs to the path.
func (t *Trial) raisePriority() int {
	if !t.o.Foremost || len(t.o.CPUs) == 0 || !t.sidesAlternate() || thread.Prefer(foremost) != nil {
		return 0
	}
	return foremost
}

// now returns the time since Prepare in ns.
func (t *Trial) now() int64 { return t.clock.Now() }

// callTimeout returns the limit for one blocking call on a socket of a timed workload: the timeout divided by a whole
// number, at most setupTick.
func (t *Trial) callTimeout() time.Duration {
	return t.o.Timeout / max(1, (t.o.Timeout+setupTick-1)/setupTick)
}

// hasReached reports whether the trial is in the phase limit or a later one.
func (t *Trial) hasReached(limit int32) bool { return t.phase.Load() >= limit }

func (t *Trial) openGate() { t.signals.open.Do(func() { close(t.signals.gate) }) }

// ownDescriptor makes Close close fd. If Close has begun already, it shuts the socket down at once.
func (t *Trial) ownDescriptor(fd int) {
	r := &t.roster
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fds = append(r.fds, fd)
	if r.closed {
		sock.Shutdown(fd)
	}
}

// keepFirstError keeps err if it is the first failure outside of load threads.
func (t *Trial) keepFirstError(err error) {
	t.roster.mu.Lock()
	defer t.roster.mu.Unlock()
	if t.roster.trouble == nil {
		t.roster.trouble = err
	}
}

// Close ends the threads and closes the sockets. It resets the flows, so that no TIME_WAIT remains. It returns within
// about 50 ms, with an error if a descriptor cannot be closed. Calling it again does nothing.
func (t *Trial) Close() error {
	t.rolling.stop()
	r := &t.roster
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return nil
	}
	r.closed = true
	t.phase.Store(stop)
	// Threads that block on a socket wake up; the descriptors stay valid until every thread has left.
	for _, fd := range r.fds {
		sock.Shutdown(fd)
	}
	r.mu.Unlock()
	t.openGate()
	r.tasks.Wait()

	for _, w := range r.workers {
		w.close()
	}
	var failed error
	for _, fd := range r.fds {
		if e := sock.Close(fd); e != 0 {
			failed = errors.Join(failed, fmt.Errorf("close descriptor %d: %w", fd, e))
		}
	}
	RestoreRuntime(t.threads)
	return failed
}

// spare is the number of processors that remain for goroutines other than load threads.
const spare = 4

// quiet is the state of the Go runtime that trials of this process share: during a trial the collector is off and
// GOMAXPROCS covers all load threads. It is global because the runtime's settings are.
var quiet struct {
	sync.Mutex
	trials, threads       int
	collector, processors int
}

// QuiesceRuntime turns the garbage collector off and adds processors for a trial of n threads. Each call needs a call
// of RestoreRuntime with the same n.
func QuiesceRuntime(n int) {
	quiet.Lock()
	defer quiet.Unlock()
	if quiet.trials == 0 {
		quiet.processors = runtime.GOMAXPROCS(0)
		quiet.collector = debug.SetGCPercent(-1)
	}
	quiet.trials++
	quiet.threads += n
	// Set even if it is enough: once set, the runtime no longer adapts it by itself, which would stop the world.
	runtime.GOMAXPROCS(max(quiet.threads+spare, runtime.GOMAXPROCS(0)))
}

// RestoreRuntime undoes one call of QuiesceRuntime. When the last trial ends, it restores the settings from before the
// first.
func RestoreRuntime(n int) {
	quiet.Lock()
	defer quiet.Unlock()
	quiet.trials--
	quiet.threads -= n
	if quiet.trials == 0 {
		runtime.GOMAXPROCS(quiet.processors)
		debug.SetGCPercent(quiet.collector)
	}
}
