package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/kernel/child"
)

// agent is an agent process of the lab. Write writes to its stdin, Read reads from its stdout.
type agent struct {
	name string
	cmd  *exec.Cmd
	// onClose is called when the agent is closed.
	onClose func()
	// in and out are our ends of the pipes.
	in, out *os.File
	stderr  child.Tail
	// ended is closed when the process has ended and Wait has returned.
	ended chan struct{}
	once  sync.Once
}

// startAgent starts an agent in h. It fails if ctx is done; after the start, ctx has no effect. The agent runs until it
// or the lab is closed.
func (l *Lab) startAgent(ctx context.Context, name string, h *Host) (io.ReadWriteCloser, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(l.options.Program) == 0 {
		return nil, errors.New("start agent: the lab has no program to start")
	}
	var a *agent
	a = newAgent(name, l.options.Program, l.options.Env, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.agents, a)
	})
	return a.openStream(func(cmd *exec.Cmd) error { return l.startCommand(h, cmd, func() { l.agents[a] = struct{}{} }) })
}

// StartAgent starts an agent and returns its stdin and stdout as one stream. start must start the command, in the
// namespace and cgroup of the agent.
func StartAgent(name string, program []string, start func(*exec.Cmd) error) (io.ReadWriteCloser, error) {
	return newAgent(name, program, nil, func() {}).openStream(start)
}

func newAgent(name string, program, env []string, onClose func()) *agent {
	a := &agent{name: name, onClose: onClose, ended: make(chan struct{}), cmd: exec.Command(program[0], program[1:]...)}
	a.cmd.Env = append([]string{control.RuntimeVariable + "=" + control.RuntimeSetting}, env...)
	a.cmd.Stderr = &a.stderr
	// A grandchild may hold the pipes open.
	a.cmd.WaitDelay = time.Second
	return a
}

func (a *agent) openStream(start func(*exec.Cmd) error) (io.ReadWriteCloser, error) {
	if err := a.start(start); err != nil {
		return nil, fmt.Errorf("start agent at %s: %w", a.name, err)
	}
	return a, nil
}

func (a *agent) start(start func(*exec.Cmd) error) error {
	childIn, in, err := os.Pipe()
	if err != nil {
		return err
	}
	out, childOut, err := os.Pipe()
	if err != nil {
		_ = errors.Join(childIn.Close(), in.Close())
		return err
	}
	a.in, a.out, a.cmd.Stdin, a.cmd.Stdout = in, out, childIn, childOut
	err = start(a.cmd)
	_ = errors.Join(childIn.Close(), childOut.Close()) // the child has copies
	if err != nil {
		_ = errors.Join(in.Close(), out.Close())
		return err
	}
	go func() {
		defer close(a.ended)
		_ = a.cmd.Wait() // Read reports its last words
	}()
	return nil
}

// startCommand starts cmd in the namespace and cgroup of h, on the CPUs for h's processes. After the start it calls
// onStart under the lab's lock, unless onStart is nil. It fails with errClosed if the lab is closed.
func (l *Lab) startCommand(h *Host, cmd *exec.Cmd, onStart func()) error {
	if h.group != nil {
		child.InCgroup(cmd, h.group.FD())
	}
	// A grandchild may hold the pipes open.
	cmd.WaitDelay = time.Second
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return errClosed
	}
	if err := l.starter.Start(h.NS, cmd, h.aside...); err != nil {
		return err
	}
	if onStart != nil {
		onStart()
	}
	return nil
}

// Read reads the agent's stdout. At the end of stdout, it fails with the last output on stderr, or with io.EOF if stderr is
// empty.
func (a *agent) Read(b []byte) (int, error) {
	n, err := a.out.Read(b)
	if !errors.Is(err, io.EOF) {
		return n, err
	}
	late := time.NewTimer(time.Second)
	defer late.Stop()
	select {
	case <-a.ended:
	case <-late.C:
	}
	if last := a.LastWords(); last != "" {
		return n, fmt.Errorf("agent at %s ended: %s", a.name, last)
	}
	return n, io.EOF
}

// Write writes to the agent's stdin.
func (a *agent) Write(b []byte) (int, error) { return a.in.Write(b) }

// LastWords returns the last 4 KiB of the agent's stderr.
func (a *agent) LastWords() string { return strings.TrimSpace(a.stderr.String()) }

// Close kills the agent and waits until it has ended.
func (a *agent) Close() error {
	a.onClose()
	a.killAndWait()
	return nil
}

func (a *agent) killAndWait() {
	a.once.Do(func() {
		_ = a.cmd.Process.Kill() // fails if the process has ended
		<-a.ended
		_ = errors.Join(a.in.Close(), a.out.Close())
	})
}
