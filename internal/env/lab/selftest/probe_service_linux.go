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
	"time"

	"github.com/cnibench/cnibench/internal/env/lab"
	"github.com/cnibench/cnibench/internal/env/lab/expect"
	"github.com/cnibench/cnibench/internal/kernel/sock"
)

// serviceChecks are about Services that only a self-test has: without endpoints, with session affinity, with several
// backends of which one goes.
func serviceChecks(x expectation) []check {
	if _, ok := x.Served[expect.PodSvcRemote]; !x.testServices || !ok {
		return nil
	}
	datagram := refusedAtOnce
	if x.Programs != nil && x.Programs.Mute {
		datagram = silence
	}
	var list []check
	if x.Programs != nil && x.Programs.Maglev && !x.local {
		list = append(list, check{kind: "maglev", what: "who answers a client outside that enters by one node and by the other", probe: maglev})
	}
	return append(list, []check{
		{kind: "none.udp", what: "a datagram to a Service without endpoints", probe: unserved("udp", datagram)},
		{kind: "none.tcp", what: "a connection to a Service without endpoints", probe: unserved("tcp", refusedAtOnce)},
		{kind: "sticky", what: "who answers a client of a Service with session affinity", probe: sticky},
		{kind: "shared.even", what: "who answers connections to a Service with several backends", probe: evenly},
		// The last of them, since it leaves the Service changed for a while.
		{kind: "shared.removed", what: "who answers when one of the backends has been taken away", probe: removed},
	}...)
}

// What becomes of a call to nobody.
const (
	refusedAtOnce = "refused"
	silence       = "no answer"
)

// refusals are the errors by which a caller learns at once that nobody is there: by an ICMP message, from the rules of the
// caller's own machine, from programs at its socket.
var refusals = []string{"connection refused", "operation not permitted", "no route to host"}

// unserved calls a Service without endpoints.
func unserved(network, want string) func(context.Context, *scene) finding {
	return func(ctx context.Context, s *scene) finding {
		err := s.callNobody(ctx, network, want)
		switch {
		case err == nil:
			return finding{want: want, got: "answered"}
		case slices.ContainsFunc(refusals, func(r string) bool { return strings.Contains(err.Error(), r) }):
			return finding{want: want, got: refusedAtOnce}
		case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded), strings.Contains(err.Error(), "timeout"):
			return finding{want: want, got: silence}
		}
		return failed(want, err)
	}
}

// callNobody has patience where it waits for a refusal. A node sends a caller about one ICMP message a second, redirects
// counted, so a datagram is sent again; and on one CPU the message comes back while connect() still holds the socket, which then takes
// notice only of the next one, that to the SYN which is sent again after a second.
func (s *scene) callNobody(ctx context.Context, network, want string) error {
	timeout := 2 * s.patience
	if want == silence {
		timeout = impatience
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	conn, err := s.dialTest(ctx, network, s.inst.Service(lab.NoneService))
	if err != nil {
		return err
	}
	defer closeQuietly(conn)
	if network == "tcp" {
		return nil
	}
	deadline, _ := ctx.Deadline() // it has one
	for time.Now().Before(deadline) {
		if err = conn.SetDeadline(time.Now().Add(weariness)); err != nil {
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

// dialTest connects the first pod to a Service.
func (s *scene) dialTest(ctx context.Context, network string, svc *lab.Service) (net.Conn, error) {
	if svc.VIP.Is6() {
		network += "6"
	} else {
		network += "4"
	}
	return s.dialers[&s.pod(0, 0).Host].Dial(ctx, network, netip.AddrPortFrom(svc.VIP, uint16(svc.Port)).String())
}

// asked is how often a shared Service is called: often enough that what is not even shows, and that a backend which is
// gone and still called is met.
const asked = 60

// sticky calls a Service with session affinity again and again.
func sticky(ctx context.Context, s *scene) finding {
	const want = "one of 2"
	svc := s.inst.Service(lab.StickyService)
	counts, err := s.census(ctx, svc, svc.Backends, asked/4)
	if err != nil {
		return failed(want, err)
	}
	if len(counts) == 1 {
		return finding{want: want, got: want}
	}
	return finding{want: want, got: tally(counts)}
}

// evenly compares the shares of the backends with even ones. The bound is passed by chance in one run of a million, with
// as many degrees of freedom as a lab's Service has.
func evenly(ctx context.Context, s *scene) finding {
	svc := s.inst.Service(lab.SharedService)
	want := fmt.Sprintf("all %d alike", len(svc.Backends))
	counts, err := s.census(ctx, svc, svc.Backends, asked)
	if err != nil {
		return failed(want, err)
	}
	bound := map[int]float64{1: 23.9, 2: 27.6, 3: 30.7, 4: 33.4}[len(svc.Backends)-1]
	if chi := chiSquared(counts, svc.Backends); chi > bound {
		return finding{want: want, got: tally(counts)}
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

// removed takes the last backend away: nobody waits for it, and nobody else is spared.
func removed(ctx context.Context, s *scene) finding {
	svc := s.inst.Service(lab.SharedService)
	all := slices.Clone(svc.Backends)
	left := all[:len(all)-1]
	want := fmt.Sprintf("the other %d", len(left))
	if err := s.setBackends(ctx, left); err != nil {
		return failed(want, err)
	}
	// Everybody listens still, so that a call to the one that is gone would be answered, and seen.
	counts, err := s.census(ctx, svc, all, asked)
	if err = errors.Join(err, s.setBackends(ctx, all)); err != nil {
		return failed(want, err)
	}
	if counts[all[len(all)-1].Name] == 0 && len(counts) == len(left) {
		return finding{want: want, got: want}
	}
	return finding{want: want, got: tally(counts)}
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

// tally is "12 x node-1/pod-2, 30 x node-2/pod-1".
func tally(counts map[string]int) string {
	var words []string
	for name, n := range counts {
		words = append(words, fmt.Sprintf("%d x %s", n, name))
	}
	return set(words, "nobody")
}

// census counts who of the pods, all of which listen, answers so many connections. The first that takes too long is the
// last; together they may take their time, on a slow machine.
func (s *scene) census(ctx context.Context, svc *lab.Service, pods []*lab.Pod, calls int) (map[string]int, error) {
	for _, p := range pods {
		l, err := s.greet(ctx, p, uint16(svc.TargetPort))
		if err != nil {
			return nil, fmt.Errorf("%s: listen: %w", p.Name, err)
		}
		defer closeQuietly(l)
	}
	counts := map[string]int{}
	for range calls {
		name, err := s.whoAnswers(ctx, svc)
		if err != nil {
			return nil, fmt.Errorf("after %s: %w", tally(counts), err)
		}
		counts[name]++
	}
	return counts, nil
}

// greet makes a pod tell everybody who connects its name.
func (s *scene) greet(ctx context.Context, p *lab.Pod, port uint16) (net.Listener, error) {
	x := exchange{server: p.NS, bind: p.Addr, listen: port}
	l, err := x.listenTCP(ctx)
	if err != nil {
		return nil, err
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return // it was closed
			}
			_, _ = io.WriteString(conn, p.Name) // a client that misses it says so
			closeQuietly(conn)
		}
	}()
	return l, nil
}

func (s *scene) whoAnswers(ctx context.Context, svc *lab.Service) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	conn, err := s.dialTest(ctx, "tcp", svc)
	if err != nil {
		return "", err
	}
	defer closeQuietly(conn)
	return s.nameFrom(conn)
}

// nameFrom reads who answers, all that is said.
func (s *scene) nameFrom(conn net.Conn) (string, error) {
	if err := conn.SetDeadline(time.Now().Add(s.patience)); err != nil {
		return "", err
	}
	name, err := io.ReadAll(conn)
	return string(name), err
}

// clients is how many clients outside are tried at both nodes, each a port of the client's host.
const clients = 12

// firstClientPort is below what the system gives out by itself.
const firstClientPort = 20001

// maglev calls a node port from the same port of the client outside at both nodes: where each chose for itself, as many
// agreements would come by chance about once in half a million runs.
func maglev(ctx context.Context, s *scene) finding {
	const want = "the same backend at both nodes"
	svc := s.inst.Service(lab.SharedService)
	for _, p := range svc.Backends {
		l, err := s.greet(ctx, p, uint16(svc.TargetPort))
		if err != nil {
			return failed(want, fmt.Errorf("%s: listen: %w", p.Name, err))
		}
		defer closeQuietly(l)
	}
	differ := 0
	for i := range clients {
		var names [2]string
		for node := range names {
			var err error
			at := netip.AddrPortFrom(s.inst.Nodes[node].Addr, uint16(svc.NodePort))
			if names[node], err = s.fromOutside(ctx, firstClientPort+i, at); err != nil {
				return failed(want, err)
			}
		}
		if names[0] != names[1] {
			differ++
		}
	}
	if differ > 0 {
		return finding{want: want, got: fmt.Sprintf("another one for %d of %d clients", differ, clients)}
	}
	return finding{want: want, got: want}
}

// fromOutside asks who answers the client outside that calls from the given port of its own.
func (s *scene) fromOutside(ctx context.Context, from int, at netip.AddrPort) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.patience)
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
	name, err := s.nameFrom(conn)
	return name, errors.Join(err, conn.(*net.TCPConn).SetLinger(0))
}
