package thread

import (
	"errors"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// pulseSignal is a real-time signal without another use in the program. Go's runtime ignores a signal that the program
// did not ask for.
const pulseSignal = 44

// restart is SA_RESTART.
const restart = 0x10000000

// Pulse is a kernel timer that interrupts the blocking system calls of one thread at regular times, so that they return
// EINTR. It costs nothing per call, whereas a timeout on a socket sets and cancels a timer each time the socket blocks.
// It needs no other thread.
type Pulse struct{ timer int32 }

// sigaction is the part of the kernel's struct sigaction that is the same on all architectures: the handler, then the
// flags.
type sigaction struct {
	handler, flags uintptr
	rest           [6]uintptr
}

// sigevent mirrors struct sigevent.
type sigevent struct {
	value          uintptr
	signal, notify int32
	tid            int32
	_              [44]byte
}

// StartPulse interrupts the blocking calls of the calling thread once every interval. The caller must have locked its
// goroutine to the thread, and must stop the pulse before the thread ends.
func StartPulse(every time.Duration) (Pulse, error) {
	if err := clearRestart(); err != nil {
		return Pulse{}, err
	}
	const sigevThreadID = 4
	event := sigevent{signal: pulseSignal, notify: sigevThreadID, tid: int32(unix.Gettid())}
	var p Pulse
	_, _, e := syscall.RawSyscall(unix.SYS_TIMER_CREATE, unix.CLOCK_MONOTONIC, uintptr(unsafe.Pointer(&event)),
		uintptr(unsafe.Pointer(&p.timer)))
	if e != 0 {
		return Pulse{}, os.NewSyscallError("timer_create", e)
	}
	ts := unix.NsecToTimespec(every.Nanoseconds())
	times := unix.ItimerSpec{Interval: ts, Value: ts}
	if _, _, e := syscall.RawSyscall6(unix.SYS_TIMER_SETTIME, uintptr(p.timer), 0, uintptr(unsafe.Pointer(&times)), 0, 0, 0); e != 0 {
		p.Stop()
		return Pulse{}, os.NewSyscallError("timer_settime", e)
	}
	return p, nil
}

// Stop ends the pulse.
func (p Pulse) Stop() {
	// The timer exists, so this cannot fail.
	_, _, _ = syscall.RawSyscall(unix.SYS_TIMER_DELETE, uintptr(p.timer), 0, 0)
}

// clearRestart removes SA_RESTART from the handler of the signal: with it, the kernel would restart interrupted calls.
func clearRestart() error {
	var action sigaction
	if _, _, e := syscall.RawSyscall6(unix.SYS_RT_SIGACTION, pulseSignal, 0, uintptr(unsafe.Pointer(&action)), 8, 0, 0); e != 0 {
		return os.NewSyscallError("rt_sigaction", e)
	}
	if action.handler <= 1 { // SIG_DFL, which would end the process, or SIG_IGN
		return errors.New("the Go runtime has no handler for the signal of the pulse")
	}
	if action.flags&restart == 0 {
		return nil
	}
	action.flags &^= restart
	if _, _, e := syscall.RawSyscall6(unix.SYS_RT_SIGACTION, pulseSignal, uintptr(unsafe.Pointer(&action)), 0, 8, 0, 0); e != 0 {
		return os.NewSyscallError("rt_sigaction", e)
	}
	return nil
}
