package load

import (
	"encoding/binary"
	"syscall"

	"github.com/cnibench/cnibench/internal/kernel/sock"
	"github.com/cnibench/cnibench/internal/sample"
)

// Stream over UDP. Every datagram starts with a sequence number and the time it was sent, 8 bytes each. The sender hands
// the kernel up to 64 datagrams at a time, flat out or as many as are due at the intended rate. A datagram is one
// operation, not a call. The receiver takes what is there and keeps a ledger.

// datagramSender is the sending side.
type datagramSender struct {
	batch    *sock.Batch
	size     int
	sequence uint64
	paced    bool
	pacer    pacer
}

func openDatagramSender(w *worker) error {
	o := w.trial.o.Workload
	s := &datagramSender{batch: sock.NewBatch(datagramsPerCall, o.MessageSize), size: o.MessageSize, paced: o.Rate > 0}
	content := filled(o.MessageSize)
	for i := range s.batch.Cap() {
		copy(s.batch.Buffer(i), content)
	}
	if s.paced {
		perFlow := o.Rate / 8 / float64(o.MessageSize) / float64(o.Flows)
		s.pacer = newPacer(0, perFlow)
	}
	w.flow = s
	return nil
}

func (s *datagramSender) step(w *worker) bool {
	now := w.trial.now()
	n := s.batch.Cap()
	if s.paced {
		if s.pacer.start == 0 {
			// The flows share the gap between them, so that they do not send at the same instants.
			s.pacer.start = now + int64(s.pacer.gap*float64(w.index)/float64(w.trial.o.Workload.Flows))
		}
		due := s.pacer.due(now)
		w.count.errors[notOffered].Store(s.pacer.skipped)
		if due == 0 {
			w.sleep(s.pacer.wake(now))
			return true
		}
		n = int(min(due, uint64(n)))
	}
	for i := range n {
		b := s.batch.Buffer(i)
		binary.BigEndian.PutUint64(b, s.sequence+uint64(i))
		binary.BigEndian.PutUint64(b[8:], uint64(now))
	}
	sent, e := s.batch.Send(w.fd, n)
	if e != 0 {
		if e == syscall.ECONNREFUSED && w.server() {
			return w.die(gone)
		}
		return w.missed(e)
	}
	s.sequence += uint64(sent)
	s.pacer.sent(uint64(sent))
	w.count.sent.Add(uint64(sent) * uint64(s.size))
	w.count.operations.Add(uint64(sent))
	return true
}

// datagramReceiver is the receiving side.
type datagramReceiver struct {
	batch  *sock.Batch
	ledger ledger
	latest int64 // when the latest datagram came
	phase  int32
}

func openDatagramReceiver(w *worker) error {
	w.flow = &datagramReceiver{batch: sock.NewBatch(datagramsPerCall, max(w.trial.o.Workload.MessageSize, greetingSize))}
	w.hist.transit = sample.NewHistogram()
	if w.leaveAt == drain {
		w.leaveAt = after // stragglers of the window may still come
	}
	return nil
}

// edge opens and shuts the span of the window.
func (r *datagramReceiver) edge(_ *worker, phase int32) {
	if r.phase < window && phase >= window {
		r.ledger.open()
	}
	if r.phase < drain && phase >= drain {
		r.ledger.shut()
	}
	r.phase = phase
}

func (r *datagramReceiver) step(w *worker) bool {
	n, e := r.batch.Recv(w.fd)
	if e != 0 {
		return e == syscall.ECONNREFUSED || w.missed(e)
	}
	now := w.trial.now()
	var bytes uint64
	arrived := n
	for i := range n {
		b := r.batch.Received(i)
		if len(b) < greetingSize || isGreeting(b) {
			arrived--
			continue
		}
		bytes += uint64(len(b))
		if w.phase >= after {
			continue // the ledger is Run's
		}
		r.ledger.arrive(binary.BigEndian.Uint64(b))
		excess := r.ledger.time(now - int64(binary.BigEndian.Uint64(b[8:])))
		if w.phase == window {
			w.hist.transit.Record(excess)
		}
	}
	if w.phase < after {
		r.latest = now
	}
	w.count.received.Add(bytes)
	w.count.operations.Add(uint64(arrived))
	return true
}
