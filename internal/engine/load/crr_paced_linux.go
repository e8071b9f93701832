package load

import (
	"syscall"

	"github.com/cnibench/cnibench/internal/kernel/sock"
	"github.com/cnibench/cnibench/internal/plan"
)

// pacedConnector is the client of crr with a schedule, on one thread. It has many connections at the same time, and
// watches them with an epoll instance, which takes one or two more system calls for each transaction. Connections end
// as in crr_linux.go.
type pacedConnector struct {
	pace
	poll    *sock.Poll
	to      sock.Addr
	message []byte
	buffer  []byte
	size    int // of a response
	peek    bool
	calls   []call
	free    []uint32 // calls that are not under way
	looked  int64    // when the calls were last looked through
}

// call is one transaction with its connection, or a free place for one.
type call struct {
	fd         int    // -1 if none is under way
	unsent     []byte // of the request
	got        int    // of the response
	due, began int64
	connected  int64 // when the connect ended, 0 until then
}

// callsLeast and callsMost bound the simultaneous connections of a thread.
const callsLeast, callsMost = plan.SaturationDepth, 1024

func openPacedConnector(w *worker) (flow, error) {
	limit, err := sock.Descriptors()
	if err != nil {
		return nil, err
	}
	poll, err := sock.OpenPoll(pollBatch)
	if err != nil {
		return nil, err
	}
	n := max(callsLeast, min(callsMost, int(min(limit, 1<<20)-spareSockets)/w.trial.traits.Flows))
	m := w.newMessages()
	c := &pacedConnector{
		poll: poll, to: w.trial.targetAddr(), message: m.request, size: len(m.response), peek: specOf[plan.CRR](w).Close != "fin",
		buffer: make([]byte, responsesAtOnce), calls: make([]call, n), free: make([]uint32, n), looked: longAgo,
	}
	for i := range c.calls {
		c.calls[i].fd, c.free[i] = -1, uint32(n-1-i)
	}
	c.pace.initSchedule(w)
	w.hist.connect = w.newTimes()
	return c, nil
}

func (c *pacedConnector) underWayCount() int { return len(c.calls) - len(c.free) }

func (c *pacedConnector) step(w *worker) bool {
	c.beginDueCalls(w)
	if c.underWayCount() > 0 {
		c.expireCalls(w) // also if reports never end
		n, e := c.poll.Wait(0)
		if e != 0 && e != syscall.EINTR {
			return w.loseFlow(kindOfErrno(e))
		}
		for i := range n {
			_, tag := c.poll.Report(i)
			c.advanceCall(w, tag)
		}
		if n > 0 {
			return true
		}
	}
	c.awaitWork(w, c.poll.Descriptor(), sock.Input, c.underWayCount())
	return true
}

// beginDueCalls begins the calls that are due.
func (c *pacedConnector) beginDueCalls(w *worker) {
	for range sendsAtOnce {
		tag, due, _, ok := c.takePlace(w, &c.free, c.underWayCount())
		if !ok {
			return
		}
		c.calls[tag] = call{fd: -1, unsent: c.message, due: due}
		c.beginCall(w, tag)
	}
}

// beginCall opens the socket of a call and connects it. Over a short path the connect ends at once, and the request
// follows without a wait.
func (c *pacedConnector) beginCall(w *worker, tag uint32) {
	fd, e := sock.Socket(c.to.Family(), sock.Stream|sock.NonBlocking, 0)
	if e != 0 {
		c.failCall(w, tag, e)
		return
	}
	l := &c.calls[tag]
	l.fd, l.began = fd, w.trial.now()
	if e := sock.Connect(fd, &c.to); e != 0 && e != syscall.EINPROGRESS {
		c.failCall(w, tag, e)
		return
	}
	c.advanceCall(w, tag)
	if l.fd < 0 {
		return // it has ended
	}
	if e := c.poll.Add(fd, arrivals|sock.Writable, tag); e != 0 {
		c.failCall(w, tag, e)
	}
}

// advanceCall sends and receives as much of a call as is possible without blocking.
func (c *pacedConnector) advanceCall(w *worker, tag uint32) {
	l := &c.calls[tag]
	if l.fd < 0 {
		return // the call ended while earlier reports were read
	}
	for len(l.unsent) > 0 {
		now := w.trial.now()
		n, e := sock.Send(l.fd, l.unsent, 0)
		switch {
		case e == syscall.EAGAIN:
			return // of the connect, or of a send queue that is full
		case e == syscall.EINTR:
			continue
		case e != 0:
			c.failCall(w, tag, e)
			return
		}
		if l.connected == 0 {
			l.connected = now // a socket that is ready to send is connected
		}
		l.unsent = l.unsent[n:]
	}
	switch e := c.receiveResponse(l); e {
	case 0:
		w.recordTime(w.hist.connect, l.connected-l.began)
		w.countResponse(l.due, w.trial.now())
		c.endCall(tag)
	case syscall.EAGAIN:
	default:
		c.failCall(w, tag, e)
	}
}

// receiveResponse receives the bytes that have arrived. It returns 0 when the response is complete, EAGAIN when more
// must arrive, and otherwise the error of the connection.
func (c *pacedConnector) receiveResponse(l *call) syscall.Errno {
	for {
		left, flags := c.size-l.got, 0
		part := c.buffer[:min(left, len(c.buffer))]
		if c.peek && len(part) == left {
			flags = sock.Peek // the end stays unread, so that closing resets
		}
		n, e := sock.Recv(l.fd, part, flags)
		switch {
		case e == syscall.EINTR:
			continue
		case e != 0:
			return e
		case n == 0:
			return syscall.EPIPE
		case n == left:
			return 0
		}
		if flags != 0 {
			// It was not the end: receive the bytes that the peek left.
			if n, e = sock.Recv(l.fd, part[:n], 0); e != 0 {
				return e
			}
		}
		l.got += n
	}
}

// endCall closes the connection of a call and frees its place.
func (c *pacedConnector) endCall(tag uint32) {
	l := &c.calls[tag]
	if l.fd >= 0 {
		sock.Close(l.fd)
		l.fd = -1
	}
	c.free = append(c.free, tag) // has room for all
}

// failCall counts the failure of a call and ends it.
func (c *pacedConnector) failCall(w *worker, tag uint32, e syscall.Errno) {
	w.countFailure(kindOfErrno(e))
	c.endCall(tag)
	if c.lag == nil {
		w.pause() // a closed loop would begin the next call at once
	}
}

// expireCalls ends the calls that are older than the trial's timeout. It looks at most once a tick.
func (c *pacedConnector) expireCalls(w *worker) {
	now := w.trial.now()
	if now-c.looked < int64(tick) {
		return
	}
	c.looked = now
	for tag := range c.calls {
		if l := &c.calls[tag]; l.fd >= 0 && now-l.began > int64(w.trial.o.Timeout) {
			c.failCall(w, uint32(tag), syscall.ETIMEDOUT)
		}
	}
}

func (c *pacedConnector) close() {
	for tag := range c.calls {
		if fd := c.calls[tag].fd; fd >= 0 {
			sock.Close(fd)
		}
	}
	c.poll.Close()
}
