package sock

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What Await waits for. Errors and hang-ups end it unasked.
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

// Await waits until fd is ready for what, at most limit ns, by the clock of the timers: 0 also when the time is up.
// Raw.
func Await(fd int, what int16, limit int64) syscall.Errno {
	p := pollfd{fd: int32(fd), events: what}
	ts := unix.NsecToTimespec(max(limit, 0))
	_, _, e := syscall.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&p)), 1, uintptr(unsafe.Pointer(&ts)), 0, 0, 0)
	return e
}
