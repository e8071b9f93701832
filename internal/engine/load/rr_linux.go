package load

import (
	"encoding/binary"
	"syscall"

	"github.com/cnibench/cnibench/internal/kernel/sock"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
)

// Request-response over TCP: two system calls per transaction at each side, and one reading of the clock at the client,
// because a transaction begins when the one before has ended. A reply that is late by more than the timeout counts as a
// timeout once and is waited for: TCP will deliver it.

// rrWork returns how rr plays one side.
func rrWork(s plan.RR, client bool) work {
	w := work{open: openResponder, standing: true}
	if s.Under != "" {
		w.beside = openBeside
	}
	udp := s.Protocol == plan.UDP
	if udp {
		w.open, w.timeout = openDatagramResponder, defaultUDPReply
	}
	switch scheduled := s.Arrival != "" || s.Burst > 1; {
	case !client:
	case udp && scheduled:
		w.open = openPacedDatagramRequester
	case udp:
		w.open, w.timed = openDatagramRequester, true
	case scheduled:
		w.open = openPacedRequester
	default:
		w.open = openRequester
	}
	return w
}

// requester is the client.
type requester struct{ request, response []byte }

func openRequester(w *worker) error {
	o := &w.trial.traits
	w.flow = &requester{request: filled(o.Request), response: make([]byte, o.Response)}
	w.each = size{sent: uint64(o.Request), received: uint64(o.Response)}
	w.hist.rtt = sample.NewHistogram()
	return nil
}

func (r *requester) step(w *worker) bool {
	if !w.sendAll(w.fd, r.request) || !w.recvAll(w.fd, r.response, w.last) {
		return false
	}
	w.done(w.trial.now())
	return true
}

// responder is the server.
type responder struct{ request, response []byte }

func openResponder(w *worker) error {
	o := &w.trial.traits
	w.flow = &responder{request: make([]byte, o.Request), response: filled(o.Response)}
	w.each = size{sent: uint64(o.Response), received: uint64(o.Request)}
	return nil
}

func (r *responder) step(w *worker) bool {
	n, e := w.recv(w.fd, r.request, sock.WaitAll)
	switch {
	case e != 0:
		return w.broken(e) // idle, or lost
	case n == 0:
		return w.die(gone)
	case n < len(r.request) && !w.recvAll(w.fd, r.request[n:], 0):
		return false
	}
	if !w.sendAll(w.fd, r.response) {
		return false
	}
	w.count.operations.Add(1)
	return true
}

// Request-response over UDP: the first 8 bytes of a request are a sequence number, which the response repeats. A reply
// that has not come within the timeout is counted and given up, and the next request goes out; should the reply still
// come, its number gives it away.

// datagramRequester is the client.
type datagramRequester struct {
	request, response []byte
	sequence          uint64
}

func openDatagramRequester(w *worker) error {
	o := &w.trial.traits
	w.flow = &datagramRequester{request: filled(o.Request), response: make([]byte, max(o.Response, greetingSize))}
	w.each = size{sent: uint64(o.Request), received: uint64(o.Response)}
	w.hist.rtt = sample.NewHistogram()
	return nil
}

func (r *datagramRequester) step(w *worker) bool {
	r.sequence++
	binary.BigEndian.PutUint64(r.request, r.sequence)
	if _, e := sock.Send(w.fd, r.request, 0); e != 0 {
		again := w.missed(e)
		w.last = w.trial.now()
		return again
	}
	for {
		n, e := w.recv(w.fd, r.response, 0)
		now := w.trial.now()
		switch {
		case e == 0 && n >= 8 && binary.BigEndian.Uint64(r.response) == r.sequence:
			w.done(now)
			return true
		case e != 0 && e != syscall.EAGAIN && e != syscall.EINTR:
			again := w.missed(e)
			w.last = w.trial.now()
			return again
		case now-w.last >= int64(w.trial.o.Timeout)-int64(w.trial.o.Timeout)/20:
			// The tolerance keeps a wake-up that is a little early from doubling the wait.
			w.fail(timedOut)
			w.last = now
			return true
		case w.trial.stopping(w.leaveAt):
			return false
		}
	}
}

// datagramResponder is the server.
type datagramResponder struct{ request, response []byte }

func openDatagramResponder(w *worker) error {
	o := &w.trial.traits
	w.flow = &datagramResponder{request: make([]byte, max(o.Request, greetingSize)), response: filled(o.Response)}
	w.each = size{sent: uint64(o.Response), received: uint64(o.Request)}
	return nil
}

func (r *datagramResponder) step(w *worker) bool {
	n, e := w.recv(w.fd, r.request, 0)
	if e == syscall.ECONNREFUSED {
		return true // the client's socket has closed; its trial is over, or the next greeting comes elsewhere
	}
	if e != 0 {
		return w.missed(e)
	}
	if n < 8 || isGreeting(r.request[:n]) {
		return true
	}
	copy(r.response, r.request[:8])
	if _, e := sock.Send(w.fd, r.response, 0); e != 0 {
		return e == syscall.ECONNREFUSED || w.missed(e)
	}
	w.count.operations.Add(1)
	return true
}
