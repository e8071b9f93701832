package run

import (
	"fmt"
	"slices"

	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/plan"
)

// mostCapacityTrials bounds how many trials the median of the capacity is taken from.
const mostCapacityTrials = 3

// kindNoCapacity is the failure of a trial whose load is a share of something unknown.
const kindNoCapacity = "no capacity"

func (c *conductor) capacityTrials() int { return min(c.plan.Repetitions, mostCapacityTrials) }

// isCapacity reports whether loads of the plan are shares of what k measures.
func (c *conductor) isCapacity(k plan.Case) bool {
	return slices.ContainsFunc(c.plan.Workloads, func(w plan.Workload) bool {
		of, ok := w.Capacity()
		return ok && of == k.Workload
	})
}

// capacity returns the rate that the load of k is a share of, in requests per second: the median of the first trials
// that measured it on the same path under the same profile. A resumed run therefore has the same capacity. It returns 0
// for a case without a load.
func (c *conductor) capacity(k plan.Case) (float64, error) {
	of, ok := k.Workload.Capacity()
	if !ok {
		return 0, nil
	}
	rates := c.memory.rates[measuredBy(c, k, of)]
	if len(rates) == 0 {
		return 0, fmt.Errorf("it is a share of what %s reaches, which no trial has measured", of)
	}
	return stat.Summarize(rates, confidence).Median, nil
}

// asked returns the workload to request from the agents: a load becomes a rate, a compute share becomes a time.
func asked(w plan.Workload, capacity float64) plan.Workload {
	if capacity > 0 {
		w = w.Computing(capacity)
	}
	if load := w.Traits().Load; load > 0 {
		return w.Paced(load*capacity, 0)
	}
	return w
}
