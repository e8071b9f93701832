package explain

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/metric"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// Interval is a value with the two ends of its confidence interval.
type Interval struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// Share is the share of a part in a side's service demand.
type Share struct {
	Part
	// Time is the service demand of the part, Share its share of the side's service demand.
	Time  Interval `json:"time"`
	Share float64  `json:"share"`

	variance, free float64
}

// Valued is a part with a value and its interval.
type Valued struct {
	Part
	Interval
}

// Side attributes the CPU time of a case.
type Side struct {
	plan.Case `json:"-"`
	// Demand is the undisturbed service demand of the trials without samples. Unit is the unit of Demand and of the parts.
	Unit   string   `json:"unit"`
	Demand Interval `json:"demand"`
	// Parts are sorted by their share, the largest first. They add up to Demand.
	Parts []Share `json:"parts"`
	// Samples counts the samples in parts, Trials the trials with samples. Failed counts the sampled trials without
	// samples; Failure is the first reason.
	Samples int    `json:"samples"`
	Trials  int    `json:"trials"`
	Failed  int    `json:"failed"`
	Failure string `json:"failure,omitempty"`
	// Lost counts samples for which the buffer had no room.
	// Throttled counts the pauses of the sampling.
	// Foreign counts the samples of other tasks on the CPUs.
	Lost      uint64 `json:"lost"`
	Throttled uint64 `json:"throttled"`
	Foreign   uint64 `json:"foreign"`
	// Others are the other tasks on the CPUs, the longest first. They are not included in Demand.
	Others []Other `json:"others,omitempty"`
	// Cut is the number of samples without their outermost functions.
	Cut uint64 `json:"cut,omitempty"`
	// Event is the event that triggers samples. Rate is the number of samples per second on a busy CPU.
	Event string `json:"event"`
	Rate  int    `json:"rate"`
	// Cost is the share of a sampled trial's CPU time that the sampling took, the median over trials; nil if unknown.
	Cost *float64 `json:"cost,omitempty"`
	// Counters are the processor's counts per unit of work, by metric.
	Counters map[string]Interval `json:"counters,omitempty"`
	// Counted attributes each counter to parts, by the samples of its event. The parts add up to it.
	Counted map[string][]Valued `json:"counted,omitempty"`
	// Missing lists what the machine did not allow.
	Missing []string `json:"missing,omitempty"`
	// Programs has the BPF programs by the kernel's count, nil if none was counted.
	Programs *Programs `json:"programs,omitempty"`

	basis
}

// basis is the data that a side is computed from.
type basis struct {
	called    string
	deviation float64 // of Demand
	sampled   *sampled
	weigh     func(trial, slice) float64
}

// confidence is the confidence of intervals.
const confidence = 0.95

// Name returns the name for reports: its profile, or the name from Called.
func (s Side) Name() string { return cmp.Or(s.called, number.Clean(s.Profile.String())) }

// Called returns s with a name, to distinguish sides of one profile.
func (s Side) Called(name string) Side {
	s.called = name
	return s
}

// Sides attributes the CPU time of every sampled case, in the order of the analysis of the trials without samples.
func (c *Collector) Sides(a *compare.Analysis) []Side {
	if c.Empty() {
		return nil
	}
	sides := each.Of(c.order, func(k plan.Case) Side { return c.sideOf(a, k) })
	place := func(s Side) [3]int {
		return [3]int{slices.Index(a.Workloads, s.Workload), slices.Index(a.Paths, s.Path), slices.Index(a.Profiles, s.Profile)}
	}
	slices.SortStableFunc(sides, func(x, y Side) int {
		p, q := place(x), place(y)
		return slices.Compare(p[:], q[:])
	})
	return sides
}

// sideOf attributes the time of one case. Without a service demand or samples it has no parts.
func (c *Collector) sideOf(a *compare.Analysis, k plan.Case) Side {
	s := c.cases[k]
	out := Side{Case: k, Failed: s.failed, Failure: s.failure, Trials: len(s.trials), basis: basis{sampled: s}}
	for _, t := range s.trials {
		out.Lost, out.Throttled, out.Foreign = out.Lost+t.stacks.Lost, out.Throttled+t.stacks.Throttled, out.Foreign+t.stacks.Foreign
		out.Cut += t.stacks.Cut
		out.Event, out.Rate = t.stacks.Event, t.stacks.Rate
		out.Missing = each.Once(append(out.Missing, t.stacks.Missing...))
	}
	for _, name := range metric.Counted {
		if cell, ok := a.Cell(compare.Key{Case: k, Metric: name}); ok && cell.N > 0 {
			if out.Counters == nil {
				out.Counters = map[string]Interval{}
			}
			out.Counters[name] = Interval{cell.Median, cell.Low, cell.High}
		}
	}
	cell, ok := a.Cell(compare.Key{Case: k, Metric: metric.ServiceDemand})
	out.Unit = metric.UnitFor(metric.ServiceDemand, k.Workload.Traits().Work)
	if !ok || cell.N == 0 {
		return out
	}
	out.Demand = Interval{cell.Median, cell.Low, cell.High}
	out.deviation = standardError(cell)
	if len(s.costs) > 0 {
		cost := stat.Summarize(s.costs, confidence).Median
		out.Cost = &cost
	}
	c.setParts(&out, a)
	out.Others = out.otherTasks(s.trials)
	c.setCounterParts(&out, a)
	out.Programs = out.comparePrograms(s.counted)
	return out
}

// setParts sets the parts and the number of samples of a side.
func (c *Collector) setParts(s *Side, a *compare.Analysis) {
	s.weigh = func(t trial, x slice) float64 { return a.Weight(t.machine, s.Case, x.yard) }
	units := s.sampled.weightedUnits(s.weigh)
	for _, u := range units {
		s.Samples += u.samples
	}
	for id, p := range sharesByGroup(units, ownGroup) {
		p.Part = c.part(id)
		p.Time = p.intervalOf(s.Demand.Value, s.deviation)
		s.Parts = append(s.Parts, p)
	}
	slices.SortFunc(s.Parts, func(x, y Share) int {
		return cmp.Or(cmp.Compare(y.Share, x.Share), cmp.Compare(x.ID, y.ID))
	})
}

// setCounterParts fills in the parts of the counters of a side.
func (c *Collector) setCounterParts(s *Side, a *compare.Analysis) {
	for event := range s.Counters {
		cell, _ := a.Cell(compare.Key{Case: s.Case, Metric: event})
		var list []Valued
		for id, p := range sharesByGroup(s.sampled.eventUnits(event), ownGroup) {
			list = append(list, Valued{c.part(id), p.intervalOf(cell.Median, standardError(cell))})
		}
		if len(list) == 0 {
			continue
		}
		slices.SortFunc(list, func(x, y Valued) int { return cmp.Or(cmp.Compare(y.Value, x.Value), cmp.Compare(x.ID, y.ID)) })
		if s.Counted == nil {
			s.Counted = map[string][]Valued{}
		}
		s.Counted[event] = list
	}
}

// standardError returns the standard deviation of the error of a cell, 0 if unknown.
func standardError(c compare.Cell) float64 {
	d := (c.High - c.Low) / 2 / stat.Reach(confidence, float64(max(1, c.N-1)))
	if math.IsNaN(d) {
		return 0
	}
	return d
}

// Times returns the parts of the service demand of a side.
func (s Side) Times() []Valued {
	return each.Of(s.Parts, func(p Share) Valued { return Valued{p.Part, p.Time} })
}

// part returns the part with an id, the zero value if no sample had it.
func (c *Collector) part(id string) Part {
	if id == switchPart.ID {
		return switchPart
	}
	return c.titles[id]
}

// intervalOf returns the part's share of value, with its interval. deviation is the standard deviation of value's
// error.
func (p Share) intervalOf(value, deviation float64) Interval {
	half := math.Sqrt(value*value*p.variance + p.Share*p.Share*deviation*deviation)
	if half > 0 { // a share of 1 in every trial has no error, whatever its degrees of freedom are
		half *= stat.Reach(confidence, p.free)
	}
	return Interval{p.Share * value, max(0, p.Share*value-half), p.Share*value + half}
}

// weightedUnits returns the units of the trials. It multiplies the time of each slice by its weight from weigh.
func (s *sampled) weightedUnits(weigh func(trial, slice) float64) []unit {
	return s.unitsByInstance(func(u *unit, t trial) {
		for _, x := range t.slices {
			w := weigh(t, x)
			for o, n := range x.counts {
				u.addSamples(o, w*n.weight, n.samples)
			}
		}
	})
}

// eventUnits returns the units of the trials with the counts of an event in place of time.
func (s *sampled) eventUnits(event string) []unit {
	return s.unitsByInstance(func(u *unit, t trial) {
		for o, h := range t.events[event] {
			u.addSamples(o, h.Events, h.Samples)
		}
	})
}

// unitsByInstance returns a unit for each instance, the sum of its trials. With only one instance it returns a unit for
// each trial. add adds a trial to a unit.
func (s *sampled) unitsByInstance(add func(*unit, trial)) []unit {
	instances := map[int]bool{}
	for _, t := range s.trials {
		instances[t.instance] = true
	}
	at := map[int]int{}
	var units []unit
	for n, t := range s.trials {
		key := t.instance
		if len(instances) < 2 {
			key = n
		}
		i, ok := at[key]
		if !ok {
			i = len(units)
			at[key], units = i, append(units, unit{known: map[string]float64{}, open: map[placement]float64{}, followed: prefixes{}})
		}
		units[i].followed.join(t.followed)
		add(&units[i], t)
	}
	return slices.DeleteFunc(units, func(u unit) bool { return !(u.weight > 0) && len(u.followed) == 0 })
}

// Part returns the part with an id, the zero value if the side does not have it.
func (s Side) Part(id string) Share {
	found, _ := each.First(s.Parts, func(p Share) bool { return p.ID == id })
	return found
}

// Stack is a stack of a side. Frames has the network namespace, then the functions, outermost first.
type Stack struct {
	Frames  []string
	Samples int
	// Share is its share of the side's time.
	Share float64
}

// Stacks returns the stacks of a side, sorted by their frames; nil unless the collector kept them.
func (s Side) Stacks() []Stack {
	if s.sampled == nil || s.weigh == nil {
		return nil
	}
	at := map[string]*Stack{}
	all := 0.0
	for _, t := range s.sampled.trials {
		for i := range min(len(t.slices), len(t.stacks.Counts)) {
			w := s.weigh(t, t.slices[i])
			for frame, c := range t.stacks.Of(i) {
				frames := t.stacks.Stack(frame)
				key := strings.Join(frames, "\n")
				x := at[key]
				if x == nil {
					x = &Stack{Frames: frames}
					at[key] = x
				}
				weight := w * float64(c.Weight)
				x.Samples, x.Share, all = x.Samples+c.Samples, x.Share+weight, all+weight
			}
		}
	}
	var out []Stack
	for _, key := range slices.Sorted(maps.Keys(at)) {
		x := *at[key]
		x.Share /= all
		out = append(out, x)
	}
	return out
}
