package load

import (
	"syscall"

	"github.com/cnibench/cnibench/internal/kernel/sock"
	"github.com/cnibench/cnibench/internal/plan"
)

// Stream over TCP. One system call moves one message. After a short count the next call starts a new message, as in
// other tools for bulk transfer. Modes: "copy" copies at both ends; "sendfile" sends pages of a file in memory, so the
// sender does not copy; "trunc" lets the receiver's kernel drop the bytes, so the receiver does not copy. The last two
// show how much of the cost is copying, and are not comparable with tools that copy.

// streamWork returns how one side runs a stream.
func streamWork(s plan.Stream, client bool) work {
	udp := s.Protocol == plan.UDP
	if s.Bidirectional {
		return work{open: openBidirectional, standing: true, sends: true, straggles: udp, buffer: s.Buffer}
	}
	sends := client != s.Reverse
	w := work{standing: true, sends: sends, straggles: udp && !sends, buffer: s.Buffer}
	switch {
	case udp && sends:
		w.open = openDatagramSender
	case udp:
		w.open = openDatagramReceiver
	case sends:
		w.open = openSender
	default:
		w.open = openReceiver
	}
	return w
}

// openBackgroundStream returns the flow of the additional worker of rr: a stream that runs at the same time as the requests.
func openBackgroundStream(w *worker) (flow, error) {
	w.beside, w.spin = true, false
	if w.isServer() {
		return &receiver{buffer: incompressibleBytes(plan.DefaultStreamMessage)}, nil
	}
	return &sender{incompressibleBytes(plan.DefaultStreamMessage)}, nil
}

// sender is the sending end of a stream over TCP, from a buffer.
type sender struct{ message []byte }

func openSender(w *worker) (flow, error) {
	message := incompressibleBytes(w.trial.traits.Message)
	if specOf[plan.Stream](w).Mode != "sendfile" {
		return &sender{message}, nil
	}
	file, err := sock.MemoryFile(message)
	if err != nil {
		return nil, err
	}
	w.trial.ownDescriptor(file)
	return &fileSender{file: file, size: len(message)}, nil
}

// incompressibleBytes returns n pseudo-random bytes, which cannot be compressed. They are the same in every call.
func incompressibleBytes(n int) []byte {
	b := make([]byte, n)
	state := uint32(2463534242)
	for i := range b {
		state ^= state << 13
		state ^= state >> 17
		state ^= state << 5
		b[i] = byte(state)
	}
	return b
}

func (s *sender) step(w *worker) bool {
	return w.countSent(sock.Send(w.fd, s.message, 0))
}

// countSent counts one message of n bytes if e is 0, and reports whether the flow continues.
func (w *worker) countSent(n int, e syscall.Errno) bool {
	if e != 0 {
		return w.survivesStreamError(e)
	}
	w.count.sent.Add(uint64(n))
	w.count.operations.Add(1)
	return true
}

// fileSender is the sending end of a stream over TCP, from a file in memory.
type fileSender struct {
	file, size int
	offset     int64
}

func (s *fileSender) step(w *worker) bool {
	s.offset = 0
	return w.countSent(sock.SendFile(w.fd, s.file, &s.offset, s.size))
}

// receiver is the receiving end of a stream over TCP. One call receives at most a message.
type receiver struct {
	buffer []byte
	flags  int
}

func openReceiver(w *worker) (flow, error) {
	r := &receiver{buffer: incompressibleBytes(w.trial.traits.Message)}
	if specOf[plan.Stream](w).Mode == "trunc" {
		r.flags = sock.Trunc
	}
	return r, nil
}

func (r *receiver) step(w *worker) bool {
	n, e := sock.Recv(w.fd, r.buffer, r.flags)
	switch {
	case e != 0:
		return w.survivesStreamError(e)
	case n == 0:
		return w.loseFlow(gone)
	}
	w.count.received.Add(uint64(n))
	w.count.operations.Add(1)
	return true
}

// sendAll sends all of b. It returns false if the thread should leave.
func (w *worker) sendAll(fd int, b []byte) bool {
	n, e := sock.Send(fd, b, 0)
	return w.finishSend(fd, b, n, e)
}

// finishSend completes sendAll after its first call, which returned n and e. It returns false if the thread should
// leave.
func (w *worker) finishSend(fd int, b []byte, n int, e syscall.Errno) bool {
	for ; ; n, e = sock.Send(fd, b, 0) {
		if e == 0 && n == len(b) {
			return true
		}
		if e != 0 && !w.survivesStreamError(e) || w.trial.hasReached(w.leaveAt) {
			return false
		}
		if e == 0 {
			b = b[n:]
		}
	}
}

// recvAll fills b. If since is not 0 and the timeout has passed since then, it counts one timeout. It returns false if
// the thread should leave.
func (w *worker) recvAll(fd int, b []byte, since int64) bool {
	n, e := w.recv(fd, b, sock.WaitAll)
	return w.finishRecv(fd, b, since, n, e)
}

// finishRecv completes recvAll after its first call, which returned n and e. It returns false if the thread should
// leave.
func (w *worker) finishRecv(fd int, b []byte, since int64, n int, e syscall.Errno) bool {
	for ; ; n, e = w.recv(fd, b, sock.WaitAll) {
		switch {
		case e == 0 && n == len(b):
			return true
		case e != 0 && !w.survivesStreamError(e):
			return false
		case e == 0 && n == 0:
			return w.loseFlow(gone)
		case w.trial.hasReached(w.leaveAt):
			return false
		}
		if since != 0 && w.trial.now()-since > int64(w.trial.o.Timeout) {
			w.countFailure(timedOut)
			since = 0
		}
		if e == 0 {
			b = b[n:]
		}
	}
}

// Bidirectional streams are two streams at once, with twice as many flows: an even index goes from the client to the
// server, an odd index back. So each direction has its own sockets, as with two programs that each send, and the
// acknowledgements of one direction share the path with the other.

// openBidirectional returns the sender or the receiver of the worker's flow.
func openBidirectional(w *worker) (flow, error) {
	s := specOf[plan.Stream](w)
	s.Bidirectional, s.Reverse = false, w.index%2 == 1
	return streamWork(s, !w.isServer()).open(w)
}
