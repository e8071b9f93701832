// Package thread has system calls of a locked OS thread about itself: its CPU, its CPU clock, a precise sleep.
//
// The caller has locked its goroutine to the thread. Calls are raw in the sense of package sock: no scheduler, no
// allocation. Times are ns.
package thread

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// SharpTimers sets the slack of the calling thread's timers from the default 50 us to 1 ns.
func SharpTimers() error {
	return os.NewSyscallError("prctl PR_SET_TIMERSLACK", unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0))
}

// Prefer gives the calling thread a nice value, from -20 to 19. A lower value than the present one needs
// CAP_SYS_NICE.
func Prefer(nice int) error {
	return os.NewSyscallError("setpriority", unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), nice))
}

// ID returns the calling thread's id.
func ID() int { return unix.Gettid() }

// Kick interrupts a blocking system call of thread id of this process, which returns EINTR. The signal is SIGURG, which
// the Go runtime uses for the same purpose and ignores. A thread that has ended is not an error.
func Kick(id int) {
	_ = unix.Tgkill(unix.Getpid(), id, unix.SIGURG)
}

// CPUTime returns the CPU time that the calling thread has used.
func CPUTime() int64 { return readClock(unix.CLOCK_THREAD_CPUTIME_ID) }

// CPUTimeOf returns the CPU time of thread id of this process until now, even while the thread runs. It returns false
// if the thread has ended.
func CPUTimeOf(id int) (int64, bool) {
	const ofThread = 6 // CPUCLOCK_SCHED of one thread, in include/linux/posix-timers.h
	var ts unix.Timespec
	_, _, e := syscall.RawSyscall(unix.SYS_CLOCK_GETTIME, uintptr(int32(^id<<3|ofThread)), uintptr(unsafe.Pointer(&ts)), 0)
	return ts.Nano(), e == 0
}

// State returns the kernel's letter for the state of thread id of this process. For example, R is a thread that runs or
// is ready to run. It returns 0 if the thread has ended.
func State(id int) byte {
	b, _ := os.ReadFile("/proc/self/task/" + strconv.Itoa(id) + "/stat")
	// The name of the thread, in parentheses, may contain anything.
	if i := bytes.LastIndexByte(b, ')'); i >= 0 && i+2 < len(b) {
		return b[i+2]
	}
	return 0
}

// ProcessCPUTime returns the CPU time of all threads of the process, ended ones included.
func ProcessCPUTime() int64 { return readClock(unix.CLOCK_PROCESS_CPUTIME_ID) }

// Yield lets other threads that are ready to run on this CPU run first.
func Yield() { _, _, _ = syscall.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }

// Monotonic returns CLOCK_MONOTONIC, the clock of SleepUntil.
func Monotonic() int64 { return readClock(unix.CLOCK_MONOTONIC) }

// SleepUntil sleeps until CLOCK_MONOTONIC shows at; a signal may end it early.
func SleepUntil(at int64) {
	ts := unix.NsecToTimespec(max(at, 0))
	// After an early return, the caller reads the clock again anyway.
	_, _, _ = syscall.RawSyscall6(unix.SYS_CLOCK_NANOSLEEP, unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME,
		uintptr(unsafe.Pointer(&ts)), 0, 0, 0)
}

func readClock(clock int32) int64 {
	var ts unix.Timespec
	// The clocks above exist on every Linux; the call cannot fail.
	_, _, _ = syscall.RawSyscall(unix.SYS_CLOCK_GETTIME, uintptr(clock), uintptr(unsafe.Pointer(&ts)), 0)
	return ts.Nano()
}

// ProcessTreeCPUTime returns the CPU time in ns of this process and of the children that it has waited for.
func ProcessTreeCPUTime() int64 { return ProcessCPUTime() + ChildrenCPUTime() }

// ChildrenCPUTime returns the CPU time in ns of the children that this process has waited for.
func ChildrenCPUTime() int64 {
	var children unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_CHILDREN, &children) // never fails for a valid address
	return children.Utime.Nano() + children.Stime.Nano()
}
