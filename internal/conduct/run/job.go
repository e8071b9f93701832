package run

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
)

// jobLasts is the longest time that a job takes, including the wait for a silent member.
func jobLasts(c *conductor, w plan.Workload, delay time.Duration) time.Duration {
	if w.Traits().Job.Continues() {
		delay += c.span(w).warmup + grace
	}
	return mostLast(c, w, delay)
}

// jointly measures a job: its members are the client and the servers of the route.
func (c *conductor) jointly(ctx context.Context, e control.Ends, j job) (seen, error) {
	sides, err := c.started(ctx, e)
	if err != nil {
		return seen{}, err
	}
	members := control.Members(sides)
	if err := members.Prepare(ctx, e, c.ask(j)); err != nil {
		return seen{}, err
	}
	churn := c.churning(j)
	whole, err := members.Run(ctx, j.workload.Traits().Job.Continues(), func() { churn.begin(ctx) })
	if lost, ok := errors.AsType[*control.LostError](err); ok {
		whole, err = c.without(ctx, e, j, members, lost)
	}
	changes, err := churn.end(err)
	if err != nil {
		return seen{}, err
	}
	return seen{client: whole, windowNs: whole.ElapsedNs, churn: changes, apart: sides.Apart()}, nil
}

// without measures the rest of a job's window without the member that was lost. A second loss fails the trial.
func (c *conductor) without(ctx context.Context, e control.Ends, j job, all control.Members, lost *control.LostError) (*sample.Observation, error) {
	known := time.Now()
	before := lost.Before.Job
	loss := before.Loss
	loss.Name, loss.Before, loss.Exchange, loss.Members = e.Servers[lost.Rank-1].Name, before.Step, before.Exchange, len(before.Members)
	smaller, err := j.workload.Without("lost").With("members", strconv.Itoa(len(e.Servers)))
	if err != nil {
		return nil, errors.Join(lost, err)
	}
	j.workload = smaller.Normalize()
	j.window = max(j.window-time.Duration(loss.AfterNs), j.window/10, time.Millisecond)
	left, ends := all.Without(lost.Rank, e)
	if err := left.Prepare(ctx, ends, c.ask(j)); err != nil {
		return nil, fmt.Errorf("%w; the others did not continue: %w", lost, err)
	}
	whole, err := left.Run(ctx, false, func() {})
	if err != nil {
		return nil, fmt.Errorf("%w; the others did not continue: %w", lost, err)
	}
	loss.RegroupNs = max(0, int64(time.Since(known))-whole.ElapsedNs)
	whole.Job.Loss = loss
	return whole, nil
}

// measuredBy returns the case whose result k is a share of. The steps of all profiles have the compute time of the
// baseline, so that they differ only in their exchange.
func measuredBy(c *conductor, k plan.Case, of plan.Workload) plan.Case {
	k.Workload = of
	if of.Traits().Job.Members == 0 {
		return k
	}
	for _, path := range []plan.Path{k.Path, plan.ZeroPath} {
		base := plan.Case{Profile: c.plan.Baseline, Path: path, Workload: of}
		if c.survey.served[base] {
			return base
		}
	}
	return k
}
