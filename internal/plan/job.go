package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/cnibench/cnibench/internal/plan/job"
	"github.com/cnibench/cnibench/internal/plan/position"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// jobSpec is a job whose members, pods on separate nodes, exchange data in steps.
type jobSpec struct {
	job.Shape
	// Compute is the share of a step's time in which members compute, under the baseline. Pause is how long they
	// compute in each step. At most one of the two is given.
	Compute    float64
	Pause      time.Duration
	Congestion string
}

// patternKey is the key of the option that determines the defaults of the other options.
const patternKey = "pattern"

const (
	// gigabyte is the unit of work of a job: payload that its members send to each other.
	gigabyte work = "GB"
	// maxCompute bounds jobSpec.Compute, maxPause jobSpec.Pause.
	maxCompute = 0.95
	maxPause   = 10 * time.Second
)

var jobKind = kind{name: "job", about: "steps of a job over several nodes: all-reduce, broadcast, shuffle, replication, incast, requests", title: "Steps of a job over several nodes", zero: jobSpec{}, options: []option{
	singleTransportOption[jobSpec](TCP),
	fieldOption(patternKey, patternKey, "what the members exchange in a step", wordValues(job.Patterns()...), func(s *jobSpec) *string { return &s.Pattern }),
	fieldOption("via", "via", "way of the pattern: ring or doubling (allreduce), tree or flat (broadcast), chain or fan-out (replicate)", wordValues(job.Ways()...), func(s *jobSpec) *string { return &s.Via }),
	fieldOption("members", "members", "pods that take part, each on a node of its own", wholeNumberValues(job.LeastMembers, job.MostMembers), func(s *jobSpec) *int { return &s.Members }),
	fieldOption("size", "size", "bytes of a member's data, or of an answer", sizeValues(job.MaxSize), func(s *jobSpec) *int { return &s.Size }),
	fieldOption("skew", "skew", "share of each member's data that goes to the first member beyond its even part (shuffle)", shareValues("skew", 0, job.MaxSkew, "0% to 95%", position.Share), func(s *jobSpec) *float64 { return &s.Skew }),
	fieldOption("fanout", "fanout", "requests that follow from one (microservice)", wholeNumberValues(1, job.MostMembers-1), func(s *jobSpec) *int { return &s.Fanout }),
	fieldOption("service", "service", "time that a member works for each request (microservice)", durationValues(0, job.MaxService), func(s *jobSpec) *time.Duration { return &s.Service }),
	fieldOption("compute", "compute", "share of a step in which members compute, under the baseline", shareValues("compute share", 0, maxCompute, "0% to 95%", position.Share), func(s *jobSpec) *float64 { return &s.Compute }),
	fieldOption("pause", "pause", "time in which members compute in each step", durationValues(0, maxPause), func(s *jobSpec) *time.Duration { return &s.Pause }),
	fieldOption("lost", "lost", "what follows when a member other than the first is lost: the trial ends, or the others continue without it", wordValues(job.Losses()...), func(s *jobSpec) *string { return &s.Lost }),
	fieldOption("congestion", "congestion", "TCP congestion control", algorithms, func(s *jobSpec) *string { return &s.Congestion }),
	byWindow,
}}

func (s jobSpec) kindEntry() *kind { return &jobKind }

// Traits implements Spec.
func (s jobSpec) Traits() Traits {
	return Traits{Protocol: TCP, Work: gigabyte, Flows: 1, Job: s.Shape, Interval: s.Pause, Congestion: s.Congestion,
		Decides: []string{metric.StepTime + ".p50", metric.StepTime + ".mean"}}
}

func (s jobSpec) normalize() Spec {
	s.Shape = s.WithDefaults()
	s.Congestion = cmp.Or(s.Congestion, DefaultCongestion)
	return s
}

func (s jobSpec) addFaults(f *faultList) {
	n := s.normalize().(jobSpec)
	for _, fault := range n.Faults() {
		f.refuseIf(true, "%s", fault)
	}
	f.refuseIf(s.Compute > 0 && s.Pause > 0, "compute and pause both say how long members compute: give one of them")
}

// Title returns the name of the workload in a report. It includes UDP, and the pattern, members and compute time of a
// job.
func (w Workload) Title() string {
	switch w.Spec.(type) {
	case RR, Stream:
		if w.Traits().Protocol == UDP {
			return w.Kind().Title() + " by UDP"
		}
	}
	s, ok := w.Spec.(jobSpec)
	if !ok {
		return w.Kind().Title()
	}
	title := fmt.Sprintf("%s over %d nodes", s.Shape.Title(), s.Members)
	if s.Compute > 0 {
		title += ", " + FormatShare(s.Compute) + " compute"
	}
	if s.Pause > 0 {
		title += fmt.Sprintf(", %s of compute", s.Pause)
	}
	return title
}

// whyBarred implements chooser: it returns why the spec does not support a path.
func (s jobSpec) whyBarred(p Path) string {
	if p.Locality != CrossNode || p.From != p.To {
		return "the members of a job are pods, or hosts, on several nodes: want pod-to-pod/cross-node or host-to-host/cross-node"
	}
	return ""
}

// withoutCompute returns the same job without compute. The compute share of w refers to the step time of that job. It
// returns false if w has no compute share.
func (w Workload) withoutCompute() (Workload, bool) {
	s, ok := w.Spec.(jobSpec)
	if !ok || s.Compute == 0 {
		return Workload{}, false
	}
	s.Compute = 0
	w.Spec = s
	return w.Normalize(), true
}

// Computing returns the job with its compute share converted to a time. rate is the number of steps per second without
// compute. A workload without a compute share is returned unchanged.
func (w Workload) Computing(rate float64) Workload {
	s, ok := w.Spec.(jobSpec)
	if !ok || s.Compute == 0 {
		return w
	}
	s.Pause = min(time.Duration(s.Compute/(1-s.Compute)/rate*float64(time.Second)), maxPause)
	s.Compute = 0
	w.Spec = s
	return w
}

// withJobNodes returns p with at least as many lab nodes as its largest job has members. It returns p unchanged if given
// reports that the number of nodes was given.
func (p Plan) withJobNodes(given func(key string) bool) Plan {
	if given("lab.nodes") {
		return p
	}
	for _, w := range p.Workloads {
		p.Lab.Nodes = min(max(p.Lab.Nodes, w.Traits().Job.Members), MaxNodes)
	}
	return p
}

// checkJobs adds faults for jobs that need more nodes than the lab has, for jobs on clusters of kind, and for a job
// with explain. The nodes of other clusters are counted when a run begins.
func (fs *faults) checkJobs(p Plan) {
	jobs := slices.DeleteFunc(slices.Clone(p.Workloads), func(w Workload) bool { return w.Spec == nil || w.Traits().Job.Members == 0 })
	for _, w := range jobs {
		need := w.Traits().Job.Members
		for _, v := range p.Measured() {
			if have := v.Lab(p.Lab).Nodes; !p.OnCluster() && have < need {
				fs.Add("workloads", "%s: %d members need a node each, and %s has %d: %s", w, need, v, have, moreNodesAdvice(need))
				break
			}
		}
		if p.Environment == EnvKind {
			fs.Add("workloads", "%s: a cluster that kind makes has few nodes: take --env kubernetes", w)
		}
	}
	if len(jobs) > 0 && p.Explain {
		fs.Add("explain", "has no meaning for a job: leave it out, or explain a stream")
	}
}

func moreNodesAdvice(need int) string {
	if need > MaxNodes {
		return fmt.Sprintf("a lab has at most %d nodes; take fewer members, or a cluster", MaxNodes)
	}
	return fmt.Sprintf("--nodes %d, or fewer members", need)
}
