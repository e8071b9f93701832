package run

import (
	"context"
	"time"

	"github.com/cnibench/cnibench/internal/env"
	"github.com/cnibench/cnibench/internal/measure/outcome"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
)

// manner defines how trials of one kind of workload differ from others. A nil function means no difference.
type manner struct {
	// measure runs the trial and returns what was observed.
	measure func(a attempt, ctx context.Context) (seen, error)
	// derive returns the metrics and warnings of a trial.
	derive func(w plan.Workload, rec result.Record, x outcome.Conditions) (map[string]float64, []sample.Warning)
	// longest returns the longest time that a trial takes. delay is the time to set up and to end.
	longest func(a attempt, delay time.Duration) time.Duration
	// unable returns why a site cannot be observed while nothing is sent, "" if it can. It is set only for workloads that
	// send nothing.
	unable func(at env.Site) string
	// opaque means that CPU samples explain nothing about the workload.
	opaque bool
}

// manners has the manner of each kind of workload that differs from the others. Rest.Register adds more.
var manners = map[plan.Kind]manner{
	"throughput": {measure: attempt.searchThroughput, derive: searchMetrics, longest: maxSearchTime, opaque: true},
	"ttfr":       {measure: attempt.measureNewPods},
	"job":        {measure: attempt.measureJob, longest: maxJobTime},
}

// mannerOf returns the manner of a kind of workload, with measure, derive and longest set.
func mannerOf(k plan.Kind) manner {
	m := manners[k]
	if m.measure == nil {
		m.measure = attempt.measureOnce
	}
	if m.derive == nil {
		m.derive = func(w plan.Workload, rec result.Record, x outcome.Conditions) (map[string]float64, []sample.Warning) {
			return outcome.Derive(w, rec.Client, rec.Server, x)
		}
	}
	if m.longest == nil {
		m.longest = maxTrialTime
	}
	return m
}

// maxTrialTime returns the longest time that a trial of most kinds takes. It includes the workload's timeout twice: a
// new pod or a name resolution may begin before the window, and another at its end.
func maxTrialTime(a attempt, delay time.Duration) time.Duration {
	own := a.wholeSpan()
	return own.warmup + own.window + delay + 2*a.Workload.Traits().Timeout
}

// Rest defines a workload that sends nothing, and how the environment is observed during its window.
type Rest struct {
	plan.Quiet
	// Unable returns why a site cannot be observed, "" if it can be.
	Unable func(at env.Site) string
	// Limit is the longest time that Read takes in addition to its window.
	Limit time.Duration
	// Read observes the environment of a case for a window.
	Read func(ctx context.Context, at env.Site, k plan.Case, window time.Duration) (*sample.Observation, error)
	// Derive returns the metrics and warnings of an observation.
	Derive func(*sample.Observation) (map[string]float64, []sample.Warning)
}

// Register makes the workload known to plans, and its measurement to Run. Call it before a plan is read.
func (r Rest) Register() {
	r.Quiet.Register()
	manners[r.Name] = manner{unable: r.Unable, opaque: true,
		measure: func(a attempt, ctx context.Context) (seen, error) {
			client, err := r.Read(ctx, a.env.At(a.Profile), a.Case, a.window)
			if err != nil {
				return seen{}, err
			}
			return seen{client: client, windowNs: client.ElapsedNs}, nil
		},
		derive: func(_ plan.Workload, rec result.Record, _ outcome.Conditions) (map[string]float64, []sample.Warning) {
			return r.Derive(rec.Client)
		},
		longest: func(a attempt, delay time.Duration) time.Duration { return maxTrialTime(a, delay+r.Limit) },
	}
}
