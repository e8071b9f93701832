package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/conduct/control"
	"github.com/cnibench/cnibench/internal/kernel/affinity"
	"github.com/cnibench/cnibench/internal/kernel/proc"
)

const (
	// beat is the time between heartbeats.
	beat = time.Second
	// farewell bounds how long Serve waits for a trial to let go of its sockets when input has ended. The process
	// ends after it, which frees them all the same.
	farewell = 500 * time.Millisecond
)

// agent is the state of Serve's loop, and is touched by that alone.
type agent struct {
	enc     *control.Encoder
	sampler *proc.Sampler
	// home are the CPUs that this process was allowed when it began.
	home []int
	// trial is the one under way, nil if none. next waits for it to end.
	trial *trial
	next  *control.Message
}

// incoming is one thing that was read.
type incoming struct {
	message control.Message
	err     error
}

// Serve speaks for an agent until in ends (nil), ctx ends (its cause) or the stream cannot be understood.
// version is that of the program. A goroutine stays behind in a Read of in if it is ctx that ends it.
func Serve(ctx context.Context, in io.Reader, out io.Writer, version string) error {
	a, err := open(out)
	if err != nil {
		return err
	}
	hello := &control.Hello{Version: control.Version, Program: version, PID: os.Getpid(), Machine: machine()}
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

// machine is the id of the kernel's boot, which every container and namespace of a machine sees alike.
func machine() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "" // some sandboxes hide it; then two ends are taken for neighbours
	}
	return strings.TrimSpace(string(b))
}

// open finds out what the process needs to know about itself.
func open(out io.Writer) (*agent, error) {
	sampler, err := proc.NewSampler()
	if err != nil {
		return nil, fmt.Errorf("start agent: %w", err)
	}
	home, err := affinity.Get()
	if err != nil {
		return nil, fmt.Errorf("start agent: %w", err)
	}
	return &agent{enc: control.NewEncoder(out), sampler: sampler, home: home}, nil
}

// read hands on what comes in, until it ends or nobody wants it.
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

// obey does what one message asks. Only a stream that cannot be written to is an error.
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
		return a.refuse(m.Trial, control.KindProtocol, fmt.Sprintf("an agent takes no %q", m.Type))
	}
	return nil
}

// begin starts the trial that m asks for.
func (a *agent) begin(ctx context.Context, m control.Message) error {
	if err := a.stepAside(m.Prepare.CPUs); err != nil {
		return a.refuse(m.Trial, kindCPU, err.Error())
	}
	a.trial = newTrial(ctx, m.Trial, a.enc.Encode)
	go a.trial.run(*m.Prepare, a.sampler)
	return nil
}

// stepAside takes all threads off the CPUs of the load, where there are others. The load's threads pin themselves.
func (a *agent) stepAside(load []int) error {
	rest := without(a.home, load)
	if len(rest) == 0 {
		rest = a.home
	}
	return affinity.SetProcess(rest)
}

// without returns all that are not in some, in order.
func without(all, some []int) []int {
	drop := map[int]bool{}
	for _, n := range some {
		drop[n] = true
	}
	var rest []int
	for _, n := range all {
		if !drop[n] {
			rest = append(rest, n)
		}
	}
	return rest
}

// ended is closed when the trial has let go of everything; it is nil, which blocks for ever, if there is none.
func (a *agent) ended() <-chan struct{} {
	if a.trial == nil {
		return nil
	}
	return a.trial.ended
}

// after forgets the trial that ended and begins the one that waited for it.
func (a *agent) after(ctx context.Context) error {
	failed := a.trial.unsaid
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

// live tells the controller that the trial, or the one that waits, is not forgotten.
func (a *agent) live() error {
	switch {
	case a.next != nil:
		return a.enc.Encode(control.Message{Type: control.TypeHeartbeat, Trial: a.next.Trial})
	case a.trial != nil && !a.trial.answered():
		return a.enc.Encode(control.Message{Type: control.TypeHeartbeat, Trial: a.trial.number})
	}
	return nil
}

func (a *agent) refuse(trial uint64, kind, why string) error {
	return a.enc.Encode(control.Message{Type: control.TypeError, Trial: trial, Error: &control.Error{Kind: kind, Message: why}})
}

// leave gives up the trial, if there is one, and waits a little for its end.
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
