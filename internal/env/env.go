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
	"github.com/cnibench/cnibench/internal/plan/mesh"
)

// Environment is a place, or several, where variants can be measured.
type Environment interface {
	// Facts returns the recorded conditions of the measurement, by name.
	Facts(ctx context.Context) (facts.Facts, error)
	// Profiles returns the state of every variant of the plan: ready, or skipped with the reason.
	Profiles(ctx context.Context) ([]result.Profile, error)
	// At returns the site of a variant. All variants of one context have the same site.
	At(v plan.Variant) Site
	// Conditions returns the conditions that derived metrics are checked against.
	Conditions() outcome.Conditions
	// Close removes everything that the environment created.
	Close(ctx context.Context) error
}

// Staged is an Environment that cannot measure all variants at the same time.
type Staged interface {
	// Stages returns the groups of variants that can be measured together, in the order of their installation.
	Stages() [][]plan.Variant
	// Enter replaces the variants of the previous stage by those of stage i.
	Enter(ctx context.Context, i int) error
}

// Site is where variants are measured: the lab, or one cluster. A site may also implement some of the interfaces below.
type Site interface {
	// Endpoints returns the client and the servers of a route. The error is a *control.NotServedError if the variant
	// does not serve the route.
	Endpoints(ctx context.Context, r plan.Route) (control.Ends, error)
}

// Meshed is a Site with several nodes, whose routes may name any two of them.
type Meshed interface {
	// Nodes returns the nodes between which a variant can be measured.
	Nodes(ctx context.Context, v plan.Variant) ([]mesh.Node, error)
	// Away returns a node of the pair that cannot be measured now, and why. Both are "" if both nodes can be
	// measured. failed means that a trial of the pair has just failed. Otherwise Away takes a node that was present
	// as still present.
	Away(ctx context.Context, p mesh.Pair, failed bool) (node, why string)
	// Await waits, for a limited time, until nodes whose pods are starting can be measured again.
	Await(ctx context.Context)
}

// Renewer is a Site that can raise variants again.
type Renewer interface {
	// Renew removes variants and raises them again in the given order. The caller measures nothing meanwhile. The
	// result has an entry for each variant: nil, or why it was not raised. The served paths and the stages do not
	// change.
	Renew(ctx context.Context, names []plan.Variant) map[plan.Variant]error
	// Renews returns the variants that Renew raises together with v, v included; nil if v cannot be raised again.
	Renews(v plan.Variant) []plan.Variant
}

// Raiser is a Site that measures what it costs to raise a variant.
type Raiser interface {
	// Raised returns the cost of the current instance of a variant, by metric name; nil if it was not measured. Each cost
	// is in the base unit of its metric.
	Raised(v plan.Variant) map[string]float64
}

// Roller is a Site that can remove backends from Services and add them again.
type Roller interface {
	// Roll removes a backend from its Service, or adds it again. It returns when the change is requested, which may be
	// long before every node knows.
	Roll(ctx context.Context, b control.Backend, in bool) error
}

// PodMaker is a Site that makes pods during a trial.
type PodMaker interface {
	// NewPods creates pods at a rate, lets each send a request, and waits until all pods are removed. It returns how long
	// the pods took, as a client's observation. It fails if no pod got an answer.
	NewPods(ctx context.Context, a control.Arrivals) (*sample.Observation, error)
	// LatePods reports whether a pod's request may come long after its intended time. If so, the servers still answer
	// after the window, for the workload's timeout.
	LatePods() bool
}

// Rester is a Site that can measure its nodes while nothing is sent.
type Rester interface {
	// Rest measures the CPU time and memory that the nodes of a path use during window. The caller sends nothing
	// meanwhile. The result is a client's observation.
	Rest(ctx context.Context, v plan.Variant, p plan.Path, window time.Duration) (*sample.Observation, error)
}

// Churner is a Site that changes objects during a trial.
type Churner interface {
	// Churn changes objects of a variant, as its conditions define, until the window is over or ctx is done. It undoes all
	// changes before it returns. It returns nil for a variant without churn. It fails if a change did not visibly take
	// effect.
	Churn(ctx context.Context, c control.Churning) (*sample.Churn, error)
}

// DropCounter is a Site that reads the kernel's counters of drops.
type DropCounter interface {
	// Drops returns the drop counters of all devices on a route, both ends included.
	Drops(r plan.Route) ([]sample.Drop, error)
}

// TableCounter is a Site that counts how often tables were full.
type TableCounter interface {
	// Full returns how often each table of a dataplane was full, by the name of the table. It may return both counters
	// and an error.
	Full(v plan.Variant) (map[string]uint64, error)
}

// ProgramWatcher is a Site that knows which programs of a dataplane have ended.
type ProgramWatcher interface {
	// Dead returns an error that names the programs of a variant that have ended by themselves. It has the last
	// output of each. It returns nil if all programs run.
	Dead(v plan.Variant) error
}

// Recoverer is a Site that may be unavailable for a while.
type Recoverer interface {
	// Recover waits until everything that trials need is ready again. It returns the first problem that it waited for, or
	// "". It fails if something is lost for good, or not ready within a limit.
	Recover(ctx context.Context) (wrong string, err error)
}

// PolicyLister is a Site that can list the NetworkPolicies on a path.
type PolicyLister interface {
	// Policies returns the names of the NetworkPolicies that select an end of a path.
	Policies(ctx context.Context, v plan.Variant, p plan.Path) []string
}

// Follower is a Site that can trace transactions through its hosts.
type Follower interface {
	// Follow sends transactions on a route. It records when each of them passes the observation points of the hosts
	// on its way. The caller measures nothing meanwhile.
	Follow(ctx context.Context, r plan.Route, o journey.Options) (journey.Trace, error)
}

// Place is a host that a path passes, or a pod on it.
type Place struct {
	// Name is unique on the site. Node is the name of the node that the place is, or on which it runs.
	Name, Node string
	// Pod means that the place is a pod.
	Pod bool
	// Address is the address that other places dial.
	Address string
}

// Looker is a Site that runs "cnibench look" at the ends of its paths. Where permitted, it runs it on the nodes of
// these ends, too.
type Looker interface {
	// Places returns the client's end of a route, then the server's end. The nodes of the two ends and the hosts
	// between them follow. Each place occurs once.
	Places(r plan.Route) ([]Place, error)
	// Look runs "cnibench look" with arguments at a place, and returns its output.
	Look(ctx context.Context, place string, args ...string) ([]byte, error)
	// Shared returns a Service with several backends that no workload uses. It returns the zero Shared if the site
	// has none.
	Shared() Shared
}

// Shared is a Service with several backends. Nothing listens there: the caller must start a server on Port of each backend.
type Shared struct {
	Name, Address string
	Backends      []Place
	Port          int
}

// Sampler is a Site that records what CPUs execute.
type Sampler interface {
	// Sample prepares to record what the CPUs of a path execute during a trial of at most length.
	Sample(v plan.Variant, p plan.Path, length time.Duration) (Recording, error)
	// Count prepares to count the runs of BPF programs during a trial on a path, of at most length.
	Count(v plan.Variant, p plan.Path, length time.Duration) (Recording, error)
}

// Verifier is a Site that loads BPF programs, which the kernel's verifier may refuse.
type Verifier interface {
	// VerifierLogs returns the log of the kernel's verifier for refused BPF programs, by variant.
	VerifierLogs() map[string]string
}

// Recording records what the CPUs of a path execute during one trial. Call Start when client and server run, and Finish after
// both have ended. Call Finish even if Start was not called: it releases the recording's resources. Finish returns an empty
// result if an observation is nil.
type Recording struct {
	Start  func() error
	Finish func(client, server *sample.Observation) (sample.Recorded, error)
}
