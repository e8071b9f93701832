// Package explain says where the CPU time of a case goes, and where the difference between two cases goes, in parts that add
// up.
//
// A Collector attributes the samples of sampled trials to the parts of a table (parts.txt, table.go). Sides (side.go) turns
// counts into shares, weighed by how near the machine was to its full speed, and shares into parts of the undisturbed service
// demand, which comes from trials without samples. Between (difference.go) subtracts two sides. The parts of a side add up to
// its service demand, those of a difference to the difference.
//
// Everything here is pure: records in, values out.
package explain

import (
	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
)

// Collector takes in the sampled trials of a result. The zero value is ready for use.
type Collector struct {
	cases  map[plan.Case]*sampled
	order  []plan.Case
	rates  compare.Collector
	titles map[string]Part
	// Keep keeps the stacks, for flame graphs and profiles.
	Keep bool
}

// sampled are the sampled trials of a case.
type sampled struct {
	trials  []trial
	failed  int
	failure string
}

// trial is a sampled trial, by slices.
type trial struct {
	instance int
	machine  string
	slices   []slice
	stacks   *sample.Stacks
}

// slice has the samples of a slice by the id of their part.
type slice struct {
	yard   int64
	counts map[string]int
}

// Add takes in a record; those of trials without samples are passed over.
func (c *Collector) Add(rec *result.Record) error {
	if rec.Type != result.TypeSampled {
		return nil
	}
	k := rec.Case
	k.Workload = k.Workload.Normalize()
	if c.cases == nil {
		c.cases, c.titles = map[plan.Case]*sampled{}, map[string]Part{}
	}
	s := c.cases[k]
	if s == nil {
		s = &sampled{}
		c.cases[k], c.order = s, append(c.order, k)
	}
	if rec.Status != result.OK || rec.Stacks == nil || rec.Client == nil {
		s.failed++
		if rec.Error != nil && s.failure == "" {
			s.failure = rec.Error.Message
		}
		return nil
	}
	t, err := parts()
	if err != nil {
		return err
	}
	s.trials = append(s.trials, c.trial(t, rec))
	timed := *rec
	timed.Type = result.TypeTrial
	return c.rates.Add(&timed)
}

// Empty says whether there was no sampled trial.
func (c *Collector) Empty() bool { return len(c.cases) == 0 }

// trial attributes the samples of a trial.
func (c *Collector) trial(t *table, rec *result.Record) trial {
	out := trial{instance: rec.Instance, machine: rec.Client.Machine, stacks: slim(rec.Stacks)}
	if c.Keep {
		out.stacks = rec.Stacks
	}
	var windows []sample.Interval
	for _, i := range rec.Client.Intervals {
		if !i.Warmup {
			windows = append(windows, i)
		}
	}
	known := map[int32]string{}
	for i := range min(len(rec.Stacks.Counts), len(windows)) {
		s := slice{yard: windows[i].YardNs, counts: map[string]int{}}
		for frame, n := range rec.Stacks.Of(i) {
			id, ok := known[frame]
			if !ok {
				p := t.attribute(rec.Stacks.Stack(frame))
				id = p.ID
				known[frame], c.titles[id] = id, p
			}
			s.counts[id] += n
		}
		out.slices = append(out.slices, s)
	}
	return out
}

// slim is stacks without their frames and counts.
func slim(s *sample.Stacks) *sample.Stacks {
	return &sample.Stacks{Event: s.Event, Rate: s.Rate, Lost: s.Lost, Throttled: s.Throttled, Foreign: s.Foreign, Meter: s.Meter, Missing: s.Missing}
}
