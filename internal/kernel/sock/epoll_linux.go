package sock

import (
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The events that a Poll watches for, and reports. Errors and hang-ups are always reported.
const (
	Readable = unix.EPOLLIN
	Writable = unix.EPOLLOUT
	// PeerClosed is reported when the peer has ended its direction.
	PeerClosed = unix.EPOLLRDHUP
	// Edge requests one report of each change instead of one from each Wait while the state lasts.
	Edge = unix.EPOLLET
)

// NonBlocking is a flag of Socket's kind and of AcceptNow: calls return EAGAIN (connect: EINPROGRESS) instead of
// waiting.
const NonBlocking = unix.SOCK_NONBLOCK

// Poll is an epoll instance with room for the reports of one Wait. It is for one thread.
type Poll struct {
	fd     int
	events []unix.EpollEvent
}

// OpenPoll opens a Poll that takes up to batch reports at a time; batch is at least 1.
func OpenPoll(batch int) (*Poll, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	return &Poll{fd: fd, events: make([]unix.EpollEvent, batch)}, nil
}

// Close closes the instance; what it watches stays open.
func (p *Poll) Close() syscall.Errno { return Close(p.fd) }

// Descriptor returns the epoll instance's own descriptor. It is readable (Input) when there are reports.
func (p *Poll) Descriptor() int { return p.fd }

// Add watches fd for the events in what. A report about fd carries tag. Closing fd ends the watch. The call is raw.
func (p *Poll) Add(fd int, what uint32, tag uint32) syscall.Errno {
	return p.epollCtl(unix.EPOLL_CTL_ADD, fd, what, tag)
}

// Change replaces the watched events and the tag of fd, which must have been added. The call is raw.
func (p *Poll) Change(fd int, what uint32, tag uint32) syscall.Errno {
	return p.epollCtl(unix.EPOLL_CTL_MOD, fd, what, tag)
}

// Remove stops watching fd, which must have been added. The call is raw.
func (p *Poll) Remove(fd int) syscall.Errno { return p.epollCtl(unix.EPOLL_CTL_DEL, fd, 0, 0) }

func (p *Poll) epollCtl(verb, fd int, what, tag uint32) syscall.Errno {
	e := unix.EpollEvent{Events: what, Fd: int32(tag)} // the kernel hands the data back as they are
	_, _, errno := syscall.RawSyscall6(unix.SYS_EPOLL_CTL, uintptr(p.fd), uintptr(verb), uintptr(fd),
		uintptr(unsafe.Pointer(&e)), 0, 0)
	return errno
}

// Wait waits for reports, at most limit milliseconds; a negative limit means forever. It returns their number. Raw.
func (p *Poll) Wait(limit int) (int, syscall.Errno) {
	n, _, e := syscall.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(p.fd), uintptr(unsafe.Pointer(&p.events[0])),
		uintptr(len(p.events)), uintptr(limit), 0, 0)
	return reportCount(n, e), e
}

// WaitPolite waits like Wait, but tells the Go scheduler that the thread may block.
func (p *Poll) WaitPolite(limit int) (int, syscall.Errno) {
	n, _, e := syscall.Syscall6(unix.SYS_EPOLL_PWAIT, uintptr(p.fd), uintptr(unsafe.Pointer(&p.events[0])),
		uintptr(len(p.events)), uintptr(limit), 0, 0)
	return reportCount(n, e), e
}

func reportCount(n uintptr, e syscall.Errno) int {
	if e != 0 {
		return 0
	}
	return int(n)
}

// Report returns report i of the last Wait.
func (p *Poll) Report(i int) (what, tag uint32) { return p.events[i].Events, uint32(p.events[i].Fd) }

// AcceptNow accepts a pending connection; without one it returns EAGAIN. flags may have NonBlocking. Raw.
func AcceptNow(fd, flags int) (int, syscall.Errno) {
	n, _, e := syscall.RawSyscall6(unix.SYS_ACCEPT4, uintptr(fd), 0, 0, uintptr(flags|unix.SOCK_CLOEXEC), 0, 0)
	return int(n), e
}

// Failure returns and clears the pending error of a socket, for example of a non-blocking connect. It returns 0 if
// there is none.
func Failure(fd int) syscall.Errno {
	e, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
	if err != nil {
		return syscall.EBADF // nothing else is possible with a socket
	}
	return syscall.Errno(e)
}

// SetNonBlocking makes the calls on fd return instead of waiting.
func SetNonBlocking(fd int) error {
	return os.NewSyscallError("fcntl O_NONBLOCK", unix.SetNonblock(fd, true))
}

// Descriptors returns how many descriptors this process may have open.
func Descriptors() (uint64, error) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 0, os.NewSyscallError("getrlimit RLIMIT_NOFILE", err)
	}
	return limit.Cur, nil
}

// The events that Await waits for. Errors and hang-ups always end it.
const (
	Input  = unix.POLLIN
	Output = unix.POLLOUT
)

// DontWait makes one call of Send or Recv return EAGAIN instead of waiting.
const DontWait = unix.MSG_DONTWAIT

// pollfd mirrors struct pollfd.
type pollfd struct {
	fd              int32
	events, revents int16
}

// Await waits until fd is ready for one of the events in what, at most limit ns. It also returns 0 if the limit passes.
// Raw.
func Await(fd int, what int16, limit int64) syscall.Errno {
	p := pollfd{fd: int32(fd), events: what}
	ts := unix.NsecToTimespec(max(limit, 0))
	_, _, e := syscall.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&p)), 1, uintptr(unsafe.Pointer(&ts)), 0, 0, 0)
	return e
}

// AwaitPolite waits like Await, but tells the Go scheduler that the thread may block.
func AwaitPolite(fd int, what int16, limit int64) syscall.Errno {
	p := pollfd{fd: int32(fd), events: what}
	ts := unix.NsecToTimespec(max(limit, 0))
	_, _, e := syscall.Syscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&p)), 1, uintptr(unsafe.Pointer(&ts)), 0, 0, 0)
	return e
}

// Outcome reports whether a non-blocking connect has ended, and returns its result. It does not wait.
func Outcome(fd int) (ended bool, e syscall.Errno) {
	p := pollfd{fd: int32(fd), events: Output}
	var ts unix.Timespec
	n, _, _ := syscall.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&p)), 1, uintptr(unsafe.Pointer(&ts)), 0, 0, 0)
	if n != 1 {
		return false, 0
	}
	return true, Failure(fd)
}

// Disconnect ends the connection of a TCP socket, or its attempt to connect, without waiting. The socket can connect
// again.
func Disconnect(fd int) syscall.Errno {
	none := Addr{size: uint32(unix.SizeofSockaddrInet4)} // of family AF_UNSPEC
	return ConnectPolite(fd, &none)
}
