package load

import (
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cnibench/cnibench/internal/kernel/sock"
	"github.com/cnibench/cnibench/internal/sample"
)

// Connect, request, response, close: five system calls per transaction at the client (socket, connect, send, recv,
// close) and four at the server (accept4, recv, send, close). The local port is the kernel's choice.
//
// A connection that the client closes in the ordinary way may stay in TIME_WAIT for a minute and use up ports and
// conntrack entries. The usual remedy, SO_LINGER, is a sixth call. Instead the client only peeks at the response:
// closing a socket with unread data makes the kernel send a reset, which clears the connection at both ends at once.
// Peeking does not open the receive window, so of a response above peekSize all but the end is consumed first, by one
// more call. With Close "fin" the response is consumed and the connection closed normally.
//
// The server's listeners share one port (SO_REUSEPORT), one for each thread. Congestion control is set on the server's
// sockets, which inherit it from the listener; the client's have the system's default, as setting it would be another
// call.
//
// The client's connections have no timeouts, so its calls tell the scheduler that they may block (package sock calls
// them polite, about 50 ns each): a raw call that never returned would keep the runtime from ever stopping the world,
// and the watchdog from running.
const peekSize = 16 << 10

// connector is the client.
type connector struct {
	to                sock.Addr
	request, response []byte
	peek              bool
}

func openConnector(w *worker) error {
	o := w.trial.o.Workload
	w.flow = &connector{
		to: w.trial.target(), request: filled(o.RequestSize), response: make([]byte, o.ResponseSize), peek: o.Close != "fin",
	}
	w.each = size{sent: uint64(o.RequestSize), received: uint64(o.ResponseSize)}
	w.hist.rtt, w.hist.connect = sample.NewHistogram(), sample.NewHistogram()
	return nil
}

func (c *connector) step(w *worker) bool {
	w.last = w.trial.now()
	fd, e := sock.Socket(c.to.Family(), syscall.SOCK_STREAM, 0)
	if e != 0 {
		w.fail(classify(e))
		w.rest()
		return true
	}
	w.guard.arm(fd, w.last)
	connected, ended, e := c.exchange(w, fd)
	late := w.guard.disarm()
	sock.Close(fd)
	switch {
	case late && w.trial.stopping(drain):
		// Cut short because the trial is over.
	case late:
		w.fail(timedOut)
	case e != 0:
		w.fail(classify(e))
		w.rest()
	default:
		if w.phase == window {
			w.hist.connect.Record(connected - w.last)
		}
		w.done(ended)
	}
	return true
}

// exchange connects and makes one transaction; it returns when the connection stood and when the response was there.
func (c *connector) exchange(w *worker, fd int) (connected, ended int64, e syscall.Errno) {
	for e = syscall.EINTR; e == syscall.EINTR || e == syscall.EALREADY; {
		e = sock.ConnectPolite(fd, &c.to)
	}
	if e != 0 && e != syscall.EISCONN {
		return 0, 0, e
	}
	connected = w.trial.now()
	for rest := c.request; len(rest) > 0; {
		n, e := sock.SendPolite(fd, rest, 0)
		if e != 0 && e != syscall.EINTR {
			return 0, 0, e
		}
		if e == 0 {
			rest = rest[n:]
		}
	}
	if e := c.receive(fd); e != 0 {
		return 0, 0, e
	}
	return connected, w.trial.now(), 0
}

func (c *connector) receive(fd int) syscall.Errno {
	rest, flags := c.response, sock.WaitAll
	for {
		part := rest
		if c.peek && len(rest) > peekSize {
			part = rest[:len(rest)-peekSize]
		} else if c.peek {
			flags |= sock.Peek
		}
		n, e := sock.RecvPolite(fd, part, flags)
		switch {
		case e == syscall.EINTR:
		case e != 0:
			return e
		case n == len(rest):
			return 0
		case n == 0:
			return syscall.EPIPE
		case flags&sock.Peek == 0:
			rest = rest[n:]
		case n < len(rest):
			// A signal or the end of the connection cut the peek short; looking again tells which: at the end, the same
			// bytes come at once.
			if m, e := sock.RecvPolite(fd, part, flags); e == 0 && m == n {
				return syscall.EPIPE
			}
		}
	}
}

// acceptor is the server.
type acceptor struct{ request, response []byte }

func openAcceptor(w *worker) error {
	o := w.trial.o.Workload
	w.flow = &acceptor{request: make([]byte, o.RequestSize), response: filled(o.ResponseSize)}
	w.each = size{sent: uint64(o.ResponseSize), received: uint64(o.RequestSize)}
	return nil
}

func (a *acceptor) step(w *worker) bool {
	fd, e := sock.Accept(w.fd)
	switch {
	case e == syscall.EAGAIN || e == syscall.EINTR:
		return true
	case e != 0:
		if w.trial.stopping(stop) {
			return false // Close has shut the listener down
		}
		w.fail(classify(e))
		w.rest()
		return true
	}
	e = a.serve(w, fd)
	sock.Close(fd)
	switch {
	case e == 0:
		w.count.operations.Add(1)
	case !w.trial.stopping(after):
		w.fail(classify(e))
	}
	return true
}

// serve answers one request. The timeouts of the connection are the listener's.
func (a *acceptor) serve(w *worker, fd int) syscall.Errno {
	var since int64
	for rest := a.request; len(rest) > 0; {
		n, e := sock.Recv(fd, rest, sock.WaitAll)
		switch {
		case e == syscall.EAGAIN || e == syscall.EINTR:
			if since == 0 {
				since = w.trial.now()
			}
			if w.trial.stopping(stop) || w.trial.now()-since > int64(w.trial.o.Timeout) {
				return syscall.ETIMEDOUT
			}
		case e != 0:
			return e
		case n == 0:
			return syscall.ECONNRESET
		default:
			rest = rest[n:]
		}
	}
	for rest := a.response; len(rest) > 0; {
		n, e := sock.Send(fd, rest, 0)
		if e != 0 && (e != syscall.EAGAIN && e != syscall.EINTR || w.trial.stopping(stop)) {
			return e
		}
		if e == 0 {
			rest = rest[n:]
		}
	}
	return 0
}

// guard lets the watchdog shut down the connection that a thread is busy with, and no other: descriptor numbers are
// used again at once. Its word is 0 while no connection is open, and otherwise the descriptor and the flags.
type guard struct {
	word  atomic.Uint64
	since atomic.Int64
}

const (
	armed     = 1 << iota // a connection is open
	held                  // the watchdog is at it, the thread must wait
	shot                  // it has been shut down
	guardBits = iota
)

func (g *guard) arm(fd int, now int64) {
	g.since.Store(now)
	g.word.Store(uint64(fd)<<guardBits | armed)
}

// disarm says whether the connection was shut down.
func (g *guard) disarm() bool {
	for {
		word := g.word.Load()
		if word&held == 0 && g.word.CompareAndSwap(word, 0) {
			return word&shot != 0
		}
		// Held lasts for one system call of the watchdog, unless the runtime wants to stop the world in between.
		runtime.Gosched()
	}
}

// strike shuts the connection down if it has been open since before deadline.
func (g *guard) strike(deadline int64) {
	word := g.word.Load()
	if word&armed == 0 || word&held != 0 || !g.word.CompareAndSwap(word, word|held) {
		return
	}
	// Only now does the word stand still, so only now does since belong to it.
	if g.since.Load() < deadline {
		sock.Shutdown(int(word >> guardBits))
		word |= shot
	}
	g.word.Store(word)
}

// watch is the watchdog. A connect that has not begun when it strikes fails to be shut down; the next strike gets it.
func (t *Trial) watch() {
	every := min(max(t.o.Timeout/8, time.Millisecond), tick)
	timer := time.NewTicker(every)
	defer timer.Stop()
	for {
		select {
		case <-t.signals.gone:
			return
		case <-timer.C:
		}
		deadline := t.now() - int64(t.o.Timeout)
		if t.stopping(drain) {
			deadline = t.now() - int64(min(t.o.Timeout, tick))
		}
		t.roster.mu.Lock()
		for _, w := range t.roster.workers {
			w.guard.strike(deadline)
		}
		t.roster.mu.Unlock()
	}
}
