package cli

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

const failOnRun = "`budget` that every profile but the baseline must keep, such as 'rr.p99 > +5%', a change from the baseline (may be repeated: all of them); exit code 3 if one is broken, 4 if one is undecided"

// readBudgets parses --fail-on into the budgets of the report. Its error lists all faults, including budgets that apply to
// no case of the plan.
func (a *measurement) readBudgets(cmd *cobra.Command, want plan.Plan) error {
	var errs []error
	for _, s := range a.failOn {
		b, err := compare.ParseBudget(s)
		if err == nil {
			err = checkBudget(b, want)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("--fail-on: %w", err))
		}
		a.report.budgets = append(a.report.budgets, b)
	}
	return commandUsageError(cmd, errors.Join(errs...))
}

// checkBudget fails if the plan has no case that the budget could judge.
func checkBudget(b compare.Budget, want plan.Plan) error {
	if b.Relative && want.Baseline == plan.VariantOf(profile.Raw) {
		return advice.With(fmt.Errorf("%q is a change from the baseline %s, which has no pods", b.Text, want.Baseline), "name the profile to compare with: --baseline PROFILE")
	}
	if !slices.ContainsFunc(want.Cases(), func(c plan.Case) bool {
		return c.Profile != want.Baseline && !c.Profile.IsTwin() && b.Filter.Match(compare.Key{Case: c})
	}) {
		return fmt.Errorf("%q reaches no case of the plan beside the baseline %s", b.Text, want.Baseline)
	}
	return nil
}

// applyBudgets judges the profiles of d by budgets and adds the result to d. name is the result file. It returns nil if
// all budgets are kept, and otherwise an error with the exit code. It also fails if a budget matches no cell. A profile that a
// budget is for and that was not measured keeps the state from being Kept.
func applyBudgets(d *report.Document, name string, budgets []compare.Budget) error {
	pair := compare.Within(compare.Side{Name: name, Analysis: d.Analysis})
	held, state, err := judgeBudgets(pair, budgets, nil)
	for _, p := range d.Profiles {
		if err != nil && p.Skipped != "" {
			return fmt.Errorf("no verdict: %s was not measured: %s", p.Name, p.Skipped)
		}
	}
	if err != nil {
		return usageError(err)
	}
	missing := unmeasuredProfiles(d, budgets)
	if missing != nil && state == compare.Kept {
		state = compare.Undecided
	}
	shown := pair.Only(func(k compare.Key) bool {
		return slices.ContainsFunc(budgets, func(b compare.Budget) bool { return b.Metric == k.Metric && b.Filter.Match(k) })
	})
	d.Hold(report.PairResult{Pair: shown, Held: held, State: state})
	return errors.Join(stateError(state), missing)
}

// unmeasuredProfiles returns an error that lists the profiles of d that were skipped although one of budgets is for them, nil if
// there are none.
func unmeasuredProfiles(d *report.Document, budgets []compare.Budget) error {
	var errs []error
	for _, p := range d.Profiles {
		if p.Skipped == "" || p.Name == d.Analysis.Baseline || p.Name.IsTwin() {
			continue
		}
		var cases []plan.Case
		for _, path := range d.Analysis.Paths {
			for _, w := range d.Analysis.Workloads {
				cases = append(cases, plan.Case{Profile: p.Name, Path: path, Workload: w})
			}
		}
		judged := func(b compare.Budget) bool {
			return slices.ContainsFunc(cases, func(c plan.Case) bool { return b.Filter.Match(compare.Key{Case: c, Metric: b.Metric}) })
		}
		if slices.ContainsFunc(budgets, judged) {
			errs = append(errs, fmt.Errorf("no verdict on %s: it was not measured: %s", p.Name, p.Skipped))
		}
	}
	return errors.Join(errs...)
}

// stateError returns the error with the exit code of a comparison's state; nil unless the state is Broken or Undecided.
func stateError(s compare.State) error {
	switch s {
	case compare.Broken:
		return quietError(exitWorse)
	case compare.Undecided:
		return quietError(exitInconclusive)
	}
	return nil
}
