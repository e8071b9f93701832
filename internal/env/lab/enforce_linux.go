package lab

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"syscall"
	"time"

	"github.com/cnibench/cnibench/internal/kernel/handover"
	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/kernel/sock"
	"github.com/cnibench/cnibench/internal/kernel/thread"
	"github.com/cnibench/cnibench/internal/plan"
)

// sign is how a connection attempt ends.
type sign int

const (
	opened  sign = iota // it is established
	refused             // the endpoint has no listener
	closed              // anything but established: dropped, rejected, refused
)

// prober connects repeatedly from a pod of the first node, to find when a change is enforced.
type prober struct {
	ctx    context.Context
	host   *Host
	cpus   []int
	dialer *Dialer
	to     sock.Addr
	family string
	// sockets are the prober's sockets; the first len(probes) are in use. listener listens in the second node's pod.
	sockets  []*os.File
	listener *os.File
	probes   []attempt
}

// attempt is one probe: it tries to connect.
type attempt struct {
	fd int
	// sent is the time of the attempt, in ns of the monotonic clock.
	sent  int64
	ended bool
	// how is the result of an attempt that has ended, 0 for an established connection.
	how syscall.Errno
}

// Limits of the prober. Times are in ns.
const (
	// leastApart is the least time between two probes. While a change continues, this time grows to 1/apart of the time
	// since the change began.
	leastApart = 50_000
	apart      = 10
	// settles is how long the answer to a probe may take. A probe without an answer after stale has timed out, even if
	// TCP would send it again.
	settles = 50_000_000
	stale   = 500_000_000
	// unseenAfter bounds the time from the end of a change until probes observe it. If the change took longer than twice
	// unseenAfter, half of its duration is the limit, because probes are then rarer.
	unseenAfter = 2_000_000_000
	// mostProbes bounds the number of probes, and so of sockets, for one change.
	mostProbes = 256
)

// openProber opens a prober for the changes, with a listener in the second node's pod. The caller closes the prober.
func (c *changes) openProber(ctx context.Context) (*prober, error) {
	client, server := c.inst.Nodes[0].Pods[1], c.inst.Nodes[1].Pods[0]
	to, port := c.probeTarget()
	p := &prober{ctx: ctx, host: &client.Host, cpus: c.inst.Nodes[0].daemonCPUs(), dialer: &Dialer{}, family: "tcp4"}
	p.to = sock.NewAddr(to, sock.Family(to.Addr()))
	if to.Addr().Is6() {
		p.family = "tcp6"
	}
	var err error
	if p.listener, err = listenTCP(server.NS, p.family, netip.AddrPortFrom(server.Addr, port)); err != nil {
		return nil, fmt.Errorf("listen at %s: %w", server.Name, err)
	}
	if c.kind != plan.ChurnPolicies && c.inst.Profile.Services == ebpfServices {
		if p.dialer, err = c.inst.Dialer(&client.Host); err != nil {
			return nil, errors.Join(err, p.listener.Close())
		}
	}
	return p, nil
}

// listenTCP opens a TCP listener in a namespace.
func listenTCP(ns *netns.NS, network string, at netip.AddrPort) (*os.File, error) {
	f, err := handover.Open(network, ns)
	if err != nil {
		return nil, err
	}
	fd, addr := int(f.Fd()), sock.NewAddr(at, sock.Family(at.Addr()))
	err = errors.Join(sock.SetReuse(fd, false), sock.SetNonBlocking(fd))
	if e := sock.Bind(fd, &addr); err == nil && e != 0 {
		err = os.NewSyscallError("bind", e)
	}
	if e := sock.Listen(fd, mostProbes); err == nil && e != 0 {
		err = os.NewSyscallError("listen", e)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (p *prober) close() error {
	errs := []error{p.dialer.Close(), p.listener.Close()}
	for _, s := range p.sockets {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}

// probeChange sends probes until the change is over and the latest probes have the sign want. begin is when the
// change began; its result arrives on applied. delay is the time in ns from begin to the first of these latest
// probes. probes is the number of all probes. probeChange fails if the change fails or is not observed in time.
func (p *prober) probeChange(begin int64, want sign, applied <-chan error) (delay int64, probes int, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // the thread ends with the goroutine, because it is confined
		err = errors.Join(thread.SetCPUs(p.cpus), thread.SharpTimers())
		if err == nil {
			delay, err = p.probeOnThread(begin, want, applied)
		} else {
			err = errors.Join(err, <-applied)
		}
	}()
	<-done
	probes = len(p.probes)
	return delay, probes, errors.Join(err, p.resetConnections())
}

// probeOnThread does the work of probeChange on the current thread.
func (p *prober) probeOnThread(begin int64, want sign, applied <-chan error) (delay int64, err error) {
	p.probes = p.probes[:0]
	var over int64 // when the change was over
	for {
		now := thread.Monotonic()
		if err := p.sendProbe(); err != nil {
			if over == 0 {
				err = errors.Join(err, <-applied)
			}
			return 0, err
		}
		select {
		case err := <-applied:
			if err != nil {
				return 0, err
			}
			over = thread.Monotonic()
		default:
		}
		p.collectResults()
		if over > 0 {
			if at, ok := p.enforcementTime(want, over); ok {
				return at - begin, nil
			}
			if patience := max(unseenAfter, (over-begin)/2); now-over > patience {
				return 0, fmt.Errorf("a change that was applied in %s was not seen within %s after it",
					time.Duration(over-begin).Round(time.Microsecond), time.Duration(patience))
			}
		}
		p.pauseUntil(now + max(leastApart, (now-begin)/apart))
	}
}

// pauseUntil waits until then. Meanwhile it collects results at least every 50 ms (settles). A probe that is read
// late would look like one that TCP repeated.
func (p *prober) pauseUntil(then int64) {
	for now := thread.Monotonic(); now+settles < then; now = thread.Monotonic() {
		thread.SleepUntil(now + settles)
		p.collectResults()
	}
	thread.SleepUntil(then)
}

// sendProbe sends one more probe, unless mostProbes were sent.
func (p *prober) sendProbe() error {
	n := len(p.probes)
	if n == mostProbes {
		return nil // enough probes are under way
	}
	if n == len(p.sockets) {
		s, err := p.dialer.Open(p.ctx, p.family, p.host.NS)
		if err != nil {
			return fmt.Errorf("socket of %s: %w", p.host.Name, err)
		}
		p.sockets = append(p.sockets, s)
		if err := sock.SetNonBlocking(int(s.Fd())); err != nil {
			return err
		}
	}
	b := attempt{fd: int(p.sockets[n].Fd()), sent: thread.Monotonic()}
	if b.how = sock.ConnectPolite(b.fd, &p.to); b.how != syscall.EINPROGRESS {
		b.ended = true
	}
	p.probes = append(p.probes, b)
	return nil
}

// collectResults records the results of the probes that have ended.
func (p *prober) collectResults() {
	now := thread.Monotonic()
	for i := range p.probes {
		b := &p.probes[i]
		switch {
		case b.ended:
		case now-b.sent > stale:
			b.ended, b.how = true, syscall.ETIMEDOUT
		default:
			b.ended, b.how = sock.Outcome(b.fd)
		}
	}
}

// enforcementTime returns when the first of the latest probes with the sign want was sent. It skips still later probes
// that wait for an answer. ok is false while an earlier probe waits for an answer. It is also false until a probe
// with the sign was sent after over, the end of the change.
func (p *prober) enforcementTime(want sign, over int64) (at int64, ok bool) {
	now := thread.Monotonic()
	for i := len(p.probes) - 1; i >= 0; i-- {
		b := p.probes[i]
		if !b.ended && now-b.sent < settles {
			if at > 0 || b.sent <= over {
				return 0, false
			}
			continue // a younger one than the first from after the change
		}
		if !b.hasSign(want) {
			break
		}
		at, ok = b.sent, ok || b.sent > over
	}
	return at, ok
}

// hasSign reports whether a probe has the sign want. The probe must have ended, or have waited for the time settles.
func (b attempt) hasSign(want sign) bool {
	established := b.ended && b.how == 0
	switch want {
	case opened:
		return established
	case refused:
		return b.ended && b.how == syscall.ECONNREFUSED
	}
	return !established
}

// resetConnections ends all connections of a change, at both ends, so that the sockets can be used again.
func (p *prober) resetConnections() error {
	for _, b := range p.probes {
		if e := sock.Disconnect(b.fd); e != 0 {
			return os.NewSyscallError("disconnect", e)
		}
	}
	p.probes = p.probes[:0]
	for {
		fd, e := sock.AcceptNow(int(p.listener.Fd()), 0)
		if e != 0 {
			return nil // none is left
		}
		_ = sock.SetAbort(fd) // an end with a reset is enough
		sock.Close(fd)
	}
}
