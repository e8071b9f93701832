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

// maxJobTime returns the longest time that a trial of a job takes. delay is the time to set up and to end. A job that
// continues without a lost member waits for that member first, and warms up a second time.
func maxJobTime(a attempt, delay time.Duration) time.Duration {
	if a.Workload.Traits().Job.Continues() {
		delay += a.wholeSpan().warmup + grace
	}
	return maxTrialTime(a, delay)
}

// measureJob measures a job, whose members are the client and the servers of the route. If a member is lost and the workload
// allows it, the others continue.
func (a attempt) measureJob(ctx context.Context) (seen, error) {
	sides, err := a.agents.ensureSides(ctx, a.ends)
	if err != nil {
		return seen{}, err
	}
	members := control.Members(sides)
	if err := members.Prepare(ctx, a.ends, a.agentRequest()); err != nil {
		return seen{}, err
	}
	churn := a.objectChanges()
	whole, err := members.Run(ctx, a.workload.Traits().Job.Continues(), func() { churn.begin(ctx) })
	if lost, ok := errors.AsType[*control.LostError](err); ok {
		whole, err = a.continueWithoutMember(ctx, members, lost)
	}
	changes, err := churn.end(err)
	if err != nil {
		return seen{}, err
	}
	return seen{client: whole, windowNs: whole.ElapsedNs, churn: changes, apart: sides.Apart()}, nil
}

// continueWithoutMember measures the rest of a job's window without the member that was lost, and records the loss in the
// job's observation. It fails if the others cannot continue, or if another member is lost.
func (a attempt) continueWithoutMember(ctx context.Context, all control.Members, lost *control.LostError) (*sample.Observation, error) {
	known := time.Now()
	before := lost.Before.Job
	loss := before.Loss
	loss.Name, loss.Before, loss.Exchange, loss.Members = a.ends.Servers[lost.Rank-1].Name, before.Step, before.Exchange, len(before.Members)
	smaller, err := a.workload.Without("lost").With("members", strconv.Itoa(len(a.ends.Servers)))
	if err != nil {
		return nil, errors.Join(lost, err)
	}
	a.workload = smaller.Normalize()
	a.window = max(a.window-time.Duration(loss.AfterNs), a.window/10, time.Millisecond)
	left, ends := all.Without(lost.Rank, a.ends)
	if err := left.Prepare(ctx, ends, a.agentRequest()); err != nil {
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

// capacityCase returns the case with workload of, which measures the capacity for k. For a job it is a case of the
// baseline on k's path or, if that case is not served, on plan.ZeroPath: all profiles then compute for the same time
// in each step. Without such a case, it is a case of k's own profile.
func capacityCase(c *conductor, k plan.Case, of plan.Workload) plan.Case {
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
