package run

import (
	"fmt"
	"slices"

	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/plan"
)

// mostCapacityTrials is the largest number of trials that measure a capacity. The capacity is the median of their rates.
const mostCapacityTrials = 3

// kindNoCapacity is the failure of a trial whose load is a share of a capacity that no trial has measured.
const kindNoCapacity = "no capacity"

func (c *conductor) capacityTrialCount() int { return min(c.plan.Repetitions, mostCapacityTrials) }

// measuresCapacity reports whether k measures a capacity: a rate to which the load (or, for a job, the compute share) of
// another workload of the plan refers.
func (c *conductor) measuresCapacity(k plan.Case) bool {
	return slices.ContainsFunc(c.plan.Workloads, func(w plan.Workload) bool {
		of, ok := w.Capacity()
		return ok && of == k.Workload
	})
}

// capacity returns the rate to which the load (or compute share) of k refers, in requests or steps per second: the
// median of the first trials of capacityCase. A resumed run therefore has the same capacity. It returns 0 for a case
// without a load or compute share, and fails if no trial has measured the capacity.
func (c *conductor) capacity(k plan.Case) (float64, error) {
	of, ok := k.Workload.Capacity()
	if !ok {
		return 0, nil
	}
	rates := c.memory.rates[capacityCase(c, k, of)]
	if len(rates) == 0 {
		return 0, fmt.Errorf("it is a share of what %s reaches, which no trial has measured", of)
	}
	return stat.Summarize(rates, confidence).Median, nil
}

// agentWorkload returns the workload to request from the agents: a load becomes a rate, and a share of compute
// becomes a time.
func agentWorkload(w plan.Workload, capacity float64) plan.Workload {
	if capacity > 0 {
		w = w.Computing(capacity)
	}
	if load := w.Traits().Load; load > 0 {
		return w.Paced(load*capacity, 0)
	}
	return w
}
