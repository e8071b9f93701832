package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/cnibench/cnibench/internal/conduct/control"
	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
)

const (
	ourWarmup = 100 * time.Millisecond
	// ourEnv keeps Go's runtime from interrupting load threads, as the lab does.
	ourEnv = "GODEBUG=asyncpreemptoff=1"
)

// ours is cnibench: two agents.
type ours struct {
	program        []string
	client, server *control.Client
}

// dial starts an agent in each namespace. before is put in front of the client's command line.
func dial(ctx context.Context, w *world, program, before []string) (*ours, error) {
	o := &ours{program: program}
	var err error
	if o.server, err = o.agent(ctx, w, w.server, nil); err != nil {
		return nil, err
	}
	if o.client, err = o.agent(ctx, w, w.client, before); err != nil {
		return nil, errors.Join(err, o.server.Close())
	}
	return o, nil
}

func (o *ours) agent(ctx context.Context, w *world, ns *netns.NS, before []string) (*control.Client, error) {
	return control.Dial(ctx, control.Endpoint{Name: "bench", Start: func(context.Context) (io.ReadWriteCloser, error) {
		return startAgent(w, ns, append(append([]string(nil), before...), o.program...))
	}})
}

func (o *ours) close() error { return errors.Join(o.client.Close(), o.server.Close()) }

func workloadOf(t task) plan.Workload {
	switch t.name {
	case taskStream:
		return plan.Workload{Kind: plan.Stream, MessageSize: t.message}
	case taskUDP:
		return plan.Workload{Kind: plan.Stream, Protocol: plan.UDP, MessageSize: t.message}
	case taskCRR:
		return plan.Workload{Kind: plan.CRR, RequestSize: t.sizes[0], ResponseSize: t.sizes[1]}
	}
	if t.connections > 0 {
		return plan.Workload{Kind: plan.HTTP, Threads: t.threads, Connections: t.connections}
	}
	return plan.Workload{Kind: plan.RR, RequestSize: t.sizes[0], ResponseSize: t.sizes[1]}
}

func (o *ours) run(ctx context.Context, w *world, t task) (reading, error) {
	client, server, err := o.trial(ctx, w, t, ourWarmup)
	if err != nil {
		return reading{}, fmt.Errorf("cnibench, %s: %w", t.name, err)
	}
	// Each side's cost is over its own count, because each has its own window.
	switch t.name {
	case taskStream:
		return reading{
			rate: perSecond(float64(server.BytesReceived)*8, server),
			cost: perUnit(client, float64(client.BytesSent)/1000) + perUnit(server, float64(server.BytesReceived)/1000),
		}, nil
	case taskUDP:
		received := float64(server.Datagrams.Received)
		// What was sent in vain is part of the cost of what arrived.
		arrived := received / float64(max(server.Datagrams.Expected, 1))
		return reading{
			rate: perSecond(received, server),
			cost: perUnit(client, float64(client.Operations)*arrived) + perUnit(server, received),
		}, nil
	}
	return reading{
		rate: perSecond(float64(client.Operations), client),
		cost: perUnit(client, float64(client.Operations)) + perUnit(server, float64(server.Operations)),
	}, nil
}

func perSecond(units float64, o *sample.Observation) float64 {
	return units * 1e9 / float64(o.ElapsedNs)
}

func perUnit(o *sample.Observation, units float64) float64 { return float64(o.CPU.ProcessNs) / units }

// trial runs one trial with both agents, the server first.
func (o *ours) trial(ctx context.Context, w *world, t task, warmup time.Duration) (client, server *sample.Observation, err error) {
	p := control.Prepare{
		Side: control.SideServer, Workload: workloadOf(t), Address: serverAddress, CPUs: []int{w.cpu},
		Warmup: warmup, Window: t.length, Interval: t.length + warmup, Timeout: time.Second,
	}
	ready, err := o.server.Prepare(ctx, p)
	if err != nil {
		return nil, nil, err
	}
	p.Side, p.Port = control.SideClient, ready.Port
	if _, err = o.client.Prepare(ctx, p); err != nil {
		return nil, nil, errors.Join(err, o.server.Cancel())
	}
	defer func() { err = errors.Join(err, o.client.Cancel(), o.server.Cancel()) }()
	if err = o.server.Start(ctx); err != nil {
		return nil, nil, err
	}
	if err = o.client.Start(ctx); err != nil {
		return nil, nil, err
	}
	if client, err = o.client.Wait(ctx); err != nil {
		return nil, nil, err
	}
	server, err = o.server.Wait(ctx)
	return client, server, err
}

// traceOurs runs one trial with the client's agent under strace.
func traceOurs(ctx context.Context, w *world, program []string, t task, dir string) (tracing, error) {
	table := filepath.Join(dir, "calls")
	o, err := dial(ctx, w, program, strace(table))
	if err != nil {
		return tracing{}, fmt.Errorf("cnibench under strace: %w", err)
	}
	client, _, err := o.trial(ctx, w, t, 0)
	if err = errors.Join(err, o.close()); err != nil {
		return tracing{}, fmt.Errorf("cnibench under strace: %w", err)
	}
	all := tracing{task: t.name, tool: "cnibench", side: "client"}
	for _, row := range client.Intervals {
		all.transactions += float64(row.Operations) // before the window too
	}
	return readTable(table, all)
}

// agentProcess is an agent as the stream of its stdin and stdout.
type agentProcess struct {
	io.Reader
	io.WriteCloser
	ended chan error
	cmd   *exec.Cmd
}

// startAgent starts an agent in ns; it finds its own CPUs, and the load goes where Prepare says.
func startAgent(w *world, ns *netns.NS, argv []string) (*agentProcess, error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = []string{ourEnv}
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
