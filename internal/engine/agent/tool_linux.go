package agent

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/engine/load"
	"github.com/cnibench/cnibench/internal/engine/member"
	"github.com/cnibench/cnibench/internal/external"
	"github.com/cnibench/cnibench/internal/kernel/child"
	"github.com/cnibench/cnibench/internal/kernel/proc"
	"github.com/cnibench/cnibench/internal/kernel/sock"
	"github.com/cnibench/cnibench/internal/measure/sample"
)

const (
	// overtime is how much longer than its expected life a tool may run before it is killed.
	overtime = 5 * time.Second
	// listenTimeout is how long the server of a tool may take to listen, and listenPoll the time between two checks.
	listenTimeout = 5 * time.Second
	listenPoll    = 5 * time.Millisecond
	// margin is how much longer a tool's window is at each edge than our server's: the client takes a moment to start,
	// and ends by its own clock.
	margin = 100 * time.Millisecond
)

// side is one side of a trial, of our engine or of a tool.
type side interface {
	// Port returns the port that a server listens on.
	Port() int
	// Run measures once. It calls edge at the start (false) and at the end (true) of the time whose CPU time counts.
	Run(ctx context.Context, edge func(end bool)) (*sample.Observation, error)
	Close() error
}

// openSide prepares the side that p describes. finished closes when the other side has ended.
func openSide(ctx context.Context, p control.Prepare, finished <-chan struct{}) (side, error) {
	if p.Workload.Traits().Job.Members > 0 {
		m, err := member.Prepare(ctx, p, finished)
		if err != nil {
			return nil, err // a nil *member.Trial would not be a nil side
		}
		return m, nil
	}
	if p.Workload.Tool == "" {
		return prepareLoad(ctx, p)
	}
	a := external.Ask{Workload: p.Workload, Address: p.Address, Port: p.Port, Window: p.Window, Warmup: p.Warmup}
	if congestion := p.Workload.Traits().Congestion; congestion != "" {
		a.SystemCongestion = !sock.MaySetCongestion(congestion)
	}
	if p.Side == control.SideServer && external.Server(a) == nil {
		return prepareLoad(ctx, serverRequest(p))
	}
	g := &guest{ask: a, cpus: p.CPUs, finished: finished}
	if p.Side == control.SideServer {
		return g, g.startServer(ctx)
	}
	g.argv = external.Client(a)
	return g, g.findProgram(ctx)
}

func prepareLoad(ctx context.Context, p control.Prepare) (side, error) {
	l, err := load.Prepare(ctx, p)
	if err != nil {
		return nil, err // a nil *load.Trial would not be a nil side
	}
	return l, nil
}

// serverRequest returns the request for our server if the client is a tool. It is p with a window that begins later and ends
// earlier than the client's.
func serverRequest(p control.Prepare) control.Prepare {
	window, _ := p.Workload.Measured(p.Window, p.Warmup)
	p.Warmup, p.Window = min(margin, window/4), window-2*min(margin, window/4)
	if !p.Workload.Traits().Kernel() {
		p.Awaits = overtime
	}
	p.Workload = p.Workload.Without("tool", "rate", "arrival")
	return p
}

// versions caches the versions of tools by their paths, because reading a version starts a process.
var versions sync.Map

// guest is a side that runs an external tool.
type guest struct {
	ask  external.Ask
	cpus []int
	// argv is the command line, with the path of the program once it is found.
	argv    []string
	version string
	// server is the process of a server; finished closes when its client has ended.
	server   *child.Process
	finished <-chan struct{}
}

// findProgram replaces argv[0] by the path of the program and reads its version. It fails if the program is not installed.
func (g *guest) findProgram(ctx context.Context) error {
	path, err := external.Find(g.ask.Workload.Tool, g.argv[0])
	if err != nil {
		return err
	}
	said, ok := versions.Load(path)
	if !ok {
		said = external.Version(ctx, g.ask.Workload, path)
		versions.Store(path, said)
	}
	g.version, _ = said.(string)
	g.argv[0] = path
	return nil
}

// startProgram starts the program on the CPUs of the side.
func (g *guest) startProgram() (*child.Process, error) {
	p, err := child.Start(child.Options{Argv: g.argv, Env: external.Environment, CPUs: g.cpus, Limit: external.MaxOutput})
	if err != nil {
		return nil, external.Errorf(external.KindStart, g.ask.Workload.Tool, "%v", err)
	}
	return p, nil
}

// startServer starts a server and waits until it listens.
func (g *guest) startServer(ctx context.Context) error {
	tool := g.ask.Workload.Tool
	if g.ask.Port == 0 {
		port, err := freePort()
		if err != nil {
			return external.Errorf(external.KindStart, tool, "%v", err)
		}
		g.ask.Port = port
	}
	g.argv = external.Server(g.ask)
	if err := g.findProgram(ctx); err != nil {
		return err
	}
	var err error
	if g.server, err = g.startProgram(); err != nil {
		return err
	}
	if err = g.awaitListening(ctx); err != nil {
		g.server.Kill()
		<-g.server.Ended() // the next trial finds its ports and CPUs free
	}
	return err
}

// awaitListening waits until the server listens. It fails if the server ends first, or after listenTimeout.
func (g *guest) awaitListening(ctx context.Context) error {
	tool, transport := g.ask.Workload.Tool, external.Transport(g.ask.Workload)
	limit := time.NewTimer(listenTimeout)
	defer limit.Stop()
	look := time.NewTicker(listenPoll)
	defer look.Stop()
	for {
		if up, err := proc.Listening(transport, g.ask.Port); err != nil {
			return external.Errorf(external.KindStart, tool, "see whether it listens: %v", err)
		} else if up {
			return nil
		}
		select {
		case <-look.C:
		case <-g.server.Ended():
			return external.Errorf(external.KindStart, tool, "its server ended before it listened at port %d (%s)%s", g.ask.Port, exitStatus(g.server), g.outputExcerpt(g.server))
		case <-ctx.Done():
			return ctx.Err()
		case <-limit.C:
			return external.Errorf(external.KindStart, tool, "its server did not listen at port %d within %s%s", g.ask.Port, listenTimeout, g.outputExcerpt(g.server))
		}
	}
}

func (g *guest) outputExcerpt(p *child.Process) string {
	return external.Said(external.Output{Stdout: p.Stdout(), Stderr: p.Stderr()})
}

// exitStatus describes how a process ended.
func exitStatus(p *child.Process) string {
	if err := p.Err(); err != nil {
		return err.Error()
	}
	return "exit status 0"
}

// freePort returns a free TCP port, which another program may still take.
func freePort() (int, error) {
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer l.Close() // nothing was written to it
	return l.Addr().(*net.TCPAddr).Port, nil
}

func (g *guest) Port() int { return g.ask.Port }

// Run runs a client's program to its end, or observes a server's until its client has ended.
func (g *guest) Run(ctx context.Context, edge func(end bool)) (*sample.Observation, error) {
	if g.server != nil {
		return g.observeServer(ctx, edge)
	}
	edge(false)
	p, err := g.startProgram()
	if err != nil {
		return nil, err
	}
	life := external.Life(g.ask)
	if err := g.awaitExit(ctx, p, life+overtime); err != nil {
		return nil, err
	}
	edge(true)
	cpu, err := p.CPU()
	if err != nil {
		return nil, err
	}
	if p.Err() == child.ErrTooMuch {
		return nil, external.Errorf(external.KindOutput, g.ask.Workload.Tool, "it wrote more than %d MiB", external.MaxOutput>>20)
	}
	out, err := external.ReadOutput(g.ask, external.Output{Stdout: p.Stdout(), Stderr: p.Stderr(), Exit: p.Err()})
	if err != nil {
		return nil, err
	}
	return g.clientObservation(out, cpu), nil
}

// awaitExit waits for the end of a process. After limit, or if ctx ends, it kills the process and fails.
func (g *guest) awaitExit(ctx context.Context, p *child.Process, limit time.Duration) error {
	limited, stop := context.WithTimeout(ctx, limit)
	defer stop()
	select {
	case <-p.Ended():
		return nil
	case <-limited.Done():
	}
	p.Kill()
	<-p.Ended()
	if err := ctx.Err(); err != nil {
		return err
	}
	return external.Errorf(external.KindTimeout, g.ask.Workload.Tool, "it had not ended after %s%s", limit, g.outputExcerpt(p))
}

// clientObservation returns the observation of a client from its output and its CPU time in ns.
func (g *guest) clientObservation(out external.Outcome, cpu int64) *sample.Observation {
	o := &sample.Observation{}
	if out.Series != nil {
		*o = *out.Series
	}
	o.Side, o.ElapsedNs = control.SideClient, int64(out.Window)
	o.CPU = sample.CPUTime{ThreadsNs: cpu, ProcessNs: cpu}
	o.Tool = g.toolIdentity()
	if out.Version != "" {
		o.Tool.Version = out.Version
	}
	o.Tool.Metrics, o.Tool.Work, o.Tool.Notes = out.Metrics, out.Work, out.Notes
	if limits := external.Limits(g.ask); limits != "" {
		o.Tool.Notes = append(o.Tool.Notes, sample.Warning{ID: external.NoteLimits, Message: limits})
	}
	return o
}

func (g *guest) toolIdentity() *sample.Tool {
	return &sample.Tool{Name: g.ask.Workload.Tool, Version: g.version, Command: g.argv}
}

// observeServer waits until the client has ended, and the server too if it ends with its client. It returns an
// observation with the server's CPU time, whose window is the wait. It calls edge at both ends of the wait.
func (g *guest) observeServer(ctx context.Context, edge func(end bool)) (*sample.Observation, error) {
	edge(false)
	begin := time.Now()
	before, err := g.server.CPU()
	if err != nil {
		return nil, err
	}
	tool, life := g.ask.Workload.Tool, external.Life(g.ask)
	if external.Ends(g.ask.Workload) {
		if err := g.awaitExit(ctx, g.server, life+overtime); err != nil {
			return nil, err
		}
	} else if err := g.awaitClientEnd(ctx, life+2*overtime); err != nil {
		return nil, err
	}
	edge(true)
	after, err := g.server.CPU()
	if err != nil {
		return nil, err
	}
	if external.Ends(g.ask.Workload) && g.server.Err() != nil {
		return nil, external.Errorf(external.KindExit, tool, "its server: %v%s", g.server.Err(), g.outputExcerpt(g.server))
	}
	cpu := max(after-before, 0)
	return &sample.Observation{
		Side: control.SideServer, ElapsedNs: int64(time.Since(begin)), CPU: sample.CPUTime{ThreadsNs: cpu, ProcessNs: cpu}, Tool: g.toolIdentity(),
	}, nil
}

// awaitClientEnd waits until the client has ended. It fails if the server ends first, or after limit.
func (g *guest) awaitClientEnd(ctx context.Context, limit time.Duration) error {
	late := time.NewTimer(limit)
	defer late.Stop()
	tool := g.ask.Workload.Tool
	select {
	case <-g.finished:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-late.C:
		return external.Errorf(external.KindTimeout, tool, "its client had not ended after %s", limit)
	case <-g.server.Ended():
		return external.Errorf(external.KindExit, tool, "its server ended during the trial (%s)%s", exitStatus(g.server), g.outputExcerpt(g.server))
	}
}

// Close kills the server and waits for its end.
func (g *guest) Close() error {
	if g.server != nil {
		g.server.Kill()
		<-g.server.Ended()
	}
	return nil
}
