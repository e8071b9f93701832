package load

import (
	"context"
	"fmt"
	"syscall"

	"github.com/cnibench/cnibench/internal/engine/httpwire"
	"github.com/cnibench/cnibench/internal/kernel/sock"
)

// getter is the client of http, on one thread.
type getter struct {
	poll    *sock.Poll
	to      sock.Addr
	request []byte
	buffer  []byte // of one recv
	links   []link
	shares  shares
	each    bool  // a connection for each request
	open    bool  // an open loop: a link waits for a scheduled request
	idle    queue // the links that wait, in an open loop
	down    int   // links without a connection
	looked  int64 // when the links were last looked through
}

// link is one connection, or a free place for one.
type link struct {
	tag     uint32
	fd      int
	state   linkState
	watched bool   // fd was added to the poll
	counted bool   // has had a response in the window
	since   int64  // when the state began
	due     int64  // scheduled time of the request; in a closed loop, the time of sending
	head    []byte // the received part of an incomplete head
	left    int64  // of the body, in bytes; noHead before the head is whole
	answer  httpwire.Response
	share   int // of the backend that answered last
}

type linkState int

const (
	linkDown       linkState = iota // to be opened when the pause is over
	linkConnecting                  // the connection is being made
	linkIdle                        // connected, without a request
	linkAsked                       // the request is out
)

// noHead is the value of link.left before the head has arrived.
const noHead = -1

// arrivals are the poll events of a connected link.
const arrivals = sock.Readable | sock.PeerClosed | sock.Edge

func openGetter(w *worker) (flow, error) { return newGetter(w) }

func newGetter(w *worker) (*getter, error) {
	o := &w.trial.traits
	poll, err := sock.OpenPoll(pollBatch)
	if err != nil {
		return nil, err
	}
	g := &getter{
		poll: poll, to: w.trial.targetAddr(), buffer: make([]byte, receiveSize), each: o.Reconnect, looked: longAgo,
	}
	to := g.to
	g.request = httpwire.AppendRequest(nil, to.AddrPort().String(), g.each)
	// The connections are spread evenly: the first threads have one more.
	n := o.Flows / w.trial.threads
	if w.index < o.Flows%w.trial.threads {
		n++
	}
	g.links = make([]link, n)
	for i := range g.links {
		g.links[i] = link{tag: uint32(i), fd: -1, since: longAgo, share: noShare}
	}
	g.down = n
	w.hist.rtt = w.newTimes()
	if g.each {
		w.hist.connect = w.newTimes()
	}
	return g, nil
}

// dialAll makes the connections that the workload keeps; it does nothing if each request has a connection of its own.
func (g *getter) dialAll(ctx context.Context, w *worker) error {
	if g.each {
		return nil
	}
	for rest := g.links; len(rest) > 0; {
		n := min(len(rest), dialBatch) // more at once could overflow the listener's queue
		if err := g.dialLinks(ctx, w, rest[:n]); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

func (g *getter) dialLinks(ctx context.Context, w *worker, links []link) error {
	deadline := w.trial.now() + int64(w.trial.o.Setup)
	for i := range links {
		l := &links[i]
		if err := g.beginConnect(w, l); err != nil {
			return g.connectError(l, err)
		}
		if e := g.poll.Add(l.fd, arrivals|sock.Writable, l.tag); e != 0 {
			return asError("epoll_ctl", e)
		}
		l.watched = true
	}
	for waiting := len(links); waiting > 0; {
		n, e := g.poll.WaitPolite(int(setupTick.Milliseconds()))
		if e != 0 && e != syscall.EINTR {
			return asError("epoll_wait", e)
		}
		for i := range n {
			_, tag := g.poll.Report(i)
			l := &g.links[tag]
			if l.state != linkConnecting {
				continue // the trial handles later reports of this connection
			}
			if e := sock.Failure(l.fd); e != 0 {
				return g.connectError(l, e)
			}
			if e := g.poll.Change(l.fd, arrivals, l.tag); e != 0 {
				return asError("epoll_ctl", e)
			}
			l.state = linkIdle
			waiting--
		}
		if err := w.trial.checkDeadline(ctx, deadline); waiting > 0 && err != nil {
			return err
		}
	}
	return nil
}

// connectError returns the error of a connection that cannot be made. The error names the connection and says what to
// do.
func (g *getter) connectError(l *link, cause error) error {
	f := asError("connect", cause)
	err := fmt.Errorf("connection %d of %d of a thread: %w", l.tag+1, len(g.links), f.Err)
	switch f.Kind {
	case noPort.String():
		err = fmt.Errorf("%w: take fewer connections, or widen net.ipv4.ip_local_port_range", err)
	case descriptors.String():
		err = fmt.Errorf("%w: take fewer connections, or raise the limit (ulimit -n)", err)
	}
	return &Error{Kind: f.Kind, Op: f.Op, Err: err}
}

// beginConnect opens a socket and begins to connect it.
func (g *getter) beginConnect(w *worker, l *link) error {
	if l.state == linkDown {
		g.down--
	}
	l.state, l.watched, l.counted, l.left, l.head = linkConnecting, false, false, noHead, l.head[:0]
	fd, e := sock.Socket(g.to.Family(), sock.Stream|sock.NonBlocking, 0)
	l.since = w.trial.now()
	if e != 0 {
		return e
	}
	l.fd = fd
	if !g.each {
		if err := w.trial.setTCPOptions(fd, true); err != nil {
			return err
		}
	}
	if e := sock.Connect(fd, &g.to); e != 0 && e != syscall.EINPROGRESS {
		return e
	}
	return nil
}

func (g *getter) step(w *worker) bool {
	pause, limit := int64(tick), -1
	if g.down > 0 {
		pause, limit = int64(retryPause), int(retryPause.Milliseconds())
	}
	if w.last-g.looked >= pause {
		g.maintainLinks(w)
	}
	n, e := g.poll.Wait(limit)
	if e != 0 && e != syscall.EINTR {
		return w.loseFlow(kindOfErrno(e))
	}
	if n == 0 {
		w.last = w.trial.now()
	}
	g.readReports(w, n)
	return true
}

// readReports handles n reports of the poll.
func (g *getter) readReports(w *worker, n int) {
	for i := range n {
		what, tag := g.poll.Report(i)
		l := &g.links[tag]
		ended := what&^(sock.Readable|sock.Writable) != 0
		if l.state == linkConnecting {
			g.sendRequest(w, l, w.trial.now())
		}
		switch {
		case l.state == linkAsked:
			g.receiveResponse(w, l, ended)
		case l.state == linkIdle && ended && l.fd >= 0:
			l.hangUp() // no request was under way on it; the next request connects again
		}
	}
}

// noteEdge restarts the count of connections when the window opens. When the window closes, it counts requests that were
// under way for the whole window as unanswered: a connection that hangs has no other effect before its timeout.
func (g *getter) noteEdge(w *worker, edge int) {
	for i := range g.links {
		l := &g.links[i]
		switch {
		case edge == 0:
			l.counted = false
		case w.phase == window && l.state != linkDown && l.state != linkIdle && l.since < w.trial.edges[0].Load():
			w.countFailure(unanswered)
		}
	}
}

// maintainLinks does the work that no report of the poll starts: it sends first requests, replaces broken connections and
// ends requests that have timed out.
func (g *getter) maintainLinks(w *worker) {
	now := w.trial.now()
	g.looked, w.last = now, now
	for i := range g.links {
		l := &g.links[i]
		switch {
		case l.state == linkIdle && g.open:
		case l.state == linkIdle:
			g.sendRequest(w, l, now)
		case l.state == linkDown && now-l.since < int64(retryPause):
		case l.state == linkDown && g.open:
			g.down--
			g.parkLink(l)
		case l.state == linkDown:
			g.connectLink(w, l)
		case l.state != linkDown && now-l.since > int64(w.trial.o.Timeout):
			g.failLink(w, l, timedOut)
		}
	}
}

// connectLink makes a connection during the trial.
func (g *getter) connectLink(w *worker, l *link) {
	if err := g.beginConnect(w, l); err != nil {
		g.failLink(w, l, kindOfError(err))
		return
	}
	// Over a short path the connection is ready now.
	g.sendRequest(w, l, w.trial.now())
}

// sendRequest sends the request if the connection is ready.
func (g *getter) sendRequest(w *worker, l *link, now int64) {
	n, e := sock.Send(l.fd, g.request, 0)
	waits := e == syscall.EAGAIN && l.state == linkConnecting
	switch {
	case waits:
	case e != 0:
		g.failLink(w, l, kindOfErrno(e))
		return
	case n < len(g.request):
		g.failLink(w, l, memory) // the send queue is empty and refuses a hundred bytes
		return
	}
	if !l.watched {
		what := uint32(arrivals)
		if waits {
			what |= sock.Writable
		}
		if e := g.poll.Add(l.fd, what, l.tag); e != 0 {
			g.failLink(w, l, kindOfErrno(e))
			return
		}
		l.watched = true
	}
	if waits {
		return
	}
	if l.state == linkConnecting && g.each {
		w.recordTime(w.hist.connect, now-l.since)
	}
	l.state, l.since, l.left = linkAsked, now, noHead
	if !g.open {
		l.due = now
	}
}

// receiveResponse handles the bytes that have arrived. ended means that the peer has closed the connection, so no other
// report will come.
func (g *getter) receiveResponse(w *worker, l *link, ended bool) {
	for {
		kept := copy(g.buffer, l.head)
		room, flags := g.buffer[kept:], 0
		if g.each {
			room, flags = g.recvArgs(l, room)
		}
		n, e := sock.Recv(l.fd, room, flags)
		switch {
		case e == syscall.EAGAIN:
			return
		case e != 0:
			g.failLink(w, l, kindOfErrno(e))
			return
		case n == 0:
			g.failLink(w, l, gone)
			return
		}
		if !l.consumeBytes(g.buffer[:kept+n], &g.shares) {
			g.failLink(w, l, protocol)
			return
		}
		if l.left == 0 {
			g.finishRequest(w, l)
			return
		}
		if flags != 0 {
			// It was not the end of the response: receive the bytes that the peek left.
			if _, e := sock.Recv(l.fd, room[:n], 0); e != 0 {
				g.failLink(w, l, kindOfErrno(e))
				return
			}
		}
		if n < len(room) && !ended {
			return
		}
	}
}

// recvArgs returns the buffer and the flags for a recv that leaves the end of a response unread. If the rest of the
// response fits into room, the recv only peeks. Otherwise it receives at most all but the last byte.
func (g *getter) recvArgs(l *link, room []byte) ([]byte, int) {
	if l.left < int64(len(room)) {
		return room, sock.Peek
	}
	return room[:min(int64(len(room)), l.left-1)], 0
}

// consumeBytes parses b, which is the kept part of a head and the next bytes of a response. It returns false if b is
// not a response.
func (l *link) consumeBytes(b []byte, s *shares) bool {
	if l.left == noHead {
		answer, size, fault := httpwire.ReadResponse(b)
		if fault != nil {
			return false
		}
		if size == 0 {
			l.head = append(l.head[:0], b...)
			return true
		}
		l.share = s.findOrAddSlot(answer.Backend, l.share)
		l.answer, l.left, l.head, b = answer, answer.Length, l.head[:0], b[size:]
		l.answer.Backend = nil // the name is in the buffer
	}
	l.left -= int64(len(b))
	return l.left >= 0 // more bytes than the response has are a fault
}

// finishRequest counts a complete response and sends the next request.
func (g *getter) finishRequest(w *worker, l *link) {
	now := w.trial.now()
	if l.answer.Status == 200 {
		w.count.received.Add(uint64(l.answer.Length))
		w.count.operations.Add(1)
		if w.phase == window {
			w.recordTime(w.hist.rtt, now-l.due)
			g.shares.countResponse(l.share, !l.counted)
			l.counted = true
		}
	} else {
		w.countFailure(badStatus)
	}
	w.last = now
	if g.each || l.answer.Close {
		l.hangUp()
	}
	switch {
	case g.open:
		g.parkLink(l)
	case l.fd < 0:
		g.connectLink(w, l)
	default:
		g.sendRequest(w, l, now)
	}
}

// failLink counts the failure of a connection and closes it.
func (g *getter) failLink(w *worker, l *link, k kind) {
	w.countFailure(k)
	l.hangUp()
	l.state, l.since = linkDown, w.trial.now()
	g.down++
}

// hangUp closes the connection, if there is one.
func (l *link) hangUp() {
	if l.fd >= 0 {
		sock.Close(l.fd)
		l.fd = -1
	}
}

func (g *getter) close() {
	for i := range g.links {
		g.links[i].hangUp()
	}
	g.poll.Close()
}
