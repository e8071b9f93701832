package run

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/measure/outcome"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
)

const (
	// grace is how much longer than its warm-up and window a trial may take before it fails.
	grace = 10 * time.Second
	// sliceCount is the number of slices of a window, as long as a slice is neither shorter than shortSlice nor longer
	// than longSlice.
	sliceCount            = 20
	shortSlice, longSlice = 10 * time.Millisecond, 50 * time.Millisecond
)

// kindTimeout is the failure of a trial that did not end, kindStalled of a trial whose path was cut within the window.
const (
	kindTimeout = "timeout"
	kindStalled = "stalled"
)

// trial measures once. ok is false if ctx ended before the trial did; then there is no record.
func (c *conductor) trial(ctx context.Context, t plan.Trial) (rec result.Record, ok bool) {
	if why := c.instances.broken[plan.Single(t.Profile, t.Path)]; why != nil {
		return unraised(t, why), true
	}
	begin := time.Now()
	e, failed := c.survey.endsOf(ctx, c.env, t)
	rec = result.Record{Type: result.TypeTrial, Trial: t, Instance: c.instances.last[t.Profile], Status: result.OK, Started: begin.UTC()}
	k := c.plan.Loaded(t.Case)
	limit := c.limit(k)
	bounded, stop := context.WithTimeout(ctx, limit)
	defer stop()
	if failed != nil {
		rec.Status, rec.Error = result.Failed, failure(failed, limit)
		return rec, ctx.Err() == nil
	}
	capacity, err := c.capacity(t.Case)
	if err != nil {
		rec.Status, rec.Error = result.Failed, &result.Failure{Kind: kindNoCapacity, Message: err.Error()}
		return rec, true
	}
	if err := c.dead(t.Profile, nil); err != nil {
		rec.Status, rec.Error = result.Failed, failure(err, limit)
		return rec, true
	}
	before := c.full(t.Profile)
	do := mannerOf(k.Workload.Kind())
	v, err := do.measure(c, bounded, e, job{k, t.Route(), asked(k.Workload, capacity), c.span(k.Workload)})
	rec.WallNs = int64(time.Since(begin))
	rec.Client, rec.Server, rec.Drops, rec.Probes, rec.Churn = v.client, v.server, v.drops, v.probes, v.churn
	err = c.dead(t.Profile, overflowed(before, c.full(t.Profile), err))
	if err != nil {
		c.forget(e)
		if ctx.Err() != nil {
			return rec, false
		}
		rec.Status, rec.Error = result.Failed, failure(err, limit)
		return rec, true
	}
	c.release(e)
	rec.WindowNs = v.windowNs
	conditions := c.conditions(k)
	conditions.Backends, conditions.Capacity = len(e.Servers), capacity
	conditions.Drops, conditions.Apart, conditions.Churn = v.drops, v.apart, v.churn
	rec.Metrics, rec.Warnings = do.derive(k.Workload, rec, conditions)
	if len(c.changed) > 0 {
		rec.Warnings = append(rec.Warnings, sample.Warning{ID: conditionsChanged, Message: strings.Join(c.changed, "; ")})
	}
	return rec, true
}

// release ends the work of the servers of a path.
func (c *conductor) release(e control.Ends) {
	_, servers := names(e)
	for _, name := range servers {
		c.agents.release(name)
	}
}

// forget ends the agents of a path, whose state is unknown after a failure.
func (c *conductor) forget(e control.Ends) {
	client, servers := names(e)
	for _, name := range append(servers, client) {
		c.agents.discard(name)
	}
}

// conditions returns the environment's conditions for one case: with the variant's own, and without the line rate on a
// path within a node, which does not pass a NIC.
func (c *conductor) conditions(k plan.Case) outcome.Conditions {
	x := c.env.Conditions()
	if k.Profile.Conditions() != "" {
		own := k.Profile.Lab(c.plan.Lab)
		x.MTU, x.NIC = own.MTU, own.NIC
	}
	if own := k.Route().NIC; own != "" {
		x.NIC = own
	}
	if !k.Path.Crosses() {
		x.LineRate = 0
	}
	return x
}

// job is one measurement between two ends: a case, or a part of one.
type job struct {
	plan.Case
	route plan.Route
	// workload is requested from the control.Ends: the Case's workload, with values that were measured since.
	workload plan.Workload
	span
}

// span is how long is measured.
type span struct{ warmup, window time.Duration }

// seen is the result of a job.
type seen struct {
	client, server *sample.Observation
	// drops are the drops on the hosts between the control.Ends, nil if they could not be read or do not matter.
	drops  []sample.Drop
	probes []result.Probe
	// churn is the account of changes, nil without any.
	churn *sample.Churn
	// windowNs is how long was measured.
	windowNs int64
	// apart is true if no server was on the client's machine.
	apart bool
}

// limit returns how long a trial may take before it fails.
func (c *conductor) limit(k plan.Case) time.Duration {
	return mannerOf(k.Workload.Kind()).lasts(c, k.Workload, 4*c.roundTrip(k)) + grace
}

// span returns how long a workload is measured in the current trial.
func (c *conductor) span(w plan.Workload) span {
	if c.recording != nil {
		return span{c.plan.Warmup, c.recording.window}
	}
	return span{c.plan.Warmup, cmp.Or(w.Window, c.plan.Duration)}
}

// measure runs one workload between two ends. It merges the observations of several servers.
func (c *conductor) measure(ctx context.Context, e control.Ends, j job) (seen, error) {
	if err := c.putBack(ctx, j); err != nil {
		return seen{}, err
	}
	sides, err := c.prepare(ctx, e, j)
	if err != nil {
		return seen{}, err
	}
	drops, rolls, churn := c.watch(j), c.rolling(j, sides.Servers), c.churning(j)
	client, server, err := sides.Run(ctx, func() { drops.begin(); rolls.begin(ctx); churn.begin(ctx); c.recording.start() })
	if why := outcome.Stalled(j.workload, client, server); err == nil && why != "" {
		err = &control.Error{Kind: kindStalled, Message: why}
	}
	changes, err := churn.end(rolls.end(ctx, err))
	if rolls.out {
		c.missing = append(c.missing, rolls.backend())
	}
	v := seen{client: client, server: server, drops: drops.end(), apart: sides.Apart(), churn: changes}
	if err == nil {
		v.windowNs = client.ElapsedNs
	}
	return v, err
}

// ask returns the request to both sides of a job.
func (c *conductor) ask(j job) control.Prepare {
	roundTrip := c.roundTrip(j.Case)
	slice := min(max(j.window/sliceCount, shortSlice), longSlice)
	if c.plan.Pairs.Given() { // one slice for each trial: there are many trials, and all stay in memory
		slice = j.window
	}
	return control.Prepare{
		Workload: j.workload, Warmup: j.warmup, Window: j.window, Timeout: patience(j.workload, j.window, roundTrip),
		// Address resolution, handshake and greeting of a flow take a round trip each.
		Setup:    3*time.Second + 3*roundTrip,
		Interval: slice,
		Sampled:  c.recording != nil,
		Manner:   control.Manner{Placement: c.plan.Lab.CPU},
	}
}

// prepare starts an agent at each end that has none and prepares both sides.
func (c *conductor) prepare(ctx context.Context, e control.Ends, j job) (s control.Sides, err error) {
	if s, err = c.started(ctx, e); err != nil {
		return s, err
	}
	ask := c.ask(j)
	ask.Foremost = true
	return s, s.Prepare(ctx, e, ask)
}

// started returns the agents of all ends.
func (c *conductor) started(ctx context.Context, e control.Ends) (s control.Sides, err error) {
	name, _ := names(e)
	if s.Servers, err = c.serving(ctx, e); err != nil {
		return s, err
	}
	if s.Client, err = c.agents.get(ctx, name, e.Client); err != nil {
		return s, &control.SideError{Side: control.SideClient, Err: err}
	}
	return s, nil
}

// serving returns the agents of the servers in order.
func (c *conductor) serving(ctx context.Context, e control.Ends) ([]*control.Client, error) {
	_, names := names(e)
	var servers []*control.Client
	for i, end := range e.Servers {
		s, err := c.agents.get(ctx, names[i], end)
		if err != nil {
			return nil, &control.SideError{Side: control.SideServer, Err: err}
		}
		servers = append(servers, s)
	}
	return servers, nil
}

// roundTrip returns the delay that the lab adds to a round trip of a case: every host delays what it sends.
func (c *conductor) roundTrip(k plan.Case) time.Duration {
	l := k.Profile.Lab(c.plan.Lab)
	for _, p := range l.Plants {
		l.Delay = max(l.Delay, p.Delay)
	}
	return 2 * l.Delay
}

// patience returns the timeout of one exchange. TCP repeats a lost segment by itself, which counts as a long round
// trip. A lost datagram of a closed loop must not take the rest of a short window. But a reply needs at least the lab's
// round-trip delay, and the same again for the path.
func patience(w plan.Workload, window, roundTrip time.Duration) time.Duration {
	if w.Traits().Protocol == plan.TCP {
		return 5*time.Second + 2*roundTrip
	}
	return max(min(max(window/5, 20*time.Millisecond), time.Second), 2*roundTrip)
}
