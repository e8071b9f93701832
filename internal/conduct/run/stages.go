package run

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
)

// Stager is an Environment in which not all profiles can stand at the same time: they are measured in turn, stage by
// stage, and the drift of the machine between them is not cancelled by interleaving. Before its stage a profile is asked
// for its paths like any other; what it answers then counts for nothing but whether it serves them.
type Stager interface {
	// Stages returns the profiles that stand together, in the order in which they are measured.
	Stages() [][]plan.Variant
	// Enter makes the profiles of stage i stand, in place of those of the stage before.
	Enter(ctx context.Context, i int) error
}

// kindNotRaised is the failure of a trial whose profile could not be made to stand.
const kindNotRaised = "not raised"

// stages works through the plan: at once where everything stands, and stage by stage where it does not.
func (c *conductor) stages(ctx context.Context) (string, error) {
	c.count()
	env, ok := c.env.(Stager)
	if !ok {
		return c.repetitions(ctx)
	}
	whole, worst := c.survey, Complete
	all := env.Stages()
	for i, names := range all {
		stage := whole.only(names)
		if !c.anyLeft(stage) {
			continue
		}
		c.note("stage %d of %d: %s", i+1, len(all), plan.JoinVariants(names, ", "))
		c.share = float64(i+1) / float64(len(all))
		reason, err := c.stage(ctx, env, i, stage, names)
		if err != nil || reason == Interrupted {
			return reason, err
		}
		if reason != Complete && worst != OverBudget {
			worst = reason
		}
	}
	return worst, nil
}

// stage measures the profiles of one stage. Those that cannot be made to stand leave failed trials.
func (c *conductor) stage(ctx context.Context, env Stager, i int, stage place, names []plan.Variant) (string, error) {
	c.agents.close() // theirs were of the stage before
	c.missing = nil
	err := env.Enter(ctx, i)
	var here place
	if err == nil {
		here, err = survey(ctx, c.env, c.planOf(names))
	}
	if ctx.Err() != nil {
		return Interrupted, nil
	}
	if err != nil {
		return Complete, c.notRaised(stage, err)
	}
	for k := range stage.served {
		if !here.served[k] {
			c.note("%s is not measured: %s", k.Key(), absent(here.profiles, k))
		}
	}
	c.survey = here
	return c.repetitions(ctx)
}

// only returns the part of a place that is of some profiles.
func (s place) only(names []plan.Variant) place {
	part := place{profiles: s.profiles, routes: s.routes, served: map[plan.Case]bool{}}
	for k := range s.served {
		if slices.Contains(names, k.Profile) {
			part.served[k] = true
		}
	}
	return part
}

// anyLeft says whether the file lacks any trial of a stage.
func (c *conductor) anyLeft(stage place) bool {
	for k := range stage.served {
		if c.wants(k, c.plan.Repetitions) {
			return true
		}
	}
	return false
}

// planOf is the plan as far as it is about some profiles; without the baseline if that is not one of them.
func (c *conductor) planOf(names []plan.Variant) plan.Plan {
	p := c.plan
	p.Profiles = nil
	for _, name := range names {
		if !name.IsTwin() {
			p.Profiles = append(p.Profiles, name)
		}
	}
	if !slices.Contains(names, p.Baseline) {
		p.Baseline, p.Twin = "", false
	}
	return p
}

// notRaised records why the trials of a stage were not measured.
func (c *conductor) notRaised(stage place, why error) error {
	c.note("it could not be made to stand: %s", why)
	for rep := 1; rep <= c.plan.Repetitions; rep++ {
		for _, k := range c.plan.Order(rep) {
			t := plan.Trial{Case: k, Repetition: rep}
			if !stage.served[k] || c.memory.had[t] {
				continue
			}
			rec := result.Record{Type: result.TypeTrial, Trial: t, Status: result.Failed, Started: time.Now().UTC(),
				Error: &result.Failure{Kind: kindNotRaised, Message: fmt.Sprintf("profile %s: %s", k.Profile, why)}}
			if err := c.out.Append(rec); err != nil {
				return err
			}
			c.account(rec)
		}
	}
	return nil
}
