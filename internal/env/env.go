// Package env is the contract between a run and the place that it measures. The lab, clusters and kind clusters
// implement Environment; conduct/run uses it.
package env

import (
	"context"
	"time"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/measure/journey"
	"github.com/cnibench/cnibench/internal/measure/outcome"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
)

// Environment is a place where variants can be measured.
type Environment interface {
	// Facts returns the conditions in force.
	Facts(ctx context.Context) (facts.Facts, error)
	// Profiles returns the state of every variant of the plan: ready, or skipped with the reason.
	Profiles(ctx context.Context) ([]result.Profile, error)
	// Endpoints returns the client and the servers of a route. The error is a *control.NotServedError if the variant
	// does not serve it.
	Endpoints(ctx context.Context, r plan.Route) (control.Ends, error)
	// Conditions returns what derived metrics are checked against.
	Conditions() outcome.Conditions
	// Capabilities returns what the environment can do besides.
	Capabilities() Capabilities
	// Close removes everything that the environment made.
	Close(ctx context.Context) error
}

// Capabilities are functions that not every environment has: nil means that it cannot.
type Capabilities struct {
	// Stages returns the variants that can be measured together, in the order of their installation. An environment
	// that has it has Enter, too, which replaces those of the stage before by those of stage i.
	Stages func() [][]plan.Variant
	Enter  func(ctx context.Context, i int) error
	// Renew removes variants and raises them anew, in the given order, while nothing is measured. It returns for each
	// why it does not stand, nil if it does. An environment that has it has Renews, too: which variants are raised anew
	// with v, itself among them; none if it cannot be. Unlike Enter it changes nothing about what can be measured together
	// or is served.
	Renew  func(ctx context.Context, names []plan.Variant) map[plan.Variant]error
	Renews func(v plan.Variant) []plan.Variant
	// Raised returns what it cost to raise the instance that stands of a variant, in base units by metric name; nil if it
	// was not measured.
	Raised func(v plan.Variant) map[string]float64
	// Roll removes a backend from its Service, or adds it again. It returns when that is requested, which may be long
	// before every node knows.
	Roll func(ctx context.Context, b control.Backend, in bool) error
	// NewPods makes pods at a rate, and returns what they saw as the client of a trial, when all of them are removed. It fails
	// if no pod got an answer.
	NewPods func(ctx context.Context, a control.Arrivals) (*sample.Observation, error)
	// Rest reads what the nodes of a path use while nothing is sent. It returns that as the client of a trial.
	Rest func(ctx context.Context, v plan.Variant, p plan.Path, window time.Duration) (*sample.Observation, error)
	// LatePods says that the request of a pod may come long after its intended time: its servers answer for the timeout of the
	// workload beyond the window.
	LatePods bool
	// Churn changes objects of a variant, as its conditions say, until the window is over or ctx is done. Everything is as
	// before when it returns. It returns nil for a variant without churn, and fails if a change was not seen in force.
	Churn func(ctx context.Context, c control.Churning) (*sample.Churn, error)
	// Drops returns the drop counters of all devices on a path, both ends included.
	Drops func(v plan.Variant, p plan.Path) ([]sample.Drop, error)
	// Full returns how often each table of a dataplane had no room, by the name of the table. It may return both
	// counters and an error.
	Full func(v plan.Variant) (map[string]uint64, error)
	// Dead returns an error with the last words of the programs of a variant that have ended by themselves, nil if all run.
	Dead func(v plan.Variant) error
	// Recover waits until everything that trials need is ready again. It returns what was wrong until then, "" for
	// nothing. The error says what is lost for good.
	Recover func(ctx context.Context) (wrong string, err error)
	// Policies returns the names of the NetworkPolicies that select an end of a path.
	Policies func(ctx context.Context, v plan.Variant, p plan.Path) []string
	// Follow follows transactions on a route past the points of the hosts in between, while nothing is measured.
	Follow func(ctx context.Context, r plan.Route, o journey.Options) (journey.Trace, error)
	// Sample prepares to record what the CPUs of a path do during a trial of at most length.
	Sample func(v plan.Variant, p plan.Path, length time.Duration) (Recording, error)
	// Count prepares to count the runs of BPF programs during a trial on a path, of at most length.
	Count func(v plan.Variant, p plan.Path, length time.Duration) (Recording, error)
	// VerifierLogs returns what the kernel's verifier said about refused BPF programs, by variant.
	VerifierLogs func() map[string]string
}

// Recording is what the CPUs of a path do during one trial. Start is called once both sides run, Finish after they have
// ended; Finish releases everything, also without Start, and returns nothing for a trial that has failed.
type Recording struct {
	Start  func() error
	Finish func(client, server *sample.Observation) (sample.Recorded, error)
}
