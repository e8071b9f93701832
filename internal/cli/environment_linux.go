package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/cnibench/cnibench/internal/conduct/control"
	"github.com/cnibench/cnibench/internal/conduct/run"
	"github.com/cnibench/cnibench/internal/env/lab"
	"github.com/cnibench/cnibench/internal/env/lab/selftest"
	"github.com/cnibench/cnibench/internal/external/drive"
	"github.com/cnibench/cnibench/internal/kernel/probe"
	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/measure/outcome"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
)

// thisProgram starts another process of this program, wherever its file has gone meanwhile.
const thisProgram = "/proc/self/exe"

// labEnvironment is the lab as a run sees it: what stands, what proved to be what it claims, under which conditions.
type labEnvironment struct {
	lab      *lab.Lab
	plan     plan.Plan
	profiles []result.Profile
	facts    facts.Facts
	// door lets lab exec look into the lab of a run; nil if it could not be opened.
	door *door
}

// raiseLab raises every profile of the plan at the same time and lets each prove on real packets that it is what it
// claims. One that cannot be raised or fails its test is skipped with the reason.
func raiseLab(ctx context.Context, p plan.Plan, say func(string, ...any)) (run.Environment, error) {
	return raiseLabWith(ctx, p, []string{thisProgram, agentVerb}, say)
}

// raiseLabWith does so with another program as the agent.
func raiseLabWith(ctx context.Context, p plan.Plan, agent []string, say func(string, ...any)) (run.Environment, error) {
	names := p.Measured()
	say("raising %d profiles", len(names))
	balanced := slices.ContainsFunc(p.Paths, func(path plan.Path) bool { return path.To == plan.LoadBalancer })
	l, err := lab.Up(ctx, names, lab.Options{
		Lab: p.Lab, Backends: p.Backends(), Rolled: p.Rolled(), NoBalancer: !balanced, Program: agent, Env: searchPath(),
	})
	if err != nil {
		return nil, err
	}
	say("testing %d profiles", len(names))
	e := &labEnvironment{lab: l, plan: p}
	for _, tested := range selfTests(ctx, l.Instances()) {
		e.profiles = append(e.profiles, tested.state())
	}
	if e.facts, err = conditionsOf(ctx, l, p); err != nil || ctx.Err() != nil {
		return nil, takeDown(ctx, l, errors.Join(context.Cause(ctx), err))
	}
	// A run that nobody can look into is still a run.
	if e.door, err = openDoor(fmt.Sprintf("run-%d", os.Getpid())); err == nil {
		go e.door.serve(l.Instances())
	}
	return e, nil
}

// searchPath is what agents need of the environment: where tools are.
func searchPath() []string {
	if path := os.Getenv("PATH"); path != "" {
		return []string{"PATH=" + path}
	}
	return nil
}

// conditionsOf finds the facts of the machine, while the lab stands idle, and of the lab.
func conditionsOf(ctx context.Context, l *lab.Lab, p plan.Plan) (facts.Facts, error) {
	f, err := probe.Collect(ctx, probe.Collection{CPUs: cpusOf(l), Idle: idleTime})
	if err != nil {
		return nil, fmt.Errorf("find the facts of the machine: %w", err)
	}
	maps.Copy(f, l.Facts())
	f[facts.Version] = buildVersion()
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

// toolFacts are the versions of the tools that the plan takes, as far as they say them. The lab has the host's file
// system, and so its programs. One that is missing has no version, and its trials say that it is missing.
func toolFacts(ctx context.Context, p plan.Plan) facts.Facts {
	f := facts.Facts{}
	for _, w := range p.Workloads {
		name := facts.Tool + w.Tool
		if w.Tool == "" || f[name] != "" {
			continue
		}
		path, err := drive.Find(w.Tool, drive.Program(w))
		if err != nil {
			continue
		}
		if version := drive.Version(ctx, w, path); version != "" {
			f[name] = version
		}
	}
	return f
}

// tested is an instance and what its self-test found.
type tested struct {
	instance   *lab.Instance
	assertions []selftest.Assertion
}

// selfTests tests all instances, as many at a time as there are CPUs, and returns them in their order.
func selfTests(ctx context.Context, instances []*lab.Instance) []tested {
	all := make([]tested, len(instances))
	slots := make(chan struct{}, runtime.NumCPU())
	var wait sync.WaitGroup
	for i, inst := range instances {
		all[i].instance = inst
		wait.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			all[i].assertions = selftest.Run(ctx, inst)
		})
	}
	wait.Wait()
	return all
}

// state is what the result file says of a profile.
func (t tested) state() result.Profile {
	p := result.Profile{Name: t.instance.Name, StandIn: t.instance.StandIn}
	if t.instance.Err != nil {
		p.Skipped = flat(t.instance.Err.Error())
		return p
	}
	bad := selftest.Failed(t.assertions)
	p.Assertions, p.Failed = len(t.assertions), len(bad)
	if len(bad) == 0 {
		return p
	}
	const most = 3
	var reasons []string
	for _, a := range bad[:min(len(bad), most)] {
		reasons = append(reasons, fmt.Sprintf("%s: %s: want %s, got %s", a.ID, a.What, a.Want, a.Got))
	}
	p.Skipped = fmt.Sprintf("it fails %d of %d assertions of its self-test: %s", len(bad), len(t.assertions), strings.Join(reasons, "; "))
	return p
}

func (e *labEnvironment) Facts(context.Context) (facts.Facts, error) { return e.facts, nil }

func (e *labEnvironment) Profiles(context.Context) ([]result.Profile, error) {
	return slices.Clone(e.profiles), nil
}

func (e *labEnvironment) Endpoints(_ context.Context, profile plan.Variant, p plan.Path) (client, server control.Endpoint, err error) {
	return e.lab.Endpoints(profile, p)
}

func (e *labEnvironment) Backends(_ context.Context, profile plan.Variant, p plan.Path, n int) (client control.Endpoint, servers []control.Endpoint, err error) {
	return e.lab.Backends(profile, p, n)
}

// Rolled makes this a run.Roller.
func (e *labEnvironment) Rolled(_ context.Context, profile plan.Variant, p plan.Path, n int) (client control.Endpoint, servers []control.Endpoint, err error) {
	return e.lab.Rolled(profile, p, n)
}

// Roll takes a backend out of its Service, or puts it back.
func (e *labEnvironment) Roll(ctx context.Context, b control.Backend, in bool) error {
	return e.lab.Roll(ctx, b, in)
}

// Drops makes the lab a run.DropReader.
func (e *labEnvironment) Drops(profile plan.Variant, p plan.Path) ([]sample.Drop, error) {
	return e.lab.Drops(profile, p)
}

// VerifierLogs are those of the lab.
func (e *labEnvironment) VerifierLogs() map[string]string { return e.lab.VerifierLogs() }

// Full makes the lab a run.FullReader.
func (e *labEnvironment) Full(profile plan.Variant) (map[string]uint64, error) {
	return e.lab.Full(profile)
}

// Conditions are those of the whole lab: every node has a NIC of the same rate, every path the same CPUs.
func (e *labEnvironment) Conditions() outcome.Conditions {
	c := outcome.FromFacts(e.facts)
	c.LineRate = e.plan.Lab.LineRate
	c.CPUs = cpusOf(e.lab)
	return c
}

// cpusOf returns the CPUs that load runs on, in order.
func cpusOf(l *lab.Lab) []int {
	var cpus []int
	for _, inst := range l.Instances() {
		for _, h := range inst.Hosts() {
			cpus = append(cpus, h.CPUs...)
		}
	}
	slices.Sort(cpus)
	return slices.Compact(cpus)
}

func (e *labEnvironment) Close(ctx context.Context) error {
	if e.door != nil {
		e.door.close()
	}
	return e.lab.Close(ctx)
}
