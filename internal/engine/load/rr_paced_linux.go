package load

import (
	"encoding/binary"
	"syscall"

	"github.com/cnibench/cnibench/internal/kernel/sock"
	"github.com/cnibench/cnibench/internal/measure/sample"
)

// pacedRequester is the client of rr over TCP that sends by a schedule. Responses come in the order of the requests.
type pacedRequester struct {
	pace
	flight
	message  []byte
	unsent   []byte // what is left of the request that is going out
	buffer   []byte
	size     int // of a response
	partial  int // bytes of the next response that have come
	impolite bool
}

// responsesAtOnce is the room for responses that one call may take.
const responsesAtOnce = 64 << 10

func openPacedRequester(w *worker) error {
	o := &w.trial.traits
	r := &pacedRequester{
		flight: newFlight(w.trial.flightSize()), message: filled(o.Request), size: o.Response,
		buffer: make([]byte, max(o.Response, responsesAtOnce)),
	}
	r.pace.open(w)
	w.each = size{sent: uint64(o.Request), received: uint64(o.Response)}
	w.hist.rtt = sample.NewHistogram()
	w.flow = r
	return nil
}

func (r *pacedRequester) step(w *worker) bool {
	if !r.send(w) || !r.receive(w) {
		return false
	}
	what := int16(sock.Input)
	if len(r.unsent) > 0 {
		what |= sock.Output
	}
	r.rest(w, w.fd, what, r.count)
	return true
}

// send sends what is due.
func (r *pacedRequester) send(w *worker) bool {
	for range sendsAtOnce {
		if len(r.unsent) == 0 {
			now := w.trial.now()
			due, ok := r.due(now, r.count)
			if !ok {
				return true
			}
			if r.full() {
				r.stalled = true
				return true
			}
			r.take(w, due, now)
			r.push(due, now)
			r.unsent = r.message
		}
		n, e := sock.Send(w.fd, r.unsent, sock.DontWait)
		switch {
		case e == syscall.EAGAIN:
			r.stalled = true
			return true
		case e != 0 && !later(e):
			return w.broken(e)
		case e == 0:
			r.unsent = r.unsent[n:]
		}
	}
	return true
}

// receive takes the responses that have come.
func (r *pacedRequester) receive(w *worker) bool {
	for range receivesAtOnce {
		n, e := sock.Recv(w.fd, r.buffer, sock.DontWait)
		switch {
		case later(e):
			r.complain(w)
			return true
		case e != 0:
			return w.broken(e)
		case n == 0:
			return w.die(gone)
		}
		now := w.trial.now()
		for r.partial += n; r.partial >= r.size; r.partial -= r.size {
			due, ok := r.answer(r.head)
			if !ok {
				return w.die(protocol) // more responses than requests
			}
			w.complete(due, now)
			r.impolite = false
		}
		if n < len(r.buffer) {
			return true
		}
	}
	return true
}

// complain counts a timeout when the oldest request has waited longer than that, once: TCP will deliver the response.
func (r *pacedRequester) complain(w *worker) {
	if sent, ok := r.oldest(); ok && !r.impolite && w.trial.now()-sent > int64(w.trial.o.Timeout) {
		r.impolite = true
		w.fail(timedOut)
	}
}

// pacedDatagramRequester is the client of rr over UDP that sends by a schedule. A response repeats the number of its
// request; a request without one is given up after the timeout.
type pacedDatagramRequester struct {
	pace
	flight
	message, buffer []byte
}

func openPacedDatagramRequester(w *worker) error {
	o := &w.trial.traits
	r := &pacedDatagramRequester{
		flight: newFlight(w.trial.flightSize()), message: filled(o.Request),
		buffer: make([]byte, max(o.Response, greetingSize)),
	}
	r.pace.open(w)
	w.each = size{sent: uint64(o.Request), received: uint64(o.Response)}
	w.hist.rtt = sample.NewHistogram()
	w.flow = r
	return nil
}

func (r *pacedDatagramRequester) step(w *worker) bool {
	if !r.send(w) || !r.receive(w) {
		return false
	}
	what := int16(sock.Input)
	if r.stalled && !r.full() {
		what |= sock.Output
	}
	r.rest(w, w.fd, what, r.count)
	return true
}

// send sends what is due.
func (r *pacedDatagramRequester) send(w *worker) bool {
	for range sendsAtOnce {
		now := w.trial.now()
		due, ok := r.due(now, r.count)
		if !ok {
			return true
		}
		if r.full() {
			r.stalled = true
			return true
		}
		binary.BigEndian.PutUint64(r.message, r.next)
		_, e := sock.Send(w.fd, r.message, sock.DontWait)
		switch {
		case e == syscall.EAGAIN:
			r.stalled = true
			return true
		case e == syscall.EINTR:
			continue
		case e != 0:
			// It never left, and is not sent again: as a datagram that the path has lost.
			r.take(w, due, now)
			return w.missed(e)
		}
		r.take(w, due, now)
		r.push(due, now)
	}
	return true
}

// receive takes the responses that have come, and gives up what has waited too long.
func (r *pacedDatagramRequester) receive(w *worker) bool {
	for range receivesAtOnce {
		n, e := sock.Recv(w.fd, r.buffer, sock.DontWait)
		switch {
		case later(e):
			r.expire(w)
			return true
		case e != 0:
			return w.missed(e)
		case n < 8:
			continue
		}
		if due, ok := r.answer(binary.BigEndian.Uint64(r.buffer)); ok {
			w.complete(due, w.trial.now())
		}
	}
	return true
}

func (r *pacedDatagramRequester) expire(w *worker) {
	sent, ok := r.oldest()
	if !ok {
		return
	}
	now := w.trial.now()
	for ; ok && now-sent > int64(w.trial.o.Timeout); sent, ok = r.oldest() {
		r.answer(r.head)
		w.fail(timedOut)
	}
}
