package selftest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cnibench/cnibench/internal/dataplane"
	"github.com/cnibench/cnibench/internal/env/lab"
	"github.com/cnibench/cnibench/internal/kernel/sock"
	"github.com/cnibench/cnibench/internal/plan/condition"
)

// serviceChecks returns the checks of the Services for self-tests. One Service has no endpoints, one has session
// affinity, and one has several backends of which one is removed.
func serviceChecks(x expectation) []check {
	if !x.callsServices() {
		return nil
	}
	client := "a client"
	if x.AffinityAfter > 0 {
		client += ", from " + x.AffinityAfter.String() + " after its first connection,"
	}
	var list []check
	if x.Programs != nil && x.Programs.Maglev && !x.local {
		list = append(list, check{kind: "maglev", what: "the backends of an external client that enters by each node", probe: probeMaglevChoices})
	}
	return append(list, []check{
		{kind: "none.udp", what: "a datagram to a Service without endpoints", probe: unservedProbe("udp")},
		{kind: "none.tcp", what: "a connection to a Service without endpoints", probe: unservedProbe("tcp")},
		{kind: "sticky", what: "the backends of " + client + " of a Service with session affinity", probe: probeStickyBackends},
		{kind: "shared.even", what: "the backends of connections to a Service with several backends", probe: probeEvenShares},
		// The last check, because it changes the Service.
		{kind: "shared.removed", what: "the backends of connections after one backend was removed", probe: probeRemovedBackend},
	}...)
}

// Outcomes of a call to a Service without endpoints.
const (
	refusedAtOnce = "refused"
	silence       = "no answer"
	routedOn      = "not refused, but sent on"
)

// refusals are the texts of errors when a call is refused at once. An ICMP message, rules of the client's node, or
// programs at the client's socket can refuse it.
var refusals = []string{"connection refused", "operation not permitted", "no route to host"}

// callsServices reports whether pods call the Services for self-tests. With bridge-netfilter=off they do not, because
// the backends on the client's node would not answer.
func (x expectation) callsServices() bool {
	_, ok := x.Served[dataplane.PodSvcRemote]
	return x.testServices && ok && !x.unfiltered
}

// expectedUnserved returns the expected outcome of a call to a Service without endpoints.
func (x expectation) expectedUnserved(network string) string {
	if network == "udp" && x.Programs != nil && x.Programs.Mute {
		return silence
	}
	if x.Strict {
		return silence // the refusal of the pod's node arrives by the VPC, and belongs to no tracked connection
	}
	if x.Firewall && x.engine != condition.ProxyNftables {
		return routedOn // kube-router accepts what its policies allow before kube-proxy can refuse it
	}
	return refusedAtOnce
}

// unservedProbe returns a probe of the outcome of a call to the Service without endpoints.
func unservedProbe(network string) inspection {
	return func(_ context.Context, s *scene) finding {
		want, err := s.want.expectedUnserved(network), s.unserved[network]
		switch {
		case err == nil:
			return finding{want: want, got: "answered"}
		case slices.ContainsFunc(refusals, func(r string) bool { return strings.Contains(err.Error(), r) }):
			return finding{want: want, got: refusedAtOnce}
		case want == routedOn && (errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "timeout") || strings.Contains(err.Error(), "network is unreachable")):
			return finding{want: want, got: routedOn} // by the node's default route, or none exists
		case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded), strings.Contains(err.Error(), "timeout"):
			return finding{want: want, got: silence}
		}
		return failedFinding(want, err)
	}
}

// callUnserved calls the Service without endpoints and records the errors. It must run before all other traffic. A
// node limits the ICMP messages to a host, and sends none for a second after a redirect. A pod that calls itself
// causes a redirect.
func (s *scene) callUnserved(ctx context.Context) {
	if !s.want.callsServices() {
		return
	}
	var wg sync.WaitGroup
	var errs [2]error
	networks := []string{"tcp", "udp"}
	for i, network := range networks {
		wg.Go(func() { errs[i] = s.callWithoutEndpoints(ctx, network) })
	}
	wg.Wait()
	for i, network := range networks {
		s.unserved[network] = errs[i]
	}
}

// callWithoutEndpoints calls the Service without endpoints and returns the error, nil if the call works. It repeats the
// datagram of a UDP call, which may be lost. It waits longer if a refusal is expected than if no answer is.
func (s *scene) callWithoutEndpoints(ctx context.Context, network string) error {
	timeout := 2 * s.patience.next
	if s.want.expectedUnserved(network) != refusedAtOnce {
		timeout = impatience
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	conn, err := s.dialService(ctx, network, s.inst.Service(lab.NoneService))
	if err != nil {
		return err
	}
	defer closeQuietly(conn)
	if network == "tcp" {
		return nil
	}
	deadline, _ := ctx.Deadline()
	for time.Now().Before(deadline) {
		if err = conn.SetDeadline(time.Now().Add(shortest)); err != nil {
			return err
		}
		if _, err = conn.Write(make([]byte, question)); err != nil {
			return err
		}
		if _, err = conn.Read(make([]byte, answer)); !errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
	}
	return err
}

// dialService connects from the client's pod to a Service.
func (s *scene) dialService(ctx context.Context, network string, svc *lab.Service) (net.Conn, error) {
	if svc.VIP.Is6() {
		network += "6"
	} else {
		network += "4"
	}
	return s.dialers[&s.podAt(0, 0).Host].Dial(ctx, network, netip.AddrPortFrom(svc.VIP, uint16(svc.Port)).String())
}

// serviceCalls is the number of calls to a shared Service. It is enough to detect uneven shares, and calls to a removed
// backend.
const serviceCalls = 60

// probeStickyBackends checks that all calls to a Service with session affinity reach one backend. Calls within AffinityAfter
// of the first do not count.
func probeStickyBackends(ctx context.Context, s *scene) finding {
	const want = "one of 2"
	svc := s.inst.Service(lab.StickyService)
	for began := time.Now(); time.Since(began) < s.want.AffinityAfter; {
		if _, err := s.countAnswers(ctx, svc, svc.Backends, 1); err != nil {
			return failedFinding(want, err)
		}
	}
	counts, err := s.countAnswers(ctx, svc, svc.Backends, serviceCalls/4)
	if err != nil {
		return failedFinding(want, err)
	}
	if len(counts) == 1 {
		return finding{want: want, got: want}
	}
	return finding{want: want, got: formatCounts(counts)}
}

// probeEvenShares checks by a chi-squared test that the backends of a Service get even shares of calls. Random choices
// exceed the bounds, which depend on the degrees of freedom, in one of a million runs.
func probeEvenShares(ctx context.Context, s *scene) finding {
	svc := s.inst.Service(lab.SharedService)
	want := fmt.Sprintf("all %d evenly", len(svc.Backends))
	counts, err := s.countAnswers(ctx, svc, svc.Backends, serviceCalls)
	if err != nil {
		return failedFinding(want, err)
	}
	bound := map[int]float64{1: 23.9, 2: 27.6, 3: 30.7, 4: 33.4}[len(svc.Backends)-1]
	if chi := chiSquared(counts, svc.Backends); chi > bound {
		return finding{want: want, got: formatCounts(counts)}
	}
	return finding{want: want, got: want}
}

func chiSquared(counts map[string]int, backends []*lab.Pod) float64 {
	total := 0
	for _, n := range counts {
		total += n
	}
	expected, sum := float64(total)/float64(len(backends)), 0.0
	for _, b := range backends {
		d := float64(counts[b.Name]) - expected
		sum += d * d / expected
	}
	return sum
}

// probeRemovedBackend checks the calls to a Service after its last backend was removed. No call may reach that backend
// or time out, and all others must answer. Then it adds the backend again.
func probeRemovedBackend(ctx context.Context, s *scene) finding {
	svc := s.inst.Service(lab.SharedService)
	all := slices.Clone(svc.Backends)
	left := all[:len(all)-1]
	want := fmt.Sprintf("the other %d", len(left))
	if err := s.setBackends(ctx, left); err != nil {
		return failedFinding(want, err)
	}
	// All pods listen, so that a call to the removed backend would be answered and counted.
	counts, err := s.countAnswers(ctx, svc, all, serviceCalls)
	if err = errors.Join(err, s.setBackends(ctx, all)); err != nil {
		return failedFinding(want, err)
	}
	if counts[all[len(all)-1].Name] == 0 && len(counts) == len(left) {
		return finding{want: want, got: want}
	}
	return finding{want: want, got: formatCounts(counts)}
}

func (s *scene) setBackends(ctx context.Context, pods []*lab.Pod) error {
	var refs []lab.PodRef
	for n, node := range s.inst.Nodes {
		for p, pod := range node.Pods {
			if slices.Contains(pods, pod) {
				refs = append(refs, lab.PodRef{Node: n, Pod: p})
			}
		}
	}
	return s.inst.SetBackends(ctx, lab.SharedService, refs)
}

// formatCounts returns counts by pod as text, for example "12 x node-1/pod-2, 30 x node-2/pod-1". Without counts it
// returns "none".
func formatCounts(counts map[string]int) string {
	var words []string
	for name, n := range counts {
		words = append(words, fmt.Sprintf("%d x %s", n, name))
	}
	return joinDistinct(words, "none")
}

// countAnswers makes calls to a Service while pods listen, and returns how many calls each pod answered, by its name. It fails
// at the first call without an answer in time.
func (s *scene) countAnswers(ctx context.Context, svc *lab.Service, pods []*lab.Pod, calls int) (map[string]int, error) {
	stop, err := s.serveNames(ctx, pods, uint16(svc.TargetPort))
	defer stop()
	if err != nil {
		return nil, err
	}
	counts := map[string]int{}
	for range calls {
		name, err := s.answeringPod(ctx, svc)
		if err != nil {
			return nil, fmt.Errorf("after %s: %w", formatCounts(counts), err)
		}
		counts[name]++
	}
	return counts, nil
}

// serveNames makes pods listen on port and send their names to every client, until stop is called. Call stop also after an
// error.
func (s *scene) serveNames(ctx context.Context, pods []*lab.Pod, port uint16) (stop func(), err error) {
	var listeners []net.Listener
	stop = func() {
		for _, l := range listeners {
			closeQuietly(l)
		}
	}
	for _, p := range pods {
		l, err := exchange{server: p.NS, bind: p.Addr, listen: port}.listenTCP(ctx)
		if err != nil {
			return stop, fmt.Errorf("%s: listen: %w", p.Name, err)
		}
		listeners = append(listeners, l)
		go func() {
			for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
				_, _ = io.WriteString(conn, p.Name) // the client reports a failure
				closeQuietly(conn)
			}
		}()
	}
	return stop, nil
}

func (s *scene) answeringPod(ctx context.Context, svc *lab.Service) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.patience.next)
	defer cancel()
	conn, err := s.dialService(ctx, "tcp", svc)
	if err != nil {
		return "", err
	}
	defer closeQuietly(conn)
	return s.readName(conn)
}

// readName reads the name of the pod at the other end of conn.
func (s *scene) readName(conn net.Conn) (string, error) {
	if err := conn.SetDeadline(time.Now().Add(s.patience.next)); err != nil {
		return "", err
	}
	name, err := io.ReadAll(conn)
	return string(name), err
}

// clients is the number of source ports from which the external client connects to each node.
const clients = 12

// firstClientPort is the external client's first source port. Its ports are below the system's ephemeral ports.
const firstClientPort = 20001

// probeMaglevChoices connects to the node port of both nodes from each of several source ports. It checks that both nodes
// choose the same backend for a source port. With three backends, independent choices agree by chance in 1 of about 500,000
// runs.
func probeMaglevChoices(ctx context.Context, s *scene) finding {
	const want = "the same backend at both nodes"
	svc := s.inst.Service(lab.SharedService)
	stop, err := s.serveNames(ctx, svc.Backends, uint16(svc.TargetPort))
	defer stop()
	if err != nil {
		return failedFinding(want, err)
	}
	differ := 0
	for i := range clients {
		var names [2]string
		for node := range names {
			at := netip.AddrPortFrom(s.inst.Nodes[node].Addr, uint16(svc.NodePort))
			if names[node], err = s.callFromOutside(ctx, firstClientPort+i, at); err != nil {
				return failedFinding(want, err)
			}
		}
		if names[0] != names[1] {
			differ++
		}
	}
	if differ > 0 {
		return finding{want: want, got: fmt.Sprintf("another backend for %d of %d clients", differ, clients)}
	}
	return finding{want: want, got: want}
}

// callFromOutside connects the external client from a source port to an address. It returns the name of the backend
// that answers.
func (s *scene) callFromOutside(ctx context.Context, from int, at netip.AddrPort) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.patience.next)
	defer cancel()
	d := net.Dialer{Control: sock.ReuseAddress, LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(s.inst.External.Addr, uint16(from)))}
	var conn net.Conn
	err := s.inst.External.NS.Do(func() (err error) {
		conn, err = d.DialContext(ctx, "tcp", at.String())
		return err
	})
	if err != nil {
		return "", err
	}
	defer closeQuietly(conn)
	name, err := s.readName(conn)
	return name, errors.Join(err, conn.(*net.TCPConn).SetLinger(0))
}
