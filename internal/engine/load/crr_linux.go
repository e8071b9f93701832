package load

import (
	"syscall"

	"github.com/cnibench/cnibench/internal/kernel/sock"
	"github.com/cnibench/cnibench/internal/kernel/thread"
	"github.com/cnibench/cnibench/internal/plan"
)

// Connect, request, response, close: five system calls per transaction at the client (socket, connect, send, recv,
// close) and four at the server (accept4, recv, send, close). The local port is the kernel's choice.
//
// A normal close by the client may leave the connection in TIME_WAIT for a minute, which uses up ports and conntrack
// entries. The usual remedy, SO_LINGER, is a sixth call. Instead the client only peeks at the response: closing a
// socket with unread data makes the kernel send a reset, which clears the connection at both ends at once. Peeking does
// not open the receive window, so one more call first consumes all but the end of a response above peekSize. With Close
// "fin" the client consumes the response and closes normally.
//
// The server's threads take connections from one listener, so that none waits behind one whose request was lost.
// Congestion control is set on the server's sockets, which inherit it from the listener; the client's have the system's
// default, as setting it would be another call.
//
// A connection has no socket timeouts, which would be more calls. The thread's pulse interrupts blocking calls, and the
// thread ends an exchange that takes longer than the trial's timeout.

// peekSize bounds the end of a response that the client only peeks at, in bytes.
const peekSize = 16 << 10

// crrWork returns how one side runs crr.
func crrWork(s plan.CRR, client bool) work {
	switch {
	case !client:
		return work{open: openAcceptor, queues: true}
	case s.Arrival != "":
		return work{open: openPacedConnector}
	}
	return work{open: openConnector}
}

// connector is the client of crr in a closed loop, on one thread.
type connector struct {
	messages
	to   sock.Addr
	peek bool
	// turn is the chain of calls: socket, connect, send, recv and close if whole is true, otherwise socket alone.
	turn  sock.Chain
	whole bool
}

func openConnector(w *worker) (flow, error) {
	w.hist.connect = w.newTimes()
	c := &connector{messages: w.newMessages(), to: w.trial.targetAddr(), peek: specOf[plan.CRR](w).Close != "fin"}
	kind, flags := sock.Stream, sock.WaitAll
	if w.spin {
		kind |= sock.NonBlocking
	}
	if c.peek {
		flags |= sock.Peek
	}
	c.turn.Socket(c.to.Family(), kind)
	// The times of a whole chain are counts of the CPU's counter.
	if c.whole = !w.spin && w.trial.clock.Counts() && (!c.peek || len(c.response) <= peekSize); c.whole {
		c.turn.Connect(sock.Made, &c.to)
		c.turn.Send(sock.Made, c.request)
		c.turn.Recv(sock.Made, c.response, flags)
		c.turn.Close(sock.Made)
	}
	return c, nil
}

func (c *connector) step(w *worker) bool {
	w.last = w.trial.now()
	done := c.turn.Run()
	fd, e := c.turn.Result(0)
	if e != 0 {
		w.countFailure(kindOfErrno(e))
		w.pause()
		return true
	}
	var began, connected, ended int64
	if c.whole {
		began = c.callEndTime(w, 0)
	} else {
		began = w.trial.now()
	}
	if done >= 4 {
		connected, ended = c.callEndTime(w, 1), c.callEndTime(w, 3)
	} else {
		connected, ended, e = c.completeTransaction(w, fd, done)
		sock.Close(fd)
	}
	switch {
	case e == syscall.ECANCELED:
		// Cut short because the trial is over.
	case e != 0:
		w.countFailure(kindOfErrno(e))
		w.pause()
	default:
		w.recordTime(w.hist.connect, connected-began)
		w.countOperation(ended)
	}
	return true
}

// callEndTime returns the time at which call i of a whole chain ended.
func (c *connector) callEndTime(w *worker, i int) int64 { return w.trial.clock.At(c.turn.Ticks(i)) }

// completeTransaction performs the rest of a transaction after the chain has made done calls, including socket. It
// returns the times at which the connect ended and the response was complete.
func (c *connector) completeTransaction(w *worker, fd, done int) (connected, ended int64, e syscall.Errno) {
	request, response := c.request, c.response
	if c.whole {
		n, e := c.turn.Result(done)
		if e = w.exchangeErrno(e); e != 0 {
			return 0, 0, e
		}
		switch n = max(n, 0); {
		case done == 2:
			request = request[n:]
		case done == 3 && c.peek: // nothing was taken
			request = nil
		case done == 3:
			request, response = nil, response[n:]
		}
	}
	if done >= 2 {
		connected = c.callEndTime(w, 1)
	} else {
		for e = sock.Connect(fd, &c.to); e != 0 && e != syscall.EISCONN; e = sock.Connect(fd, &c.to) {
			if e = w.exchangeErrno(e); e != 0 {
				return 0, 0, e
			}
		}
		connected = w.trial.now()
	}
	if e := w.sendWithTimeout(fd, request); e != 0 {
		return 0, 0, e
	}
	ended, e = c.receiveResponse(w, fd, response)
	return connected, ended, e
}

// sendWithTimeout sends all of b within an exchange. It returns 0, or the error that exchangeErrno returns for a failed call.
func (w *worker) sendWithTimeout(fd int, b []byte) syscall.Errno {
	for len(b) > 0 {
		n, e := sock.Send(fd, b, 0)
		if e = w.exchangeErrno(e); e != 0 {
			return e
		}
		b = b[max(n, 0):]
	}
	return 0
}

// exchangeErrno returns 0 if a call of an exchange succeeded, or was interrupted and should be repeated. Otherwise it
// returns the error of the call, ETIMEDOUT, or ECANCELED if the trial is over. w.last is the time at which the exchange
// began. If it is 0, exchangeErrno sets it to now: a server does not read the clock before its first interruption.
func (w *worker) exchangeErrno(e syscall.Errno) syscall.Errno {
	switch {
	case e == 0:
		return 0
	case w.spin && (e == syscall.EINPROGRESS || e == syscall.EALREADY || e == syscall.EAGAIN):
		thread.Yield()
	case e != syscall.EINTR && e != syscall.EALREADY:
		return e
	}
	if w.last == 0 {
		w.last = w.trial.now()
	}
	switch {
	case w.trial.now()-w.last > int64(w.trial.o.Timeout):
		return syscall.ETIMEDOUT
	case w.trial.hasReached(w.leaveAt):
		return syscall.ECANCELED
	}
	return 0
}

// receiveResponse receives the rest of the response. If closing must reset the connection, it only peeks at the end. It
// returns the time at which the response was complete.
func (c *connector) receiveResponse(w *worker, fd int, rest []byte) (ended int64, e syscall.Errno) {
	for {
		flags, part := sock.WaitAll, rest
		if c.peek && len(rest) > peekSize {
			part = rest[:len(rest)-peekSize]
		} else if c.peek {
			flags |= sock.Peek
		}
		n, e := w.recv(fd, part, flags)
		switch {
		case e != 0:
			if e = w.exchangeErrno(e); e != 0 {
				return 0, e
			}
		case n == len(rest):
			return w.trial.now(), 0
		case n == 0:
			return 0, syscall.EPIPE
		case flags&sock.Peek == 0:
			rest = rest[n:]
		default:
			// The pulse, or the end of the connection, cut the peek short. A real receive shows which.
			if n, e = sock.Recv(fd, part[:n], 0); e == 0 {
				rest = rest[n:]
			}
		}
	}
}

// acceptor is the server of crr and ttfr, on one thread.
type acceptor struct {
	messages
	turn sock.Chain // accept, recv, send, close
}

func openAcceptor(w *worker) (flow, error) {
	if w.spin {
		if err := sock.SetNonBlocking(w.fd); err != nil {
			return nil, err
		}
	}
	a := &acceptor{messages: w.newMessages()}
	a.turn.Accept(w.fd)
	if !w.spin {
		a.turn.Recv(sock.Made, a.request, sock.WaitAll)
		a.turn.Send(sock.Made, a.response)
		a.turn.Close(sock.Made)
	}
	return a, nil
}

func (a *acceptor) step(w *worker) bool {
	done := a.turn.Run()
	if done >= 3 {
		w.count.operations.Add(1)
		return true
	}
	fd, e := a.turn.Result(0)
	switch {
	case isRetryable(e):
		if w.spin {
			thread.Yield()
		}
		return true
	case e != 0:
		if w.trial.hasReached(stop) {
			return false // Close has shut the listener down
		}
		w.countFailure(kindOfErrno(e))
		w.pause()
		return true
	}
	e = a.completeExchange(w, fd, done)
	sock.Close(fd)
	switch {
	case e == 0:
		w.count.operations.Add(1)
	case w.trial.hasReached(after) || kindOfErrno(e) == reset && w.trial.clientMayHaveLeft():
		// The client has left and reset the connections that were under way.
	default:
		w.countFailure(kindOfErrno(e))
	}
	return true
}

// completeExchange performs the rest of an exchange after the chain has made done calls, including accept. It returns
// 0, or the error that ended the exchange.
func (a *acceptor) completeExchange(w *worker, fd, done int) syscall.Errno {
	w.last = 0
	request, response := a.request, a.response
	if !w.spin {
		n, e := a.turn.Result(done)
		if e = w.exchangeErrno(e); e != 0 {
			return e
		}
		if n = max(n, 0); done == 2 {
			request, response = nil, response[n:]
		} else {
			request = request[n:]
		}
	}
	for len(request) > 0 {
		n, e := w.recv(fd, request, sock.WaitAll)
		switch {
		case e != 0:
			if e = w.exchangeErrno(e); e != 0 {
				return e
			}
		case n == 0:
			return syscall.ECONNRESET
		default:
			request = request[n:]
		}
	}
	return w.sendWithTimeout(fd, response)
}
