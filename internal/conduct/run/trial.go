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
	// grace is how much longer than its longest expected time a trial may take before it fails.
	grace = 10 * time.Second
	// sliceCount is the number of slices of a window, unless a slice would be shorter than shortSlice or longer than
	// longSlice.
	sliceCount            = 20
	shortSlice, longSlice = 10 * time.Millisecond, 50 * time.Millisecond
)

// kindTimeout is the failure of a trial that did not end in time; kindStalled is the failure of a trial whose path
// was cut during the window.
const (
	kindTimeout = "timeout"
	kindStalled = "stalled"
)

// measureTrial measures t once, with a recording or nil, and returns its record, finished or failed. ok is false if
// ctx ended before the trial did; then rec is not complete.
func (c *conductor) measureTrial(ctx context.Context, t plan.Trial, r *recording) (rec result.Record, ok bool) {
	if why := c.instances.broken[plan.Single(t.Profile, t.Path)]; why != nil {
		return unraisedRecord(t, why), true
	}
	begin := time.Now()
	e, failed := c.survey.endsOf(ctx, c.env, t)
	rec = result.Record{Type: result.TypeTrial, Trial: t, Instance: c.instances.last[t.Profile], Status: result.OK, Started: begin.UTC()}
	k := c.plan.Loaded(t.Case)
	a := attempt{conductor: c, Case: k, route: t.Route(), ends: e, recording: r}
	limit := a.timeLimit()
	bounded, stop := context.WithTimeout(ctx, limit)
	defer stop()
	if failed != nil {
		rec.Status, rec.Error = result.Failed, trialFailure(failed, limit)
		return rec, ctx.Err() == nil
	}
	capacity, err := c.capacity(t.Case)
	if err != nil {
		rec.Status, rec.Error = result.Failed, &result.Failure{Kind: kindNoCapacity, Message: err.Error()}
		return rec, true
	}
	if err := a.deadError(nil); err != nil {
		rec.Status, rec.Error = result.Failed, trialFailure(err, limit)
		return rec, true
	}
	a.workload, a.span = agentWorkload(k.Workload, capacity), a.wholeSpan()
	before := a.overflowCounts()
	do := mannerOf(k.Workload.Kind())
	v, err := do.measure(a, bounded)
	rec.WallNs = int64(time.Since(begin))
	rec.Client, rec.Server, rec.Drops, rec.Probes, rec.Churn = v.client, v.server, v.drops, v.probes, v.churn
	err = a.deadError(overflowError(before, a.overflowCounts(), err))
	if err != nil {
		c.agents.endAgents(e)
		if ctx.Err() != nil {
			return rec, false
		}
		rec.Status, rec.Error = result.Failed, trialFailure(err, limit)
		return rec, true
	}
	c.agents.cancelServers(e)
	rec.WindowNs = v.windowNs
	conditions := a.conditions()
	conditions.Backends, conditions.Capacity = len(e.Servers), capacity
	conditions.Drops, conditions.Apart, conditions.Churn = v.drops, v.apart, v.churn
	rec.Metrics, rec.Warnings = do.derive(k.Workload, rec, conditions)
	if len(c.changed) > 0 {
		rec.Warnings = append(rec.Warnings, sample.Warning{ID: conditionsChanged, Message: strings.Join(c.changed, "; ")})
	}
	return rec, true
}

// conditions returns the conditions of the environment for the case. For a variant with conditions, the MTU and the
// NIC model are the variant's. A NIC model that the workload sets replaces both others. A path within a node has no
// line rate, because it passes no NIC.
func (a attempt) conditions() outcome.Conditions {
	x := a.env.Conditions()
	if a.Profile.Conditions() != "" {
		own := a.Profile.Lab(a.plan.Lab)
		x.MTU, x.NIC = own.MTU, own.NIC
	}
	if own := a.Route().NIC; own != "" {
		x.NIC = own
	}
	if !a.Path.Crosses() {
		x.LineRate = 0
	}
	return x
}

// attempt is one measurement between the ends of a route: of a whole trial, or of one probe of a search.
type attempt struct {
	*conductor
	plan.Case
	route plan.Route
	ends  control.Ends
	// recording is nil unless the trial is sampled.
	recording *recording
	// workload is the workload that the agents run: the Case's, with rates, times or members that were determined
	// later.
	workload plan.Workload
	span
}

// span is the warm-up and the window of one measurement.
type span struct{ warmup, window time.Duration }

// seen is the result of an attempt.
type seen struct {
	client, server *sample.Observation
	// drops are the drops on the hosts of the path, nil if they could not be read or do not matter.
	drops  []sample.Drop
	probes []result.Probe
	// churn describes the changes of objects during the window, nil without any.
	churn *sample.Churn
	// windowNs is the length of the measured window, or of all windows of a search.
	windowNs int64
	// apart is true if no server was on the client's machine.
	apart bool
}

// timeLimit returns how long the trial may take before it fails.
func (a attempt) timeLimit() time.Duration {
	return mannerOf(a.Workload.Kind()).longest(a, 4*a.roundTripDelay()) + grace
}

// wholeSpan returns the span of a trial of the case. The window is that of the recording if there is one, else that of the
// workload if it sets one, else that of the plan.
func (a attempt) wholeSpan() span {
	if a.recording != nil {
		return span{a.plan.Warmup, a.recording.window}
	}
	return span{a.plan.Warmup, cmp.Or(a.Workload.Window, a.plan.Duration)}
}

// measureOnce runs the workload once between the ends of the route, with the rolls, object changes and recording of the
// attempt. It fails if an agent or one of these fails, or if the path was cut during the window.
func (a attempt) measureOnce(ctx context.Context) (seen, error) {
	if err := a.putBackBackends(ctx); err != nil {
		return seen{}, err
	}
	sides, err := a.prepareSides(ctx)
	if err != nil {
		return seen{}, err
	}
	drops, rolls, churn := a.dropWatch(), a.backendRoll(sides.Servers), a.objectChanges()
	client, server, err := sides.Run(ctx, func() { drops.begin(); rolls.begin(ctx); churn.begin(ctx); a.recording.start() })
	if why := outcome.Stalled(a.workload, client, server); err == nil && why != "" {
		err = &control.Error{Kind: kindStalled, Message: why}
	}
	changes, err := churn.end(rolls.end(ctx, err))
	if rolls.out {
		a.missing = append(a.missing, rolls.currentBackend())
	}
	v := seen{client: client, server: server, drops: drops.end(), apart: sides.Apart(), churn: changes}
	if err == nil {
		v.windowNs = client.ElapsedNs
	}
	return v, err
}

// agentRequest returns the request to the agents of both sides: workload, times and timeouts.
func (a attempt) agentRequest() control.Prepare {
	roundTrip := a.roundTripDelay()
	slice := min(max(a.window/sliceCount, shortSlice), longSlice)
	if a.plan.Pairs.Given() { // one slice for each trial: there are many trials, and all are kept
		slice = a.window
	}
	return control.Prepare{
		Workload: a.workload, Warmup: a.warmup, Window: a.window, Timeout: exchangeTimeout(a.workload, a.window, roundTrip),
		// Address resolution, handshake and greeting of a flow take a round trip each.
		Setup:    3*time.Second + 3*roundTrip,
		Interval: slice,
		Sampled:  a.recording != nil,
		Manner:   control.Manner{Placement: a.plan.Lab.CPU},
	}
}

// prepareSides starts an agent at each end that has none and makes both sides ready.
func (a attempt) prepareSides(ctx context.Context) (s control.Sides, err error) {
	if s, err = a.agents.ensureSides(ctx, a.ends); err != nil {
		return s, err
	}
	ask := a.agentRequest()
	ask.Foremost = true
	return s, s.Prepare(ctx, a.ends, ask)
}

// roundTripDelay returns the delay that the lab adds to a round trip of the case, at most. Every host delays what it sends.
func (a attempt) roundTripDelay() time.Duration {
	l := a.Profile.Lab(a.plan.Lab)
	for _, p := range l.Plants {
		l.Delay = max(l.Delay, p.Delay)
	}
	return 2 * l.Delay
}

// exchangeTimeout returns the timeout of one exchange. TCP repeats a lost segment by itself, so its timeout is long.
// Waiting for a lost datagram must not take the rest of a short window, so other timeouts are a fifth of the window,
// but 20 ms to 1 s. They are always at least twice roundTrip.
func exchangeTimeout(w plan.Workload, window, roundTrip time.Duration) time.Duration {
	if w.Traits().Protocol == plan.TCP {
		return 5*time.Second + 2*roundTrip
	}
	return max(min(max(window/5, 20*time.Millisecond), time.Second), 2*roundTrip)
}
