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

// agent is the state of Serve's loop, which alone uses it.
type agent struct {
	enc     *control.Encoder
	sampler *proc.Sampler
	// home are the CPUs that this process was allowed when it began.
	home []int
	// trial is the current trial, or nil. next waits for its end.
	trial *trial
	next  *control.Message
}

// incoming is one result of a read.
type incoming struct {
	message control.Message
	err     error
}

// Serve runs an agent until in ends (nil), ctx ends (its cause) or the stream is invalid. version is that of the
// program. If ctx ends, a goroutine remains in a Read of in.
func Serve(ctx context.Context, in io.Reader, out io.Writer, version string) error {
	a, err := open(out)
	if err != nil {
		return err
	}
	hello := &control.Hello{Version: control.Version, Program: version, PID: os.Getpid(), Machine: proc.BootID(), Idle: a.idlest()}
	if err := a.enc.Encode(control.Message{Type: control.TypeHello, Hello: hello}); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer a.leave()
	defer stop()
	lines := make(chan incoming)
	go read(ctx, in, lines)
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
			err = a.obey(ctx, line.message)
		case <-a.ended():
			err = a.after(ctx)
		case <-tick.C:
			err = a.live()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// open reads the state of the process.
func open(out io.Writer) (*agent, error) {
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

// read sends messages to lines, until in or ctx ends.
func read(ctx context.Context, in io.Reader, lines chan<- incoming) {
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

// obey carries out one message. Only a failed write is an error.
func (a *agent) obey(ctx context.Context, m control.Message) error {
	switch m.Type {
	case control.TypeHeartbeat: // the controller lives: see Lifeline
	case control.TypePrepare:
		if a.trial == nil {
			return a.begin(ctx, m)
		}
		if a.next != nil || !a.trial.over() {
			return a.refuse(m.Trial, control.KindBusy, "a trial is under way; cancel it first")
		}
		a.trial.cancel()
		a.next = &m
	case control.TypeStart, control.TypeLeave, control.TypeReturn, control.TypeFinish:
		if a.trial != nil && a.trial.number == m.Trial {
			a.trial.obey(m)
		}
	case control.TypeCancel:
		if a.next != nil && a.next.Trial == m.Trial {
			a.next = nil
			return a.refuse(m.Trial, control.KindCancelled, "cancelled before it began")
		}
		if a.trial != nil && a.trial.number == m.Trial {
			a.trial.cancel()
		}
	default:
		return a.refuse(m.Trial, control.KindProtocol, fmt.Sprintf("an agent does not accept %q", m.Type))
	}
	return nil
}

// begin starts the trial that m asks for.
func (a *agent) begin(ctx context.Context, m control.Message) error {
	if err := a.stepAside(loadCPUs(*m.Prepare)); err != nil {
		return a.refuse(m.Trial, kindCPU, err.Error())
	}
	a.trial = newTrial(ctx, m.Trial, a.enc.Encode)
	go a.trial.run(*m.Prepare, a.sampler)
	return nil
}

// idlest returns the CPUs of this process, ordered by their idle time since the machine's start, longest first, in
// steps of a twentieth. Among equals the last CPU is first, because a machine's own work uses the first CPUs. If the
// counters cannot be read, CPUs are ordered from last to first.
func (a *agent) idlest() []int {
	times, _ := proc.Stat()
	busy := func(n int) int {
		t := times[n]
		return int(20 * float64(t.Busy()) / float64(max(1, t.Total())))
	}
	all := slices.Clone(a.home)
	slices.SortFunc(all, func(x, y int) int { return cmp.Or(busy(x)-busy(y), y-x) })
	return all
}

// stepAside moves all threads off the CPUs of the load, if there are others. The load's threads pin themselves.
func (a *agent) stepAside(load []int) error {
	rest := slices.DeleteFunc(slices.Clone(a.home), func(cpu int) bool { return slices.Contains(load, cpu) })
	if len(rest) == 0 {
		rest = a.home
	}
	return thread.SetProcessCPUs(rest)
}

// ended returns a channel that closes at the end of the trial; without a trial it is nil, which blocks for ever.
func (a *agent) ended() <-chan struct{} {
	if a.trial == nil {
		return nil
	}
	return a.trial.ended
}

// after removes the ended trial and begins the next one.
func (a *agent) after(ctx context.Context) error {
	failed := a.trial.writeError
	a.trial.cancel()
	a.trial = nil
	if failed != nil {
		return failed
	}
	if m := a.next; m != nil {
		a.next = nil
		return a.begin(ctx, *m)
	}
	return nil
}

// live sends a heartbeat for the current trial, or for the trial that waits.
func (a *agent) live() error {
	switch {
	case a.next != nil:
		return a.enc.Encode(control.Message{Type: control.TypeHeartbeat, Trial: a.next.Trial})
	case a.trial != nil && !a.trial.answered.Load():
		return a.enc.Encode(control.Message{Type: control.TypeHeartbeat, Trial: a.trial.number, Stands: a.trial.stands()})
	}
	return nil
}

func (a *agent) refuse(trial uint64, kind, why string) error {
	return a.enc.Encode(control.Message{Type: control.TypeError, Trial: trial, Error: &control.Error{Kind: kind, Message: why}})
}

// leave cancels the trial and waits a little for its end.
func (a *agent) leave() {
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

// Lifeline returns in, and a context that ends when nothing was read from in for limit: the controller, or a machine on
// the way to it, has failed silently. Call Serve with both.
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
