package load

import (
	"syscall"

	"github.com/cnibench/cnibench/internal/kernel/sock"
)

// pacedGetter is the client of http in an open loop, on one thread. A request takes the link that has been idle for
// longest, so that all links, and all backends, have equal use. While no link is idle the request waits, which counts
// as part of its response time. A link without a connection connects first.
type pacedGetter struct {
	getter
	pace
}

func openPacedGetter(w *worker) (flow, error) {
	g, err := newGetter(w)
	if err != nil {
		return nil, err
	}
	p := &pacedGetter{getter: *g}
	p.pace.initSchedule(w)
	p.getter.open, p.idle, p.down = true, newQueue(len(p.links)), 0
	for i := range p.links {
		p.links[i].state = linkIdle
	}
	return p, nil
}

// begin makes every link idle and starts the schedule.
func (p *pacedGetter) begin(w *worker) {
	for i := range p.links {
		p.parkLink(&p.links[i])
	}
	p.pace.begin(w)
}

func (p *pacedGetter) noteEdge(w *worker, edge int) {
	p.getter.noteEdge(w, edge)
	p.pace.noteEdge(w, edge)
}

func (p *pacedGetter) underWayCount() int { return len(p.links) - p.idle.count - p.down }

func (p *pacedGetter) step(w *worker) bool {
	p.sendDueRequests(w)
	if w.trial.now()-p.looked >= int64(retryPause) { // also if reports never end
		p.maintainLinks(w)
	}
	if p.underWayCount() > 0 {
		n, e := p.poll.Wait(0)
		if e != 0 && e != syscall.EINTR {
			return w.loseFlow(kindOfErrno(e))
		}
		p.readReports(w, n)
		if n > 0 {
			return true
		}
	}
	p.awaitWork(w, p.poll.Descriptor(), sock.Input, p.underWayCount())
	return true
}

// sendDueRequests sends the requests that are due.
func (p *pacedGetter) sendDueRequests(w *worker) {
	for range sendsAtOnce {
		due, now, ok := p.dueRequest(w, p.underWayCount(), p.idle.count > 0)
		if !ok {
			return
		}
		p.pace.noteSent(w, due, now)
		l := &p.links[p.idle.pop()]
		l.due = due
		if l.fd < 0 {
			p.connectLink(w, l)
		} else {
			p.sendRequest(w, l, now)
		}
	}
}

// parkLink puts a link at the end of the queue of idle links.
func (g *getter) parkLink(l *link) {
	l.state = linkIdle
	g.idle.push(l.tag)
}

// queue is a ring with room for every link of a thread.
type queue struct {
	tags        []uint32
	head, count int
}

func newQueue(n int) queue { return queue{tags: make([]uint32, n)} }

func (q *queue) push(tag uint32) {
	q.tags[(q.head+q.count)%len(q.tags)] = tag
	q.count++
}

// pop removes and returns the tag that was pushed first. The queue must not be empty.
func (q *queue) pop() uint32 {
	tag := q.tags[q.head]
	q.head, q.count = (q.head+1)%len(q.tags), q.count-1
	return tag
}
