package load

import (
	"encoding/binary"
	"syscall"

	"github.com/cnibench/cnibench/internal/kernel/sock"
	"github.com/cnibench/cnibench/internal/plan"
)

// Request-response over TCP: two system calls per transaction at each side. The client reads the clock once, because a
// transaction begins when the previous one ends. A reply that misses the timeout counts as one timeout. The client
// still waits for the reply, because TCP will deliver it.

// rrWork returns how one side runs rr.
func rrWork(s plan.RR, client bool) work {
	w := work{open: openResponder, standing: true}
	if s.Under != "" {
		w.beside = openBackgroundStream
	}
	udp := s.Protocol == plan.UDP
	if udp {
		w.open, w.timeout = messageFlowOpener(func(m messages) flow { return &datagramResponder{m} }), defaultUDPReply
	}
	switch scheduled := s.Arrival != "" || s.Burst > 1; {
	case !client:
	case udp && scheduled:
		w.open = func(w *worker) (flow, error) { return &pacedDatagramRequester{newPipeline(w)}, nil }
	case udp:
		w.open, w.timed = messageFlowOpener(func(m messages) flow { return &datagramRequester{messages: m} }), true
	case scheduled:
		w.open = openPacedRequester
	default:
		w.open = openRequester
	}
	return w
}

// messageFlowOpener returns a function for work.open that passes the worker's buffers to make.
func messageFlowOpener(make func(messages) flow) func(*worker) (flow, error) {
	return func(w *worker) (flow, error) { return make(w.newMessages()), nil }
}

// messages are the buffers of one side of an exchange.
type messages struct{ request, response []byte }

// newMessages returns the buffers of the worker's side, sets the payload of each operation, and makes a client's
// histogram of round-trip times.
func (w *worker) newMessages() messages {
	o, least := &w.trial.traits, 0
	if o.Protocol == plan.UDP {
		least = greetingSize
	}
	if w.isServer() {
		w.each = size{sent: uint64(o.Response), received: uint64(o.Request)}
		return messages{request: make([]byte, max(o.Request, least)), response: incompressibleBytes(o.Response)}
	}
	w.each = size{sent: uint64(o.Request), received: uint64(o.Response)}
	w.hist.rtt = w.newTimes()
	return messages{request: incompressibleBytes(o.Request), response: make([]byte, max(o.Response, least))}
}

// requester is the client of rr over TCP, on one thread.
type requester struct {
	messages
	turn sock.Chain // send, recv
}

func openRequester(w *worker) (flow, error) {
	r := &requester{messages: w.newMessages()}
	r.turn.Send(w.fd, r.request)
	r.turn.Recv(w.fd, r.response, sock.WaitAll)
	return r, nil
}

func (r *requester) step(w *worker) bool {
	if w.spin {
		if !w.sendAll(w.fd, r.request) || !w.recvAll(w.fd, r.response, w.last) {
			return false
		}
	} else if done := r.turn.Run(); done < 2 && !r.completeTransaction(w, done) {
		return false
	}
	w.countOperation(w.trial.now())
	return true
}

// completeTransaction does the rest of a transaction after done calls have succeeded. It returns false if the thread
// should leave.
func (r *requester) completeTransaction(w *worker, done int) bool {
	n, e := r.turn.Result(done)
	if done == 0 {
		return w.finishSend(w.fd, r.request, n, e) && w.recvAll(w.fd, r.response, w.last)
	}
	return w.finishRecv(w.fd, r.response, w.last, n, e)
}

// responder is the server of rr over TCP, on one thread. A step ends when the next request has arrived, and then
// counts an operation. A step that only waits counts nothing, so the thread is idle and its edge is not late (see
// edgeTally).
type responder struct {
	messages
	turn sock.Chain // send, recv
	due  bool       // a request is here that has no response
}

func openResponder(w *worker) (flow, error) {
	r := &responder{messages: w.newMessages()}
	r.turn.Send(w.fd, r.response)
	r.turn.Recv(w.fd, r.request, sock.WaitAll)
	return r, nil
}

func (r *responder) step(w *worker) bool {
	if !r.due {
		n, e := w.recv(w.fd, r.request, sock.WaitAll)
		return r.finishRequest(w, n, e)
	}
	if w.spin {
		r.due = false
		return w.sendAll(w.fd, r.response)
	}
	done := r.turn.Run()
	if done == 2 {
		w.count.operations.Add(1)
		return true
	}
	r.due = false
	n, e := r.turn.Result(done)
	if done == 1 {
		return r.finishRequest(w, n, e)
	}
	return w.finishSend(w.fd, r.response, n, e)
}

// finishRequest receives the rest of a request, after a call that returned n and e, and counts the request. It returns false
// if the thread should leave.
func (r *responder) finishRequest(w *worker, n int, e syscall.Errno) bool {
	switch {
	case e != 0:
		return w.survivesStreamError(e) // idle, or lost
	case n == 0:
		return w.loseFlow(gone)
	case n < len(r.request) && !w.recvAll(w.fd, r.request[n:], 0):
		return false
	}
	w.count.operations.Add(1)
	r.due = true
	return true
}

// Request-response over UDP: the first 8 bytes of a request are a sequence number, which the response repeats. A reply
// that misses the timeout counts as a timeout, and the client sends the next request. The number identifies late
// replies.

// datagramRequester is the client of rr over UDP, on one thread.
type datagramRequester struct {
	messages
	sequence uint64
}

func (r *datagramRequester) step(w *worker) bool {
	r.sequence++
	binary.BigEndian.PutUint64(r.request, r.sequence)
	if _, e := sock.Send(w.fd, r.request, 0); e != 0 {
		again := w.survivesDatagramError(e)
		w.last = w.trial.now()
		return again
	}
	return w.awaitReply(r.response, r)
}

func (r *datagramRequester) isReply(b []byte) bool {
	return len(b) >= 8 && binary.BigEndian.Uint64(b) == r.sequence
}

// asker is a flow that waits for the reply to its latest request on a datagram socket.
type asker interface {
	// isReply reports whether a datagram is that reply.
	isReply(b []byte) bool
}

// awaitReply receives datagrams until one is the reply to the latest request of the flow of, or the timeout has passed.
// It counts the operation or the failure, and reports whether the flow continues.
func (w *worker) awaitReply(buffer []byte, of asker) bool {
	for {
		n, e := w.recv(w.fd, buffer, 0)
		now := w.trial.now()
		switch {
		case e == 0 && of.isReply(buffer[:n]):
			w.countOperation(now)
			return true
		case e != 0 && !isRetryable(e):
			again := w.survivesDatagramError(e)
			w.last = w.trial.now()
			return again
		case now-w.last >= int64(w.trial.o.Timeout)*19/20:
			// The tolerance keeps a wake-up that is a little early from doubling the wait.
			w.countFailure(timedOut)
			w.last = now
			return true
		case w.trial.hasReached(w.leaveAt):
			return false
		}
	}
}

// datagramResponder is the server of rr over UDP, on one thread.
type datagramResponder struct{ messages }

func (r *datagramResponder) step(w *worker) bool {
	n, e := w.recv(w.fd, r.request, 0)
	if e == syscall.ECONNREFUSED {
		return true // the client closed its socket: its trial is over, or it greets from another socket
	}
	if e != 0 {
		return w.survivesDatagramError(e)
	}
	if n < 8 || isGreeting(r.request[:n]) {
		return true
	}
	copy(r.response, r.request[:8])
	if _, e := sock.Send(w.fd, r.response, 0); e != 0 {
		return e == syscall.ECONNREFUSED || w.survivesDatagramError(e)
	}
	w.count.operations.Add(1)
	return true
}
