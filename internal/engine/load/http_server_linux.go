package load

import (
	"net/http"
	"sync/atomic"
	"syscall"

	"github.com/cnibench/cnibench/internal/engine/httpwire"
	"github.com/cnibench/cnibench/internal/kernel/sock"
)

// answerer is the server on one thread, with its own listener on the shared port. It answers every GET with the same
// bytes, which include its name, and every HEAD with their head. One call writes a response. If the socket takes only a
// part, the rest follows when there is room, and until then no request is read. Pipelined requests are answered in
// their order.
type answerer struct {
	poll     *sock.Poll
	listener atomic.Int32 // its descriptor; another one after each roll
	buffer   []byte
	guests   []guest
	free     []uint32 // places without a connection
	lasting  bool     // the workload keeps its connections, so a lost one counts as a failure
	rolls    bool     // the server may leave and return
	round    int32    // number of the latest roll for which it closed everything
	// stay is the response that keeps the connection, leave the response that ends it. refusals are the responses to
	// bad requests by their status.
	stay, leave page
	refusals    map[int][]byte
}

// page is a response. head is the length of its head in bytes.
type page struct {
	bytes []byte
	head  int
}

// guest is one connection, or a free place for one.
type guest struct {
	tag     uint32
	fd      int
	watched uint32 // events that fd is watched for, 0 before it was added
	head    []byte // received bytes of requests that were not answered yet
	again   bool   // head may hold a complete request
	rest    []byte // the unsent rest of the current response
	body    uint64 // bytes of that response's body
	well    bool   // the current response answers a request and is not a refusal
	leaves  bool   // the connection ends after the current response
}

func openAnswerer(w *worker) (flow, error) {
	o := w.trial.o
	if err := sock.SetNonBlocking(w.fd); err != nil {
		return nil, err
	}
	poll, err := sock.OpenPoll(pollBatch)
	if err != nil {
		return nil, err
	}
	if e := poll.Add(w.fd, sock.Readable, listenerTag); e != 0 {
		poll.Close()
		return nil, asError("epoll_ctl", e)
	}
	size := o.Workload.Traits().Response
	a := &answerer{
		poll: poll, buffer: make([]byte, httpwire.MaxHead), lasting: !w.trial.traits.Reconnect, rolls: o.Workload.Traits().Roll,
		stay: newPage(o.Name, size, false), leave: newPage(o.Name, size, true), refusals: map[int][]byte{},
	}
	for _, status := range []int{400, 405, 413, 431, 501, 505} {
		a.refusals[status] = httpwire.AppendHead(nil, status, o.Name, 0, true)
	}
	a.listener.Store(int32(w.fd))
	// Room for the connections of the workload; others make it grow.
	a.guests = make([]guest, 0, o.Workload.Traits().Flows+spareSockets)
	a.free = make([]uint32, 0, cap(a.guests))
	return a, nil
}

func newPage(name string, size int, leaves bool) page {
	head := httpwire.AppendHead(nil, http.StatusOK, name, size, leaves)
	return page{bytes: append(head, incompressibleBytes(size)...), head: len(head)}
}

func (a *answerer) step(w *worker) bool {
	n, e := a.poll.Wait(-1)
	if e != 0 && e != syscall.EINTR {
		return w.loseFlow(kindOfErrno(e))
	}
	if a.rolls && a.closeGuestsIfShut(w) {
		return true
	}
	for i := range n {
		what, tag := a.poll.Report(i)
		if tag == listenerTag {
			a.acceptConnections(w)
			continue
		}
		if g := &a.guests[tag]; g.fd >= 0 {
			a.serveGuest(w, g, what&^(sock.Readable|sock.Writable) != 0)
		}
	}
	return true
}

// acceptConnections accepts up to acceptsAtOnce pending connections, and reads their requests at once.
func (a *answerer) acceptConnections(w *worker) {
	for range acceptsAtOnce {
		fd, e := sock.AcceptNow(int(a.listener.Load()), sock.NonBlocking)
		switch {
		case e == syscall.EAGAIN:
			return
		case e == syscall.EINTR || e == syscall.ECONNABORTED:
		case e != 0:
			if !w.trial.hasReached(stop) && w.trial.rolling.state.Load() != closed { // shut down by Close, or for a roll
				w.countFailure(kindOfErrno(e))
				w.pause()
			}
			return
		default:
			if w.trial.o.Awaits > 0 {
				w.trial.noteClient()
			}
			if a.rolls {
				w.trial.rolling.noteConnection(w.trial.now())
			}
			g := a.allocateGuest(fd)
			a.serveGuest(w, g, false)
			if g.fd >= 0 && g.watched == 0 {
				a.watchGuest(w, g, arrivals)
			}
		}
	}
}

// allocateGuest returns a guest for the connection fd: a free one if possible, otherwise a new one.
func (a *answerer) allocateGuest(fd int) *guest {
	if n := len(a.free); n > 0 {
		g := &a.guests[a.free[n-1]]
		a.free = a.free[:n-1]
		*g = guest{tag: g.tag, fd: fd, head: g.head[:0]}
		return g
	}
	a.guests = append(a.guests, guest{tag: uint32(len(a.guests)), fd: fd})
	return &a.guests[len(a.guests)-1]
}

// serveGuest reads requests and sends responses on a connection until it would block. ended means that the peer has
// closed the connection, so no other report will come.
func (a *answerer) serveGuest(w *worker, g *guest, ended bool) {
	for drained := false; ; {
		switch {
		case len(g.rest) > 0:
			if !a.flushResponse(w, g) {
				return
			}
		case g.leaves:
			a.closeGuest(g)
			return
		case g.again:
			a.readRequest(w, g, a.buffer[:copy(a.buffer, g.head)])
		case drained && !ended:
			return
		default:
			kept := copy(a.buffer, g.head)
			n, e := sock.Recv(g.fd, a.buffer[kept:], 0)
			if e == syscall.EAGAIN {
				return
			}
			if e != 0 || n == 0 {
				a.countLostGuest(w)
				a.closeGuest(g)
				return
			}
			drained = kept+n < len(a.buffer)
			a.readRequest(w, g, a.buffer[:kept+n])
		}
	}
}

// readRequest parses one request of b and queues its response, or a refusal after which the connection ends. It keeps
// the rest of b.
func (a *answerer) readRequest(w *worker, g *guest, b []byte) {
	r, size, fault := httpwire.ReadRequest(b)
	if fault != nil {
		w.countFailure(protocol)
		g.head, g.again = g.head[:0], false
		g.rest, g.body, g.well, g.leaves = a.refusals[fault.Status], 0, false, true
		return
	}
	g.head, g.again = append(g.head[:0], b[size:]...), size > 0 && size < len(b)
	if size == 0 {
		return
	}
	p := &a.stay
	leaves := r.Close || a.rolls && w.trial.rolling.state.Load() != inService
	if leaves {
		p = &a.leave
	}
	g.rest, g.well, g.leaves = p.bytes, true, leaves
	if r.Head {
		g.rest = p.bytes[:p.head]
	}
	g.body = uint64(len(g.rest) - p.head)
}

// flushResponse sends as much of the current response as the socket takes. It returns true when all of it is sent.
func (a *answerer) flushResponse(w *worker, g *guest) bool {
	flags := 0
	if g.leaves && g.well {
		// The close goes out with the last bytes of the response, as serveGuest closes at once. Otherwise a client that ends
		// with a reset would often be first, and a firewall or balancer on the path would see only one side end.
		flags = sock.More
	}
	n, e := sock.Send(g.fd, g.rest, flags)
	switch {
	case e == syscall.EAGAIN || e == syscall.EINTR || e == 0 && n < len(g.rest):
		g.rest = g.rest[max(n, 0):]
		if e == 0 {
			return a.flushResponse(w, g) // a send must block before epoll reports room
		}
		a.watchGuest(w, g, arrivals|sock.Writable)
		return false
	case e != 0:
		a.countLostGuest(w)
		a.closeGuest(g)
		return false
	}
	g.rest = nil
	if g.well {
		w.count.sent.Add(g.body)
		w.count.operations.Add(1)
	}
	return true
}

// watchGuest makes the poll report the events what of the connection. If that fails, it closes the connection.
func (a *answerer) watchGuest(w *worker, g *guest, what uint32) {
	var e syscall.Errno
	switch {
	case g.watched == 0:
		e = a.poll.Add(g.fd, what, g.tag)
	case g.watched != what:
		e = a.poll.Change(g.fd, what, g.tag)
	}
	if e != 0 {
		w.countFailure(kindOfErrno(e))
		a.closeGuest(g)
		return
	}
	g.watched = what
}

// countLostGuest counts a failure if the workload keeps its connections and this one ended within the window, before the
// client may leave.
func (a *answerer) countLostGuest(w *worker) {
	if a.lasting && w.phase == window && w.trial.now() < w.trial.edges[0].Load()+w.trial.earliestLeave() {
		w.countFailure(gone)
	}
}

// closeGuest closes a connection and frees its place.
func (a *answerer) closeGuest(g *guest) {
	sock.Close(g.fd)
	g.fd = -1
	a.free = append(a.free, g.tag)
}

func (a *answerer) close() {
	for i := range a.guests {
		if g := &a.guests[i]; g.fd >= 0 {
			// With a reset, so that nothing lingers. If the kernel refuses the option, the close still works.
			_ = sock.SetAbort(g.fd)
			sock.Close(g.fd)
		}
	}
	a.poll.Close()
}
