// Package run conducts an experiment: case by case in the plan's order, an agent at each end, warm-up, window, and
// every trial on the disk before the next begins.
//
// Run asks the environment which routes it serves (survey.go), writes the header, and measures the repetitions
// (schedule.go), stage by stage where profiles cannot run at the same time (stages.go). A trial (trial.go) prepares the
// server, then the client, starts both and waits for both. Its outcome is one record, finished or failed. Agents are
// processes that stay between trials (agents.go). After the plan's repetitions, what is neither decided nor known to
// the plan's precision is measured again, together with its baseline (precision.go). A plan without a precision spends the
// rest of its budget on more repetitions (spare.go). Where the environment can, profiles are started again for each
// block of repetitions (instances.go).
//
// Nothing is retried: the record of a failed trial has the reason, and its agents are replaced. An interrupted trial
// writes nothing, and a resumed run measures it again.
package run

import (
	"context"
	"fmt"
	"time"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/env"
	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/plan/mesh"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// Options are the parameters of a run in addition to its plan; the zero value is valid.
type Options struct {
	// Resumed is the content of the file to resume, which out must append to; nil begins a new file. (optional)
	Resumed *result.Resumed
	// Began is when the time of the budget starts to count; zero is now. (optional)
	Began time.Time
	// Progress is called after each trial and with each note, in order, from one goroutine. (optional)
	Progress func(Event)
	// Header is called with the header of the result before the first trial, also for a resumed file. (optional)
	Header func(result.Header)
}

// Event reports the progress of a run.
type Event struct {
	// Done and Total count trials; Total may grow while cases are measured to a precision.
	Done, Total int
	// Left is the estimated time of the remaining trials, at most the rest of the budget.
	Left time.Duration
	// Record is the trial that has just ended, nil for a note and a step. It is valid during the call.
	Record *result.Record
	// Note is a message for the user, "" for a trial.
	Note string
	// Step is what takes time between trials, "" for a trial.
	Step string
}

// Run measures p in env and appends to out. It returns how the run ended, even with an error. When ctx is cancelled, it
// abandons the current trial and returns no error; the end states that the run was interrupted. It fails if the disk is
// full or nothing can be measured.
func Run(ctx context.Context, e env.Environment, p plan.Plan, out *result.Writer, o Options) (result.End, error) {
	c := &conductor{env: e, out: out, options: o, plan: p, began: o.Began, start: time.Now(), agents: &pool{clients: map[string]*control.Client{}}}
	if c.began.IsZero() {
		c.began = c.start
	}
	defer c.agents.close()
	var err error
	var was []mesh.Node
	if o.Resumed != nil {
		was = o.Resumed.Start.Nodes
	}
	if c.survey, err = surveyPlan(ctx, e, p, was); err != nil {
		return result.End{}, err
	}
	for _, q := range c.survey.profiles {
		if q.Skipped != "" {
			c.reportNote("%s is skipped: %s", q.Name, q.Skipped)
		}
	}
	if c.plan, err = c.openResult(ctx, p); err != nil {
		return result.End{}, err
	}
	if err := c.writeRaiseCosts(c.plan.Measured()); err != nil {
		return result.End{}, err
	}
	reason, err := c.measurePlan(ctx)
	end := c.endRecord(reason)
	if err == nil {
		err = out.Finish(end)
	}
	return end, err
}

// conductor is the state of one run.
type conductor struct {
	env     env.Environment
	out     *result.Writer
	options Options
	plan    plan.Plan
	survey  surveyed
	agents  *pool
	// began is when the time of the budget started to count, start when this invocation started.
	began, start time.Time
	memory       memory
	progress     progress
	// windows is the sum of the windows that this invocation has measured.
	windows time.Duration
	// share is the share of the budget that may be spent by the end of the current stage; 0 means the whole budget.
	share float64
	// fitted means that this invocation chose the windows to fit the budget, and that they are shorter than plan.LongestFit.
	fitted bool
	// changed lists facts of a resumed file's header that have changed.
	changed   []string
	instances instances
	// missing are backends that a trial left out of their Service because they could not be put back.
	missing []control.Backend
}

// conditionsChanged is the id of the warning on every trial that a resumed run measures under facts that differ from
// the file's header.
const conditionsChanged = "conditions-changed"

// openResult writes the header of a new file, and returns the plan with its window chosen. For a resumed file, it reads the
// records and compares plan, cases and facts: it fails if plan or cases do not fit, and notes facts that have changed.
func (c *conductor) openResult(ctx context.Context, p plan.Plan) (plan.Plan, error) {
	found, err := c.env.Facts(ctx)
	if err != nil {
		return p, fmt.Errorf("find the facts of the environment: %w", err)
	}
	c.memory = memory{sampled: map[plan.Trial]bool{}, away: map[string]bool{}, rates: map[plan.Case][]float64{}}
	c.instances = instances{last: map[plan.Variant]int{}, block: map[plan.Variant]int{}, broken: map[plan.Route]error{}}
	res := c.options.Resumed
	if res == nil {
		_, staged := c.env.(env.Staged)
		open := p.Duration == 0 && p.Budget > 0 && p.Precision == 0 && !p.Explain && !staged
		p = p.Fit(len(c.survey.served) * max(1, c.survey.schedule.Turns(p.Pairs.AtOnce())))
		c.fitted = open && p.Duration < plan.LongestFit
		if err := p.Validate(); err != nil {
			return p, fmt.Errorf("plan: %w", err)
		}
		h := result.Header{Created: c.start.UTC(), Plan: p, Facts: found, Nodes: c.survey.nodes, Profiles: c.survey.profiles}
		c.reportHeader(h)
		return p, c.out.Header(h)
	}
	if err := res.Start.SamePlan(p); err != nil {
		return p, err
	}
	c.reportHeader(res.Start)
	for i := range res.Records {
		r := &res.Records[i]
		if err := c.rememberRecord(r); err != nil {
			return p, err
		}
		c.instances.last[r.Profile] = max(c.instances.last[r.Profile], r.Instance)
	}
	if err := c.reconcileCases(res.Start, p); err != nil {
		return p, err
	}
	for _, name := range res.Start.Facts.Differ(found) {
		if facts.OfTheMoment(name) {
			continue // the load of the machine always differs
		}
		what := fmt.Sprintf("%s was %q when the file was created and is %q now", name, res.Start.Facts[name], found[name])
		c.reportNote("%s", what)
		c.changed = append(c.changed, what)
	}
	// Mark in the file that what follows was measured at another time.
	if n := len(res.Records); n > 0 && res.Records[n-1].Type != result.TypeEnd {
		return p, c.out.Finish(result.End{Reason: result.Killed})
	}
	return p, nil
}

// reconcileCases checks that a resumed run can measure the cases of its header. It fails if a case with trials left is not
// served any more: the file would end as complete without them. It removes cases that are served now but were not when
// the file was created: the header, which cannot be rewritten, states why they have no trials.
func (c *conductor) reconcileCases(was result.Header, p plan.Plan) error {
	for _, k := range p.Cases() {
		why := absenceReason(was.Profiles, k)
		switch {
		case why != "" && c.survey.served[k]:
			delete(c.survey.served, k)
			c.reportNote("%s stays unmeasured: when the file was created, %s", k.Key(), why)
		case why == "" && !c.survey.served[k] && c.wantsTrials(k, p.Repetitions):
			return advice.With(fmt.Errorf("%s was measurable when the file was created, and is not now: %s", k.Key(), absenceReason(c.survey.profiles, k)),
				"resume when it is available again, or create another file by -o")
		}
	}
	return nil
}

// wantsTrials reports whether any trial of the first repetitions of k is not yet in the file.
func (c *conductor) wantsTrials(k plan.Case, repetitions int) bool {
	for rep := 1; rep <= repetitions; rep++ {
		if c.memory.had.trialCount(k, rep) < c.survey.pairCount() {
			return true
		}
	}
	return false
}

func (c *conductor) reportHeader(h result.Header) {
	if c.options.Header != nil {
		c.options.Header(h)
	}
}

func (c *conductor) reportNote(format string, args ...any) {
	c.reportEvent(Event{Note: fmt.Sprintf(format, args...)})
}

func (c *conductor) reportStep(format string, args ...any) {
	c.reportEvent(Event{Step: fmt.Sprintf(format, args...)})
}

// reportEvent adds the numbers of trials to an event and passes it to the caller's Progress.
func (c *conductor) reportEvent(e Event) {
	if c.options.Progress != nil {
		e.Done, e.Total = c.progress.done, c.progress.total
		c.options.Progress(e)
	}
}

func (c *conductor) endRecord(reason string) result.End {
	return result.End{
		Reason: reason, WallNs: int64(time.Since(c.began)), WindowNs: int64(c.windows),
		Trials: c.progress.measured, Failed: c.progress.failed,
	}
}
