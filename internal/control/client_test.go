package control_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/control/controltest"
	"github.com/cnibench/cnibench/internal/measure/sample"
)

func dial(t *testing.T, start func(context.Context) (io.ReadWriteCloser, error)) *control.Client {
	t.Helper()
	c, err := control.Dial(t.Context(), control.Endpoint{Name: "lab/pod", Start: start})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// begin brings a trial to the point where Wait is next.
func begin(t *testing.T, c *control.Client, p control.Prepare) control.Ready {
	t.Helper()
	ready, err := c.Prepare(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	return ready
}

func wantKind(t *testing.T, err error, kind string) {
	t.Helper()
	var e *control.Error
	if !errors.As(err, &e) || e.Kind != kind {
		t.Errorf("got %v, want kind %q", err, kind)
	} else if !strings.Contains(err.Error(), "lab/pod") {
		t.Errorf("%q does not name the endpoint", err)
	}
}

func seen(operations uint64) *sample.Observation {
	return &sample.Observation{Side: control.SideClient, ElapsedNs: 1, Operations: operations}
}

func TestTrialsInTurn(t *testing.T) {
	n := uint64(0)
	c := dial(t, controltest.Agent(func(p control.Prepare) (*sample.Observation, *control.Error) {
		n++
		if n == 2 {
			return nil, &control.Error{Kind: "timeout", Message: "no reply"}
		}
		return seen(n), nil
	}))
	if c.Hello().Program != "wiretest" {
		t.Errorf("hello is %+v", c.Hello())
	}
	for i := uint64(1); i <= 3; i++ {
		ready := begin(t, c, control.Prepare{Side: control.SideServer})
		if ready.Port != controltest.Port {
			t.Errorf("server listens at %d", ready.Port)
		}
		o, err := c.Wait(t.Context())
		switch {
		case i == 2:
			wantKind(t, err, "timeout")
		case err != nil:
			t.Fatal(err)
		case o.Operations != i:
			t.Errorf("trial %d saw %d operations", i, o.Operations)
		}
	}
}

func TestRefusedPrepare(t *testing.T) {
	c := dial(t, controltest.Fake{
		Prepare: func(control.Prepare) *control.Error {
			return &control.Error{Kind: "connection refused", Message: "nobody there"}
		},
	}.Start)
	_, err := c.Prepare(t.Context(), control.Prepare{Side: control.SideClient})
	wantKind(t, err, "connection refused")
}

func TestDeathTellsItsLastWords(t *testing.T) {
	c := dial(t, controltest.Agent(func(control.Prepare) (*sample.Observation, *control.Error) { return nil, controltest.Die }))
	begin(t, c, control.Prepare{Side: control.SideClient})
	_, err := c.Wait(t.Context())
	wantKind(t, err, control.KindGone)
	if !strings.Contains(err.Error(), controltest.LastWords) {
		t.Errorf("%q leaves out the agent's last words", err)
	}
	if _, err = c.Prepare(t.Context(), control.Prepare{Side: control.SideClient}); err == nil {
		t.Error("a dead agent takes another trial")
	}
	wantKind(t, err, control.KindGone)
}

// TestSilenceIsNoticed has an agent that beats for many times the limit, and one that stops.
func TestSilenceIsNoticed(t *testing.T) {
	release := make(chan struct{})
	c := dial(t, controltest.Agent(func(p control.Prepare) (*sample.Observation, *control.Error) {
		if p.Port == 1 {
			<-release
			return seen(1), nil
		}
		return nil, controltest.Silence
	}))
	c.HeartbeatLimit = 15 * controltest.Beat
	begin(t, c, control.Prepare{Side: control.SideClient, Port: 1})
	time.AfterFunc(2*c.HeartbeatLimit, func() { close(release) })
	if _, err := c.Wait(t.Context()); err != nil {
		t.Errorf("an agent that beats was given up: %v", err)
	}
	begin(t, c, control.Prepare{Side: control.SideClient, Port: 2})
	_, err := c.Wait(t.Context())
	wantKind(t, err, control.KindLost)
}

// TestLateAnswer lets the answer to a cancelled trial come after the next trial began.
func TestLateAnswer(t *testing.T) {
	ours, theirs := net.Pipe()
	c := dialPipe(t, ours, theirs)
	d, enc := control.NewDecoder(theirs), control.NewEncoder(theirs)
	agent := make(chan error, 1)
	go func() {
		agent <- func() error {
			say := func(m control.Message) { _ = enc.Encode(m) }
			for {
				m, err := d.Decode()
				if err != nil {
					return err
				}
				switch {
				case m.Type == control.TypePrepare && m.Trial == 2:
					say(control.Message{Type: control.TypeDone, Trial: 1, Done: seen(1)})
					say(control.Message{Type: control.TypeError, Trial: 1, Error: &control.Error{Kind: control.KindCancelled}})
					fallthrough
				case m.Type == control.TypePrepare:
					say(control.Message{Type: control.TypeReady, Trial: m.Trial, Ready: &control.Ready{}})
				case m.Type == control.TypeStart && m.Trial == 1:
					say(control.Message{Type: control.TypeStarted, Trial: 1})
				case m.Type == control.TypeStart:
					say(control.Message{Type: control.TypeStarted, Trial: 2})
					say(control.Message{Type: control.TypeDone, Trial: 1, Done: seen(1)})
					say(control.Message{Type: control.TypeDone, Trial: 2, Done: seen(2)})
				}
			}
		}()
	}()
	begin(t, c, control.Prepare{Side: control.SideClient})
	if err := c.Cancel(); err != nil {
		t.Fatal(err)
	}
	_, err := c.Wait(t.Context())
	wantKind(t, err, control.KindCancelled)
	begin(t, c, control.Prepare{Side: control.SideClient})
	o, err := c.Wait(t.Context())
	if err != nil || o.Operations != 2 {
		t.Errorf("second trial: %+v, %v", o, err)
	}
	c.Close()
	if err := <-agent; !errors.Is(err, io.EOF) {
		t.Errorf("closing the client gives the agent %v, want io.EOF", err)
	}
}

func dialPipe(t *testing.T, ours, theirs net.Conn) *control.Client {
	t.Helper()
	go func() {
		_ = control.NewEncoder(theirs).Encode(control.Message{Type: control.TypeHello, Hello: &control.Hello{Version: control.Version}})
	}()
	return dial(t, func(context.Context) (io.ReadWriteCloser, error) { return ours, nil })
}

// TestCancelFreesWait cancels from another goroutine while the agent is in mid-trial.
func TestCancelFreesWait(t *testing.T) {
	running := make(chan struct{})
	c := dial(t, controltest.Agent(func(control.Prepare) (*sample.Observation, *control.Error) {
		close(running)
		select {}
	}))
	begin(t, c, control.Prepare{Side: control.SideClient})
	var wg sync.WaitGroup
	wg.Go(func() {
		<-running
		if err := c.Cancel(); err != nil {
			t.Error(err)
		}
		if err := c.Cancel(); err != nil {
			t.Errorf("second Cancel: %v", err)
		}
	})
	_, err := c.Wait(t.Context())
	wantKind(t, err, control.KindCancelled)
	wg.Wait()
}

func TestContextEndsWait(t *testing.T) {
	c := dial(t, controltest.Agent(func(control.Prepare) (*sample.Observation, *control.Error) { select {} }))
	begin(t, c, control.Prepare{Side: control.SideClient})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := c.Wait(ctx)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	wantWords(t, err, `agent at`, `no "done" from it yet`)
}

// TestLateAgentSaysWhereItStands: the error of a trial that does not end has what the agent's last heartbeat said.
func TestLateAgentSaysWhereItStands(t *testing.T) {
	f := controltest.Fake{Run: func(control.Prepare) (*sample.Observation, *control.Error) { select {} }, Stands: "in its window"}
	c := dial(t, f.Start)
	begin(t, c, control.Prepare{Side: control.SideClient})
	ctx, cancel := context.WithTimeout(t.Context(), 10*controltest.Beat)
	defer cancel()
	_, err := c.Wait(ctx)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	wantWords(t, err, `no "done" from it yet, at last it was in its window`)
}

func wantWords(t *testing.T, err error, words ...string) {
	t.Helper()
	for _, w := range words {
		if err == nil || !strings.Contains(err.Error(), w) {
			t.Errorf("%v does not say %q", err, w)
		}
	}
}

func TestDialFailures(t *testing.T) {
	broken := errors.New("exec: no such file")
	pipe := func(line string) func(context.Context) (io.ReadWriteCloser, error) {
		return func(context.Context) (io.ReadWriteCloser, error) {
			ours, theirs := net.Pipe()
			go func() {
				_, _ = io.WriteString(theirs, line)
				theirs.Close()
			}()
			return ours, nil
		}
	}
	for name, c := range map[string]struct {
		start func(context.Context) (io.ReadWriteCloser, error)
		kind  string
	}{
		"does not start": {func(context.Context) (io.ReadWriteCloser, error) { return nil, broken }, control.KindStart},
		"other version":  {controltest.Fake{Hello: &control.Hello{Version: control.Version + 1}}.Start, control.KindVersion},
		"ends at once":   {pipe(""), control.KindGone},
		"no agent":       {pipe("bash: cnibench: not found\n"), control.KindProtocol},
	} {
		_, err := control.Dial(t.Context(), control.Endpoint{Name: "lab/pod", Start: c.start})
		t.Log(name+":", err)
		wantKind(t, err, c.kind)
		if c.kind == control.KindStart && !errors.Is(err, broken) {
			t.Errorf("%s: the cause is lost in %v", name, err)
		}
	}
}

// TestHangingAgentHoldsNobody writes to an agent that reads nothing.
func TestHangingAgentHoldsNobody(t *testing.T) {
	ours, theirs := net.Pipe()
	c := dialPipe(t, ours, theirs)
	c.HeartbeatLimit = 50 * time.Millisecond
	_, err := c.Prepare(t.Context(), control.Prepare{Side: control.SideClient})
	wantKind(t, err, control.KindLost)
	theirs.Close()
}

// TestControllerSaysThatItLives reads what an agent with a lifeline hears from a controller that asks nothing of it.
func TestControllerSaysThatItLives(t *testing.T) {
	ours, theirs := net.Pipe()
	go func() {
		_ = control.NewEncoder(theirs).Encode(control.Message{Type: control.TypeHello, Hello: &control.Hello{Version: control.Version}})
	}()
	c, err := control.Dial(t.Context(), control.Endpoint{
		Name: "cluster/pod", Lifeline: 30 * time.Millisecond,
		Start: func(context.Context) (io.ReadWriteCloser, error) { return ours, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	d := control.NewDecoder(theirs)
	for range 3 {
		if m, err := d.Decode(); err != nil || m.Type != control.TypeHeartbeat {
			t.Fatalf("the agent hears %+v, %v", m, err)
		}
	}
	c.Close()
	if m, err := d.Decode(); err != io.EOF {
		t.Errorf("after Close the agent hears %+v, %v", m, err)
	}
}

// TestSilenceHasLastWords wants what the environment knows of an agent that says nothing more.
func TestSilenceHasLastWords(t *testing.T) {
	ours, theirs := net.Pipe()
	defer theirs.Close()
	go func() {
		_ = control.NewEncoder(theirs).Encode(control.Message{Type: control.TypeHello, Hello: &control.Hello{Version: control.Version}})
		_, _ = io.Copy(io.Discard, theirs)
	}()
	c := dial(t, func(context.Context) (io.ReadWriteCloser, error) { return worded{ours}, nil })
	c.HeartbeatLimit = 20 * time.Millisecond
	_, err := c.Prepare(t.Context(), control.Prepare{Side: control.SideClient})
	wantKind(t, err, control.KindLost)
	if !strings.Contains(err.Error(), "node n2 is not ready") {
		t.Errorf("%q leaves out what is known", err)
	}
}

// worded is a stream whose environment knows why it is silent.
type worded struct{ net.Conn }

func (worded) LastWords() string { return "node n2 is not ready" }

// TestRollBesideWait: an answer to a leave wakes whoever waits for it, and not another who waits for the end; without that
// it would be heard with the next heartbeat.
func TestRollBesideWait(t *testing.T) {
	release := make(chan struct{})
	quiet := controltest.Fake{Run: func(p control.Prepare) (*sample.Observation, *control.Error) {
		<-release
		return &sample.Observation{Side: p.Side, ElapsedNs: 1}, nil
	}}
	c, err := control.Dial(t.Context(), control.Endpoint{Name: "server", Start: quiet.Start})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Prepare(t.Context(), control.Prepare{Side: control.SideServer}); err != nil {
		t.Fatal(err)
	}
	if err := c.Start(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 3)
	for range 3 {
		go func() { _, err := c.Wait(t.Context()); done <- err }()
	}
	for range 50 {
		if err := errors.Join(c.Leave(t.Context(), 0), c.Return(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
	close(release)
	for range 3 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
