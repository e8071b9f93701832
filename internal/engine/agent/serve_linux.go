package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/kernel/proc"
	"github.com/cnibench/cnibench/internal/kernel/thread"
)

const (
	// beat is the time between heartbeats.
	beat = time.Second
	// farewell bounds how long Serve waits for a trial to close its sockets after the end of input. The end of the
	// process frees them in any case.
	farewell = 500 * time.Millisecond
)

// agent is the state of Serve's loop. Only that loop uses it.
type agent struct {
	enc     *control.Encoder
	sampler *proc.Sampler
	// home are the CPUs that this process was allowed to use when it began.
	home []int
	// trial is the current trial, or nil. next waits for its end.
	trial *trial
	next  *control.Message
}

// incoming is one message from the controller, or the error of reading it.
type incoming struct {
	message control.Message
	err     error
}

// Serve runs an agent. It returns nil when in ends and the cause of ctx when ctx ends; it fails if a message is invalid
// or cannot be written. version is the program's, for the hello. If ctx ends, a goroutine may remain in a Read of in.
func Serve(ctx context.Context, in io.Reader, out io.Writer, version string) error {
	a, err := newAgent(out)
	if err != nil {
		return err
	}
	hello := &control.Hello{Version: control.Version, Program: version, PID: os.Getpid(), Machine: proc.BootID(), Idle: a.cpusByIdleTime()}
	if err := a.enc.Encode(control.Message{Type: control.TypeHello, Hello: hello}); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer a.cancelTrial()
	defer stop()
	lines := make(chan incoming)
	go readMessages(ctx, in, lines)
	tick := time.NewTicker(beat)
	defer tick.Stop()
	for {
		select {
		case line := <-lines:
			if errors.Is(line.err, io.EOF) {
				return nil
			}
			if line.err != nil {
				return fmt.Errorf("agent reads its input: %w", line.err)
			}
			err = a.handleMessage(ctx, line.message)
		case <-a.trialEndChannel():
			err = a.endTrial(ctx)
		case <-tick.C:
			err = a.sendHeartbeat()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// newAgent returns an agent that writes to out. It reads the CPU counters and the CPUs that this process may use.
func newAgent(out io.Writer) (*agent, error) {
	sampler, err := proc.NewSampler()
	if err != nil {
		return nil, fmt.Errorf("start agent: %w", err)
	}
	home, err := thread.CPUs()
	if err != nil {
		return nil, fmt.Errorf("start agent: %w", err)
	}
	return &agent{enc: control.NewEncoder(out), sampler: sampler, home: home}, nil
}

// readMessages sends the messages from in to lines, and finally the error of the last read. It returns early if ctx ends.
func readMessages(ctx context.Context, in io.Reader, lines chan<- incoming) {
	d := control.NewDecoder(in)
	for {
		m, err := d.Decode()
		select {
		case lines <- incoming{m, err}:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// handleMessage carries out one message. Only a failed write is an error.
func (a *agent) handleMessage(ctx context.Context, m control.Message) error {
	switch m.Type {
	case control.TypeHeartbeat: // the controller lives: see Lifeline
	case control.TypePrepare:
		if a.trial == nil {
			return a.beginTrial(ctx, m)
		}
		if a.next != nil || !a.trial.isOver() {
			return a.sendRefusal(m.Trial, control.KindBusy, "a trial is under way; cancel it first")
		}
		a.trial.cancel()
		a.next = &m
	case control.TypeStart, control.TypeLeave, control.TypeReturn, control.TypeFinish:
		if a.trial != nil && a.trial.number == m.Trial {
			a.trial.handleMessage(m)
		}
	case control.TypeCancel:
		if a.next != nil && a.next.Trial == m.Trial {
			a.next = nil
			return a.sendRefusal(m.Trial, control.KindCancelled, "cancelled before it began")
		}
		if a.trial != nil && a.trial.number == m.Trial {
			a.trial.cancel()
		}
	default:
		return a.sendRefusal(m.Trial, control.KindProtocol, fmt.Sprintf("an agent does not accept %q", m.Type))
	}
	return nil
}

// beginTrial starts the trial that m asks for. It refuses the trial if this process cannot be moved off the trial's CPUs.
func (a *agent) beginTrial(ctx context.Context, m control.Message) error {
	if err := a.vacateCPUs(loadCPUs(*m.Prepare)); err != nil {
		return a.sendRefusal(m.Trial, kindCPU, err.Error())
	}
	a.trial = newTrial(ctx, m.Trial, a.enc.Encode)
	go a.trial.run(*m.Prepare, a.sampler)
	return nil
}

// cpusByIdleTime returns the CPUs of this process, those with the least busy share since the machine's start first. Shares in
// the same twentieth count as equal. Among equals the last CPU is first, because a machine's own work uses the first
// CPUs. If the counters cannot be read, all count as equal.
func (a *agent) cpusByIdleTime() []int {
	times, _ := proc.Stat()
	busy := func(n int) int {
		t := times[n]
		return int(20 * float64(t.Busy()) / float64(max(1, t.Total())))
	}
	all := slices.Clone(a.home)
	slices.SortFunc(all, func(x, y int) int { return cmp.Or(busy(x)-busy(y), y-x) })
	return all
}

// vacateCPUs moves all threads of this process off the CPUs of the load, if it may use other CPUs. The load's threads
// pin themselves later.
func (a *agent) vacateCPUs(load []int) error {
	rest := slices.DeleteFunc(slices.Clone(a.home), func(cpu int) bool { return slices.Contains(load, cpu) })
	if len(rest) == 0 {
		rest = a.home
	}
	return thread.SetProcessCPUs(rest)
}

// trialEndChannel returns a channel that closes at the end of the trial; without a trial it is nil, which blocks for ever.
func (a *agent) trialEndChannel() <-chan struct{} {
	if a.trial == nil {
		return nil
	}
	return a.trial.ended
}

// endTrial removes the ended trial and begins the next one. It returns the error of writing the ended trial's answer.
func (a *agent) endTrial(ctx context.Context) error {
	failed := a.trial.writeError
	a.trial.cancel()
	a.trial = nil
	if failed != nil {
		return failed
	}
	if m := a.next; m != nil {
		a.next = nil
		return a.beginTrial(ctx, *m)
	}
	return nil
}

// sendHeartbeat sends a heartbeat for the trial that waits, or for the current trial until it has answered.
func (a *agent) sendHeartbeat() error {
	switch {
	case a.next != nil:
		return a.enc.Encode(control.Message{Type: control.TypeHeartbeat, Trial: a.next.Trial})
	case a.trial != nil && !a.trial.answered.Load():
		return a.enc.Encode(control.Message{Type: control.TypeHeartbeat, Trial: a.trial.number, Stands: a.trial.statusText()})
	}
	return nil
}

func (a *agent) sendRefusal(trial uint64, kind, why string) error {
	return a.enc.Encode(control.Message{Type: control.TypeError, Trial: trial, Error: &control.Error{Kind: kind, Message: why}})
}

// cancelTrial cancels the trial and waits for its end, at most farewell.
func (a *agent) cancelTrial() {
	if a.trial == nil {
		return
	}
	a.trial.cancel()
	timer := time.NewTimer(farewell)
	defer timer.Stop()
	select {
	case <-a.trial.ended:
	case <-timer.C:
	}
}

// Lifeline returns a reader of in, and a context that ends if the reader gets nothing for limit: then the controller,
// or a machine on the way to it, has failed silently. Call Serve with both.
func Lifeline(ctx context.Context, in io.Reader, limit time.Duration) (context.Context, io.Reader) {
	ctx, cut := context.WithCancelCause(ctx)
	timer := time.AfterFunc(limit, func() { cut(fmt.Errorf("no message from the controller for %s", limit)) })
	context.AfterFunc(ctx, func() { timer.Stop() })
	return ctx, &lifeline{in: in, timer: timer, limit: limit}
}

// lifeline is a reader that restarts its timer with each read. One goroutine reads it.
type lifeline struct {
	in    io.Reader
	timer *time.Timer
	limit time.Duration
}

func (l *lifeline) Read(b []byte) (int, error) {
	n, err := l.in.Read(b)
	// A timer that has fired has ended the context, so it does not restart.
	if n > 0 && l.timer.Stop() {
		l.timer.Reset(l.limit)
	}
	return n, err
}
