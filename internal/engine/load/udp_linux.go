package load

import (
	"encoding/binary"
	"syscall"

	"github.com/cnibench/cnibench/internal/kernel/sock"
	"github.com/cnibench/cnibench/internal/plan"
)

// Stream over UDP. Every datagram starts with a sequence number and the time it was sent, 8 bytes each. The sender
// hands the kernel up to 64 datagrams at a time, flat out or as many as are due at the intended rate. A datagram is one
// operation, not a call. The receiver takes the datagrams that have arrived and keeps a ledger.

// datagramSender is the sending end of a stream over UDP.
type datagramSender struct {
	batch    *sock.Batch
	cut      cut
	sequence uint64
	paced    bool
	pacer    pacer
}

func openDatagramSender(w *worker) (flow, error) {
	o := &w.trial.traits
	s := &datagramSender{cut: cutOf(specOf[plan.Stream](w)), paced: o.Rate > 0}
	s.batch = newBatchFor(s.cut)
	content := incompressibleBytes(s.cut.segments * s.cut.largestSize())
	for i := range s.batch.Cap() {
		copy(s.batch.Buffer(i), content)
	}
	if specOf[plan.Stream](w).Mode == plan.GSO {
		if err := sock.SetSegment(w.fd, o.Message); err != nil {
			return nil, offloadError("segmentation offload of UDP", err)
		}
	}
	if s.paced {
		perFlow := o.Rate / 8 / s.cut.meanSize() / float64(o.Flows)
		if o.Bidirectional {
			perFlow *= 2 // half of the flows send
		}
		s.pacer = newPacer(0, perFlow)
	}
	return s, nil
}

func (s *datagramSender) step(w *worker) bool {
	now := w.trial.now()
	n := s.batch.Cap() * s.cut.segments
	if s.paced {
		if s.pacer.start == 0 {
			// The flows share the gap between them, so that they do not send at the same instants.
			s.pacer.start = now + int64(s.pacer.gap*float64(w.index)/float64(w.trial.traits.Flows))
		}
		due := s.pacer.dueCount(now)
		w.count.errors[notOffered].Store(s.pacer.skipped)
		if due == 0 {
			w.sleepUntil(s.pacer.wakeTime(now))
			return true
		}
		n = int(min(due, uint64(n)))
	}
	buffers, _ := s.cut.fillBatch(s.batch, s.sequence, n, now)
	took, e := s.batch.Send(w.fd, buffers)
	if e != 0 {
		if e == syscall.ECONNREFUSED && w.isServer() {
			return w.loseFlow(gone)
		}
		return w.survivesDatagramError(e)
	}
	sent, bytes := s.cut.sumSent(s.sequence, n, took)
	s.sequence += sent
	s.pacer.noteSent(sent)
	w.count.sent.Add(bytes)
	w.count.operations.Add(sent)
	return true
}

// datagramReceiver is the receiving end of a stream over UDP.
type datagramReceiver struct {
	batch *sock.Batch
	// size is the length of each datagram in bytes if one receive may return several together, 0 if it returns one.
	size     int
	ledger   ledger
	transits transits
	latest   int64 // when the latest datagram came
}

func openDatagramReceiver(w *worker) (flow, error) {
	o := &w.trial.traits
	r := &datagramReceiver{batch: sock.NewBatch(datagramsPerCall, max(cutOf(specOf[plan.Stream](w)).largestSize(), greetingSize))}
	if specOf[plan.Stream](w).Mode == plan.GSO {
		if err := sock.SetCoalesce(w.fd); err != nil {
			return nil, offloadError("receive offload of UDP", err)
		}
		r.size, r.batch = o.Message, sock.NewBatch(superPackets, superPacket)
	}
	r.transits = newTransits(o.Flows)
	if w.leaveAt == drain {
		w.leaveAt = after // stragglers of the window may still arrive
	}
	return r, nil
}

// noteEdge starts the counts of the window at edge 0, and ends them at edge 1.
func (r *datagramReceiver) noteEdge(_ *worker, edge int) {
	if edge == 0 {
		r.ledger.openWindow()
		r.transits.openWindow()
	} else {
		r.ledger.closeWindow()
	}
}

func (r *datagramReceiver) step(w *worker) bool {
	n, e := r.batch.Recv(w.fd)
	if e != 0 {
		return e == syscall.ECONNREFUSED || w.survivesDatagramError(e)
	}
	now := w.trial.now()
	var bytes, arrived uint64
	for i := range n {
		for b := r.batch.Received(i); len(b) > 0; {
			one := b
			if r.size > 0 {
				one = b[:min(r.size, len(b))]
			}
			b = b[len(one):]
			if len(one) < greetingSize || isGreeting(one) {
				continue
			}
			bytes += uint64(len(one))
			arrived++
			r.noteDatagram(w, one, now, n == 1 && len(b) == 0)
		}
	}
	if w.phase < after {
		r.latest = now
	}
	w.count.received.Add(bytes)
	w.count.operations.Add(arrived)
	return true
}

// noteDatagram enters a datagram in the ledger and the transit times. alone means that it did not arrive in a batch.
func (r *datagramReceiver) noteDatagram(w *worker, b []byte, now int64, alone bool) {
	if w.phase >= after {
		return // the ledger is Run's
	}
	r.ledger.countDatagram(binary.BigEndian.Uint64(b))
	sent := int64(binary.BigEndian.Uint64(b[8:]))
	r.ledger.jitter.addDatagram(now-sent, sent, alone)
	if w.phase == window {
		r.transits.addPassage(now, now-sent)
	}
}
