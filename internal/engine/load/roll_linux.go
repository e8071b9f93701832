package load

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/kernel/sock"
	"github.com/cnibench/cnibench/internal/measure/sample"
)

// A server of http can leave and return within its trial, as pods do when their Deployment is rolled: Leave and Return.
// While it drains it takes connections, and each response is the last of its connection. Then it ends like a process:
// its listeners refuse, and it closes its connections with all that is under way. To return it opens new listeners: of
// several on one port that were shut and listen again, the kernel serves only the last.

// States of a server.
const (
	inService int32 = iota
	draining
	closed
)

// letGoLimit bounds how long the threads may take to close their connections. Usually they need one pulse.
const letGoLimit = time.Second

// rolling is the state of a server that leaves and returns.
type rolling struct {
	state atomic.Int32
	// round counts how often the listeners were shut. letGo counts the threads that have closed their connections
	// since.
	round, letGo atomic.Int32
	// Times of the trial's clock, 0 if not known yet. left is the time of Leave, and last of the latest connection
	// during the drain. back is the time of Return, and first of the first connection after it.
	left, last, back, first atomic.Int64

	mu    sync.Mutex
	over  bool        // Close has begun: another socket may soon have its descriptors
	timer *time.Timer // ends the drain
	rolls []sample.Roll
	err   error
}

// Leave takes the server out of service: it serves for the time drain, then its port refuses connections. Run returns
// the error of a failed Leave.
func (t *Trial) Leave(drain time.Duration) {
	r := &t.rolling
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return
	}
	if t.o.Side != control.SideServer || t.traits.Backends == 0 || r.state.Load() != inService {
		r.keepFirstErrorLocked(usageError("%s cannot leave: it is not an http server, or has left already", t.name()))
		return
	}
	r.completeRoll()
	r.rolls = append(r.rolls, sample.Roll{})
	r.last.Store(0)
	r.back.Store(0)
	r.left.Store(t.now())
	if drain == 0 { // without a drain, earlier connections do not show whether the path knows that the server leaves
		t.shutListeners()
		return
	}
	r.state.Store(draining)
	r.timer = time.AfterFunc(drain, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if !r.over && r.state.Load() == draining { // Stop cannot stop a timer that has fired
			t.shutListeners()
		}
	})
}

// shutListeners makes the listeners refuse new connections, and tells the threads to close those that are open. The caller
// must hold r.mu.
func (t *Trial) shutListeners() {
	r := &t.rolling
	r.letGo.Store(0)
	r.round.Add(1)
	r.state.Store(closed)
	for _, w := range t.workers() {
		sock.Shutdown(int(w.flow.(*answerer).listener.Load()))
	}
	r.rolls[len(r.rolls)-1].DrainNs = t.now() - r.left.Load()
}

// Return makes a server that has left listen again, after its drain and the end of its connections. It returns when the
// server listens. Run returns the error of a failed Return.
func (t *Trial) Return() {
	r := &t.roster
	done := make(chan struct{})
	r.mu.Lock()
	closing := r.closed
	if !closing { // Close waits for the tasks
		r.tasks.Go(func() {
			defer close(done)
			t.returnToService()
		})
	}
	r.mu.Unlock()
	if !closing {
		<-done
	}
}

func (t *Trial) returnToService() {
	r := &t.rolling
	workers := t.workers()
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for closedAt := t.now(); r.state.Load() != closed || int(r.letGo.Load()) < len(workers); <-look.C {
		if r.state.Load() == draining {
			closedAt = t.now()
		}
		switch {
		case t.hasReached(stop):
			return
		case r.state.Load() == inService:
			r.keepFirstError(usageError("%s cannot return: it has not left", t.name()))
			return
		case t.now()-closedAt > int64(letGoLimit):
			r.keepFirstError(fmt.Errorf("%s: its threads did not close their connections within %s", t.name(), letGoLimit))
			return
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.first.Store(0)
	r.back.Store(t.now())
	r.state.Store(inService)
	for _, w := range workers {
		if err := t.reopenListener(w.flow.(*answerer)); err != nil {
			r.keepFirstErrorLocked(err)
			return
		}
	}
	r.rolls[len(r.rolls)-1].Returned = true
}

// completeRoll completes the record of the latest roll with the times of its connections. The caller must hold r.mu.
func (r *rolling) completeRoll() {
	if len(r.rolls) == 0 {
		return
	}
	now := &r.rolls[len(r.rolls)-1]
	left, last := r.left.Load(), r.last.Load()
	if last > 0 {
		now.LastNs = max(last-left, 1)
	}
	if first := r.first.Load(); now.Returned && first > 0 {
		now.FirstNs = max(first-r.back.Load(), 1)
	}
}

func (r *rolling) keepFirstError(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keepFirstErrorLocked(err)
}

// keepFirstErrorLocked keeps the first error. The caller must hold r.mu.
func (r *rolling) keepFirstErrorLocked(err error) {
	if r.err == nil {
		r.err = err
	}
}

// observedRolls returns the rolls so far, or the first error of Leave or Return.
func (r *rolling) observedRolls() ([]sample.Roll, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.completeRoll()
	return slices.Clone(r.rolls), r.err
}

// stop ends a drain under way and prevents later ones.
func (r *rolling) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
	if r.timer != nil {
		r.timer.Stop()
	}
}

// noteConnection stores the time of an accepted connection if it is the latest in the drain, or the first after the
// return.
func (r *rolling) noteConnection(now int64) {
	switch {
	case r.state.Load() == draining:
		r.last.Store(now)
	case r.back.Load() > 0 && r.first.Load() == 0:
		r.first.CompareAndSwap(0, now)
	}
}

// closeGuestsIfShut closes the connections of a thread once after each shutListeners, and returns true if it did. The thread must
// then ignore the pending reports of its poll: they are about closed descriptors, and the listener may be a new one.
func (a *answerer) closeGuestsIfShut(w *worker) bool {
	r := &w.trial.rolling
	round := r.round.Load()
	if r.state.Load() != closed || a.round == round {
		return false
	}
	a.round = round
	// A shut listener would be reported for ever. Remove fails only for a closed one.
	a.poll.Remove(int(a.listener.Load()))
	for i := range a.guests {
		if g := &a.guests[i]; g.fd >= 0 {
			a.closeGuest(g)
		}
	}
	r.letGo.Add(1)
	return true
}

// reopenListener gives a thread a new listener. Close closes the old one.
func (t *Trial) reopenListener(a *answerer) error {
	fd, err := t.openListener(true)
	if err != nil {
		return err
	}
	if err := sock.SetNonBlocking(fd); err != nil {
		return err
	}
	a.listener.Store(int32(fd))
	if e := a.poll.Add(fd, sock.Readable, listenerTag); e != 0 {
		return asError("epoll_ctl", e)
	}
	return nil
}
