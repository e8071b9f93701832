package sample

import (
	"cmp"
	"maps"
	"time"

	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// What attached the new pods of a trial. AttachedUnknown is for records of older versions, whose pods dialled only
// once.
const (
	AttachedUnknown = "not recorded, one dial"
	// AttachedInProcess means that this program did the work of a plugin. AttachedByPlugins means that plugins were
	// executed, whose processes take additional time. The times of the two are not comparable.
	AttachedInProcess = "in process"
	AttachedByPlugins = "by plugins"
)

// NewPod has the times of a new pod.
type NewPod struct {
	// Whole is the time in ns from the pod's intended start to its first response, Start the time from the start of
	// its program to that response.
	Whole, Start int64
	// Parts are the waits of the pod. For a pod with an answer they add up to Whole.
	Parts map[string]int64
	// Dials is the number of attempts, DialNs the CPU time of the thread that made them.
	Dials  int
	DialNs int64
}

// NewPods returns an empty observation of new pods, which must have an answer within timeout. AddPod and FailPod count
// the pods.
func NewPods(side string, timeout time.Duration, attached string) Observation {
	return Observation{Side: side, Errors: map[string]uint64{}, Schedule: &Schedule{Lag: NewHistogram()},
		Pods: &Pods{First: NewHistogram(), Start: NewHistogram(), Waits: map[string]int64{}, TimeoutNs: int64(timeout), Attached: attached}}
}

// AddPod counts a new pod with a response.
func (o *Observation) AddPod(p NewPod) {
	o.Operations++
	o.Pods.addPod(p)
}

// FailPod counts a new pod without a response, and stores the first reason. Its times are the timeout, whatever the
// reason: a pod without an answer is not faster than one that waited.
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
	o.Pods.addPod(p)
}

// addPod adds a pod to the distributions and sums.
func (s *Pods) addPod(p NewPod) {
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

// CommonError returns the most frequent kind of error, or other if there are no errors. Among equals it returns the
// first by name.
func (o *Observation) CommonError(other string) string {
	kind, most := other, uint64(0)
	for k, n := range o.Errors {
		if n > most || n == most && k < kind {
			kind, most = k, n
		}
	}
	return kind
}
