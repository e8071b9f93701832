package run

import (
	"context"
	"time"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/judge/matrix"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// progress counts trials.
type progress struct {
	// done and total count all trials of the file; measured and failed count those of this invocation.
	done, total, measured, failed int
	// left counts trials that were not measured because a node was away.
	left int
	// spent is the time that the trials of this invocation took.
	spent time.Duration
}

// memory is what the run knows of the trials in the file.
type memory struct {
	// had records which trials are in the file, finished or failed.
	had ledger
	// sampled has the trials whose sampled repetition is in the file.
	sampled map[plan.Trial]bool
	// rates has the rates that the first trials of a case reached; a load is a share of their median.
	rates map[plan.Case][]float64
	// pairs has the measurements between pairs of nodes; away are the nodes that cannot be measured now.
	pairs matrix.Collector
	away  map[string]bool
	// trials has the trials that decide whether the plan's precision is reached. It is empty for a plan without a
	// precision.
	trials compare.Collector
}

// rememberRecord adds a record of the file to the memory of the run.
func (c *conductor) rememberRecord(r *result.Record) error {
	if r.Type == result.TypeSampled {
		c.memory.sampled[r.Trial] = true
	}
	if r.Type == result.TypeTrial {
		c.memory.had.add(r.Trial)
		c.memory.pairs.Add(r)
		rate := r.Metrics[r.Workload.Traits().RateMetric()]
		if r.Status == result.OK && rate > 0 && r.Repetition <= c.capacityTrialCount() {
			c.memory.rates[r.Case] = append(c.memory.rates[r.Case], rate)
		}
	}
	if c.plan.Precision == 0 {
		return nil
	}
	return c.memory.trials.Add(r)
}

// countTrials sets the total of trials, and adds the trials that are already in the file to those done.
func (c *conductor) countTrials() {
	c.progress.total = len(c.survey.served) * c.plan.Repetitions * c.survey.pairCount()
	for k := range c.survey.served {
		for rep := 1; rep <= c.plan.Repetitions; rep++ {
			c.progress.done += c.memory.had.trialCount(k, rep)
		}
	}
}

// measureCases measures the capacities, then the served cases in the repetitions of the plan. If the plan has a
// precision, it then repeats undecided cases until the precision is reached. Otherwise it spends the rest of the
// budget on more repetitions. It returns why the run stopped.
func (c *conductor) measureCases(ctx context.Context) (string, error) {
	// Capacities are measured first and never again: the points of a curve share one capacity.
	for rep := 1; rep <= c.capacityTrialCount(); rep++ {
		if reason, err := c.measureRepetition(ctx, rep, c.measuresCapacity); reason != "" || err != nil {
			return reason, err
		}
	}
	if c.plan.Pairs.Given() {
		return tour{c}.measurePairs(ctx)
	}
	all := func(plan.Case) bool { return true }
	for rep := 1; rep <= c.plan.Repetitions; rep++ {
		if reason, err := c.measureRepetition(ctx, rep, all); reason != "" || err != nil {
			return reason, err
		}
	}
	if c.plan.Precision == 0 {
		return c.spendSpareBudget(ctx)
	}
	for rep := c.plan.Repetitions + 1; ; rep++ {
		wanted, err := c.undecidedCases()
		if err != nil {
			return "", err
		}
		if len(wanted) == 0 {
			return result.Precise, nil
		}
		if rep > c.plan.MaxRepetitions {
			c.reportNote("%d repetitions are done; %s neither decided nor known to %s", rep-1,
				number.Counted(len(wanted), "case"), number.Percent(c.plan.Precision))
			return result.Exhausted, nil
		}
		selected := c.casesWithBaseline(wanted)
		c.progress.total += len(selected)
		if reason, err := c.measureRepetition(ctx, rep, func(k plan.Case) bool { return selected[k] }); reason != "" || err != nil {
			return reason, err
		}
	}
}

// measureRepetition measures the selected cases of one repetition that are served and not yet in the file. It returns
// a reason if the run must stop.
func (c *conductor) measureRepetition(ctx context.Context, rep int, selected func(plan.Case) bool) (string, error) {
	var trials []plan.Trial
	for _, k := range c.plan.Order(rep) {
		t := plan.Trial{Case: k, Repetition: rep}
		if c.survey.served[k] && selected(k) && !c.memory.had.has(t) {
			trials = append(trials, t)
		}
	}
	if reason, err := c.renewInstances(ctx, trials); reason != "" || err != nil {
		return reason, err
	}
	for _, t := range trials {
		if reason := c.stopReason(ctx, rep, 0); reason != "" {
			return reason, nil
		}
		rec, ok := c.measureTrial(ctx, t, nil)
		if !ok {
			return result.Interrupted, nil
		}
		if err := c.recoverAndWrite(ctx, &rec); err != nil {
			return "", err
		}
		if reason, err := c.explainTrial(ctx, t); reason != "" || err != nil {
			return reason, err
		}
	}
	return "", nil
}

// recoverAndWrite waits after a failed trial until the environment works again, and writes the record of the trial.
// It fails, with a LostError, if the environment cannot recover.
func (c *conductor) recoverAndWrite(ctx context.Context, rec *result.Record) error {
	lost := c.awaitRecovery(ctx, rec)
	if lost == nil {
		addPolicyNames(ctx, c.env.At(rec.Profile), rec)
	}
	if err := c.writeTrial(rec); err != nil {
		return err
	}
	if lost != nil {
		return &LostError{Trials: c.progress.measured, Failed: c.progress.failed, Err: lost}
	}
	return nil
}

// stopReason returns a reason if the run must stop before the next trial, or "". The run must stop if ctx has ended,
// or if the budget is too short for the trial and the work before it. other is the time of this work.
func (c *conductor) stopReason(ctx context.Context, rep int, other time.Duration) string {
	if ctx.Err() != nil {
		return result.Interrupted
	}
	if left, bounded := c.budgetLeft(); bounded && left < other+c.plan.TrialTime() {
		if c.fitted && rep > c.plan.Repetitions {
			return result.OverBudget // nothing that the plan requires is missing
		}
		c.reportNote("the budget of %s is spent in repetition %d: %d trials are not measured", c.plan.Budget, rep, c.progress.total-c.progress.done)
		return result.OverBudget
	}
	return ""
}

func (c *conductor) budgetLeft() (left time.Duration, bounded bool) {
	if c.plan.Budget == 0 {
		return 0, false
	}
	budget := c.plan.Budget
	if c.share > 0 {
		budget = time.Duration(float64(budget) * c.share)
	}
	return budget - time.Since(c.began), true
}

// writeTrial writes the record of a trial to the disk, counts the trial and informs the caller.
func (c *conductor) writeTrial(rec *result.Record) error {
	if err := c.out.Append(*rec); err != nil {
		return err
	}
	p := &c.progress
	p.done++
	p.measured++
	if rec.Status == result.Failed {
		p.failed++
	}
	p.spent += time.Duration(rec.WallNs)
	c.windows += time.Duration(rec.WindowNs)
	left := time.Duration(max(p.total-p.done, 0)) * (p.spent / time.Duration(p.measured))
	if most, bounded := c.budgetLeft(); bounded {
		left = max(min(left, most), 0)
	}
	c.reportEvent(Event{Left: left, Record: rec})
	return c.rememberRecord(rec)
}
