package load

import (
	"encoding/binary"
	"syscall"

	"github.com/cnibench/cnibench/internal/kernel/sock"
)

// pipeline is the part that both paced clients of rr share: a schedule, the requests under way, and the buffers.
type pipeline struct {
	pace
	flight
	messages
}

func newPipeline(w *worker) pipeline {
	p := pipeline{flight: newFlight(w.trial.flightSize()), messages: w.newMessages()}
	p.pace.initSchedule(w)
	return p
}

// pacedRequester is the client of rr over TCP that sends by a schedule. Responses come in the order of the requests.
type pacedRequester struct {
	pipeline
	unsent          []byte // the rest of the request that is going out
	size            int    // of a response
	partial         int    // received bytes of the next response
	timeoutReported bool
}

// responsesAtOnce is the size in bytes of the buffer for responses.
const responsesAtOnce = 64 << 10

func openPacedRequester(w *worker) (flow, error) {
	r := &pacedRequester{pipeline: newPipeline(w), size: w.trial.traits.Response}
	r.response = make([]byte, max(r.size, responsesAtOnce))
	return r, nil
}

func (r *pacedRequester) step(w *worker) bool {
	if !r.sendDueRequests(w) || !r.receiveResponses(w) {
		return false
	}
	what := int16(sock.Input)
	if len(r.unsent) > 0 {
		what |= sock.Output
	}
	r.awaitWork(w, w.fd, what, r.count)
	return true
}

// sendDueRequests sends the requests that are due.
func (r *pacedRequester) sendDueRequests(w *worker) bool {
	for range sendsAtOnce {
		if len(r.unsent) == 0 {
			due, now, ok := r.dueRequest(w, r.count, !r.isFull())
			if !ok {
				return true
			}
			r.noteSent(w, due, now)
			r.pushRequest(due, now)
			r.unsent = r.request
		}
		n, e := sock.Send(w.fd, r.unsent, sock.DontWait)
		switch {
		case e == syscall.EAGAIN:
			r.stalled = true
			return true
		case e != 0 && !isRetryable(e):
			return w.survivesStreamError(e)
		case e == 0:
			r.unsent = r.unsent[n:]
		}
	}
	return true
}

// receiveResponses handles the responses that have arrived.
func (r *pacedRequester) receiveResponses(w *worker) bool {
	for range receivesAtOnce {
		n, e := sock.Recv(w.fd, r.response, sock.DontWait)
		switch {
		case isRetryable(e):
			r.reportTimeout(w)
			return true
		case e != 0:
			return w.survivesStreamError(e)
		case n == 0:
			return w.loseFlow(gone)
		}
		now := w.trial.now()
		for r.partial += n; r.partial >= r.size; r.partial -= r.size {
			due, ok := r.removeRequest(r.head)
			if !ok {
				return w.loseFlow(protocol) // more responses than requests
			}
			w.countResponse(due, now)
			r.timeoutReported = false
		}
		if n < len(r.response) {
			return true
		}
	}
	return true
}

// reportTimeout counts one timeout when the oldest request has waited too long. TCP will still deliver the response.
func (r *pacedRequester) reportTimeout(w *worker) {
	if sent, ok := r.oldestSentTime(); ok && !r.timeoutReported && w.trial.now()-sent > int64(w.trial.o.Timeout) {
		r.timeoutReported = true
		w.countFailure(timedOut)
	}
}

// pacedDatagramRequester is the client of rr over UDP that sends by a schedule. A response repeats the number of its
// request. A request without a response is given up after the timeout.
type pacedDatagramRequester struct{ pipeline }

func (r *pacedDatagramRequester) step(w *worker) bool {
	if !r.sendDueRequests(w) || !r.receiveResponses(w) {
		return false
	}
	what := int16(sock.Input)
	if r.stalled && !r.isFull() {
		what |= sock.Output
	}
	r.awaitWork(w, w.fd, what, r.count)
	return true
}

// sendDueRequests sends the requests that are due.
func (r *pacedDatagramRequester) sendDueRequests(w *worker) bool {
	for range sendsAtOnce {
		due, now, ok := r.dueRequest(w, r.count, !r.isFull())
		if !ok {
			return true
		}
		binary.BigEndian.PutUint64(r.request, r.next)
		_, e := sock.Send(w.fd, r.request, sock.DontWait)
		switch {
		case e == syscall.EAGAIN:
			r.stalled = true
			return true
		case e == syscall.EINTR:
			continue
		case e != 0:
			// The request never left and is not sent again: it counts as a datagram that the path lost.
			r.noteSent(w, due, now)
			return w.survivesDatagramError(e)
		}
		r.noteSent(w, due, now)
		r.pushRequest(due, now)
	}
	return true
}

// receiveResponses handles the responses that have arrived, and expires requests that have waited too long.
func (r *pacedDatagramRequester) receiveResponses(w *worker) bool {
	for range receivesAtOnce {
		n, e := sock.Recv(w.fd, r.response, sock.DontWait)
		switch {
		case isRetryable(e):
			r.expireRequests(w)
			return true
		case e != 0:
			return w.survivesDatagramError(e)
		case n < 8:
			continue
		}
		if due, ok := r.removeRequest(binary.BigEndian.Uint64(r.response)); ok {
			w.countResponse(due, w.trial.now())
		}
	}
	return true
}

func (r *pacedDatagramRequester) expireRequests(w *worker) {
	sent, ok := r.oldestSentTime()
	if !ok {
		return
	}
	now := w.trial.now()
	for ; ok && now-sent > int64(w.trial.o.Timeout); sent, ok = r.oldestSentTime() {
		r.removeRequest(r.head)
		w.countFailure(timedOut)
	}
}
