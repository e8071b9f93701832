package testbed

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/env/lab"
	"github.com/cnibench/cnibench/internal/kernel/bpf/follow"
	"github.com/cnibench/cnibench/internal/kernel/inspect"
	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/measure/journey"
	"github.com/cnibench/cnibench/internal/measure/netstate"
	"github.com/cnibench/cnibench/internal/plan"
)

// pass follows one workload on one path of one instance. It starts the workload between the ends of the path and
// puts probes at the points that packets pass. It returns the records of the probes.
//
// It is separate from timed trials, because probes cost time. The same pass measures that cost. In turn, it
// measures windows without probes, with probes at both ends of a transaction, and with all probes.
type pass struct {
	journey.Options
	inst  *lab.Instance
	ends  control.Ends
	sides control.Sides
}

// followRoute follows a workload on a path of a variant. It fails with a *control.NotServedError if the variant
// does not serve the path. It fails with Instance.Err if the variant was not raised.
func followRoute(ctx context.Context, l *lab.Lab, r plan.Route, o journey.Options) (t journey.Trace, err error) {
	ends, err := l.Endpoints(r)
	if err != nil {
		return t, err
	}
	inst := l.Instance(r.Variant)
	way, err := inst.Spec.Ends(r.Path)
	if err != nil {
		return t, err
	}
	if err := follow.Check(); err != nil {
		return t, err
	}
	p := &pass{Options: o, inst: inst, ends: ends}
	if err := p.dialAgents(ctx); err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, p.sides.Client.Close(), p.sides.Servers[0].Close()) }()
	t = journey.Trace{
		Profile: r.Variant, Path: r.Path, Workload: o.Workload, Client: namespaceOwner(inst, way.Client), Server: namespaceOwner(inst, way.Server),
	}
	if t.Hosts, err = journeyHosts(inst); err != nil {
		return t, err
	}
	err = p.followTraffic(ctx, &t, way)
	return t, err
}

// dialAgents starts the agents of both ends and connects to them.
func (p *pass) dialAgents(ctx context.Context) error {
	server, err := control.Dial(ctx, p.ends.Servers[0])
	if err != nil {
		return err
	}
	client, err := control.Dial(ctx, p.ends.Client)
	if err != nil {
		return errors.Join(err, server.Close())
	}
	p.sides = control.Sides{Client: client, Servers: []*control.Client{server}}
	return nil
}

// surveyTime is how long traffic flows to find the hooks of netfilter.
const surveyTime = 200 * time.Millisecond

// rounds is the number of windows of each kind: without probes, with probes at the ends, with all probes. longest bounds
// the length of a window, so that the buffer of records does not overflow.
const (
	rounds  = 10
	longest = 50 * time.Millisecond
)

// followTraffic opens the probes and finds the hooks of netfilter. It fills t in rounds of the workload, with and
// without probes.
func (p *pass) followTraffic(ctx context.Context, t *journey.Trace, way lab.Ends) (err error) {
	o := follow.Options{
		Client: t.Client, Connects: p.Workload.Traits().Reconnect, IPv6: p.inst.Spec.Lab.Family == lab.IPv6,
	}
	if p.Workload.Traits().Protocol == plan.TCP {
		o.Ports = []int{way.Port, way.ListenPort}
	}
	for _, h := range p.inst.Distinct() {
		o.Hosts = append(o.Hosts, follow.Host{Name: h.Name, NS: h.NS})
	}
	f, err := follow.Open(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := p.runWorkload(ctx, surveyTime, func() error { return nil }); err != nil {
		return fmt.Errorf("while netfilter hooks are listed: %w", err)
	}
	lists, err := f.Hooks()
	if err != nil {
		return err
	}
	t.Missing = f.Missing
	for i, h := range t.Hosts {
		t.Hosts[i].Hooks = lists[h.Name]
	}
	return (&probing{p, t, f, lists}).measureRounds(ctx)
}

// probing is a pass with its probes, and the trace that they fill.
type probing struct {
	*pass
	trace    *journey.Trace
	follower *follow.Follower
	lists    map[string][]journey.HookList
}

// measureRounds measures windows without probes, with probes at both ends, and with all probes. Every second round reverses
// this order. A failed window is repeated, up to twice the number of rounds in all.
func (p *probing) measureRounds(ctx context.Context) error {
	p.trace.Rounds = make([]journey.Round, rounds)
	spare := 2 * rounds
	for n := range p.trace.Rounds {
		r := &p.trace.Rounds[n]
		steps := []func() error{
			func() (err error) {
				r.Plain, err = p.runWorkload(ctx, p.windowLength(), func() error { return nil })
				return err
			},
			func() error { return p.measureProbed(ctx, follow.All, &r.All) },
		}
		if p.follower.SeesEnds() {
			steps = slices.Insert(steps, 1, func() error { return p.measureProbed(ctx, follow.Ends, &r.Ends) })
		}
		if n%2 == 1 {
			slices.Reverse(steps)
		}
		for _, step := range steps {
			// A window is so short that another program can take its whole time: then it is measured again.
			for err := step(); err != nil; err = step() {
				if spare--; spare < 0 || ctx.Err() != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (p *pass) windowLength() time.Duration { return min(p.Window/rounds, longest) }

// measureProbed measures one window with probes. It stores the window in into, and adds the events of its transactions to the
// trace.
func (p *probing) measureProbed(ctx context.Context, which follow.Which, into *journey.Window) error {
	t, f := p.trace, p.follower
	w, err := p.runWorkload(ctx, p.windowLength(), func() error { return f.Attach(which, p.lists) })
	if err != nil {
		_, dropped := f.Read(0)
		return fmt.Errorf("with probes: %w", errors.Join(err, dropped))
	}
	// Transactions of the warm-up are read, too, and are not in the window.
	whole := float64(p.Transactions) / rounds * float64(p.windowLength()+p.Warmup) / float64(p.windowLength())
	got, err := f.Read(int(math.Ceil(whole)))
	if err != nil {
		return err
	}
	t.Lost = got.Lost
	if got.Passed > 0 {
		return fmt.Errorf("with probes: %d of %d transactions were not followed, since the buffer was full", got.Passed, got.Followed+got.Passed)
	}
	*into = w
	began := map[uint32]bool{} // by transaction, whether that was in the window
	for i := range got.Events {
		e := &got.Events[i]
		h, _ := t.Host(e.Host)
		e.Device = h.Device(e.Index).Name
		if _, known := began[e.Transaction]; !known {
			began[e.Transaction] = w.Has(e.Time)
		}
	}
	got.Events = slices.DeleteFunc(got.Events, func(e journey.Event) bool { return !began[e.Transaction] })
	if which == follow.All {
		t.Events = append(t.Events, got.Events...)
	} else {
		t.Ends = append(t.Ends, got.Events...)
	}
	return nil
}

// runWorkload runs the workload once and returns its window. It calls before when both sides are ready. It fails if no
// transaction was completed.
func (p *pass) runWorkload(ctx context.Context, window time.Duration, before func() error) (none journey.Window, err error) {
	ask := control.Prepare{Sampled: true, Workload: p.Workload, Warmup: p.Warmup, Window: window, Timeout: 5 * time.Second, Setup: 3 * time.Second}
	if err := p.sides.Prepare(ctx, p.ends, ask); err != nil {
		return none, err
	}
	if err := before(); err != nil {
		return none, err
	}
	client, _, err := p.sides.Run(ctx, func() {})
	if err != nil {
		return none, err
	}
	if client.Operations == 0 || client.ElapsedNs == 0 || client.RTT == nil {
		return none, errors.New("no transaction was completed")
	}
	return journey.Window{
		From: uint64(client.BeganNs), To: uint64(client.BeganNs + client.ElapsedNs), RTT: client.RTT,
		Rate: float64(client.Operations) / (float64(client.ElapsedNs) / float64(time.Second)),
	}, nil
}

// namespaceOwner returns the name of the host that owns the namespace of the host called name. For a host-network
// pod this is its node, otherwise it is name itself.
func namespaceOwner(inst *lab.Instance, name string) string {
	all := inst.Distinct()
	i := slices.IndexFunc(all, func(h *lab.Host) bool { return h.NS == inst.Host(name).NS })
	return all[i].Name
}

// journeyHosts describes the hosts of an instance with their devices.
func journeyHosts(inst *lab.Instance) ([]journey.Host, error) {
	kinds := map[string]journey.Kind{inst.Switch.Name: journey.Switch, inst.External.Name: journey.External}
	for _, n := range inst.Nodes {
		kinds[n.Name] = journey.Node
	}
	var all []journey.Host
	for _, h := range inst.Distinct() {
		one := journey.Host{Name: h.Name, Kind: journey.Pod}
		if k, ok := kinds[h.Name]; ok {
			one.Kind = k
		}
		devices, err := link.At(h.NS, (*link.Handle).Devices)
		if err != nil {
			return nil, fmt.Errorf("devices of %s: %w", h.Name, err)
		}
		programs, err := inspect.Programs(h.NS)
		if err != nil {
			return nil, fmt.Errorf("BPF programs of %s: %w", h.Name, err)
		}
		for _, d := range devices {
			one.Devices = append(one.Devices, journey.Device{
				Name: d.Name, Index: uint32(d.Index), Kind: d.Kind, Master: d.Master,
				// The peer's program runs where the pod sends, just before the node's device receives.
				Ingress: programNames(programs, d.Name, "netkit peer", "xdp", "tcx ingress", "tc ingress"),
				Egress:  programNames(programs, d.Name, "tcx egress", "tc egress", "netkit primary"),
			})
		}
		all = append(all, one)
	}
	return all, nil
}

// programNames returns the names of a device's BPF programs at hooks, in the order of the hooks.
func programNames(programs []netstate.Program, device string, hooks ...string) (names []string) {
	for _, hook := range hooks {
		for _, p := range programs {
			if p.Device == device && p.Hook == hook {
				names = append(names, p.Name)
			}
		}
	}
	return names
}
