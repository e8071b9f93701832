package explain

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// Program has the time of a BPF program of a side, by two methods: the kernel's count of its runs, and the samples.
type Program struct {
	Name string `json:"name"`
	// Runs is its number of runs per unit of work. It is 0 for a program that the kernel counts with the programs that
	// call it.
	Runs float64 `json:"runs"`
	// Counted is its time per unit of work by the kernel, without the kernel's clock readings. Sampled is its time by the
	// samples.
	Counted Interval `json:"counted"`
	Sampled Interval `json:"sampled"`
}

// Programs are the BPF programs of a side.
type Programs struct {
	List []Program `json:"list"`
	// All is their sum. In a chain of tail calls, the kernel counts the whole time for one program.
	All Program `json:"all"`
	// Agree means that the sums by both methods do not differ by more than their errors.
	Agree bool `json:"agree"`
	// Trials is the number of trials with counted runs, Failed the number of others. Failure is the reason for the first.
	Trials  int    `json:"trials"`
	Failed  int    `json:"failed,omitempty"`
	Failure string `json:"failure,omitempty"`
}

// counted are the programs of one trial: each program's share of the trial's CPU time, and its runs per unit of work.
type counted struct {
	shares, runs map[string]float64
	failure      string
}

// countedPrograms returns the counted programs of a trial. If the trial has none, only failure is set.
func countedPrograms(rec *result.Record) counted {
	if rec.Status != result.OK || rec.Programs == nil {
		why := "no runs in its record"
		if rec.Error != nil {
			why = rec.Error.Message
		}
		return counted{failure: why}
	}
	demand, units := rec.Metrics[metric.ServiceDemand], rec.Programs.Units
	if !(demand > 0) || !(units > 0) {
		return counted{failure: "its work is not known"}
	}
	c := counted{shares: map[string]float64{}, runs: map[string]float64{}}
	for _, p := range rec.Programs.List {
		ns := max(0, float64(p.Ns)-float64(p.Runs)*rec.Programs.EmptyNs)
		c.shares[p.Name], c.runs[p.Name] = ns/units/demand, float64(p.Runs)/units
	}
	return c
}

// seldom is the number of runs per unit of work below which a program does not belong to the path.
const seldom = 0.01

// comparePrograms compares the kernel's counts of a side's programs with the samples. It returns nil if nothing was
// counted or the side has no parts.
func (s *Side) comparePrograms(all []counted) *Programs {
	p := &Programs{}
	var names []string
	trials := each.Where(all, func(c counted) bool { return c.failure == "" })
	for _, c := range all {
		if c.failure != "" {
			p.Failed, p.Failure = p.Failed+1, cmp.Or(p.Failure, c.failure)
		}
	}
	if p.Trials = len(trials); len(all) == 0 || len(s.Parts) == 0 {
		return nil
	}
	for _, c := range trials {
		for name, n := range c.runs {
			if n >= seldom && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	used := map[string]bool{}
	for _, name := range names {
		part := s.partOf(name)
		used[part.ID] = true
		p.List = append(p.List, s.programOf(trials, part, name))
	}
	for _, part := range s.Parts {
		if strings.HasPrefix(part.ID, programID) && !used[part.ID] && part.Share >= seldom/10 {
			p.List = append(p.List, Program{Name: part.ID[len(programID):], Sampled: part.Time})
		}
	}
	p.All = s.programOf(trials, s.combinedShare(func(q Share) bool { return strings.HasPrefix(q.ID, programID) }), names...)
	off := math.Abs(p.All.Counted.Value - p.All.Sampled.Value)
	p.Agree = p.Trials > 1 && off <= math.Hypot(p.All.Counted.High-p.All.Counted.Low, p.All.Sampled.High-p.All.Sampled.Low)/2
	return p
}

// programID begins the id of a part that is a program.
const programID = "bpf "

// cut is the length to which the kernel cuts the name of a program.
const cut = 15

// partOf returns the part of a program by its name in the kernel. If there is no such part, the result has only an id.
func (s *Side) partOf(name string) Share {
	part, ok := each.First(s.Parts, func(q Share) bool {
		own, ok := strings.CutPrefix(q.ID, programID)
		return ok && (own == name || len(name) == cut && strings.HasPrefix(own, name))
	})
	if !ok {
		part.ID = programID + name
	}
	return part
}

// combinedShare returns the sum of the parts that wanted selects, as one part.
func (s *Side) combinedShare(wanted func(Share) bool) Share {
	all := s.sumParts(each.Of(each.Where(s.Parts, wanted), func(p Share) string { return p.ID }))
	i := intervalAround(all.time, math.Sqrt(all.variance), max(2, all.free))
	return Share{Part: Part{ID: programID}, Time: Interval{all.time, max(0, i.Low), i.High}}
}

// programOf returns the counted runs and time of the programs with these names, summed, and part's time by the
// samples.
func (s *Side) programOf(trials []counted, part Share, names ...string) Program {
	p := Program{Name: part.ID[len(programID):], Sampled: part.Time}
	shares, weights := make([]float64, len(trials)), make([]float64, len(trials))
	for i, c := range trials {
		weights[i] = 1
		for _, name := range names {
			shares[i] += c.shares[name]
			p.Runs += c.runs[name] / float64(len(trials))
		}
	}
	if len(trials) == 0 {
		return p
	}
	share, variance, free := stat.WeightedMean(shares, weights)
	d := s.Demand.Value
	if math.IsNaN(variance) {
		variance, free = 0, 1
	}
	p.Counted = intervalAround(share*d, math.Sqrt(d*d*variance+share*share*s.deviation*s.deviation), max(1, free))
	p.Counted.Low = max(0, p.Counted.Low)
	return p
}
