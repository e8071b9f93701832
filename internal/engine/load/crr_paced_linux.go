package load

import (
	"syscall"

	"github.com/cnibench/cnibench/internal/kernel/sock"
	"github.com/cnibench/cnibench/internal/plan"
)

// pacedConnector is the client of crr with a schedule, on one thread: it has many connections at the same time,
// watched by an epoll instance. That takes one or two more system calls for a transaction. Connections end as in
// crr_linux.go.
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
	connected  int64 // when the connect ended, 0 before
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
	m := w.messages()
	c := &pacedConnector{
		poll: poll, to: w.trial.target(), message: m.request, size: len(m.response), peek: specOf[plan.CRR](w).Close != "fin",
		buffer: make([]byte, responsesAtOnce), calls: make([]call, n), free: make([]uint32, n), looked: longAgo,
	}
	for i := range c.calls {
		c.calls[i].fd, c.free[i] = -1, uint32(n-1-i)
	}
	c.pace.open(w)
	w.hist.connect = w.newTimes()
	return c, nil
}

func (c *pacedConnector) underWay() int { return len(c.calls) - len(c.free) }

func (c *pacedConnector) step(w *worker) bool {
	c.send(w)
	if c.underWay() > 0 {
		c.expire(w) // also if reports never end
		n, e := c.poll.Wait(0)
		if e != 0 && e != syscall.EINTR {
			return w.die(classify(e))
		}
		for i := range n {
			_, tag := c.poll.Report(i)
			c.proceed(w, tag)
		}
		if n > 0 {
			return true
		}
	}
	c.awaitWork(w, c.poll.Descriptor(), sock.Input, c.underWay())
	return true
}

// send begins the calls that are due.
func (c *pacedConnector) send(w *worker) {
	for range sendsAtOnce {
		tag, due, _, ok := c.place(w, &c.free, c.underWay())
		if !ok {
			return
		}
		c.calls[tag] = call{fd: -1, unsent: c.message, due: due}
		c.connect(w, tag)
	}
}

// connect begins a call. Over a short path the connect ends at once, and the request follows without a wait.
func (c *pacedConnector) connect(w *worker, tag uint32) {
	fd, e := sock.Socket(c.to.Family(), sock.Stream|sock.NonBlocking, 0)
	if e != 0 {
		c.lose(w, tag, e)
		return
	}
	l := &c.calls[tag]
	l.fd, l.began = fd, w.trial.now()
	if e := sock.Connect(fd, &c.to); e != 0 && e != syscall.EINPROGRESS {
		c.lose(w, tag, e)
		return
	}
	c.proceed(w, tag)
	if l.fd < 0 {
		return // it has ended
	}
	if e := c.poll.Add(fd, arrivals|sock.Writable, tag); e != 0 {
		c.lose(w, tag, e)
	}
}

// proceed sends and receives what a call can without blocking.
func (c *pacedConnector) proceed(w *worker, tag uint32) {
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
			c.lose(w, tag, e)
			return
		}
		if l.connected == 0 {
			l.connected = now // a socket that is ready to send is connected
		}
		l.unsent = l.unsent[n:]
	}
	switch e := c.receive(l); e {
	case 0:
		w.record(w.hist.connect, l.connected-l.began)
		w.complete(l.due, w.trial.now())
		c.end(tag)
	case syscall.EAGAIN:
	default:
		c.lose(w, tag, e)
	}
}

// receive takes the bytes that have arrived. It returns 0 when the response is complete, EAGAIN before.
func (c *pacedConnector) receive(l *call) syscall.Errno {
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

// end frees the place of a call.
func (c *pacedConnector) end(tag uint32) {
	l := &c.calls[tag]
	if l.fd >= 0 {
		sock.Close(l.fd)
		l.fd = -1
	}
	c.free = append(c.free, tag) // has room for all
}

// lose counts the failure of a call and ends it.
func (c *pacedConnector) lose(w *worker, tag uint32, e syscall.Errno) {
	w.fail(classify(e))
	c.end(tag)
	if c.lag == nil {
		w.pause() // a closed loop would begin the next call at once
	}
}

// expire ends the calls that are older than the trial's timeout. It looks at most once a tick.
func (c *pacedConnector) expire(w *worker) {
	now := w.trial.now()
	if now-c.looked < int64(tick) {
		return
	}
	c.looked = now
	for tag := range c.calls {
		if l := &c.calls[tag]; l.fd >= 0 && now-l.began > int64(w.trial.o.Timeout) {
			c.lose(w, uint32(tag), syscall.ETIMEDOUT)
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
