package load

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"

	"github.com/cnibench/cnibench/internal/engine/lookup"
	"github.com/cnibench/cnibench/internal/kernel/sock"
	"github.com/cnibench/cnibench/internal/kernel/thread"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/plan/names"
)

// Package lookup decides what to ask; this file has the sockets. In a closed loop a thread has one resolution at a
// time. It makes the system calls of the C library: socket, connect, a send for each query, poll and recv until all
// answers have come, close. With a schedule a thread has many resolutions, and watches them with an epoll instance.
//
// A resolution that is under way at the end of the window continues until it ends. Otherwise the slowest would not
// count.

// resolvConf is the file that names the servers of a pod.
const resolvConf = "/etc/resolv.conf"

// dnsWork returns how one side of dns runs.
func dnsWork(is plan.Traits, client bool) work {
	switch {
	case client:
		return work{open: openResolver}
	case is.Protocol == plan.TCP:
		return work{open: openStreamNameServer, queues: true}
	}
	return work{open: openNameServer, queues: true}
}

// resolver is the client of dns, on one thread.
type resolver struct {
	pace
	poll            *sock.Poll // nil for one resolution at a time
	names           *lookup.Names
	servers         []sock.Addr
	all             []resolution
	free            []uint32 // indexes without a resolution under way
	message, answer []byte
	random          *rand.PCG
	seen            sample.Names
	second          *second // nil if one thread sends both queries
}

// resolution is one resolution with its socket, or a free place for one.
type resolution struct {
	lookup.Lookup
	busy   bool
	fd     int // -1 for none
	due    int64
	unsent []byte // of the queries over TCP
	got    []byte // of the answers over TCP
	cause  kind   // why the last failed server could not be reached
	cut    bool
}

// queriesSize is the size in bytes of a buffer for the two queries of a name over TCP.
const queriesSize = 2 * (2 + 512)

func openResolver(w *worker) (flow, error) {
	is := w.trial.traits
	var text []byte
	if is.Names.Server == names.Cluster {
		var err error
		if text, err = os.ReadFile(resolvConf); err != nil {
			return nil, err
		}
	}
	target := w.trial.targetAddr()
	config := is.Names.Config(target.AddrPort(), string(text))
	n, err := lookup.New(is.Names.Name, config, is.Names.Pair(), is.Protocol == plan.TCP)
	if err != nil {
		return nil, err
	}
	c := &resolver{names: n, message: make([]byte, queriesSize), answer: make([]byte, 1<<16), random: rand.NewPCG(rand.Uint64(), rand.Uint64())}
	for _, s := range config.Servers {
		c.servers = append(c.servers, sock.NewAddr(s, sock.Family(s.Addr())))
	}
	c.pace.initSchedule(w)
	size := 1
	if is.Arrival != "" {
		limit, err := sock.Descriptors()
		if err != nil {
			return nil, err
		}
		size = max(callsLeast, min(callsMost, int(min(limit, 1<<20)-spareSockets)/is.Flows))
		if c.poll, err = sock.OpenPoll(pollBatch); err != nil {
			return nil, err
		}
	}
	c.all = make([]resolution, size)
	for i := range c.all {
		c.all[i].fd = -1
		c.free = append(c.free, uint32(size-1-i))
	}
	w.hist.rtt = w.newTimes()
	if is.Names.Races() {
		c.second = &second{message: make([]byte, queriesSize)}
	}
	return c, nil
}

func (c *resolver) underWayCount() int { return len(c.all) - len(c.free) }

func (c *resolver) step(w *worker) bool {
	c.beginResolutions(w)
	if !c.waitAndReceive(w) {
		return false
	}
	// A closed loop returns between two resolutions, so that a reading of the yardstick does not disturb one.
	for c.poll == nil && c.underWayCount() > 0 && w.trial.phase.Load() == w.phase {
		if !c.waitAndReceive(w) {
			return false
		}
	}
	return true
}

// beginResolutions begins the resolutions that are due.
func (c *resolver) beginResolutions(w *worker) {
	for range sendsAtOnce {
		tag, due, now, ok := c.takePlace(w, &c.free, c.underWayCount())
		if !ok {
			return
		}
		r := &c.all[tag]
		r.busy, r.due, r.cause, r.cut = true, due, failedServer, false
		c.performActions(w, tag, r.Begin(c.names, now, uint32(c.random.Uint64())))
	}
}

// waitAndReceive waits until a message arrives or a resolution is due, and handles what has arrived. It returns false if the
// thread must end.
func (c *resolver) waitAndReceive(w *worker) bool {
	fd, what := -1, int16(sock.Input)
	if c.poll != nil {
		fd = c.poll.Descriptor()
	} else if r := &c.all[0]; r.busy {
		if fd = r.fd; len(r.unsent) > 0 {
			what |= sock.Output
		}
	}
	c.awaitWork(w, fd, what, c.underWayCount())
	switch {
	case c.underWayCount() == 0:
		return true
	case c.poll == nil:
		c.receiveAnswers(w, 0)
	default:
		n, e := c.poll.Wait(0)
		if e != 0 && e != syscall.EINTR {
			return w.loseFlow(kindOfErrno(e))
		}
		for i := range n {
			_, tag := c.poll.Report(i)
			c.receiveAnswers(w, tag)
		}
	}
	c.expireResolutions(w)
	return true
}

// performActions carries out do and the actions that result from it, until the resolution must wait or has ended.
func (c *resolver) performActions(w *worker, tag uint32, do lookup.Do) {
	r := &c.all[tag]
	for do != lookup.Wait {
		if do == lookup.Done {
			c.endResolution(w, tag)
			return
		}
		e := syscall.Errno(0)
		if do == lookup.Reopen {
			var local bool
			if local, e = c.reopenSocket(tag); local {
				r.cause = kindOfErrno(e)
				r.Result = lookup.Failed
				c.endResolution(w, tag)
				return
			}
		}
		if e == 0 {
			e = c.sendQueries(w, r)
		}
		do = lookup.Wait
		if e != 0 {
			r.cause = kindOfErrno(e)
			do = r.Refuse(w.trial.now())
		}
	}
	if c.until == 0 || r.Deadline < c.until {
		c.until = r.Deadline
	}
}

// reopenSocket opens a new socket for a resolution and connects it to the server that is queried. local reports whether
// this machine, not the server, is the cause of a failure.
func (c *resolver) reopenSocket(tag uint32) (local bool, e syscall.Errno) {
	r := &c.all[tag]
	r.close()
	to := &c.servers[r.Server()]
	kind := sock.Datagram | sock.NonBlocking
	if r.Stream {
		kind = sock.Stream | sock.NonBlocking
	}
	if r.fd, e = sock.Socket(to.Family(), kind, 0); e != 0 {
		r.fd = -1
		return true, e
	}
	if r.Stream && sock.SetAbort(r.fd) != nil { // so that no TIME_WAIT remains
		return true, syscall.EOPNOTSUPP
	}
	if e := sock.Connect(r.fd, to); e != 0 && e != syscall.EINPROGRESS {
		return e == syscall.EADDRNOTAVAIL || e == syscall.EPERM, e
	}
	if c.poll != nil {
		if e := c.poll.Add(r.fd, arrivals|sock.Writable, tag); e != 0 {
			return true, e
		}
	}
	return false, 0
}

// begin starts the schedule, and the second thread if there is one.
func (c *resolver) begin(w *worker) {
	c.pace.begin(w)
	if c.second != nil {
		w.trial.roster.tasks.Go(func() { c.second.run(w.trial) })
	}
}

// second is a thread that sends the second query of a name at the instant of the first. It runs on another CPU than
// the load's thread if there is another.
type second struct {
	message       []byte
	fd            int
	wanted, given atomic.Uint64 // queries to send, and queries sent
	over          atomic.Bool
}

func (s *second) run(t *Trial) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for !s.over.Load() && !t.hasReached(stop) {
		if n := s.wanted.Load(); n != s.given.Load() {
			_, _ = sock.Send(s.fd, s.message, 0) // a full socket buffer loses the query
			s.given.Store(n)
			continue
		}
		thread.Yield()
	}
}

// sendBothQueries sends both queries of a resolution at the same instant, one of them by the second thread.
func (c *resolver) sendBothQueries(w *worker, r *resolution) syscall.Errno {
	s := c.second
	m := r.Due(c.message)
	s.message, s.fd = r.Due(s.message[:queriesSize]), r.fd
	s.wanted.Add(1)
	_, e := sock.Send(r.fd, m, 0)
	for s.given.Load() != s.wanted.Load() && !w.trial.hasReached(stop) { // the second thread ends with the trial
		thread.Yield()
	}
	w.count.sent.Add(uint64(len(m) + len(s.message)))
	if isRetryable(e) {
		e = 0
	}
	return e
}

// sendQueries sends the queries that are due.
func (c *resolver) sendQueries(w *worker, r *resolution) syscall.Errno {
	if c.second != nil && !r.Stream && r.Both() {
		return c.sendBothQueries(w, r)
	}
	for m := r.Due(c.message); m != nil; m = r.Due(c.message) {
		if r.Stream {
			r.unsent = append(r.unsent, m...)
			continue
		}
		w.count.sent.Add(uint64(len(m)))
		if _, e := sock.Send(r.fd, m, 0); e != 0 && !isRetryable(e) { // a full socket buffer loses the query
			return e
		}
	}
	return c.sendUnsentQueries(w, r)
}

// sendUnsentQueries sends what is left of the queries over TCP, as much as the socket accepts.
func (c *resolver) sendUnsentQueries(w *worker, r *resolution) syscall.Errno {
	for len(r.unsent) > 0 {
		n, e := sock.Send(r.fd, r.unsent, 0)
		switch {
		case e == syscall.EINTR:
		case e == syscall.EAGAIN || e == syscall.ENOTCONN:
			return 0 // of the connect, or of a queue that is full
		case e != 0:
			return e
		default:
			w.count.sent.Add(uint64(n))
			r.unsent = r.unsent[:copy(r.unsent, r.unsent[n:])]
		}
	}
	return 0
}

// receiveAnswers takes the answers to a resolution that have come.
func (c *resolver) receiveAnswers(w *worker, tag uint32) {
	r := &c.all[tag]
	for r.busy {
		e := c.sendUnsentQueries(w, r)
		n := 0
		if e == 0 {
			n, e = sock.Recv(r.fd, c.answer, sock.DontWait)
		}
		switch {
		case e == syscall.EINTR:
			continue
		case isRetryable(e) || e == syscall.ENOTCONN:
			return
		case e == 0 && n == 0 && r.Stream:
			e = syscall.ECONNRESET
		}
		do, now := lookup.Wait, w.trial.now()
		switch {
		case e != 0:
			r.cause = kindOfErrno(e)
			do = r.Refuse(now)
		case r.Stream:
			w.count.received.Add(uint64(n))
			r.got = append(r.got, c.answer[:n]...)
			do = r.takeStreamMessages(now)
		default:
			w.count.received.Add(uint64(n))
			do = r.Take(c.answer[:n], now)
			r.cut = r.cut || r.Stream
		}
		c.performActions(w, tag, do)
	}
}

// takeStreamMessages handles the complete messages among the bytes that have arrived over TCP. It returns the next action of
// the resolution.
func (r *resolution) takeStreamMessages(now int64) (do lookup.Do) {
	for do == lookup.Wait {
		message, rest := firstMessage(r.got)
		if message == nil {
			break
		}
		do = r.Take(message, now)
		r.got = r.got[:copy(r.got, rest)]
	}
	return do
}

// firstMessage returns the first message of a stream without its length prefix, and the bytes after it. message is nil
// if the first message is incomplete.
func firstMessage(stream []byte) (message, rest []byte) {
	if len(stream) < 2 {
		return nil, stream
	}
	size := 2 + int(binary.BigEndian.Uint16(stream))
	if len(stream) < size {
		return nil, stream
	}
	return stream[2:size], stream[size:]
}

// expireResolutions makes the resolutions whose deadline has passed repeat a query or end.
func (c *resolver) expireResolutions(w *worker) {
	now := w.trial.now()
	if now < c.until {
		return
	}
	c.until = math.MaxInt64
	for tag := range c.all {
		r := &c.all[tag]
		if r.busy {
			c.performActions(w, uint32(tag), r.Expire(now))
		}
		if r.busy {
			c.until = min(c.until, r.Deadline)
		}
	}
}

// endResolution counts a resolution, and frees its place. An open loop's resolution that was due before the window does not
// count.
func (c *resolver) endResolution(w *worker, tag uint32) {
	r := &c.all[tag]
	r.close()
	r.busy = false
	c.free = append(c.free, tag) // has room for all
	if c.lag != nil && r.due < w.edges[0].at {
		return
	}
	if w.phase == window {
		c.seen.Queries += uint64(r.Queries)
		if r.Timeouts > 0 {
			c.seen.Waited++
		}
		if r.cut {
			c.seen.Cut++
		}
	}
	switch r.Result {
	case lookup.Found:
		w.countResponse(r.due, w.trial.now())
		return
	case lookup.NoName:
		w.countFailure(noName)
	case lookup.TimedOut:
		w.countFailure(timedOut)
	default:
		w.countFailure(r.cause)
	}
	if c.lag == nil {
		w.pause() // a closed loop would begin the next resolution at once
	}
}

func (r *resolution) close() {
	if r.fd >= 0 {
		sock.Close(r.fd)
	}
	r.fd, r.unsent, r.got = -1, r.unsent[:0], r.got[:0]
}

// noteEdge stores the counts of the schedule at an edge. At the end of the window it also waits until the pending
// resolutions have ended. They count, but the extra time does not.
func (c *resolver) noteEdge(w *worker, edge int) {
	c.pace.noteEdge(w, edge)
	if edge == 0 {
		return
	}
	c.schedule = schedule{}
	defer c.stopSecondThread()
	for c.underWayCount() > 0 && !w.trial.hasReached(stop) && c.waitAndReceive(w) {
	}
	w.idle = true // the thread's window ended with the trial's; see edgeTally
}

// stopSecondThread ends the second thread.
func (c *resolver) stopSecondThread() {
	if c.second != nil {
		c.second.over.Store(true)
	}
}

func (c *resolver) close() {
	c.stopSecondThread()
	for i := range c.all {
		c.all[i].close()
	}
	if c.poll != nil {
		c.poll.Close()
	}
}

// sumNames adds up the counts of resolutions of the client's threads. It returns nil for workloads other than dns.
func sumNames(workers []*worker) (sum *sample.Names) {
	for _, w := range workers {
		c, ok := w.flow.(*resolver)
		if !ok {
			continue
		}
		if sum == nil {
			sum = &sample.Names{}
		}
		sum.Queries += c.seen.Queries
		sum.Waited += c.seen.Waited
		sum.Cut += c.seen.Cut
	}
	return sum
}

// nameServer is the server of dns over UDP, for one name.
type nameServer struct {
	server           *lookup.Server
	question, answer []byte
	from             sock.Addr
}

func newNameServer(w *worker) (nameServer, error) {
	s, err := lookup.NewServer(w.trial.traits.Names.Name)
	return nameServer{server: s, question: make([]byte, 1<<16), answer: make([]byte, 0, lookup.MaxMessage)}, err
}

func openNameServer(w *worker) (flow, error) {
	s, err := newNameServer(w)
	return &s, err
}

func (s *nameServer) step(w *worker) bool {
	n, e := sock.RecvFrom(w.fd, s.question, &s.from)
	if e != 0 {
		return w.survivesDatagramError(e)
	}
	if n == 0 {
		return !w.trial.hasReached(stop) // an empty datagram, or the socket was shut down
	}
	w.count.received.Add(uint64(n))
	answer := s.server.Answer(s.question[:n], s.answer)
	if answer == nil {
		return true
	}
	if n, e = sock.SendTo(w.fd, answer, &s.from); e != 0 {
		return w.survivesDatagramError(e)
	}
	w.count.sent.Add(uint64(n))
	w.count.operations.Add(1)
	return true
}

// streamNameServer is the server of dns over TCP. It answers the queries of a connection until the client ends it.
type streamNameServer struct {
	nameServer
	framed []byte // an answer with its length prefix
}

func openStreamNameServer(w *worker) (flow, error) {
	s, err := newNameServer(w)
	return &streamNameServer{s, make([]byte, 0, 2+lookup.MaxMessage)}, err
}

func (s *streamNameServer) step(w *worker) bool {
	fd, e := sock.Accept(w.fd)
	switch {
	case isRetryable(e):
		return true
	case e != 0 && w.trial.hasReached(stop):
		return false // Close has shut the listener down
	case e != 0:
		w.countFailure(kindOfErrno(e))
		w.pause()
		return true
	}
	w.last = 0
	got := 0
	for e == 0 {
		n := 0
		n, e = sock.Recv(fd, s.question[got:], 0)
		if e != 0 {
			e = w.exchangeErrno(e)
			continue
		}
		if n == 0 {
			break
		}
		w.count.received.Add(uint64(n))
		w.last = 0
		if got, e = s.answerQueries(w, fd, got+n); got == len(s.question) {
			break
		}
	}
	sock.Close(fd)
	if k := kindOfErrno(e); e != 0 && k != reset && !w.trial.hasReached(after) {
		w.countFailure(k)
	}
	return true
}

// answerQueries answers the complete messages among got bytes. It returns how many bytes of an incomplete message remain.
func (s *streamNameServer) answerQueries(w *worker, fd, got int) (left int, e syscall.Errno) {
	for {
		message, rest := firstMessage(s.question[:got])
		if message == nil {
			return got, 0
		}
		answer := s.server.Answer(message, s.answer)
		got = copy(s.question, rest)
		if answer == nil {
			continue
		}
		out := binary.BigEndian.AppendUint16(s.framed[:0], uint16(len(answer)))
		out = append(out, answer...)
		if e := w.sendWithTimeout(fd, out); e != 0 {
			return got, e
		}
		w.count.sent.Add(uint64(len(out)))
		w.count.operations.Add(1)
	}
}
