package run

import (
	"context"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/plan"
)

// jointly measures a job: its members are the client and the servers of the route.
func jointly(ctx context.Context, c *conductor, e control.Ends, j job) (seen, error) {
	sides, err := c.started(ctx, e)
	if err != nil {
		return seen{}, err
	}
	members := control.Members(sides)
	if err := members.Prepare(ctx, e, c.ask(j)); err != nil {
		return seen{}, err
	}
	churn := c.churning(j)
	whole, err := members.Run(ctx, func() { churn.begin(ctx) })
	changes, err := churn.end(err)
	if err != nil {
		return seen{}, err
	}
	return seen{client: whole, windowNs: whole.ElapsedNs, churn: changes, apart: sides.Apart()}, nil
}

// measuredBy returns the case that measures what k is a share of. The steps of all profiles have the compute time of the
// baseline, so that they differ by what they exchange.
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
