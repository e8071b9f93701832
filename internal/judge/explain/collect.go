// Package explain attributes the CPU time of a case, and the difference between two cases, to parts that add up.
//
// A Collector attributes the samples of sampled trials to the parts of a table (parts.txt, table.go). Sides (side.go)
// turns counts into shares, weighted by how near the machine was to its full speed, and shares into parts of the
// undisturbed service demand, which comes from trials without samples. Between (difference.go) subtracts two sides. The
// parts of a side add up to its service demand, those of a difference to the difference.
//
// Everything here is pure: records in, values out.
package explain

import (
	"strings"

	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// Collector collects the sampled trials of a result. The zero value is ready for use.
type Collector struct {
	cases map[plan.Case]*sampled
	order []plan.Case
	// last is the latest trial without samples, lastDemand its service demand.
	last       plan.Trial
	lastDemand float64
	titles     map[string]Part
	// Keep tells the Collector to keep the stacks, for flame graphs and profiles.
	Keep bool
}

// sampled has the sampled trials of a case.
type sampled struct {
	trials []trial
	// costs has for each trial the share of its CPU time that the sampling took.
	costs   []float64
	failed  int
	failure string
	counted []counted
}

// trial is a sampled trial, by slices.
type trial struct {
	instance int
	machine  string
	slices   []slice
	stacks   *sample.Stacks
	// followed has the switch's share by receipt, in a trial that follows packets.
	followed prefixes
	// events have the samples by each event of the processor.
	events map[string]map[placement]sample.Happened
}

// slice counts the samples of one slice of a window by their part. yard is the yardstick's reading in the slice, in
// ns.
type slice struct {
	yard   int64
	counts map[placement]tally
}

// placement is the part that a sample belongs to. If the packet's namespace is unknown, receipt has the stack that
// handled the packet; the sample may then belong to the switch instead.
type placement struct{ id, receipt string }

// tally counts samples. Their weight is the time, or the cycles, that they represent.
type tally struct {
	samples int
	weight  float64
}

// Add adds a sampled or counted trial. Of other trials it keeps only the latest service demand. It fails if the table
// of parts is malformed.
func (c *Collector) Add(rec *result.Record) error {
	k := rec.Case
	k.Workload = k.Workload.Normalize()
	at, demand := plan.Trial{Case: k, Repetition: rec.Repetition}, rec.Metrics[metric.ServiceDemand]
	if rec.Type == result.TypeTrial {
		c.last, c.lastDemand = at, demand
	}
	if rec.Type != result.TypeSampled && rec.Type != result.TypeCounted {
		return nil
	}
	if c.cases == nil {
		c.cases, c.titles = map[plan.Case]*sampled{}, map[string]Part{}
	}
	s := c.cases[k]
	if s == nil {
		s = &sampled{}
		c.cases[k], c.order = s, append(c.order, k)
	}
	if rec.Type == result.TypeCounted {
		s.counted = append(s.counted, countedPrograms(rec))
		return nil
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
	s.trials = append(s.trials, c.attributeTrial(t, rec))
	if c.last == at && demand > 0 && c.lastDemand > 0 {
		s.costs = append(s.costs, 1-c.lastDemand/demand)
	}
	return nil
}

// Empty reports whether no sampled or counted trial was added.
func (c *Collector) Empty() bool { return len(c.cases) == 0 }

// attributeTrial attributes the samples of a trial.
func (c *Collector) attributeTrial(t *table, rec *result.Record) trial {
	s := rec.Stacks
	if !c.Keep { // without their frames and counts
		s = &sample.Stacks{Event: s.Event, Rate: s.Rate, Lost: s.Lost, Throttled: s.Throttled, Foreign: s.Foreign, Others: s.Others, Meter: s.Meter, Cut: s.Cut, Missing: s.Missing}
	}
	out := trial{instance: rec.Instance, machine: rec.Client.Machine, stacks: s, followed: prefixes{}}
	windows := sample.InWindow(rec.Client.Intervals)
	known := map[int32]placement{}
	placed := func(frame int32) placement {
		o, ok := known[frame]
		if !ok {
			stack := rec.Stacks.Stack(frame)
			p := t.partOfStack(stack)
			o = placement{p.ID, receiptOf(stack)}
			known[frame], c.titles[p.ID] = o, p
		}
		return o
	}
	for i := range min(len(rec.Stacks.Counts), len(windows)) {
		s := slice{yard: windows[i].YardNs, counts: map[placement]tally{}}
		for frame, c := range rec.Stacks.Of(i) {
			o, weight := placed(frame), float64(c.Weight)
			if space := rec.Stacks.Root(frame); space != sample.UnknownSpace {
				out.followed.addReceipt(o.receipt, weight, c.Samples, space == sample.SwitchSpace)
				o.receipt = ""
			}
			x := s.counts[o]
			s.counts[o] = tally{x.samples + c.Samples, x.weight + weight}
		}
		out.slices = append(out.slices, s)
	}
	for event, by := range rec.Stacks.Events {
		if out.events == nil {
			out.events = map[string]map[placement]sample.Happened{}
		}
		out.events[event] = map[placement]sample.Happened{}
		for _, h := range by {
			o := placed(h.Frame)
			if rec.Stacks.Root(h.Frame) != sample.UnknownSpace {
				o.receipt = "" // it is known to belong to a host of the dataplane
			}
			x := out.events[event][o]
			out.events[event][o] = sample.Happened{Samples: x.Samples + h.Samples, Events: x.Events + h.Events}
		}
	}
	return out
}

// receiptOf returns the functions of a stack that handle the last received packet, one in each line, outermost first.
// It returns "" if the stack handles no received packet.
func receiptOf(stack []string) string {
	for i := len(stack) - 1; i > 0; i-- {
		if strings.HasPrefix(stack[i], "__netif_receive_skb") && !strings.HasPrefix(stack[i-1], "__netif_receive_skb") {
			return strings.Join(stack[i:], "\n")
		}
	}
	return ""
}
