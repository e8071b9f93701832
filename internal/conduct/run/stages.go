package run

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/env"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
)

// kindNotRaised is the failure of a trial whose profile could not be raised.
const kindNotRaised = "not raised"

// measurePlan measures the plan: stage by stage if the environment cannot run all profiles at once. It returns why the run
// ended; for several stages, the worst reason.
func (c *conductor) measurePlan(ctx context.Context) (string, error) {
	c.countTrials()
	staged, ok := c.env.(env.Staged)
	if !ok {
		return c.measureCases(ctx)
	}
	whole, worst := c.survey, result.Complete
	all := staged.Stages()
	for i, names := range all {
		stage := whole.partForProfiles(names)
		wants := func(k plan.Case) bool { return c.wantsTrials(k, c.plan.Repetitions) }
		if c.plan.Precision == 0 && !slices.ContainsFunc(slices.Collect(maps.Keys(stage.served)), wants) {
			continue
		}
		c.reportNote("stage %d of %d: %s", i+1, len(all), strings.Join(plan.Texts(names), ", "))
		c.share = float64(i+1) / float64(len(all))
		reason, err := c.measureStage(ctx, func() error { return staged.Enter(ctx, i) }, stage, names)
		if err != nil || reason == result.Interrupted {
			return reason, err
		}
		if slices.Index(endings, reason) > slices.Index(endings, worst) {
			worst = reason
		}
	}
	return worst, nil
}

// endings are the reasons with which a stage may end, the worst last.
var endings = []string{result.Complete, result.Precise, result.Exhausted, result.OverBudget}

// measureStage calls enter, which raises the profiles of a stage, and measures them. If they cannot be raised, it
// records their trials as failed.
func (c *conductor) measureStage(ctx context.Context, enter func() error, stage surveyed, names []plan.Variant) (string, error) {
	c.agents.close() // they run in the stage before
	c.missing = nil
	clear(c.instances.block) // entering raises all that the stage has
	err := enter()
	var here surveyed
	if err == nil {
		here, err = surveyPlan(ctx, c.env, c.planOf(names), c.survey.nodes)
	}
	if ctx.Err() != nil {
		return result.Interrupted, nil
	}
	if err != nil {
		return result.Complete, c.writeUnraisedTrials(stage, err)
	}
	for k := range stage.served {
		if !here.served[k] {
			c.reportNote("%s is not measured: %s", k.Key(), absenceReason(here.profiles, k))
		}
	}
	c.survey = here
	return c.measureCases(ctx)
}

// partForProfiles returns the part of a survey for some profiles.
func (s surveyed) partForProfiles(names []plan.Variant) surveyed {
	s.served = maps.Clone(s.served)
	maps.DeleteFunc(s.served, func(k plan.Case, _ bool) bool { return !slices.Contains(names, k.Profile) })
	return s
}

// planOf returns the part of the plan for some profiles, without the baseline if the baseline is not among them.
func (c *conductor) planOf(names []plan.Variant) plan.Plan {
	p := c.plan
	p.Profiles, p.Sweep = slices.DeleteFunc(slices.Clone(names), plan.Variant.IsTwin), plan.Sweep{}
	if !slices.Contains(names, p.Baseline) {
		p.Baseline, p.Twin = plan.Variant{}, false
	}
	return p
}

// writeUnraisedTrials writes a failed record, with the reason why, for each trial of a stage that is not in the file.
func (c *conductor) writeUnraisedTrials(stage surveyed, why error) error {
	c.reportNote("cannot raise the profiles of this stage: %s", why)
	for rep := 1; rep <= c.plan.Repetitions; rep++ {
		for _, k := range c.plan.Order(rep) {
			t := plan.Trial{Case: k, Repetition: rep}
			if !stage.served[k] || c.memory.had.has(t) {
				continue
			}
			rec := unraisedRecord(t, why)
			if err := c.writeTrial(&rec); err != nil {
				return err
			}
		}
	}
	return nil
}
