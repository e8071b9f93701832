package sample

import (
	"cmp"
	"maps"
	"time"

	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// What attached the new pods of a trial. AttachedUnknown is that of a record by a version that dialled once.
const (
	AttachedUnknown = "not recorded, one dial"
	// AttachedInProcess means that this program did what a plugin does. AttachedByPlugins means that plugins were executed,
	// whose processes take time of their own. The times of the two are not comparable.
	AttachedInProcess = "in process"
	AttachedByPlugins = "by plugins"
)

// NewPod is what a new pod saw.
type NewPod struct {
	// Whole is the time from its intended time to its first response in ns, Start that from the start of its program.
	Whole, Start int64
	// Parts are what it waited for. Those of a pod with an answer add up to Whole.
	Parts map[string]int64
	// Dials is how often it dialled, DialNs the CPU time of the thread that did.
	Dials  int
	DialNs int64
}

// NewPods returns an observation that counts new pods, which have timeout to get an answer; AddPod and FailPod count them.
func NewPods(side string, timeout time.Duration, attached string) Observation {
	return Observation{Side: side, Errors: map[string]uint64{}, Schedule: &Schedule{Lag: NewHistogram()},
		Pods: &Pods{First: NewHistogram(), Start: NewHistogram(), Waits: map[string]int64{}, TimeoutNs: int64(timeout), Attached: attached}}
}

// AddPod counts a new pod with a response.
func (o *Observation) AddPod(p NewPod) {
	o.Operations++
	o.Pods.count(p)
}

// FailPod counts a new pod without a response, and keeps the first reason. Its times are the timeout, whatever the reason: a pod
// that got no answer is not faster than one that waited.
func (o *Observation) FailPod(kind, why string, p NewPod) {
	o.Errors[kind]++
	o.Pods.Failure = cmp.Or(o.Pods.Failure, why)
	o.Pods.Unanswered++
	rest, parts := o.Pods.TimeoutNs, map[string]int64{}
	for part, ns := range p.Parts {
		ns = min(ns, rest)
		parts[part] += ns
		rest -= ns
	}
	parts[metric.WaitUnanswered] += rest
	p.Whole, p.Start, p.Parts = o.Pods.TimeoutNs, o.Pods.TimeoutNs, parts
	o.Pods.count(p)
}

// count adds a pod to the distributions and sums.
func (s *Pods) count(p NewPod) {
	if p.Whole > s.First.Max() || s.First.Count() == 0 {
		s.Slowest = maps.Clone(p.Parts)
	}
	s.First.Record(p.Whole)
	s.Start.Record(p.Start)
	s.Dials += uint64(p.Dials)
	s.DialNs += p.DialNs
	for part, ns := range p.Parts {
		s.Waits[part] += ns
	}
}

// CommonError returns the most frequent kind of error, the first by name of several; other without any.
func (o *Observation) CommonError(other string) string {
	kind, most := other, uint64(0)
	for k, n := range o.Errors {
		if n > most || n == most && k < kind {
			kind, most = k, n
		}
	}
	return kind
}
