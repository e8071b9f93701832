package run

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/cnibench/cnibench/internal/env"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
)

// spareMargin is the factor by which the expected time of a repetition is increased before it is compared with the budget.
const spareMargin = 1.1

// spendSpareBudget spends the rest of the budget, if the windows were chosen to fit it. It measures whole repetitions
// while one fits, then repetitions of the cases that the plan's answer needs. What it measures depends only on the
// time, never on the results. It returns why the run ends.
func (c *conductor) spendSpareBudget(ctx context.Context) (string, error) {
	if !c.fitted {
		return result.Complete, nil
	}
	answers := c.plan.Answers()
	for rep := c.plan.Repetitions + 1; rep <= plan.MaxRepetitionsLimit; rep++ {
		selected := c.survey.served
		if !c.affordsRepetition(selected) {
			selected = c.casesWithBaseline(slices.DeleteFunc(slices.Collect(maps.Keys(selected)), func(k plan.Case) bool { return !answers(k) }))
		}
		if len(selected) == 0 || !c.affordsRepetition(selected) {
			break
		}
		c.progress.total += len(selected)
		reason, err := c.measureRepetition(ctx, rep, func(k plan.Case) bool { return selected[k] })
		if err != nil || reason == result.Interrupted {
			return reason, err
		}
		if reason != "" {
			break
		}
	}
	return result.Complete, nil
}

// affordsRepetition reports whether one more repetition of cases fits into the rest of the budget. It assumes the pace of
// earlier repetitions.
func (c *conductor) affordsRepetition(cases map[plan.Case]bool) bool {
	raised := map[plan.Variant]bool{}
	for k := range cases {
		if _, renews := c.env.At(k.Profile).(env.Renewer); renews {
			raised[k.Profile] = true
		}
	}
	need := time.Duration(len(cases))*c.plan.TrialTime() + c.plan.RaiseTime(slices.Collect(maps.Keys(raised)))
	pace := float64(c.progress.spent) / float64(c.plan.Expected(len(c.survey.served)))
	left, bounded := c.budgetLeft()
	return bounded && time.Duration(max(1, pace)*spareMargin*float64(need)) < left
}
