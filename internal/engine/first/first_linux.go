// Package first sends the first request of a new pod as an impatient program would: it dials every millisecond, with a
// socket for each attempt, until a request is answered or the time is up.
//
// A single attempt would measure the kernel's retransmission timeout instead of the network: the kernel repeats a
// dropped SYN after 1 s. Earlier attempts stay open, because one of them may be under way on a long path. The time
// between attempts is Step for the first Steps attempts. After that it is a hundredth of the time since the first. So a
// time is accurate to 1 ms or to a hundredth, and a pod dials at most 494 times in 5 s and 743 times in a minute.
package first

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"os"
	"syscall"
	"time"

	"github.com/cnibench/cnibench/internal/kernel/sock"
	"github.com/cnibench/cnibench/internal/kernel/thread"
)

const (
	// Step is the time between the first attempts. Steps is the number of attempts after which that time grows with the
	// time passed.
	Step  = time.Millisecond
	Steps = 100
	// mostOpen bounds the sockets that are open at the same time. The oldest attempt ends for a new one.
	mostOpen = 1024
	// watch is the longest time between two checks of the context.
	watch = 20 * time.Millisecond
)

// Options say what is dialled. Times are of the monotonic clock in ns.
type Options struct {
	To netip.AddrPort
	// Begin is the time from which the steps between attempts grow, End the time at which Request gives up.
	Begin, End int64
	// Open returns a TCP socket that is not connected; nil means one of the calling thread's namespace. (optional)
	Open func() (*os.File, error)
}

// Result is the result of the attempts. Times are of the monotonic clock in ns.
type Result struct {
	// Connected and Answered are when the first answered attempt had its connection and its answer.
	Connected, Answered int64
	// Dials is the number of attempts, CPUNs the CPU time of the thread that made them.
	Dials int
	CPUNs int64
}

// Request dials until a request is answered, o.End is reached or ctx ends. The caller must have locked its goroutine to
// its thread. At o.End it returns the latest failure of an attempt, or a timeout if no attempt has failed.
func Request(ctx context.Context, o Options) (Result, error) {
	used := thread.CPUTime()
	poll, err := sock.OpenPoll(16)
	if err != nil {
		return Result{}, err
	}
	d := &dialling{Options: o, poll: poll, to: sock.NewAddr(o.To, sock.Family(o.To.Addr())), last: os.NewSyscallError("connect", syscall.ETIMEDOUT)}
	err = d.run(ctx)
	d.hangUp()
	d.seen.CPUNs = thread.CPUTime() - used
	return d.seen, err
}

// dialling is the state of one Request.
type dialling struct {
	Options
	poll *sock.Poll
	to   sock.Addr
	// attempts are all attempts so far; the first open one is at oldest.
	attempts     []attempt
	oldest, open int
	last         error
	seen         Result
}

// attempt is one connection. file is nil once it is closed; connected is the time of its connect, 0 until then.
type attempt struct {
	file      *os.File
	fd        int
	connected int64
}

func (d *dialling) run(ctx context.Context) error {
	for next := int64(0); ; {
		now := thread.Monotonic()
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case now >= d.End:
			return d.last
		case now >= next:
			d.beginAttempt()
			next = now + attemptInterval(now-d.Begin)
		}
		limit := min(next, d.End, now+int64(watch)) - thread.Monotonic()
		if e := sock.AwaitPolite(d.poll.Descriptor(), sock.Input, limit); e != 0 && e != syscall.EINTR {
			return os.NewSyscallError("ppoll", e)
		}
		n, e := d.poll.WaitPolite(0)
		if e != 0 && e != syscall.EINTR {
			return os.NewSyscallError("epoll_wait", e)
		}
		for i := range n {
			if _, tag := d.poll.Report(i); d.advanceAttempt(tag) {
				return nil
			}
		}
	}
}

// attemptInterval returns the time from one attempt to the next. passed is the time since Options.Begin. Both are in
// ns.
func attemptInterval(passed int64) int64 { return max(int64(Step), passed/Steps) }

// beginAttempt begins an attempt. If too many are open, it ends the oldest first. It keeps a failure in d.last.
func (d *dialling) beginAttempt() {
	if d.open >= mostOpen {
		d.dropOldest()
	}
	a := attempt{}
	err := d.openSocket(&a)
	if errors.Is(err, syscall.EMFILE) && d.open > 0 {
		d.dropOldest()
		err = d.openSocket(&a)
	}
	d.seen.Dials++
	if err != nil {
		d.last = err
		return
	}
	e := sock.ConnectPolite(a.fd, &d.to)
	if e == 0 || e == syscall.EINPROGRESS {
		e = d.poll.Add(a.fd, sock.Writable, uint32(len(d.attempts)))
	}
	if e != 0 {
		d.last = os.NewSyscallError("connect", e)
		a.close()
		return
	}
	d.attempts = append(d.attempts, a)
	d.open++
}

// openSocket opens the socket of an attempt.
func (d *dialling) openSocket(a *attempt) error {
	if d.Open != nil {
		file, err := d.Open()
		if err != nil {
			return err
		}
		a.file, a.fd = file, int(file.Fd())
		return sock.SetNonBlocking(a.fd)
	}
	fd, e := sock.Socket(d.to.Family(), sock.Stream|sock.NonBlocking, 0)
	if e != 0 {
		return os.NewSyscallError("socket", e)
	}
	a.file, a.fd = os.NewFile(uintptr(fd), "first"), fd
	return nil
}

// advanceAttempt takes the next step of an attempt after an event. It reports whether the attempt has its answer.
func (d *dialling) advanceAttempt(tag uint32) (answered bool) {
	a := &d.attempts[tag]
	if a.file == nil { // reported together with a failure before
		return false
	}
	err := func() error {
		if a.connected == 0 {
			return d.sendRequest(a, tag)
		}
		// The answer is left unread: closing the socket then resets the connection at both ends.
		n, e := sock.RecvPolite(a.fd, []byte{0}, sock.Peek|sock.DontWait)
		switch {
		case e == syscall.EAGAIN || e == syscall.EINTR:
			return nil
		case e != 0:
			return os.NewSyscallError("recv", e)
		case n == 0:
			return errors.Join(io.EOF, syscall.ECONNRESET)
		}
		answered, d.seen.Connected, d.seen.Answered = true, a.connected, thread.Monotonic()
		return nil
	}()
	if err != nil {
		d.last = err
		d.dropAttempt(a)
	}
	return answered
}

// sendRequest sends the request of an attempt whose connect has ended.
func (d *dialling) sendRequest(a *attempt, tag uint32) error {
	if e := sock.Failure(a.fd); e != 0 {
		return os.NewSyscallError("connect", e)
	}
	a.connected = thread.Monotonic()
	if _, e := sock.Send(a.fd, []byte{0}, sock.DontWait); e != 0 {
		return os.NewSyscallError("send", e)
	}
	if e := d.poll.Change(a.fd, sock.Readable, tag); e != 0 {
		return os.NewSyscallError("epoll_ctl", e)
	}
	return nil
}

// dropAttempt ends an attempt.
func (d *dialling) dropAttempt(a *attempt) {
	if a.file != nil {
		a.close()
		d.open--
	}
}

// dropOldest ends the attempt that was begun first.
func (d *dialling) dropOldest() {
	for d.attempts[d.oldest].file == nil {
		d.oldest++
	}
	d.dropAttempt(&d.attempts[d.oldest])
}

// hangUp ends all attempts and closes the poll. A connected attempt that has sent nothing sends its request first,
// because a server counts a connection without a request as failed.
func (d *dialling) hangUp() {
	for i := range d.attempts {
		a := &d.attempts[i]
		if a.file == nil {
			continue
		}
		if ended, e := sock.Outcome(a.fd); a.connected == 0 && ended && e == 0 {
			_, _ = sock.Send(a.fd, []byte{0}, sock.DontWait) // it is closed next
		}
		d.dropAttempt(a)
	}
	d.poll.Close()
}

func (a *attempt) close() {
	_ = a.file.Close() // nothing was written to it
	a.file = nil
}
