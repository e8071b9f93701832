package selftest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/cnibench/cnibench/internal/dataplane"
	"github.com/cnibench/cnibench/internal/dataplane/policy"
	"github.com/cnibench/cnibench/internal/env/lab"
	"github.com/cnibench/cnibench/internal/kernel/capture"
	"github.com/cnibench/cnibench/internal/kernel/conntrack"
	"github.com/cnibench/cnibench/internal/plan"
)

// question is the default size of a request, in bytes.
const question = 600

// ends are the two ends of a path.
type ends struct {
	client, server *lab.Host
	// from and to are the indices of their nodes, -1 for the external client. For a Service, to is the backend's node.
	from, to int
	// entry is the index of the first node on the path: the client's, or the entered node.
	entry int
	// dial is the address that the client dials, listen the port of the server; port 0 is any.
	dial   netip.AddrPort
	listen uint16
	// pod is the server if it is a pod with its own network namespace, otherwise nil.
	pod *lab.Pod
}

// endsOf returns the ends of a path, also of one that the profile does not serve. The ports are those of the Service, and 0
// on a path without a Service. It fails if the lab lacks an end.
func (s *scene) endsOf(p plan.Path) (ends, error) {
	if (p.From == plan.Pod || p.To == plan.Pod) && s.podAt(0, 0) == nil {
		return ends{}, errors.New("the lab has no pods")
	}
	way := s.inst.Spec.Way(p)
	e := ends{
		client: s.inst.Host(way.Client), server: s.inst.Host(way.Server), to: p.ServerNode(),
		dial: netip.AddrPortFrom(way.Address, uint16(way.Port)), listen: uint16(way.ListenPort),
	}
	if e.client == nil || e.server == nil {
		return e, fmt.Errorf("the lab has no client or no server for %s", p)
	}
	if p.From == plan.External {
		e.from = -1
	}
	if p.To == plan.External {
		e.to = -1
	}
	if p.To == plan.Host || p.To == plan.Pod || p.To == plan.External {
		e.dial, e.listen = netip.AddrPortFrom(way.Address, 0), 0
	}
	if p.To == plan.LoadBalancer && s.want.local {
		e.entry = e.to
	}
	for _, pod := range s.allPods() {
		if &pod.Host == e.server {
			e.pod = pod
		}
	}
	return e, nil
}

// trial has the observations of one exchange over TCP and one over UDP.
type trial struct {
	ends
	tcp, udp outcome
	// traced is tcp or udp: the exchange whose conntrack entry is checked. protocol is its IP protocol number.
	traced   outcome
	protocol uint8
	// wire and backend have the frames of both exchanges that the switch and the serving pod received.
	wire, backend []capture.Frame
	// near has the frames at the client's pod, sent and received, and is nil without BPF programs. nodes has those on all
	// devices of the first two nodes, and is nil with neither programs nor branch interfaces.
	near  []capture.Frame
	nodes [][]capture.Frame
	// sealed has all frames of a tunnel that encrypts, bare the frames in which a pod address is readable. Both are nil
	// without such a tunnel.
	sealed, bare []capture.Frame
	err          error
}

// makeTraffic makes the traffic that several checks use. Served paths run one after another, so that each frame belongs to
// one path. conntrack is read once at the end, because each reading walks the table of the whole machine.
func (s *scene) makeTraffic(ctx context.Context) {
	s.callUnserved(ctx)
	s.tryRefused(ctx)
	for _, p := range plan.Paths {
		if _, ok := s.want.Served[p]; !ok || ctx.Err() != nil {
			continue
		}
		t := &trial{}
		s.trials[p] = t
		if t.ends, t.err = s.endsOf(p); t.err == nil {
			t.err = s.runTrial(ctx, t, s.requestSize(p))
		}
	}
	s.tracks, s.trackErr = s.conntrackEntries()
}

// attempt is an exchange that must not work, for the check called id.
type attempt struct {
	id string
	ends
	outcome outcome
}

// tryRefused makes the exchanges that must fail, and records their outcomes. They run in parallel, because most only
// wait; those to the same port of a server run one after another.
func (s *scene) tryRefused(ctx context.Context) {
	all := map[netip.AddrPort][]*attempt{}
	add := func(kind string, p plan.Path, port uint16) {
		a := &attempt{id: check{kind: kind, path: p}.id()}
		if a.ends, a.outcome.err = s.endsOf(p); a.outcome.err != nil {
			s.refusals[a.id] = a.outcome
			return
		}
		if port != 0 {
			a.listen, a.dial = port, netip.AddrPortFrom(a.dial.Addr(), port)
		}
		at := netip.AddrPortFrom(a.server.Addr, a.listen)
		all[at] = append(all[at], a)
	}
	for _, p := range s.want.Refused {
		add("refused", p, 0)
	}
	for _, p := range s.want.deniedPaths() {
		add("policy.denied", p, policy.DeniedPort)
	}
	var wg sync.WaitGroup
	for _, attempts := range all {
		wg.Go(func() {
			for _, a := range attempts {
				a.outcome = s.newExchange(a.ends, question, impatience).runTCP(ctx)
			}
		})
	}
	wg.Wait()
	for _, a := range slices.Concat(slices.Collect(maps.Values(all))...) {
		s.refusals[a.id] = a.outcome
	}
}

// conntrackEntries returns the conntrack entries of each node.
func (s *scene) conntrackEntries() ([][]conntrack.Entry, error) {
	var all [][]conntrack.Entry
	for _, n := range s.inst.Nodes {
		entries, err := conntrack.List(n.NS)
		if err != nil {
			return nil, fmt.Errorf("node %s: %w", n.Name, err)
		}
		all = append(all, entries)
	}
	return all, nil
}

// requestSize returns the size of the requests on a path in bytes. Between nodes a request fills the path's MTU, so that the
// frame on the wire proves the overhead.
func (s *scene) requestSize(p plan.Path) int {
	if p == s.want.crossPath() {
		return s.pathMTU() - s.ipUDPHeaderLength()
	}
	return question
}

// ipUDPHeaderLength returns the length of an IP and a UDP header in bytes.
func (s *scene) ipUDPHeaderLength() int {
	if s.want.ipv6 {
		return 40 + 8
	}
	return 20 + 8
}

// crossPath returns the path for checks on the wire: between pods, or between hosts where pods have no network.
func (x expectation) crossPath() plan.Path {
	if x.Attach == nil {
		return dataplane.HostHostCross
	}
	return dataplane.PodPodCross
}

func (s *scene) runTrial(ctx context.Context, t *trial, size int) error {
	if err := s.discardFrames(); err != nil {
		return err
	}
	if t.tcp = s.exchangeTCP(ctx, t.ends, size); t.tcp.err != nil {
		return fmt.Errorf("tcp: %w", t.tcp.err)
	}
	if t.udp = s.exchangeUDP(ctx, t.ends, size); t.udp.err != nil {
		return fmt.Errorf("udp: %w", t.udp.err)
	}
	t.traced, t.protocol = t.tcp, conntrack.TCP
	if s.want.flowtable > 0 { // which ends the entry of a TCP connection with the connection
		t.traced, t.protocol = t.udp, conntrack.UDP
	}
	frames, err := s.wire.Drain()
	if err != nil {
		return fmt.Errorf("switch: %w", err)
	}
	t.wire = t.receivedFrames(frames)
	if s.want.isSealed() {
		t.sealed, t.bare = s.sealedFrames(frames), s.readableFrames(frames)
	}
	if c := s.pods[t.pod]; c != nil {
		if frames, err = c.Drain(); err != nil {
			return fmt.Errorf("pod %s: %w", t.pod.Name, err)
		}
		t.backend = t.receivedFrames(frames)
	}
	return s.collectNodeFrames(t)
}

// collectNodeFrames adds the frames on the nodes and at the client to a trial.
func (s *scene) collectNodeFrames(t *trial) error {
	for i, c := range s.nodes {
		frames, err := c.Drain()
		if err != nil {
			return fmt.Errorf("%s: %w", s.inst.Nodes[i].Name, err)
		}
		t.nodes = append(t.nodes, t.exchangeFrames(frames))
	}
	pod := s.podAt(0, 0)
	if c := s.pods[pod]; c != nil && t.client == &pod.Host && t.pod != pod {
		frames, err := c.Drain()
		if err != nil {
			return fmt.Errorf("pod %s: %w", pod.Name, err)
		}
		t.near = t.exchangeFrames(frames)
	}
	return nil
}

// exchangeTCP makes a TCP exchange that must work.
func (s *scene) exchangeTCP(ctx context.Context, e ends, size int) outcome {
	return s.patience.runExchange(func(timeout time.Duration) outcome { return s.newExchange(e, size, timeout).runTCP(ctx) })
}

func (s *scene) exchangeUDP(ctx context.Context, e ends, size int) outcome {
	return s.patience.runExchange(func(timeout time.Duration) outcome { return s.newExchange(e, size, timeout).runUDP(ctx) })
}

// patience has the limit of the next exchange, and the duration of the slowest exchange that worked.
type patience struct{ next, slowest time.Duration }

// runExchange makes one exchange. After a failure it shortens the limit of the following exchanges to ten times the
// slowest that worked. In a broken profile most of them fail, too. Each would otherwise wait for the whole limit.
func (p *patience) runExchange(exchange func(timeout time.Duration) outcome) outcome {
	began := time.Now()
	o := exchange(p.next)
	if o.err == nil {
		p.slowest = max(p.slowest, time.Since(began))
	} else {
		p.next = min(max(shortest, 10*p.slowest), longest)
	}
	return o
}

func (s *scene) newExchange(e ends, size int, timeout time.Duration) exchange {
	return exchange{
		client: s.dialers[e.client], server: e.server.NS, bind: e.server.Addr, dial: e.dial, listen: e.listen,
		size: size, timeout: timeout,
	}
}

// discardFrames drops the frames of earlier traffic.
func (s *scene) discardFrames() error {
	for _, c := range s.allCaptures() {
		if _, err := c.Drain(); err != nil {
			return err
		}
	}
	return nil
}

// receivedFrames returns the frames of exchangeFrames without those that were sent.
func (t *trial) receivedFrames(frames []capture.Frame) []capture.Frame {
	return slices.DeleteFunc(t.exchangeFrames(frames), func(f capture.Frame) bool { return f.Outgoing })
}

// exchangeFrames returns the frames that belong to the exchanges of the trial, received and sent. It finds them by
// their innermost ports. One port is always the dialled or the listening port, even after a translation.
func (t *trial) exchangeFrames(frames []capture.Frame) []capture.Frame {
	var own []capture.Frame
	for _, f := range frames {
		in := f.Innermost()
		source, destination := in.Ports()
		if in.IP == nil {
			continue
		}
		if o := t.outcomeOf(in); o.hasServerPort(source) || o.hasServerPort(destination) {
			own = append(own, f)
		}
	}
	return own
}

// outcomeOf returns the exchange with the protocol of a packet. The protocol matters, because the client's port over TCP may
// be the server's over UDP.
func (t *trial) outcomeOf(f *capture.Frame) outcome {
	if f.UDP != nil {
		return t.udp
	}
	return t.tcp
}

func (o outcome) hasServerPort(port uint16) bool {
	return port != 0 && (port == o.dialled || port == o.listened)
}

// goesToServer reports whether a frame goes from the client to the server.
func (t *trial) goesToServer(f *capture.Frame) bool {
	in := f.Innermost()
	source, destination := in.Ports()
	o := t.outcomeOf(in)
	if !o.hasServerPort(destination) {
		return false
	}
	// Both ends choose random ports, which may be equal.
	return !o.hasServerPort(source) || in.IP.Source != t.server.Addr && in.IP.Source != t.dial.Addr()
}
