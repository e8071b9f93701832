package member

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/engine/load"
	"github.com/cnibench/cnibench/internal/kernel/sock"
	"github.com/cnibench/cnibench/internal/kernel/thread"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/plan/job"
)

const (
	// tick bounds each wait of the thread. After it, the thread checks whether it should end.
	tick = 25 * time.Millisecond
	// setupTick bounds a call of the set-up, defaultSetup the set-up of one connection.
	setupTick    = 50 * time.Millisecond
	defaultSetup = 3 * time.Second
	// pieceSize is the most that one call sends or receives.
	pieceSize = 256 << 10
	// greetingSize is the size of the first message on a connection: the rank of the member that dialled.
	greetingSize  = 8
	greetingMagic = 0xcb1be9c6
)

// Kinds of failure.
const (
	kindGone  = "peer gone"
	kindUsage = load.KindUsage
)

// Trial is one member in one trial, prepared. Run it once, then Close it.
type Trial struct {
	o      control.Prepare
	shape  job.Shape
	pause  time.Duration
	listen int
	port   int
	links  []*link // by rank; nil for this member itself
	stop   atomic.Bool
	// finished closes when the controller asks for the result so far, because a member is lost that no other has missed
	// yet.
	finished <-chan struct{}
	ended    sync.WaitGroup
	closed   sync.Once
	stands   stands
}

// stands is what Stands reports: the number of the step, and a bit for each member that is waited for.
type stands struct {
	step, waits atomic.Uint64
}

// Prepare listens for the members before this one, and dials the members after it, which listen already. Every error is
// a *load.Error. finished may be nil.
func Prepare(ctx context.Context, o control.Prepare, finished <-chan struct{}) (*Trial, error) {
	is := o.Workload.Traits()
	t := &Trial{o: o, finished: finished, shape: is.Job, pause: is.Interval, listen: -1, port: o.Port}
	if why := t.invalidReason(); why != "" {
		return nil, &load.Error{Kind: kindUsage, Op: "prepare", Err: errors.New(why)}
	}
	t.o.Setup = cmp.Or(o.Setup, defaultSetup)
	t.links = make([]*link, t.shape.Members)
	load.QuiesceRuntime(1)
	err := t.openListener()
	for rank := o.Seat.Rank + 1; rank < t.shape.Members && err == nil; rank++ {
		err = t.dialMember(ctx, rank)
	}
	if err != nil {
		_ = t.Close() // the first error counts
		return nil, err
	}
	return t, nil
}

// invalidReason returns what is invalid in the request, or "".
func (t *Trial) invalidReason() string {
	seat := t.o.Seat
	switch {
	case t.shape.Members == 0:
		return fmt.Sprintf("%s is not a job", t.o.Workload)
	case seat == nil || len(seat.Members) != t.shape.Members || seat.Rank < 0 || seat.Rank >= t.shape.Members:
		return fmt.Sprintf("a member of %s without its place among the others", t.o.Workload)
	case t.o.Window < time.Millisecond || t.o.Warmup < 0 || t.o.Setup < 0:
		return fmt.Sprintf("a window of %v", t.o.Window)
	}
	if err := t.o.Workload.Validate(); err != nil {
		return err.Error()
	}
	return ""
}

func newLoadError(op string, err error) *load.Error {
	var known *load.Error
	if errors.As(err, &known) {
		return known
	}
	return &load.Error{Kind: load.KindOf(err), Op: op, Err: err}
}

// memberName returns the rank and the name of a member, for errors.
func (t *Trial) memberName(rank int) string {
	return fmt.Sprintf("member %d (%s)", rank, t.o.Seat.Members[rank].Name)
}

// openListener makes the listener. The first member has none, because it dials all others.
func (t *Trial) openListener() error {
	if t.o.Seat.Rank == 0 {
		return nil
	}
	address, err := netip.ParseAddr(cmp.Or(t.o.Address, "::"))
	if err != nil {
		return newLoadError("listen", err)
	}
	fd, e := sock.Socket(sock.Family(address), sock.Stream, 0)
	if e != 0 {
		return newLoadError("socket", e)
	}
	t.listen = fd
	if err := errors.Join(sock.SetReuse(fd, false), sock.SetTimeouts(fd, setupTick), t.setSocketOptions(fd)); err != nil {
		return newLoadError("listen", err)
	}
	at := sock.NewAddr(netip.AddrPortFrom(address, uint16(t.o.Port)), sock.Family(address))
	if e := sock.Bind(fd, &at); e != 0 {
		return newLoadError(fmt.Sprintf("listen at %s", at.AddrPort()), e)
	}
	if e := sock.Listen(fd, t.shape.Members); e != 0 {
		return newLoadError("listen", e)
	}
	bound, err := sock.Local(fd)
	if err != nil {
		return newLoadError("listen", err)
	}
	t.port = int(bound.AddrPort().Port())
	return nil
}

// setSocketOptions sets up a socket. If this user may not set the congestion control, the system's default applies.
func (t *Trial) setSocketOptions(fd int) error {
	congestion := sock.SetCongestion(fd, cmp.Or(t.o.Workload.Traits().Congestion, plan.DefaultCongestion))
	if errors.Is(congestion, syscall.EPERM) {
		congestion = nil
	}
	return errors.Join(sock.SetNoDelay(fd), sock.SetAbort(fd), congestion)
}

// dialMember connects to a member after this one and sends it this member's rank.
func (t *Trial) dialMember(ctx context.Context, rank int) error {
	peer := t.o.Seat.Members[rank]
	op := "connect to " + t.memberName(rank)
	address, err := netip.ParseAddr(peer.Address)
	if err != nil {
		return newLoadError(op, err)
	}
	fd, e := sock.Socket(sock.Family(address), sock.Stream, 0)
	if e != 0 {
		return newLoadError(op, e)
	}
	t.links[rank] = newLink(rank, fd)
	if err := errors.Join(t.setSocketOptions(fd), sock.SetTimeouts(fd, setupTick)); err != nil {
		return newLoadError(op, err)
	}
	to := sock.NewAddr(netip.AddrPortFrom(address, uint16(peer.Port)), sock.Family(address))
	for deadline := time.Now().Add(t.o.Setup); ; {
		e := sock.ConnectPolite(fd, &to)
		if e == 0 || e == syscall.EISCONN {
			break
		}
		if e != syscall.EINPROGRESS && e != syscall.EALREADY && e != syscall.EINTR {
			return newLoadError(op, e)
		}
		if err := ctx.Err(); err != nil {
			return &load.Error{Kind: load.KindCancelled, Op: op, Err: err}
		}
		if time.Now().After(deadline) {
			return newLoadError(op, syscall.ETIMEDOUT)
		}
	}
	var greeting [greetingSize]byte
	binary.BigEndian.PutUint32(greeting[:], greetingMagic)
	binary.BigEndian.PutUint32(greeting[4:], uint32(t.o.Seat.Rank))
	if n, e := sock.Send(fd, greeting[:], 0); n != greetingSize {
		return newLoadError(op, e) // an empty socket buffer has room for it
	}
	return nil
}

// acceptMembers accepts the connections of all members before this one. It fails if they do not come within Setup.
func (t *Trial) acceptMembers(ctx context.Context) error {
	deadline := time.Now().Add(t.o.Setup)
	for missing := t.o.Seat.Rank; missing > 0; {
		fd, e := sock.AcceptPolite(t.listen)
		switch {
		case e == syscall.EAGAIN || e == syscall.EINTR:
			if err := ctx.Err(); err != nil {
				return err
			}
			if time.Now().After(deadline) {
				return newLoadError("wait for "+t.missingMembers(), syscall.ETIMEDOUT)
			}
			continue
		case e != 0:
			return newLoadError("accept", e)
		}
		var greeting [greetingSize]byte
		late := time.Now().Add(greetingTime)
		ok := sock.RecvAll(fd, greeting[:], func() bool { return ctx.Err() != nil || time.Now().After(late) })
		rank := int(binary.BigEndian.Uint32(greeting[4:]))
		if !ok || binary.BigEndian.Uint32(greeting[:]) != greetingMagic || rank >= t.o.Seat.Rank || t.links[rank] != nil {
			sock.Close(fd) // of another program
			continue
		}
		t.links[rank] = newLink(rank, fd)
		missing--
	}
	return nil
}

// greetingTime bounds the wait for the greeting of a connection. TCP sends a lost one again after 200 ms or more.
const greetingTime = time.Second

// missingMembers names the members that have not connected.
func (t *Trial) missingMembers() string {
	var names []string
	for rank := range t.o.Seat.Rank {
		if t.links[rank] == nil {
			names = append(names, t.memberName(rank))
		}
	}
	return strings.Join(names, ", ")
}

// Port returns the port that the member listens on, 0 if it does not.
func (t *Trial) Port() int { return t.port }

// Stands describes the current step, and the members that are waited for.
func (t *Trial) Stands() string {
	text := fmt.Sprintf("in step %d", t.stands.step.Load())
	var names []string
	for rank := range t.shape.Members {
		if t.stands.waits.Load()&(1<<rank) != 0 {
			names = append(names, t.memberName(rank))
		}
	}
	if len(names) > 0 {
		text += ", waiting for " + strings.Join(names, ", ")
	}
	return text
}

// Run plays steps until the first member ends the window, and returns this member's observation. edge is called at
// both edges of the window. If a member is lost and the job continues without it, the first member returns the
// observation of the steps before the loss. Every error is a *load.Error. The connections stay open until Close.
func (t *Trial) Run(ctx context.Context, edge func(end bool)) (*sample.Observation, error) {
	if err := t.acceptMembers(ctx); err != nil {
		return nil, t.endError(ctx, err)
	}
	p, err := newPlayer(t, edge)
	if err != nil {
		return nil, newLoadError("prepare", err)
	}
	result := make(chan error, 1)
	t.ended.Go(func() {
		runtime.LockOSThread() // not unlocked again: the thread is pinned, and ends with its goroutine
		result <- p.main()
	})
	select {
	case err = <-result:
	case <-t.finished:
		t.stop.Store(true)
		err = <-result
	case <-ctx.Done():
		t.stop.Store(true)
		err = <-result
	}
	if o := p.lossObservation(err); o != nil && ctx.Err() == nil {
		return o, nil
	}
	if err != nil {
		return nil, t.endError(ctx, err)
	}
	return p.windowObservation(), nil
}

// endError returns err as a *load.Error. If ctx has ended, it returns the cause of ctx instead.
func (t *Trial) endError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return &load.Error{Kind: load.KindCancelled, Op: t.o.Workload.String(), Err: context.Cause(ctx)}
	}
	return newLoadError(t.o.Workload.String(), err)
}

// Close ends the thread and closes the sockets. Calling it again does nothing.
func (t *Trial) Close() (err error) {
	t.closed.Do(func() {
		t.stop.Store(true)
		t.ended.Wait()
		fds := []int{t.listen}
		for _, l := range t.links {
			if l != nil {
				fds = append(fds, l.fd)
			}
		}
		for _, fd := range fds {
			if fd < 0 {
				continue
			}
			if e := sock.Close(fd); e != 0 {
				err = errors.Join(err, fmt.Errorf("close descriptor %d: %w", fd, e))
			}
		}
		load.RestoreRuntime(1)
	})
	return err
}

// pinThread binds the thread to one CPU of those for the load, if there are any, and makes its timers precise.
func (t *Trial) pinThread() error {
	if n := len(t.o.CPUs); n > 0 {
		if err := thread.SetCPUs([]int{t.o.CPUs[t.o.Seat.Rank%n]}); err != nil {
			return newLoadError("pin", err)
		}
	}
	return thread.SharpTimers()
}
