package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cnibench/cnibench/internal/conduct/control"
	"github.com/cnibench/cnibench/internal/engine/load"
	"github.com/cnibench/cnibench/internal/external/drive"
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
	start  chan struct{}
	once   sync.Once
	// finished is closed when the controller has said that the other side has ended.
	finished   chan struct{}
	finishOnce sync.Once
	// ended is closed when nothing of the trial is left; unsaid may be read after that: why its answer was not written.
	ended  chan struct{}
	unsaid error
	// server is the side under way as far as it can leave and return, nil if it cannot.
	mu     sync.Mutex
	server roller
	// told is true from when the answer is about to be written, givenUp from cancel on.
	told, givenUp atomic.Bool
}

func newTrial(ctx context.Context, number uint64, say func(control.Message) error) *trial {
	t := &trial{number: number, say: say, start: make(chan struct{}), finished: make(chan struct{}), ended: make(chan struct{})}
	t.ctx, t.stop = context.WithCancel(ctx)
	return t
}

// obey does what the controller says of this trial.
func (t *trial) obey(m control.Message) {
	switch m.Type {
	case control.TypeStart:
		t.begin()
	case control.TypeLeave:
		t.roll(func(r roller) { r.Leave(m.Leave.Drain) })
	case control.TypeReturn:
		t.roll(roller.Return)
	case control.TypeFinish:
		t.finish()
	}
}

// begin opens the barrier; a second start changes nothing.
func (t *trial) begin() { t.once.Do(func() { close(t.start) }) }

// finish lets a server of a tool answer.
func (t *trial) finish() { t.finishOnce.Do(func() { close(t.finished) }) }

// roller is a side that can go and come back within the trial. What goes wrong with that, Run says.
type roller interface {
	Leave(drain time.Duration)
	Return()
}

// roll has the side leave or return, and says when it has. One that cannot was not asked to by any controller of ours, and
// nothing is said.
func (t *trial) roll(do func(roller)) {
	t.mu.Lock()
	side := t.server
	t.mu.Unlock()
	if side == nil {
		return
	}
	go func() { // a return takes its time, and the agent has to hear of other things meanwhile
		do(side)
		_ = t.say(control.Message{Type: control.TypeRolled, Trial: t.number}) // a stream that ended ends the agent
	}()
}

// cancel gives the trial up, or lets go of what it keeps after its answer.
func (t *trial) cancel() {
	t.givenUp.Store(true)
	t.stop()
}

// answered is true when the controller waits for nothing more from this trial.
func (t *trial) answered() bool { return t.told.Load() }

// over is true when another trial may take its place: it has answered, or was cancelled and is about to.
func (t *trial) over() bool { return t.told.Load() || t.givenUp.Load() }

// run prepares, waits for the start, measures and answers.
func (t *trial) run(p control.Prepare, sampler *proc.Sampler) {
	defer close(t.ended)
	l, err := openSide(t.ctx, p, t.finished)
	if err != nil {
		t.answer(nil, err)
		return
	}
	t.mu.Lock()
	t.server, _ = l.(roller)
	t.mu.Unlock()
	if t.unsaid = t.say(control.Message{Type: control.TypeReady, Trial: t.number, Ready: &control.Ready{Port: l.Port()}}); t.unsaid != nil {
		t.unsaid = errors.Join(t.unsaid, l.Close())
		return
	}
	o, err := t.measure(l, p.CPUs, sampler)
	if err != nil {
		// The answer comes after the close, so that the next trial finds ports and CPUs free.
		_ = l.Close() // what failed first is what counts
		t.answer(nil, err)
		return
	}
	// The other side may still be in its window, and would take our going for a failure.
	t.answer(o, nil)
	<-t.ctx.Done()
	// What happens to the sockets after the answer concerns nobody.
	_ = l.Close()
}

// measure waits at the barrier and runs the load with a snapshot at each edge of its window.
func (t *trial) measure(l side, cpus []int, sampler *proc.Sampler) (*sample.Observation, error) {
	select {
	case <-t.start:
	case <-t.ctx.Done():
		return nil, t.ctx.Err()
	}
	if err := t.say(control.Message{Type: control.TypeStarted, Trial: t.number}); err != nil {
		return nil, err
	}
	var edges [2]proc.Snapshot
	o, err := l.Run(t.ctx, func(end bool) {
		// What could not be read is absent from the snapshot, and so from the observation: the counters check a trial,
		// and a container that hides or bends one of them does not spoil what the load has counted itself.
		snap, _ := sampler.Take(cpus)
		if end {
			edges[1] = snap
		} else {
			edges[0] = snap
		}
	})
	if err != nil {
		return nil, err
	}
	o.Host = proc.Delta(edges[0], edges[1])
	return o, nil
}

// answer ends the trial for the controller.
func (t *trial) answer(o *sample.Observation, err error) {
	m := control.Message{Type: control.TypeDone, Trial: t.number, Done: o}
	if err != nil {
		m = control.Message{Type: control.TypeError, Trial: t.number, Error: t.failure(err)}
	}
	// Said first and noted after, the next prepare could be here before the note.
	t.told.Store(true)
	t.unsaid = t.say(m)
}

// failure puts err into a kind that can be counted.
func (t *trial) failure(err error) *control.Error {
	var known *load.Error
	var tool *drive.Error
	switch {
	case t.ctx.Err() != nil:
		return &control.Error{Kind: control.KindCancelled, Message: "the trial was given up"}
	case errors.As(err, &known):
		return &control.Error{Kind: known.Kind, Message: fmt.Sprintf("%s: %v", known.Op, known.Err)} // the kind is said already
	case errors.As(err, &tool):
		return &control.Error{Kind: tool.Kind, Message: err.Error()}
	}
	return &control.Error{Kind: kindOther, Message: err.Error()}
}
