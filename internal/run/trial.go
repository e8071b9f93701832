package run

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/outcome"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/sample"
	"github.com/cnibench/cnibench/internal/wire"
)

const (
	// grace is how much longer than its warm-up and window a trial may take before it has failed.
	grace = 10 * time.Second
	// rowsFrom is the shortest window that is cut into rows of progress, and rows is how many.
	rowsFrom = 500 * time.Millisecond
	rows     = 10
)

// kindTimeout is the failure of a trial that did not end.
const kindTimeout = "timeout"

// sided is an error of one side.
type sided struct {
	side string
	err  error
}

func (s *sided) Error() string { return s.side + ": " + s.err.Error() }
func (s *sided) Unwrap() error { return s.err }

// trial measures once. ok is false if ctx ended before the trial did; then there is no record.
func (c *conductor) trial(ctx context.Context, t plan.Trial) (rec result.Record, ok bool) {
	e := c.survey.routes[route{t.Profile, t.Path}]
	begin := time.Now()
	rec = result.Record{Type: result.TypeTrial, Trial: t, Status: result.OK, Started: begin.UTC()}
	limit := c.plan.Warmup + c.plan.Duration + grace
	bounded, stop := context.WithTimeout(ctx, limit)
	defer stop()
	client, server, err := c.measure(bounded, e, t.Workload)
	rec.WallNs = int64(time.Since(begin))
	if err != nil {
		nameC, nameS := e.names()
		c.agents.discard(nameC)
		c.agents.discard(nameS)
		if ctx.Err() != nil {
			return rec, false
		}
		rec.Status, rec.Error = result.Failed, failure(err, limit)
		return rec, true
	}
	_, nameS := e.names()
	c.agents.release(nameS)
	rec.Client, rec.Server = client, server
	rec.WindowNs = client.ElapsedNs
	rec.Metrics, rec.Warnings = outcome.Derive(t.Workload, client, server, c.conditions(t.Path))
	if len(c.changed) > 0 {
		rec.Warnings = append(rec.Warnings, result.Warning{ID: ConditionsChanged, Message: strings.Join(c.changed, "; ")})
	}
	return rec, true
}

// conditions are those of the environment on one path: what stays within a node passes no NIC, and no line rate.
func (c *conductor) conditions(p plan.Path) outcome.Conditions {
	x := c.env.Conditions()
	if p.From != plan.External && (p.Locality == plan.SameNode || p.Locality == plan.Local || p.To == plan.Self) {
		x.LineRate = 0
	}
	return x
}

// measure runs one workload between two ends.
func (c *conductor) measure(ctx context.Context, e ends, w plan.Workload) (client, server *sample.Observation, err error) {
	nameC, nameS := e.names()
	s, err := c.agents.get(ctx, nameS, e.server)
	if err != nil {
		return nil, nil, &sided{wire.SideServer, err}
	}
	cl, err := c.agents.get(ctx, nameC, e.client)
	if err != nil {
		return nil, nil, &sided{wire.SideClient, err}
	}
	ask := wire.Prepare{
		Side: wire.SideServer, Workload: w, Address: e.server.ListenAddress, Port: e.server.ListenPort, CPUs: e.server.CPUs,
		Warmup: c.plan.Warmup, Window: c.plan.Duration, Timeout: patience(w, c.plan.Duration),
	}
	if c.plan.Duration >= rowsFrom {
		ask.Interval = c.plan.Duration / rows
	}
	ready, err := s.Prepare(ctx, ask)
	if err != nil {
		return nil, nil, &sided{wire.SideServer, err}
	}
	ask.Side, ask.Address, ask.Port, ask.CPUs = wire.SideClient, e.server.Address, e.server.Port, e.client.CPUs
	if ask.Port == 0 {
		ask.Port = ready.Port
	}
	if _, err := cl.Prepare(ctx, ask); err != nil {
		return nil, nil, &sided{wire.SideClient, err}
	}
	return both(ctx, cl, s)
}

// both starts the server, then the client, and waits for the two. When one fails the other is given up at once; the
// error is that of the one that failed first.
func both(ctx context.Context, cl, s *wire.Client) (client, server *sample.Observation, err error) {
	if err := s.Start(ctx); err != nil {
		return nil, nil, &sided{wire.SideServer, err}
	}
	if err := cl.Start(ctx); err != nil {
		return nil, nil, &sided{wire.SideClient, err}
	}
	type answer struct {
		seen *sample.Observation
		err  error
	}
	served := make(chan answer, 1)
	ctx, give := context.WithCancelCause(ctx)
	defer give(nil)
	go func() {
		o, err := s.Wait(ctx)
		if err != nil {
			give(&sided{wire.SideServer, err})
		}
		served <- answer{o, err}
	}()
	client, err = cl.Wait(ctx)
	if err != nil {
		give(&sided{wire.SideClient, err})
	}
	a := <-served
	if err != nil || a.err != nil {
		return nil, nil, context.Cause(ctx)
	}
	return client, a.seen, nil
}

// patience is how long one exchange may take before it is an error. TCP repeats a lost segment by itself, which shall
// be seen as a long round trip; a lost datagram of a closed loop would otherwise be the end of a short window.
func patience(w plan.Workload, window time.Duration) time.Duration {
	if w.Protocol == plan.TCP {
		return 5 * time.Second
	}
	return min(max(window/5, 20*time.Millisecond), time.Second)
}

// failure turns what ended a trial into its record.
func failure(err error, limit time.Duration) *result.Failure {
	f := &result.Failure{Kind: "internal", Message: err.Error()}
	var side *sided
	if errors.As(err, &side) {
		f.Side, f.Message = side.side, side.err.Error()
	}
	var said *wire.Error
	switch {
	case errors.As(err, &said):
		f.Kind = said.Kind
	case errors.Is(err, context.DeadlineExceeded):
		f.Kind, f.Message = kindTimeout, fmt.Sprintf("the trial had not ended after %s", limit)
	}
	return f
}
