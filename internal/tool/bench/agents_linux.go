package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/tool/strace"
)

// warmup is that of our engine; tools have none.
const warmup = 100 * time.Millisecond

// ends are the agents at the two ends.
type ends struct {
	client, server *control.Client
	cpu            int
}

// dial starts an agent in each namespace. before is put in front of the client's command line.
func (w *world) dial(ctx context.Context, before []string) (*ends, error) {
	o := &ends{cpu: w.cpu}
	var err error
	if o.server, err = w.dialIn(ctx, w.server, nil); err != nil {
		return nil, err
	}
	if o.client, err = w.dialIn(ctx, w.client, before); err != nil {
		return nil, errors.Join(err, o.server.Close())
	}
	return o, nil
}

func (w *world) dialIn(ctx context.Context, ns *netns.NS, before []string) (*control.Client, error) {
	return control.Dial(ctx, control.Endpoint{Name: "bench", Start: func(context.Context) (io.ReadWriteCloser, error) {
		return w.startAgent(ns, slices.Concat(before, w.agent))
	}})
}

func (o *ends) close() error { return errors.Join(o.client.Close(), o.server.Close()) }

// measure runs one trial of t by tool; "" is our engine.
func (o *ends) measure(ctx context.Context, t task, tool string, length time.Duration) (reading, error) {
	w, err := t.workloadBy(tool)
	if err != nil {
		return reading{}, err
	}
	p := control.Prepare{Workload: w, Window: length}
	if tool == "" {
		p.Warmup = warmup
	}
	client, server, err := o.trial(ctx, p)
	if err != nil {
		return reading{}, fmt.Errorf("%s by %q: %w", t.name, tool, err)
	}
	return readingOf(t, client, server)
}

// trial runs one trial with both agents, the server first.
func (o *ends) trial(ctx context.Context, p control.Prepare) (client, server *sample.Observation, err error) {
	p.Side, p.Address, p.CPUs = control.SideServer, serverAddress, []int{o.cpu}
	p.Interval, p.Timeout = p.Window+p.Warmup, time.Second
	ready, err := o.server.Prepare(ctx, p)
	if err != nil {
		return nil, nil, err
	}
	p.Side, p.Port = control.SideClient, ready.Port
	if _, err = o.client.Prepare(ctx, p); err != nil {
		return nil, nil, errors.Join(err, o.server.Cancel())
	}
	defer func() { err = errors.Join(err, o.client.Cancel(), o.server.Cancel()) }()
	if err = o.server.Start(ctx, 0); err != nil {
		return nil, nil, err
	}
	if err = o.client.Start(ctx, 0); err != nil {
		return nil, nil, err
	}
	if client, err = o.client.Wait(ctx); err != nil {
		return nil, nil, err
	}
	if client.Tool != nil {
		if err = o.server.Finish(ctx); err != nil {
			return nil, nil, err
		}
	}
	server, err = o.server.Wait(ctx)
	return client, server, err
}

// trace runs one trial with the client's agent, and the tool that it starts, under strace.
func (w *world) trace(ctx context.Context, t task, tool string) (tracing, error) {
	table := filepath.Join(w.dir, "calls")
	r := tracing{task: t.name, tool: tool, side: "client"}
	if tool == "" {
		r.tool = "cnibench"
	}
	work, err := t.workloadBy(tool)
	if err != nil {
		return r, err
	}
	o, err := w.dial(ctx, strace.Counted(table))
	if err != nil {
		return r, err
	}
	client, _, err := o.trial(ctx, control.Prepare{Workload: work, Window: traceLength})
	if err = errors.Join(err, o.close()); err != nil {
		return r, fmt.Errorf("%s by %s: %w", t.name, r.tool, err)
	}
	r.transactions = transactions(client)
	if r.calls, err = strace.SystemCalls(table); err != nil {
		return r, fmt.Errorf("strace's table: %w", err)
	}
	return r, nil
}

// agentProcess is an agent as the stream of its stdin and stdout.
type agentProcess struct {
	io.Reader
	io.WriteCloser
	ended chan error
	cmd   *exec.Cmd
}

// startAgent starts an agent in ns; it finds its own CPUs, and the load goes where Prepare says.
func (w *world) startAgent(ns *netns.NS, argv []string) (*agentProcess, error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = []string{control.RuntimeVariable + "=" + control.RuntimeSetting, "PATH=" + w.dir + ":" + os.Getenv("PATH")}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := w.starter.Start(ns, cmd); err != nil {
		return nil, err
	}
	return &agentProcess{Reader: out, WriteCloser: in, cmd: cmd, ended: make(chan error, 1)}, nil
}

// Close lets the agent end, which it does at the end of its input, and waits for it.
func (a *agentProcess) Close() error {
	_ = a.WriteCloser.Close() // the process may have closed the pipe by ending
	go func() { a.ended <- a.cmd.Wait() }()
	patience := time.NewTimer(5 * time.Second)
	defer patience.Stop()
	select {
	case err := <-a.ended:
		return err
	case <-patience.C:
		_ = a.cmd.Process.Kill()
		<-a.ended
		return errors.New("the agent did not end with its input")
	}
}
