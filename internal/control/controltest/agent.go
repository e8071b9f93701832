// Package controltest is a fake agent: it speaks the protocol of package control over a pipe and lets a script
// determine what each trial observes. Code that drives agents can be tested with it without a network.
package controltest

import (
	"context"
	"io"
	"net"
	"sync"
	"time"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/measure/sample"
)

// Script returns the result of a started trial. It runs on its own goroutine; the answer of a cancelled trial is
// dropped.
type Script func(control.Prepare) (*sample.Observation, *control.Error)

// Faults that a Script may return.
var (
	// Die makes the agent end in mid-trial, leaving LastWords behind.
	Die = &control.Error{Kind: "die"}
	// Silence makes the agent send nothing more, not even heartbeats, but keep its stream open.
	Silence = &control.Error{Kind: "silence"}
)

// LastWords is what an agent that dies by Die leaves on its standard error.
const LastWords = "fatal: scripted death"

// Port is the port that the fake server reports if it was asked for any port.
const Port = 40000

// Beat is the time between heartbeats, shorter than the real one so that tests are quick.
const Beat = 20 * time.Millisecond

// Agent returns an Endpoint's Start function: each call starts a fake agent that lives until its stream is closed.
func Agent(s Script) func(context.Context) (io.ReadWriteCloser, error) {
	return Fake{Run: s}.Start
}

// Fake is an agent with more settings than its script. Zero fields behave like a correct agent.
type Fake struct {
	// Hello replaces the agent's hello. (optional)
	Hello *control.Hello
	// Prepare may refuse a trial. (optional)
	Prepare func(control.Prepare) *control.Error
	Run     Script
	// Stands is the trial's state in its heartbeats. (optional)
	Stands string
}

// Start starts a fake agent, as an Endpoint's Start function does.
func (f Fake) Start(context.Context) (io.ReadWriteCloser, error) {
	ours, theirs := net.Pipe()
	s := &stream{Conn: theirs}
	a := &agent{Fake: f, conn: ours, peer: s, enc: control.NewEncoder(ours)}
	go a.serve()
	return s, nil
}

// stream is the controller's end of the pipe.
type stream struct {
	net.Conn
	mu    sync.Mutex
	words string
}

// LastWords returns what the agent wrote to its standard error.
func (s *stream) LastWords() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.words
}

type agent struct {
	Fake
	conn net.Conn
	peer *stream
	enc  *control.Encoder
	// silent and current are guarded by mu.
	mu      sync.Mutex
	silent  bool
	current uint64
}

// sendUnlessSilent sends m unless the agent is silent. It ignores a controller that has gone.
func (a *agent) sendUnlessSilent(m control.Message) {
	a.mu.Lock()
	silent := a.silent
	a.mu.Unlock()
	if !silent {
		_ = a.enc.Encode(m)
	}
}

func (a *agent) serve() {
	defer a.conn.Close()
	stop := make(chan struct{})
	defer close(stop)
	hello := a.Hello
	if hello == nil {
		hello = &control.Hello{Version: control.Version, Program: "wiretest", PID: 1}
	}
	a.sendUnlessSilent(control.Message{Type: control.TypeHello, Hello: hello})
	go a.sendHeartbeats(stop)
	d := control.NewDecoder(a.conn)
	var prepared control.Prepare
	for {
		m, err := d.Decode()
		if err != nil {
			return
		}
		switch m.Type {
		case control.TypePrepare:
			prepared = *m.Prepare
			a.prepareTrial(m.Trial, prepared)
		case control.TypeStart:
			a.sendUnlessSilent(control.Message{Type: control.TypeStarted, Trial: m.Trial})
			go a.runTrial(m.Trial, prepared)
		case control.TypeLeave, control.TypeReturn:
			a.sendUnlessSilent(control.Message{Type: control.TypeRolled, Trial: m.Trial})
		case control.TypeCancel:
			a.finishTrial(m.Trial, nil, &control.Error{Kind: control.KindCancelled, Message: "cancelled"})
		}
	}
}

func (a *agent) sendHeartbeats(stop <-chan struct{}) {
	tick := time.NewTicker(Beat)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
			a.mu.Lock()
			trial := a.current
			a.mu.Unlock()
			if trial != 0 {
				a.sendUnlessSilent(control.Message{Type: control.TypeHeartbeat, Trial: trial, Stands: a.Stands})
			}
		}
	}
}

func (a *agent) prepareTrial(trial uint64, p control.Prepare) {
	a.mu.Lock()
	a.current = trial
	a.mu.Unlock()
	if a.Prepare != nil {
		if err := a.Prepare(p); err != nil {
			a.finishTrial(trial, nil, err)
			return
		}
	}
	ready := &control.Ready{}
	if p.Side == control.SideServer {
		ready.Port = p.Port
		if ready.Port == 0 {
			ready.Port = Port
		}
	}
	a.sendUnlessSilent(control.Message{Type: control.TypeReady, Trial: trial, Ready: ready})
}

func (a *agent) runTrial(trial uint64, p control.Prepare) {
	o, err := a.Run(p)
	a.finishTrial(trial, o, err)
}

// finishTrial answers trial once, or does what the fault err asks for.
func (a *agent) finishTrial(trial uint64, o *sample.Observation, err *control.Error) {
	a.mu.Lock()
	mine := a.current == trial
	if mine && err != Silence {
		a.current = 0
	}
	a.silent = a.silent || mine && err == Silence
	a.mu.Unlock()
	switch {
	case !mine || err == Silence:
	case err == Die:
		a.peer.mu.Lock()
		a.peer.words = LastWords
		a.peer.mu.Unlock()
		_ = a.conn.Close()
	case err != nil:
		a.sendUnlessSilent(control.Message{Type: control.TypeError, Trial: trial, Error: err})
	default:
		a.sendUnlessSilent(control.Message{Type: control.TypeDone, Trial: trial, Done: o})
	}
}
