package load

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/cnibench/cnibench/internal/kernel/sock"
	"github.com/cnibench/cnibench/internal/plan"
)

// A flow of stream and rr begins with a greeting of 16 bytes from the client, which names the flow. The server sends
// the same bytes back when the flow's thread is ready. Over UDP the server answers from a socket of its own that it has
// connected to the client, so each flow has a socket and a thread at both ends, as with TCP. The greeting of UDP is
// repeated until answered; the answer is sent three times, and the flow ignores what remains of either.

// Constants of greetings: the size in bytes, the first 8 bytes, and how often an answer is sent over UDP.
const (
	greetingSize  = 16
	greetingMagic = 0xcb1be9c800000001 // sequence numbers never reach this value
	answers       = 3
)

func newGreeting(index int) []byte {
	b := make([]byte, greetingSize)
	binary.BigEndian.PutUint64(b, greetingMagic)
	binary.BigEndian.PutUint64(b[8:], uint64(index))
	return b
}

// isGreeting reports whether a datagram is a greeting.
func isGreeting(b []byte) bool {
	return len(b) == greetingSize && binary.BigEndian.Uint64(b) == greetingMagic
}

// socketType returns the socket type of the workload.
func (t *Trial) socketType() int {
	if t.traits.Protocol == plan.UDP {
		return sock.Datagram
	}
	return sock.Stream
}

// openSocket opens a socket of the workload with everything set that a connection should inherit.
func (t *Trial) openSocket(family int) (int, error) {
	fd, e := sock.Socket(family, t.socketType(), 0)
	if e != 0 {
		return -1, asError("socket", e)
	}
	if err := t.setSocketOptions(fd); err != nil {
		sock.Close(fd)
		return -1, err
	}
	return fd, nil
}

func (t *Trial) setSocketOptions(fd int) error {
	if t.work.standing {
		if err := sock.SetTimeouts(fd, setupTick); err != nil {
			return err
		}
	}
	if err := t.setBuffers(fd); err != nil || t.socketType() == sock.Datagram {
		return err
	}
	return t.setTCPOptions(fd, t.work.standing)
}

// setTCPOptions sets the options of a TCP socket. abort makes its close reset the connection, so that nothing lingers. A
// server of crr must not abort: the reset would discard its response.
func (t *Trial) setTCPOptions(fd int, abort bool) error {
	if err := sock.SetNoDelay(fd); err != nil {
		return err
	}
	if abort {
		if err := sock.SetAbort(fd); err != nil {
			return err
		}
	}
	return setCongestion(fd, t.traits.Congestion)
}

// setCongestion sets the congestion control of a socket; its error lists the choices. If this user may not set it, as
// in a pod without rights, the system's default applies: the observation names it, and the trial gets a warning.
func setCongestion(fd int, name string) error {
	if name == "" {
		return nil // the workload uses the system's default
	}
	err := sock.SetCongestion(fd, name)
	if err == nil || errors.Is(err, syscall.EPERM) {
		return nil
	}
	choices := "cannot read the choices of this kernel"
	if have, e := sock.Congestions(); e == nil {
		choices = "this kernel has " + strings.Join(have, ", ")
	}
	return &Error{Kind: unsupported.String(), Op: "congestion control " + name, Err: fmt.Errorf("%w; %s", err, choices)}
}

// startClient starts the client's threads. If the workload has standing connections, it first connects and greets the
// flows.
func (t *Trial) startClient(ctx context.Context) error {
	for i := range t.threads {
		fd := -1
		if t.work.standing {
			var err error
			if fd, err = t.dialFlow(ctx, i); err != nil {
				return err
			}
		}
		if err := t.startFlow(i, fd); err != nil {
			return err
		}
	}
	for _, w := range t.workers() {
		if f, ok := w.flow.(dialer); ok {
			// Its thread waits at the gate.
			if err := f.dialAll(ctx, w); err != nil {
				return err
			}
		}
	}
	return nil
}

// dialer is a flow with several connections, which it opens before the trial begins.
type dialer interface {
	dialAll(ctx context.Context, w *worker) error
}

// startFlow starts the thread of a flow. First it replaces the socket timeouts of the set-up by those of a timed
// workload, or removes them: the thread has its pulse, and a timeout costs a timer whenever the socket blocks.
func (t *Trial) startFlow(index, fd int) error {
	if t.work.standing {
		var timeout time.Duration
		if t.work.timed {
			timeout = t.callTimeout()
		}
		if err := sock.SetTimeouts(fd, timeout); err != nil {
			return err
		}
		if err := t.setReno(fd); err != nil {
			return err
		}
	}
	return t.spawnWorker(index, fd)
}

// opening is the congestion control with which a flow of a CUBIC stream begins. opened is CUBIC, which replaces it in
// the warm-up. On a path of microseconds, HyStart ends CUBIC's slow start at a random window, which then takes half a
// second to grow. While the window limits a flow, acknowledgements trigger its sends instead of the sender's system
// calls, which costs a sixth to a third less. Reno has no HyStart: its slow start ends at a loss, or where the window
// no longer limits the flow.
const opening, opened = "reno", "cubic"

// startsWithReno reports whether flows begin with Reno (the constant opening) and get CUBIC later.
func (t *Trial) startsWithReno() bool {
	return t.traits.Bulk() && t.socketType() == sock.Stream && t.traits.Congestion == opened
}

// setReno sets Reno (the constant opening) on a flow of a CUBIC stream. A socket without CUBIC, because this user may
// not choose it, stays as it is.
func (t *Trial) setReno(fd int) error {
	if !t.startsWithReno() {
		return nil
	}
	if now, err := sock.Congestion(fd); err != nil || now != opened {
		return err
	}
	return setCongestion(fd, opening)
}

// switchToCUBIC sets CUBIC on every flow that began with Reno. The congestion window stays as it is.
func (t *Trial) switchToCUBIC() error {
	if !t.startsWithReno() {
		return nil
	}
	for _, w := range t.workers() {
		if err := setCongestion(w.fd, opened); err != nil {
			return err
		}
	}
	return nil
}

func (t *Trial) targetAddr() sock.Addr {
	return sock.NewAddr(netip.AddrPortFrom(t.address, uint16(t.port)), sock.Family(t.address))
}

// dialFlow connects and greets one flow.
func (t *Trial) dialFlow(ctx context.Context, index int) (int, error) {
	fd, err := t.openSocket(sock.Family(t.address))
	if err != nil {
		return -1, err
	}
	t.ownDescriptor(fd)
	deadline := t.now() + int64(t.o.Setup)
	to := t.targetAddr()
	for {
		e := sock.ConnectPolite(fd, &to)
		if e == 0 || e == syscall.EISCONN {
			break
		}
		if e != syscall.EINPROGRESS && e != syscall.EALREADY && e != syscall.EINTR {
			return -1, asError("connect", e)
		}
		if err := t.checkDeadline(ctx, deadline); err != nil {
			return -1, err
		}
	}
	return fd, t.greetServer(ctx, fd, index, deadline)
}

// checkDeadline returns an error if setting up must end because ctx has ended or the deadline has passed.
func (t *Trial) checkDeadline(ctx context.Context, deadline int64) error {
	if err := ctx.Err(); err != nil {
		return &Error{Kind: KindCancelled, Op: "connect", Err: err}
	}
	if t.now() > deadline {
		return &Error{Kind: timedOut.String(), Op: "connect", Err: fmt.Errorf("no answer within %v", t.o.Setup)}
	}
	return nil
}

// greetServer sends the greeting and waits for the answer. It fails if the answer is wrong or late, or if ctx ends.
func (t *Trial) greetServer(ctx context.Context, fd, index int, deadline int64) error {
	hello, answer := newGreeting(index), make([]byte, greetingSize)
	send := true
	for {
		if send {
			if _, e := sock.Send(fd, hello, 0); e != 0 && e != syscall.EINTR {
				return asError("greet", e)
			}
		}
		n, e := sock.RecvPolite(fd, answer, sock.WaitAll)
		switch {
		case e == syscall.EAGAIN || e == syscall.EINTR:
			// Only a datagram can have been lost.
			send = t.socketType() == sock.Datagram
		case e != 0:
			return asError("greet", e)
		case n == 0:
			return &Error{Kind: gone.String(), Op: "greet", Err: errors.New("the server closed the flow")}
		case !slices.Equal(answer[:n], hello):
			return &Error{Kind: protocol.String(), Op: "greet", Err: errors.New("the program at this port is not a cnibench server")}
		default:
			return nil
		}
		if err := t.checkDeadline(ctx, deadline); err != nil {
			return err
		}
	}
}

// startServer starts the server's side: a task that accepts flows if the connections are standing, otherwise the threads
// with their listeners. For ping it does nothing.
func (t *Trial) startServer() error {
	if t.work.standing {
		fd, err := t.openListener(false)
		if err != nil {
			return err
		}
		accept := t.acceptFlows
		if t.socketType() == sock.Datagram {
			accept = t.acceptDatagramFlows
		}
		t.roster.tasks.Go(func() { accept(fd) })
		return nil
	}
	if t.traits.Kernel() {
		return nil // the kernel answers
	}
	fd := -1
	for i := range t.threads {
		if fd < 0 || !t.work.queues {
			var err error
			if fd, err = t.openListener(true); err != nil {
				return err
			}
		}
		if err := t.spawnWorker(i, fd); err != nil {
			return err
		}
	}
	return nil
}

// openListener opens a socket on the trial's address and port, and listens if it is TCP. If the trial's port is 0, the
// kernel chooses one, which openListener stores in t.port. share allows several sockets on the port.
func (t *Trial) openListener(share bool) (int, error) {
	address, family := t.address, sock.IPv6
	if address.IsValid() {
		family = sock.Family(address)
	} else {
		address = netip.IPv6Unspecified()
	}
	fd, err := t.openSocket(family)
	if err != nil && !t.address.IsValid() {
		// A kernel without IPv6: any address is any IPv4 address.
		address, family = netip.IPv4Unspecified(), sock.IPv4
		fd, err = t.openSocket(family)
	}
	if err != nil {
		return -1, err
	}
	t.ownDescriptor(fd)
	local := sock.NewAddr(netip.AddrPortFrom(address, uint16(t.port)), family)
	if err := bindSocket(fd, &local, share); err != nil {
		return -1, err
	}
	if t.socketType() == sock.Stream {
		if e := sock.Listen(fd, listenBacklog); e != 0 {
			return -1, asError("listen", e)
		}
	}
	if t.port == 0 {
		local, err = sock.Local(fd)
		t.port = int(local.AddrPort().Port())
	}
	return fd, err
}

// bindSocket binds fd to local. If local is the unspecified IPv6 address, the socket receives IPv4 as well. share allows
// several sockets on the port.
func bindSocket(fd int, local *sock.Addr, share bool) error {
	if local.AddrPort().Addr() == netip.IPv6Unspecified() {
		if err := sock.SetDual(fd); err != nil {
			return err
		}
	}
	if err := sock.SetReuse(fd, share); err != nil {
		return err
	}
	if e := sock.Bind(fd, local); e != 0 {
		return asError("bind", e)
	}
	return nil
}

// acceptFlows accepts the TCP flows of the client until all are there. A goroutine that continued to wait would keep
// the runtime's monitor thread awake during the window.
func (t *Trial) acceptFlows(listener int) {
	for !t.hasReached(stop) && !t.hasAllFlows() {
		fd, e := sock.AcceptPolite(listener)
		switch e {
		case 0:
			t.ownDescriptor(fd)
			t.roster.tasks.Go(func() { t.welcomeFlow(fd) })
		case syscall.EAGAIN, syscall.EINTR, syscall.ECONNABORTED:
		default:
			if !t.hasReached(stop) {
				t.keepFirstError(asError("accept", e))
			}
			return
		}
	}
}

// welcomeFlow reads the greeting of an accepted flow, starts its thread and answers. A connection without a greeting is not
// a flow.
func (t *Trial) welcomeFlow(fd int) {
	hello := make([]byte, greetingSize)
	deadline := t.now() + int64(t.o.Setup)
	if sock.RecvAll(fd, hello, func() bool { return t.hasReached(stop) || t.now() > deadline }) {
		t.adoptFlow(fd, hello, 1)
	}
}

// hasAllFlows reports whether every flow has its thread, or will have it.
func (t *Trial) hasAllFlows() bool {
	t.roster.mu.Lock()
	defer t.roster.mu.Unlock()
	return t.roster.joined >= t.threads
}

// adoptFlow starts the thread of a flow that has greeted, and sends the greeting back copies times. It ignores other
// messages and flows beyond the number of threads.
func (t *Trial) adoptFlow(fd int, hello []byte, copies int) {
	if !isGreeting(hello) {
		return
	}
	index := int(binary.BigEndian.Uint64(hello[8:]) % uint64(t.threads))
	r := &t.roster
	r.mu.Lock()
	full := r.joined >= t.threads
	if !full {
		r.joined++
	}
	r.mu.Unlock()
	if full {
		return
	}
	if err := t.startFlow(index, fd); err != nil {
		t.keepFirstError(err)
		return
	}
	for range copies {
		// If the answer is not sent, the client repeats its greeting or times out.
		_, _ = sock.Send(fd, hello, 0)
	}
}

// acceptDatagramFlows makes a connected socket for each client socket that sends a greeting, until every flow has its
// thread.
func (t *Trial) acceptDatagramFlows(listener int) {
	known := map[netip.AddrPort]bool{}
	hello := make([]byte, plan.MaxDatagram)
	for !t.hasReached(stop) && !t.hasAllFlows() {
		n, from, e := sock.RecvFromPolite(listener, hello)
		if e != 0 || !isGreeting(hello[:n]) || known[from.AddrPort()] || len(known) >= t.traits.Flows {
			continue
		}
		fd, err := t.openSocket(from.Family())
		if err == nil {
			t.ownDescriptor(fd)
			err = t.connectToClient(fd, listener, &from)
		}
		if err != nil {
			t.keepFirstError(err)
			continue
		}
		known[from.AddrPort()] = true
		t.adoptFlow(fd, hello[:n], answers)
	}
}

// connectToClient binds fd to the listener's address and connects it to the client: from then on the kernel delivers this
// client's datagrams to fd.
func (t *Trial) connectToClient(fd, listener int, client *sock.Addr) error {
	local, err := sock.Local(listener)
	if err != nil {
		return err
	}
	if err := bindSocket(fd, &local, false); err != nil {
		return err
	}
	if e := sock.ConnectPolite(fd, client); e != 0 {
		return asError("connect", e)
	}
	return nil
}
