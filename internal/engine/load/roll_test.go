package load

import (
	"fmt"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/plan"
)

func rolled(connection string) control.Prepare {
	o := options(plan.Workload{Spec: plan.HTTP{Backends: 2, Roll: true, Connection: connection, Threads: 2, Connections: 6}})
	o.Window = 700 * time.Millisecond
	return o
}

// TestServerLeavesAndReturns: while it is away it refuses, and after that it serves as before, with all its threads.
func TestServerLeavesAndReturns(t *testing.T) {
	for _, connection := range []string{"keep-alive", "close"} {
		needNamespace(t)
		server, client := pair(t, rolled(connection))
		seen := start(t.Context(), server)
		done := start(t.Context(), client)
		time.Sleep(150 * time.Millisecond)
		server.Leave(0)
		if c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", server.Port())); err == nil {
			t.Errorf("%s: it still takes connections", connection)
			c.Close()
		}
		time.Sleep(150 * time.Millisecond)
		var was []uint64
		for _, w := range server.workers() {
			was = append(was, w.count.operations.Load())
		}
		time.Sleep(30 * time.Millisecond)
		for i, w := range server.workers() {
			if n := w.count.operations.Load(); n != was[i] {
				t.Errorf("%s: thread %d answered %d while it was away", connection, i, n-was[i])
			}
		}
		server.Return()
		c, s := wait(t, done, 1)[0], wait(t, seen, 1)[0]
		if c.err != nil || s.err != nil {
			t.Fatal(c.err, s.err)
		}
		if c.o.Errors[refused.String()] == 0 {
			t.Errorf("%s: nobody was refused: %v", connection, c.o.Errors)
		}
		if len(s.o.Rolls) != 1 || !s.o.Rolls[0].Returned || s.o.Rolls[0].LastNs != 0 || s.o.Rolls[0].FirstNs <= 0 ||
			s.o.Rolls[0].FirstNs > int64(500*time.Millisecond) || s.o.Rolls[0].DrainNs > int64(100*time.Millisecond) {
			t.Errorf("%s: %+v", connection, s.o.Rolls)
		}
		for i, w := range server.workers() {
			if connection == "close" && w.count.operations.Load() == was[i] {
				t.Errorf("thread %d answered nothing after it was back", i)
			}
		}
	}
}

// TestServerDrains: it serves on for the drain, each response the last of its connection, and nobody is turned away. A
// client that knows of it goes elsewhere; one that does not is refused afterwards.
func TestServerDrains(t *testing.T) {
	needNamespace(t)
	s := prepare(t, control.SideServer, rolled("keep-alive"))
	seen := start(t.Context(), s)
	url := fmt.Sprintf("http://127.0.0.1:%d/", s.Port())
	ask := func() (last bool, err error) {
		res, err := http.Get(url)
		if err != nil {
			return false, err
		}
		return res.Close, res.Body.Close()
	}
	if last, err := ask(); err != nil || last {
		t.Fatalf("before: last %v, %v", last, err)
	}
	s.Leave(200 * time.Millisecond)
	begin := time.Now()
	for range 3 {
		if last, err := ask(); err != nil || !last {
			t.Errorf("while it drains: last %v, %v", last, err)
		}
	}
	met := time.Since(begin)
	for range 200 { // the drain ends in its time
		if _, err := ask(); err != nil {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	if _, err := ask(); err == nil {
		t.Fatal("it does not end")
	}
	s.Return()
	if last, err := ask(); err != nil || last {
		t.Errorf("when it is back: last %v, %v", last, err)
	}
	r := wait(t, seen, 1)[0]
	if r.err != nil {
		t.Fatal(r.err)
	}
	if got := r.o.Rolls; len(got) != 1 || got[0].DrainNs < int64(200*time.Millisecond) || got[0].LastNs < 1 || got[0].LastNs > got[0].DrainNs || got[0].FirstNs < 1 {
		t.Errorf("%+v; the last that knew of it came within %s", r.o.Rolls, met)
	}
}

// TestRollsOutOfTurn: what cannot be is the error of the trial, and never a number.
func TestRollsOutOfTurn(t *testing.T) {
	for name, do := range map[string]func(*Trial){
		"return before leave": (*Trial).Return,
		"leave twice":         func(s *Trial) { s.Leave(0); s.Leave(0) },
	} {
		t.Run(name, func(t *testing.T) {
			needNamespace(t)
			s := prepare(t, control.SideServer, rolled("close"))
			seen := start(t.Context(), s)
			do(s)
			if r := wait(t, seen, 1)[0]; kindOf(r.err) == "" {
				t.Errorf("no error: %+v", r.o)
			}
		})
	}
}

// TestCloseWhileAway: nothing hangs and nothing is left, wherever a roll is.
func TestCloseWhileAway(t *testing.T) {
	needNamespace(t)
	for _, drain := range []time.Duration{0, time.Hour} {
		s := prepare(t, control.SideServer, rolled("close"))
		s.Leave(drain)
		back := make(chan struct{})
		go func() { s.Return(); close(back) }()
		time.Sleep(5 * time.Millisecond)
		must(t, s.Close())
		<-back
	}
}

// TestLeaveAfterClose: a word that comes late shuts nobody's descriptors, whatever is under their numbers by now.
func TestLeaveAfterClose(t *testing.T) {
	needNamespace(t)
	s := prepare(t, control.SideServer, rolled("close"))
	must(t, s.Close())
	var others []net.Listener
	for range 16 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		defer l.Close()
		others = append(others, l)
	}
	s.Leave(0)
	for _, l := range others {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatalf("another's listener was shut: %v", err)
		}
		c.Close()
	}
}
