package member

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"syscall"
	"time"

	"github.com/cnibench/cnibench/internal/engine/load"
	"github.com/cnibench/cnibench/internal/kernel/sock"
	"github.com/cnibench/cnibench/internal/kernel/thread"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan/job"
)

// What the first member begins: a step of the warm-up or of the window, or an edge of the window.
const (
	goWarm byte = 'w'
	goStep byte = 's'
	goOpen byte = 'o'
	goEnd  byte = 'e'
)

// doneSize is the size of a member's answer in bytes: how long its exchange took, the member that it waited for last,
// and how long it waited for that member alone.
const doneSize = 24

// noRank is the rank in the answer of a member that waited for no particular member.
const noRank = math.MaxUint64

// leg is a transfer as one of its ends sees it.
type leg struct {
	number, bytes int
	needs         []int // numbers of the transfers that must arrive before it is sent
	after         int64 // how long after their arrival it is sent, in ns
	due           int64 // when it may be sent; 0 until its needs have arrived
}

// link is the connection with another member. Control bytes go before data: no data of the previous step are left by
// then.
type link struct {
	rank, fd int
	out, in  []leg
	// sent and got count the legs that are complete in this step. outLeft and inLeft are the bytes left of the next
	// leg.
	sent, got       int
	outLeft, inLeft int
	// words are control bytes to send, heard the received bytes of an incomplete message.
	words   []byte
	heard   []byte
	writing bool // whether the poll watches for room
}

func newLink(rank, fd int) *link { return &link{rank: rank, fd: fd} }

// resetLegs prepares the legs of the next step.
func (l *link) resetLegs() {
	l.sent, l.got, l.outLeft, l.inLeft = 0, 0, 0, 0
	if len(l.out) > 0 {
		l.outLeft = l.out[0].bytes
	}
	if len(l.in) > 0 {
		l.inLeft = l.in[0].bytes
	}
	for i := range l.out {
		l.out[i].due = 0
	}
}

func (l *link) isComplete() bool { return l.sent == len(l.out) && l.got == len(l.in) }

// player is the thread of a member.
type player struct {
	t      *Trial
	edge   func(end bool)
	poll   *sock.Poll
	links  []*link // to all other members, in order of rank
	buffer []byte
	// came marks the transfers that have arrived in this step.
	came []bool
	// open is when the member may send, math.MaxInt64 before its step has begun.
	open int64
	step struct {
		began      int64 // when the exchange began; 0 before
		last       int   // rank of the member whose data arrived last
		lastAt     int64
		secondLast int64 // when the last data of the other members had arrived
		from       int   // how many members send data to this one
	}
	account
}

// account has the member's counters.
type account struct {
	sent, received uint64
	steps          uint64
	begin, end     tally
	job            sample.Job
	hops           [job.MostDepth]*sample.Histogram
}

// tally is a reading of the counters at an edge of the window.
type tally struct {
	at, cpu, process      int64
	sent, received, steps uint64
}

func newPlayer(t *Trial, edge func(bool)) (*player, error) {
	poll, err := sock.OpenPoll(t.shape.Members)
	if err != nil {
		return nil, err
	}
	p := &player{t: t, edge: edge, poll: poll, buffer: make([]byte, pieceSize), open: math.MaxInt64}
	own := t.o.Seat.Rank
	all := t.shape.Transfers()
	p.came = make([]bool, len(all))
	for i, x := range all {
		switch own {
		case x.From:
			l := t.links[x.To]
			l.out = append(l.out, leg{number: i, bytes: x.Bytes, needs: x.Needs, after: int64(x.After)})
		case x.To:
			l := t.links[x.From]
			if len(l.in) == 0 {
				p.step.from++
			}
			l.in = append(l.in, leg{number: i, bytes: x.Bytes})
		}
	}
	for _, l := range t.links {
		if l == nil {
			continue
		}
		if err := sock.SetNonBlocking(l.fd); err != nil {
			return nil, err
		}
		if e := poll.Add(l.fd, sock.Readable, uint32(l.rank)); e != 0 {
			return nil, e
		}
		l.resetLegs()
		p.links = append(p.links, l)
	}
	if own == 0 {
		p.job.Step, p.job.Exchange = sample.NewHistogram(), sample.NewHistogram()
		for _, m := range t.o.Seat.Members {
			p.job.Members = append(p.job.Members, sample.Member{Name: m.Name})
		}
		for rank := range t.shape.Members {
			if depth := t.shape.Depth(rank); depth > 0 && p.hops[depth-1] == nil {
				p.hops[depth-1] = sample.NewHistogram()
				p.job.Hops = append(p.job.Hops, p.hops[depth-1])
			}
		}
	}
	return p, nil
}

var errStopped = errors.New("it was given up")

// main runs the member's steps until the end of the trial.
func (p *player) main() error {
	defer p.poll.Close()
	if err := p.t.pinThread(); err != nil {
		return err
	}
	if p.t.o.Seat.Rank == 0 {
		return p.directJob()
	}
	for {
		word, err := p.awaitControl(p.t.links[0], 1)
		if err != nil {
			return err
		}
		var answer [doneSize]byte
		switch word[0] {
		case goOpen, goEnd:
			p.recordEdge(word[0])
		case goWarm, goStep:
			p.beginStep()
			exchange, late, err := p.playStep()
			if err != nil {
				return err
			}
			binary.BigEndian.PutUint64(answer[:], uint64(exchange))
			binary.BigEndian.PutUint64(answer[8:], late.of)
			binary.BigEndian.PutUint64(answer[16:], uint64(late.ns))
		default:
			return &load.Error{Kind: "protocol", Op: "read from " + p.t.memberName(0), Err: fmt.Errorf("%q begins no step", word)}
		}
		if err := p.sendControl(p.t.links[0], answer[:]); err != nil {
			return err
		}
		if word[0] == goEnd {
			return nil
		}
	}
}

// late is the member that another member waited for last, and how long it waited for that member alone.
type late struct {
	of uint64
	ns int64
}

// directJob runs the first member: it begins all steps and edges, and times the steps.
func (p *player) directJob() error {
	warm := p.now() + int64(p.t.o.Warmup)
	for first := true; first || p.now() < warm; first = false {
		if err := p.runStepOrEdge(goWarm); err != nil {
			return err
		}
	}
	if err := p.runStepOrEdge(goOpen); err != nil {
		return err
	}
	for first := true; first || p.now() < p.begin.at+int64(p.t.o.Window); first = false {
		if err := p.runStepOrEdge(goStep); err != nil {
			return err
		}
	}
	return p.runStepOrEdge(goEnd)
}

// runStepOrEdge begins a step or an edge at every member, and waits until all have finished it.
func (p *player) runStepOrEdge(what byte) error {
	began := p.now()
	if what == goWarm || what == goStep {
		p.beginStep() // the first member to receive it may send before the last receives it
	}
	for _, l := range p.links {
		if err := p.sendControlByte(l, what); err != nil {
			return err
		}
	}
	longest, own := int64(0), late{of: noRank}
	switch what {
	case goOpen, goEnd:
		p.recordEdge(what)
	default:
		var err error
		if longest, own, err = p.playStep(); err != nil {
			return err
		}
	}
	counts := what == goStep
	p.countExchange(0, longest, own, counts)
	for _, l := range p.links {
		answer, err := p.awaitControl(l, doneSize)
		if err != nil {
			return err
		}
		took := int64(binary.BigEndian.Uint64(answer))
		of := late{binary.BigEndian.Uint64(answer[8:]), int64(binary.BigEndian.Uint64(answer[16:]))}
		p.countExchange(l.rank, took, of, counts)
		longest = max(longest, took)
	}
	if counts {
		p.job.Step.Record(p.now() - began)
		p.job.Exchange.Record(longest)
	}
	if what == goOpen { // a step does not include the time of the edge
		p.begin.at = p.now()
	}
	return nil
}

// countExchange adds a member's exchange of ns, and its wait l for another member, to the job's account if counts is true.
func (p *player) countExchange(rank int, ns int64, l late, counts bool) {
	if !counts {
		return
	}
	p.job.Members[rank].ExchangeNs += ns
	if l.of < uint64(len(p.job.Members)) {
		p.job.ChoiceNs += ns
		p.job.Members[l.of].Waits++
		p.job.Members[l.of].LateNs += l.ns
	}
	if depth := p.t.shape.Depth(rank); depth > 0 {
		p.hops[depth-1].Record(ns)
	}
}

// recordEdge reads the counters at an edge of the window, and calls edge.
func (p *player) recordEdge(what byte) {
	read := func() tally {
		return tally{p.now(), thread.CPUTime(), thread.ProcessCPUTime(), p.sent, p.received, p.steps}
	}
	if what == goOpen {
		p.edge(false)
		p.begin = read()
		return
	}
	p.end = read()
	p.edge(true)
}

// windowObservation returns the member's observation of the window.
func (p *player) windowObservation() *sample.Observation {
	o := &sample.Observation{Side: p.t.o.Side, ElapsedNs: p.end.at - p.begin.at, Operations: p.end.steps - p.begin.steps,
		BytesSent: p.end.sent - p.begin.sent, BytesReceived: p.end.received - p.begin.received,
		CPU: sample.CPUTime{ThreadsNs: p.end.cpu - p.begin.cpu, ProcessNs: p.end.process - p.begin.process}}
	if p.t.o.Seat.Rank == 0 {
		o.Job = &p.job
	}
	return o
}

// lossObservation returns the observation of the steps before a member was lost; nil if the trial ended otherwise or must
// not continue.
func (p *player) lossObservation(err error) *sample.Observation {
	var known *load.Error
	lost := errors.Is(err, errStopped) || errors.As(err, &known) && known.Kind == kindGone
	if !lost || !p.t.shape.Continues() || p.t.o.Seat.Rank != 0 {
		return nil
	}
	p.job.Loss = &sample.Loss{Step: p.t.stands.step.Load()}
	o := &sample.Observation{Side: p.t.o.Side, Operations: uint64(p.job.Step.Count()), Job: &p.job}
	if p.begin.at > 0 {
		p.job.Loss.AfterNs = p.now() - p.begin.at
		o.ElapsedNs = p.job.Loss.AfterNs
	}
	return o
}

func (p *player) now() int64 { return thread.Monotonic() }

// beginStep begins a step: from now on data may arrive on all connections, and after the pause the member may send.
func (p *player) beginStep() {
	p.t.stands.step.Store(p.steps + 1)
	p.open = p.now() + int64(p.t.pause)
	if !p.t.shape.Called() || p.t.o.Seat.Rank == 0 {
		p.step.began = p.open
	}
}

// playStep runs the step that has begun. It returns how long the exchange took, without compute, and the member that was
// waited for last.
func (p *player) playStep() (exchange int64, l late, err error) {
	for {
		next, err := p.sendAll()
		if err != nil {
			return 0, l, err
		}
		if p.isStepComplete() {
			break
		}
		if err := p.waitAndReceive(next); err != nil {
			return 0, l, err
		}
	}
	exchange = max(0, p.now()-p.step.began)
	l.of = noRank
	if p.step.from > 1 {
		l = late{uint64(p.step.last), min(p.step.lastAt-max(p.step.secondLast, p.step.began), exchange)}
		l.ns = max(l.ns, 0)
	}
	p.steps++
	p.open, p.step.began, p.step.lastAt, p.step.secondLast = math.MaxInt64, 0, 0, 0
	clear(p.came)
	for _, l := range p.links {
		l.resetLegs()
	}
	return exchange, l, nil
}

func (p *player) isStepComplete() bool {
	for _, l := range p.links {
		if !l.isComplete() || len(l.words) > 0 {
			return false
		}
	}
	return true
}

// sendControlByte sends a control byte.
func (p *player) sendControlByte(l *link, word byte) error { return p.sendControl(l, []byte{word}) }

// sendControl sends control bytes, and waits until the socket has taken them.
func (p *player) sendControl(l *link, words []byte) error {
	l.words = append(l.words, words...)
	for {
		if err := p.flushControl(l); err != nil || len(l.words) == 0 {
			return err
		}
		if err := p.waitAndReceive(0); err != nil {
			return err
		}
	}
}

// flushControl sends control bytes while the socket has room.
func (p *player) flushControl(l *link) error {
	for len(l.words) > 0 {
		n, e := sock.Send(l.fd, l.words, 0)
		if e == syscall.EAGAIN {
			return p.watchForRoom(l, true)
		}
		if e != 0 && e != syscall.EINTR {
			return p.lostError(l, e)
		}
		if e == 0 {
			l.words = l.words[n:]
		}
	}
	l.words = l.words[:0]
	return nil
}

// awaitControl waits for size control bytes of a member.
func (p *player) awaitControl(l *link, size int) ([]byte, error) {
	for len(l.heard) < size {
		if err := p.waitAndReceive(0); err != nil {
			return nil, err
		}
	}
	word := l.heard[:size:size]
	l.heard = nil
	return word, nil
}

// sendAll sends the legs that may be sent. It returns when the next leg that waits for the clock is due, 0 for none.
func (p *player) sendAll() (next int64, err error) {
	now := p.now()
	if p.open > now {
		return p.open, nil
	}
	for _, l := range p.links {
		due, err := p.sendLegs(l, now)
		if err != nil {
			return 0, err
		}
		if due > 0 && (next == 0 || due < next) {
			next = due
		}
	}
	return next, nil
}

// sendLegs sends the legs of a connection in order, while their needs have arrived and the socket has room. due is the time
// at which the next leg may be sent, 0 if that does not depend on the clock.
func (p *player) sendLegs(l *link, now int64) (due int64, err error) {
	for l.sent < len(l.out) {
		x := &l.out[l.sent]
		if x.due == 0 {
			for _, need := range x.needs {
				if !p.came[need] {
					return 0, p.watchForRoom(l, false)
				}
			}
			x.due = now + x.after
		}
		if x.due > now {
			return x.due, p.watchForRoom(l, false)
		}
		n, e := sock.Send(l.fd, p.buffer[:min(l.outLeft, len(p.buffer))], 0)
		switch {
		case e == syscall.EAGAIN:
			return 0, p.watchForRoom(l, true)
		case e == syscall.EINTR:
			continue
		case e != 0:
			return 0, p.lostError(l, e)
		}
		p.sent += uint64(n)
		if l.outLeft -= n; l.outLeft == 0 {
			if l.sent++; l.sent < len(l.out) {
				l.outLeft = l.out[l.sent].bytes
			}
		}
	}
	return 0, p.watchForRoom(l, false)
}

// watchForRoom makes the poll report, or no longer report, that the socket has room.
func (p *player) watchForRoom(l *link, room bool) error {
	if l.writing == room {
		return nil
	}
	l.writing = room
	what := uint32(sock.Readable)
	if room {
		what |= sock.Writable
	}
	if e := p.poll.Change(l.fd, what, uint32(l.rank)); e != 0 {
		return newLoadError("epoll_ctl", e)
	}
	return nil
}

// waitAndReceive waits until a socket is ready or until due, at most a tick, and handles what has arrived. due is a
// time of the monotonic clock in ns, 0 for none. It fails if the trial is given up.
func (p *player) waitAndReceive(due int64) error {
	if p.t.stop.Load() {
		return errStopped
	}
	limit := int(tick / time.Millisecond)
	if due > 0 {
		if left := due - p.now(); left < int64(tick) {
			_ = sock.Await(p.poll.Descriptor(), sock.Input, max(left, 0)) // EINTR is as good as the time
			limit = 0
		}
	}
	n, e := p.poll.Wait(limit)
	if e != 0 && e != syscall.EINTR {
		return newLoadError("epoll_wait", e)
	}
	if n == 0 && limit > 0 {
		p.updateStands()
	}
	for i := range n {
		what, rank := p.poll.Report(i)
		l := p.t.links[rank]
		if what&^sock.Writable != 0 {
			if err := p.receiveFrom(l); err != nil {
				return err
			}
		}
		if what&sock.Writable != 0 {
			if err := p.flushControl(l); err != nil {
				return err
			}
		}
	}
	return nil
}

// updateStands stores for Stands which members are waited for.
func (p *player) updateStands() {
	var mask uint64
	for _, l := range p.links {
		if l.got < len(l.in) && p.open != math.MaxInt64 || p.t.o.Seat.Rank == 0 && p.open == math.MaxInt64 && len(l.heard) == 0 {
			mask |= 1 << l.rank
		}
	}
	p.t.stands.waits.Store(mask)
}

// receiveFrom handles what has arrived on a connection. On a connection with the first member, control bytes come before
// and after the data of a step.
func (p *player) receiveFrom(l *link) error {
	directs := l.rank == 0 || p.t.o.Seat.Rank == 0
	for {
		words := directs && (p.open == math.MaxInt64 || l.got == len(l.in))
		size := min(max(l.inLeft, 1), len(p.buffer)) // at least a byte, to notice the end of a connection that has no more data
		if words && l.rank == 0 {
			size = 1
		} else if words {
			size = max(doneSize-len(l.heard), 1)
		}
		n, e := sock.Recv(l.fd, p.buffer[:size], 0)
		switch {
		case e == syscall.EAGAIN:
			return nil
		case e == syscall.EINTR:
			continue
		case e != 0:
			return p.lostError(l, e)
		case n == 0:
			return p.lostError(l, nil)
		case words:
			l.heard = append(l.heard, p.buffer[:n]...)
			return nil // the thread acts on it before it reads more
		case l.got == len(l.in):
			return &load.Error{Kind: "protocol", Op: "read from " + p.t.memberName(l.rank), Err: errors.New("more data than a step has")}
		}
		p.received += uint64(n)
		if l.inLeft -= n; l.inLeft == 0 {
			p.completeLeg(l)
		}
	}
}

// completeLeg notes that the next incoming leg of a connection is complete.
func (p *player) completeLeg(l *link) {
	now := p.now()
	if p.step.began == 0 && p.t.shape.Called() {
		p.step.began = now
	}
	p.came[l.in[l.got].number] = true
	if l.got++; l.got < len(l.in) {
		l.inLeft = l.in[l.got].bytes
		return
	}
	p.step.secondLast = p.step.lastAt
	p.step.last, p.step.lastAt = l.rank, now
}

// lostError returns the error of a connection that ended.
func (p *player) lostError(l *link, cause error) error {
	if cause == nil {
		cause = errors.New("the connection was closed")
	}
	return &load.Error{Kind: kindGone, Op: fmt.Sprintf("step %d", p.steps+1), Err: fmt.Errorf("%s is lost: %w", p.t.memberName(l.rank), cause)}
}
