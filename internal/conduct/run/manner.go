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

// manner is how trials of a kind of workload differ from other trials. A nil field means no difference.
type manner struct {
	measure func(a attempt, ctx context.Context) (seen, error)
	// derive returns the metrics and warnings of a trial.
	derive func(w plan.Workload, rec result.Record, x outcome.Conditions) (map[string]float64, []sample.Warning)
	// lasts is how long a trial takes at the most, delay being what it takes to set up and to end.
	lasts func(a attempt, delay time.Duration) time.Duration
	// unable returns why a site cannot be read while nothing is sent, "" if it can.
	unable func(at env.Site) string
	// opaque means that CPU samples explain nothing about the workload.
	opaque bool
}

// manners are the kinds of workload with a manner of their own. Register adds more.
var manners = map[plan.Kind]manner{
	"throughput": {measure: attempt.seek, derive: found, lasts: searchLasts, opaque: true},
	"ttfr":       {measure: attempt.arrive},
	"job":        {measure: attempt.jointly, lasts: jobLasts},
}

// mannerOf returns the manner of a kind, with all fields set.
func mannerOf(k plan.Kind) manner {
	m := manners[k]
	if m.measure == nil {
		m.measure = attempt.measure
	}
	if m.derive == nil {
		m.derive = func(w plan.Workload, rec result.Record, x outcome.Conditions) (map[string]float64, []sample.Warning) {
			return outcome.Derive(w, rec.Client, rec.Server, x)
		}
	}
	if m.lasts == nil {
		m.lasts = mostLast
	}
	return m
}

// mostLast is how long most trials take. A new pod that is due at the end of the window may take its whole time, and one comes before
// the window; the same is true of a name.
func mostLast(a attempt, delay time.Duration) time.Duration {
	own := a.whole()
	return own.warmup + own.window + delay + 2*a.Workload.Traits().Timeout
}

// Rest is a workload that sends nothing, and how the environment is read meanwhile.
type Rest struct {
	plan.Quiet
	// Unable returns why a site cannot be read, "" if it can be.
	Unable func(at env.Site) string
	// Limit bounds the time that Read takes in addition to its window.
	Limit time.Duration
	// Read observes a case for a window.
	Read func(ctx context.Context, at env.Site, k plan.Case, window time.Duration) (*sample.Observation, error)
	// Derive returns the metrics and warnings of an observation.
	Derive func(*sample.Observation) (map[string]float64, []sample.Warning)
}

// Register makes the workload known. Call it before a plan is read.
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
		lasts: func(a attempt, delay time.Duration) time.Duration { return mostLast(a, delay+r.Limit) },
	}
}
