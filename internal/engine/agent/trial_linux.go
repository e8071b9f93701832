package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/engine/load"
	"github.com/cnibench/cnibench/internal/external"
	"github.com/cnibench/cnibench/internal/kernel/proc"
	"github.com/cnibench/cnibench/internal/measure/sample"
)

// Kinds of failure that are the agent's own.
const (
	kindCPU   = "cpu"
	kindOther = "other"
)

// trial is one side of one trial, on a goroutine of its own.
type trial struct {
	number uint64
	say    func(control.Message) error
	ctx    context.Context
	stop   context.CancelFunc
	// start receives the controller's start signal: how long the run waits after it. finish closes finished, which
	// means that the other side has ended; later calls do nothing.
	start    chan time.Duration
	finished chan struct{}
	finish   func()
	// ended closes when the trial has released everything. writeError is the error of writing its answer and may be
	// read after that.
	ended      chan struct{}
	writeError error
	// side is the current side, nil before it is prepared.
	mu   sync.Mutex
	side side
	// answered is set just before the answer is written, cancelled by cancel.
	answered, cancelled atomic.Bool
}

func newTrial(ctx context.Context, number uint64, say func(control.Message) error) *trial {
	t := &trial{number: number, say: say, start: make(chan time.Duration, 1), finished: make(chan struct{}), ended: make(chan struct{})}
	t.ctx, t.stop = context.WithCancel(ctx)
	t.finish = sync.OnceFunc(func() { close(t.finished) })
	return t
}

// handleMessage carries out a message of the controller for this trial.
func (t *trial) handleMessage(m control.Message) {
	switch m.Type {
	case control.TypeStart:
		select {
		case t.start <- m.Start.Delay:
		default: // it has begun
		}
	case control.TypeLeave:
		t.rollSide(func(r roller) { r.Leave(m.Leave.Drain) })
	case control.TypeReturn:
		t.rollSide(roller.Return)
	case control.TypeFinish:
		t.finish()
	}
}

// roller is a side that can leave its Service and return within the trial. If one of the two fails, Run returns the
// error.
type roller interface {
	Leave(drain time.Duration)
	Return()
}

// rollSide makes the side leave or return in the background, and reports "rolled" when done. It ignores a side that is not
// a roller: controllers ask only servers of http.
func (t *trial) rollSide(do func(roller)) {
	server, ok := t.currentSide().(roller)
	if !ok {
		return
	}
	go func() { // a return takes time, and the agent must read other messages meanwhile
		do(server)
		_ = t.say(control.Message{Type: control.TypeRolled, Trial: t.number}) // the end of the stream ends the agent
	}()
}

// currentSide returns the side of the trial, nil before it is prepared.
func (t *trial) currentSide() side {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.side
}

// statusText describes what the trial is doing.
func (t *trial) statusText() string {
	switch side := t.currentSide().(type) {
	case nil:
		return "preparing"
	case interface{ Stands() string }:
		return side.Stands()
	}
	return ""
}

// cancel ends the trial, or releases what it keeps after its answer.
func (t *trial) cancel() {
	t.cancelled.Store(true)
	t.stop()
}

// isOver reports whether another trial may begin: this one has answered, or will soon because it was cancelled.
func (t *trial) isOver() bool { return t.answered.Load() || t.cancelled.Load() }

// loadCPUs returns the CPUs that load threads are pinned to.
func loadCPUs(p control.Prepare) []int {
	if len(p.CPUs) > 0 {
		return p.CPUs
	}
	return p.Pinned
}

// run prepares, waits for the start, measures and answers.
func (t *trial) run(p control.Prepare, sampler *proc.Sampler) {
	defer close(t.ended)
	path := p.CPUs
	p.CPUs = loadCPUs(p)
	l, err := openSide(t.ctx, p, t.finished)
	if err != nil {
		t.sendAnswer(nil, err)
		return
	}
	t.mu.Lock()
	t.side = l
	t.mu.Unlock()
	if err := t.say(control.Message{Type: control.TypeReady, Trial: t.number, Ready: &control.Ready{Port: l.Port()}}); err != nil {
		t.writeError = errors.Join(err, l.Close())
		return
	}
	o, err := t.measureSide(l, path, sampler)
	if o != nil {
		o.LoadCPUs = p.CPUs
	}
	if err != nil {
		// The answer follows the close, so that the next trial finds ports and CPUs free.
		_ = l.Close() // the first error counts
		t.sendAnswer(nil, err)
		return
	}
	// The other side may still be in its window, and would count our end as a failure.
	t.sendAnswer(o, nil)
	<-t.ctx.Done()
	_ = l.Close() // the result is complete
}

// measureSide waits for the start signal and runs the load, with a snapshot at each edge of its window.
func (t *trial) measureSide(l side, cpus []int, sampler *proc.Sampler) (*sample.Observation, error) {
	var delay time.Duration
	select {
	case delay = <-t.start:
	case <-t.ctx.Done():
		return nil, t.ctx.Err()
	}
	if err := t.say(control.Message{Type: control.TypeStarted, Trial: t.number}); err != nil {
		return nil, err
	}
	if err := t.delayWarmUp(delay); err != nil {
		return nil, err
	}
	var before, after proc.Snapshot
	o, err := l.Run(t.ctx, func(bool) {
		// A counter that cannot be read is absent from the snapshot and from the observation. The counters only check a
		// trial: a container that hides one of them does not spoil the load's own counts.
		before = after
		after, _ = sampler.Take(cpus)
	})
	if err != nil {
		return nil, err
	}
	o.Machine, o.Host = proc.BootID(), proc.Delta(before, after)
	return o, nil
}

// delayWarmUp waits for the duration while before the warm-up; the load threads already serve meanwhile. It fails if
// the trial is cancelled.
func (t *trial) delayWarmUp(while time.Duration) error {
	timer := time.NewTimer(while)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-t.ctx.Done():
		return t.ctx.Err()
	}
}

// sendAnswer sends the observation, or the failure err, to the controller. From then on another trial may begin.
func (t *trial) sendAnswer(o *sample.Observation, err error) {
	m := control.Message{Type: control.TypeDone, Trial: t.number, Done: o}
	if err != nil {
		m = control.Message{Type: control.TypeError, Trial: t.number, Error: t.messageError(err)}
	}
	// Before the write: the next prepare may follow it at once.
	t.answered.Store(true)
	t.writeError = t.say(m)
}

// messageError returns err as the error of a message, with its kind.
func (t *trial) messageError(err error) *control.Error {
	var known *load.Error
	var tool *external.Error
	switch {
	case t.ctx.Err() != nil:
		return &control.Error{Kind: control.KindCancelled, Message: "the trial was cancelled"}
	case errors.As(err, &known):
		return &control.Error{Kind: known.Kind, Message: fmt.Sprintf("%s: %v", known.Op, known.Err)} // without the kind, which Error() appends
	case errors.As(err, &tool):
		return &control.Error{Kind: tool.Kind, Message: err.Error()}
	}
	return &control.Error{Kind: kindOther, Message: err.Error()}
}
