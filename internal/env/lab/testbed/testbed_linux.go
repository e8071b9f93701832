// Package testbed is the lab as the environment of a run. Every variant of a plan is up at the same time. Each has
// passed its self-test or is skipped with the reason.
package testbed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/env"
	"github.com/cnibench/cnibench/internal/env/lab"
	"github.com/cnibench/cnibench/internal/env/lab/selftest"
	"github.com/cnibench/cnibench/internal/external"
	"github.com/cnibench/cnibench/internal/kernel/probe"
	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/measure/journey"
	"github.com/cnibench/cnibench/internal/measure/outcome"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/plan/mesh"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// Options are the options of Open in addition to the plan.
type Options struct {
	// Agent is the command line that starts an agent, Env its environment.
	Agent, Env []string
	// Version is the version of this program.
	Version string
	// Name is the name of the lab for Ask.
	Name string
	// Say reports progress.
	Say func(format string, args ...any)
	// SampleRate is the number of samples per second and CPU. If it is set, every sampled trial follows packets. 0
	// chooses a rate and a share of trials that cost little. (optional)
	SampleRate int
}

// Environment is a lab with the results of its self-tests. It is the site of every variant.
type Environment struct {
	*lab.Lab
	plan     plan.Plan
	profiles []result.Profile
	facts    facts.Facts
	// socket serves lab exec; nil if it could not be opened.
	socket   *server
	sampling sampling
}

// Open raises every variant of a plan at the same time and runs their self-tests. A variant that cannot be raised or
// fails its self-test is skipped. Open fails if no lab can be made, if the facts cannot be read, or if ctx ends.
func Open(ctx context.Context, p plan.Plan, o Options) (*Environment, error) {
	names := p.Measured()
	o.Say("raising %d profiles", len(names))
	balanced := slices.ContainsFunc(p.Paths, func(path plan.Path) bool { return path.To == plan.LoadBalancer })
	l, err := lab.Up(ctx, names, lab.Options{
		Lab: p.Lab, Own: p.Own, Backends: p.Backends(), Rolled: p.Rolled(), NoBalancer: !balanced, Program: o.Agent, Env: o.Env,
		Account: !p.Sweep.IsZero(), Changed: p.Sweep.Changes(),
	})
	if err != nil {
		return nil, err
	}
	o.Say("testing %d profiles", len(names))
	e := &Environment{Lab: l, plan: p, sampling: sampling{rate: cmp.Or(o.SampleRate, sample.Rate), every: sample.FollowEvery}}
	if o.SampleRate != 0 {
		e.sampling.every = 1
	}
	for _, tested := range SelfTests(ctx, l.Instances()) {
		if len(selftest.Failed(tested.Assertions)) == 0 {
			tested.setupErr = errors.Join(tested.setupErr, tested.Instance.AccountChange(ctx))
		}
		e.profiles = append(e.profiles, tested.profileRecord())
	}
	if e.facts, err = collectFacts(ctx, l, p, o.Version); err != nil || ctx.Err() != nil {
		return nil, env.Close(ctx, l, errors.Join(context.Cause(ctx), err))
	}
	// A run works without the socket.
	if e.socket, err = Listen(o.Name); err == nil {
		go e.socket.Serve(l.Instances)
	}
	return e, nil
}

// idleTime is how long the load of other processes is measured.
const idleTime = 300 * time.Millisecond

// collectFacts returns the facts of the machine and of the lab. The lab must be idle: the CPU load of other processes is
// measured meanwhile.
func collectFacts(ctx context.Context, l *lab.Lab, p plan.Plan, version string) (facts.Facts, error) {
	f, err := probe.Collect(ctx, probe.Collection{CPUs: cpusOf(l), Idle: idleTime})
	if err != nil {
		return nil, fmt.Errorf("find the facts of the machine: %w", err)
	}
	maps.Copy(f, l.Facts())
	f[facts.Version] = version
	maps.Copy(f, toolFacts(ctx, p))
	var congestion []string
	for _, w := range p.Workloads {
		if w.Traits().Congestion != "" && !slices.Contains(congestion, w.Traits().Congestion) {
			congestion = append(congestion, w.Traits().Congestion)
		}
	}
	if len(congestion) > 0 {
		f[facts.Congestion] = strings.Join(congestion, ", ")
	}
	return f, nil
}

// toolFacts returns the versions of the plan's tools, which are the host's programs. A missing tool has no version; its
// trials report the error.
func toolFacts(ctx context.Context, p plan.Plan) facts.Facts {
	f := facts.Facts{}
	for _, w := range p.Workloads {
		name := facts.Tool + w.Tool
		if w.Tool == "" || f[name] != "" {
			continue
		}
		path, err := external.Find(w.Tool, external.Program(w))
		if err != nil {
			continue
		}
		if version := external.Version(ctx, w, path); version != "" {
			f[name] = version
		}
	}
	return f
}

// testedInstance is an instance with the result of its self-test.
type testedInstance struct {
	Instance   *lab.Instance
	Assertions []selftest.Assertion
	// setupErr is the error of measuring the cost of a change, or of bringing the faults of links into force.
	setupErr error
}

// SelfTests tests all instances, as many at a time as there are CPUs, and returns them in the same order. An instance that
// passed then gets its standing connections. Every instance gets the delay and loss of its links.
func SelfTests(ctx context.Context, instances []*lab.Instance) []testedInstance {
	all := make([]testedInstance, len(instances))
	slots := make(chan struct{}, runtime.NumCPU())
	var wait sync.WaitGroup
	for i, inst := range instances {
		all[i].Instance = inst
		wait.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			all[i].Assertions = selftest.Run(ctx, inst)
			if len(selftest.Failed(all[i].Assertions)) == 0 {
				all[i].Assertions = append(all[i].Assertions, selftest.Connect(inst)...)
			}
			all[i].setupErr = inst.Impair()
		})
	}
	wait.Wait()
	return all
}

// profileRecord returns the record of a profile in the result file.
func (t testedInstance) profileRecord() result.Profile {
	p := result.Profile{Name: t.Instance.Name, StandIn: t.Instance.StandIn}
	if t.Instance.Err != nil {
		p.Skipped = strings.Join(strings.Fields(t.Instance.Err.Error()), " ")
		return p
	}
	bad := selftest.Failed(t.Assertions)
	p.Assertions, p.Failed = len(t.Assertions), len(bad)
	if t.setupErr != nil {
		p.Skipped = strings.Join(strings.Fields(t.setupErr.Error()), " ")
	}
	if len(bad) == 0 {
		return p
	}
	const most = 3
	reasons := each.Of(bad[:min(len(bad), most)], func(a selftest.Assertion) string {
		return fmt.Sprintf("%s: %s: want %s, got %s", a.ID, a.What, a.Want, a.Got)
	})
	p.Skipped = fmt.Sprintf("self-test failed %d of %d assertions: %s", len(bad), len(t.Assertions), strings.Join(reasons, "; "))
	return p
}

// Facts returns the conditions of the machine and the lab.
func (e *Environment) Facts(context.Context) (facts.Facts, error) { return e.facts, nil }

// Profiles returns the results of the self-tests.
func (e *Environment) Profiles(context.Context) ([]result.Profile, error) {
	return slices.Clone(e.profiles), nil
}

var _ interface {
	env.Meshed
	env.Renewer
	env.Raiser
	env.Roller
	env.PodMaker
	env.Churner
	env.DropCounter
	env.TableCounter
	env.ProgramWatcher
	env.Follower
	env.Sampler
	env.Verifier
} = (*Environment)(nil)

// At returns e, which is the site of every variant.
func (e *Environment) At(plan.Variant) env.Site { return e }

// Endpoints returns the ends of a route.
func (e *Environment) Endpoints(_ context.Context, r plan.Route) (control.Ends, error) {
	return e.Lab.Endpoints(r)
}

// Nodes returns the nodes of the lab. They have the same names for every variant.
func (e *Environment) Nodes(context.Context, plan.Variant) ([]mesh.Node, error) {
	return each.Of(mesh.LabNodes(e.plan.Lab.Nodes), func(name string) mesh.Node { return mesh.Node{Name: name} }), nil
}

// Away returns "" for both results: a lab's nodes do not go away.
func (e *Environment) Away(context.Context, mesh.Pair, bool) (node, why string) { return "", "" }

// Await returns at once: a lab's nodes need no waiting.
func (e *Environment) Await(context.Context) {}

// Follow follows transactions on a route through the hosts; see journey.Trace.
func (e *Environment) Follow(ctx context.Context, r plan.Route, o journey.Options) (journey.Trace, error) {
	return followRoute(ctx, e.Lab, r, o)
}

// LatePods returns false, because the lab makes pods itself, without a scheduler.
func (e *Environment) LatePods() bool { return false }

// Raised returns the cost of raising the current instance of a variant, by metric name.
func (e *Environment) Raised(v plan.Variant) map[string]float64 { return e.Instance(v).Raised }

// Renews returns only v, because every variant has its own nodes.
func (e *Environment) Renews(v plan.Variant) []plan.Variant { return []plan.Variant{v} }

// Renew raises variants again, and repeats what Open does after a self-test. It does not repeat the self-test, because the
// description is the same. For each variant, the result has the reason why it cannot be measured, nil if it can.
func (e *Environment) Renew(ctx context.Context, names []plan.Variant) map[plan.Variant]error {
	stands := e.Lab.Renew(ctx, names)
	for _, name := range names {
		inst := e.Instance(name)
		_, err := inst.Connect()
		if err = errors.Join(err, inst.AccountChange(ctx)); err != nil && stands[name] == nil {
			stands[name] = err
		}
		stands[name] = errors.Join(stands[name], inst.Impair())
	}
	return stands
}

// Conditions returns the conditions of all paths: every NIC has the same rate, every path the same CPUs.
func (e *Environment) Conditions() outcome.Conditions {
	c := outcome.FromFacts(e.facts)
	c.LineRate = e.plan.Lab.LineRate
	c.CPUs = cpusOf(e.Lab)
	return c
}

// cpusOf returns the CPUs of load threads, in order.
func cpusOf(l *lab.Lab) []int {
	var all []*lab.Host
	for _, inst := range l.Instances() {
		all = append(all, inst.Hosts()...)
	}
	return lab.CPUs(all)
}

// Close ends the lab.
func (e *Environment) Close(ctx context.Context) error {
	if e.socket != nil {
		e.socket.Close()
	}
	return errors.Join(e.sampling.close(), e.Lab.Close(ctx))
}
