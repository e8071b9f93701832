package testbed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/env"
	"github.com/cnibench/cnibench/internal/env/lab"
	"github.com/cnibench/cnibench/internal/kernel/child"
	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/kernel/probe"
	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/measure/outcome"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// StandingOptions are the options of OpenStanding.
type StandingOptions struct {
	// Lab is the name of the lab.
	Lab string
	// Profile is the name of the lab's instance; the zero value means its only instance.
	Profile plan.Variant
	// From and To are the ends of the paths. Each is the name of a node or a pod; they are on two different nodes.
	// If both are "", the lab's own paths are used. (optional)
	From, To string
	// Sudo is the id of the user that called sudo, "" for none.
	Sudo string
	// Program is the command line of this program, without a subcommand.
	Program []string
	Version string
}

// Standing is a lab of another process, raised by "cnibench lab up", as the environment of a run. That process
// describes it and hands over its namespaces; agents belong to this process. Nothing is raised, tested or changed.
// Standing is the site of its only variant.
type Standing struct {
	options StandingOptions
	// prefix precedes the names of hosts if the lab has several instances.
	prefix  string
	of      lab.Description
	starter *netns.Starter
	facts   facts.Facts
	sampling
}

var (
	_ env.Looker  = (*Standing)(nil)
	_ env.Sampler = (*Standing)(nil)
)

// OpenStanding opens a lab of another process by its description. It fails if the lab does not answer, has no such
// profile, or has no host called From or To. The caller closes the returned Standing.
func OpenStanding(ctx context.Context, o StandingOptions) (*Standing, error) {
	all, err := Describe(o.Lab, o.Sudo)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(d lab.Description) bool { return o.Profile.IsZero() && len(all) == 1 || d.Name == o.Profile })
	if i < 0 {
		names := each.Of(all, func(d lab.Description) string { return d.Name.String() })
		return nil, fmt.Errorf("lab %q has no profile %q; it has %s", o.Lab, o.Profile, strings.Join(names, ", "))
	}
	e := &Standing{options: o, of: all[i], starter: netns.NewStarter(), facts: all[i].Facts, sampling: sampling{rate: sample.Rate, every: sample.FollowEvery}}
	if err := e.redirectPaths(o.From, o.To); err != nil {
		e.starter.Close()
		return nil, err
	}
	if len(all) > 1 {
		e.prefix = e.of.Name.String() + "/"
	}
	machine, err := probe.Collect(ctx, probe.Collection{})
	if err != nil {
		e.starter.Close()
		return nil, fmt.Errorf("find the facts of the machine: %w", err)
	}
	for name, value := range machine {
		e.facts[name] = value
	}
	e.facts[facts.Version] = o.Version
	return e, nil
}

// redirectPaths makes the paths between nodes begin at from, and those to a host or a pod end at to. Paths of the external
// client do not change. Paths of hosts use the node of a pod; paths of pods use the first pod of a node. It does nothing
// if both are "". It fails if only one is "", if a place is unknown, or if both are on one node.
func (e *Standing) redirectPaths(from, to string) error {
	if from == "" && to == "" {
		return nil
	}
	if from == "" || to == "" {
		return errors.New("--from and --to go together in a lab: name two places of cnibench lab exec")
	}
	ends := [2]map[plan.Role]string{}
	for i, name := range []string{from, to} {
		at := slices.IndexFunc(e.of.Hosts, func(h lab.HostDescription) bool { return h.Name == name && h.Node != "" })
		if at < 0 {
			return fmt.Errorf("the lab has no node or pod %q: name a place of cnibench lab exec", name)
		}
		node := e.of.Hosts[at].Node
		ends[i] = map[plan.Role]string{plan.Host: node, plan.Pod: name}
		for _, h := range slices.Backward(e.of.Hosts) {
			if name == node && h.Node == node && h.Name != node {
				ends[i][plan.Pod] = h.Name // in the end the first
			}
		}
	}
	if ends[0][plan.Host] == ends[1][plan.Host] {
		return fmt.Errorf("%s and %s are on one node: diagnose compares paths between two", from, to)
	}
	for _, p := range plan.Paths {
		w, ok := e.of.Ends[p.String()]
		if !ok || !p.Crosses() || p.From == plan.External || p.To == plan.External {
			continue
		}
		w.Client = ends[0][p.From]
		if server := ends[1][p.To]; server != "" {
			w.Server, w.Address = server, e.hostByName(server).Addr
		}
		e.of.Ends[p.String()] = w
	}
	return nil
}

// Facts returns the conditions of the machine and of the lab.
func (e *Standing) Facts(context.Context) (facts.Facts, error) { return e.facts, nil }

// Profiles returns the lab's only variant.
func (e *Standing) Profiles(context.Context) ([]result.Profile, error) {
	return []result.Profile{{Name: e.of.Name}}, nil
}

// At returns e, which is the site of the lab's only variant.
func (e *Standing) At(plan.Variant) env.Site { return e }

// Conditions returns the conditions in the lab's own facts. It omits the line rate, because the lab may have a fault.
func (e *Standing) Conditions() outcome.Conditions {
	c := outcome.FromFacts(e.facts)
	for _, h := range e.of.Hosts {
		c.CPUs = append(c.CPUs, h.CPUs...)
	}
	slices.Sort(c.CPUs)
	c.CPUs = slices.Compact(c.CPUs)
	return c
}

// Close ends the agents. The lab continues to run.
func (e *Standing) Close(context.Context) error {
	e.starter.Close()
	return e.sampling.close()
}

// endsOf returns the ends of a path. It fails with a *control.NotServedError if the lab does not serve it.
func (e *Standing) endsOf(p plan.Path) (lab.Ends, error) {
	ends, ok := e.of.Ends[p.String()]
	if !ok {
		return ends, &control.NotServedError{Profile: e.of.Name, Path: p.String(), Reason: e.of.Refused[p.String()]}
	}
	return ends, nil
}

// Endpoints returns the ends of a route with one server.
func (e *Standing) Endpoints(_ context.Context, r plan.Route) (control.Ends, error) {
	ends, err := e.endsOf(r.Path)
	if err != nil {
		return control.Ends{}, err
	}
	client, server := e.hostEndpoint(ends.Client), e.hostEndpoint(ends.Server)
	server.ListenAddress, server.ListenPort = server.Address, ends.ListenPort
	server.Address, server.Port = ends.Address.String(), ends.Port
	return control.Ends{Client: client, Servers: []control.Endpoint{server}}, nil
}

func (e *Standing) hostEndpoint(name string) control.Endpoint {
	h := e.hostByName(name)
	return control.Endpoint{
		Name: name, Address: h.Addr.String(), CPUs: h.CPUs,
		Start: func(ctx context.Context) (io.ReadWriteCloser, error) {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			return e.startProgram(h, "agent")
		},
	}
}

func (e *Standing) hostByName(name string) lab.HostDescription {
	i := slices.IndexFunc(e.of.Hosts, func(h lab.HostDescription) bool { return h.Name == name })
	return e.of.Hosts[i] // names are from the description
}

// startProgram starts this program with arguments in a host and in the host's cgroup, like the lab's own agents.
func (e *Standing) startProgram(h lab.HostDescription, args ...string) (io.ReadWriteCloser, error) {
	at, ns, err := Ask(e.options.Lab, e.prefix+h.Name, e.options.Sudo)
	if err != nil {
		return nil, err
	}
	defer ns.Close()
	return lab.StartAgent(h.Name, slices.Concat(e.options.Program, args), func(cmd *exec.Cmd) error {
		if at.Cgroup != "" {
			group, err := os.Open(at.Cgroup)
			if err != nil {
				return err
			}
			defer group.Close() // not before the start, since the kernel uses it then
			child.InCgroup(cmd, int(group.Fd()))
		}
		return e.starter.Start(ns, cmd, h.Aside...)
	})
}

// Places returns the ends of a route, their nodes and the switch.
func (e *Standing) Places(r plan.Route) ([]env.Place, error) {
	ends, err := e.endsOf(r.Path)
	if err != nil {
		return nil, err
	}
	var places []env.Place
	for _, name := range []string{ends.Client, ends.Server, e.hostByName(ends.Client).Node, e.hostByName(ends.Server).Node, "switch"} {
		if name == "" || slices.ContainsFunc(places, func(p env.Place) bool { return p.Name == name }) {
			continue
		}
		h := e.hostByName(name)
		places = append(places, env.Place{Name: h.Name, Node: h.Node, Pod: h.Node != "" && h.Node != h.Name, Address: h.Addr.String()})
	}
	return places, nil
}

// Shared returns the lab's last Service with several backends, whose first backend is on the other node. It returns the
// zero value if there is none.
func (e *Standing) Shared() env.Shared {
	if len(e.of.Shared) == 0 {
		return env.Shared{}
	}
	svc := e.of.Shared[len(e.of.Shared)-1]
	shared := env.Shared{Name: svc.Name, Address: svc.Address.String(), Port: svc.TargetPort}
	for _, name := range svc.Backends {
		h := e.hostByName(name)
		shared.Backends = append(shared.Backends, env.Place{Name: h.Name, Node: h.Node, Pod: true, Address: h.Addr.String()})
	}
	return shared
}

// Look runs "cnibench look" at a place until it ends, and returns its output.
func (e *Standing) Look(ctx context.Context, place string, args ...string) ([]byte, error) {
	stream, err := e.startProgram(e.hostByName(place), append([]string{"look"}, args...)...)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = stream.Close() }) // which ends the read
	defer stop()
	out, err := io.ReadAll(stream)
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return out, errors.Join(err, stream.Close())
}
