package probe

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/kernel/proc"
	"github.com/cnibench/cnibench/internal/kernel/thread"
	"github.com/cnibench/cnibench/internal/measure/sample"
)

const (
	// busyTime is how long the thread sends: about twenty ticks of /proc/stat.
	busyTime = 200 * time.Millisecond
	// attempts bounds how often an undecided measurement is continued: on a busy CPU it meets few ticks.
	attempts = 5
)

// IRQTime measures on CPU n, in about 1 s at most, whether the kernel excludes interrupt time from the CPU clocks of tasks.
// It returns facts.IRQApart, facts.IRQInTask, or "" if undecided. A thread sends datagrams over the loopback of a
// throwaway namespace, or of its own if that is a pod's, so that about half of its time is softirq. It then compares its
// CPU clock with the real time. The kernel's configuration does not decide this: accounting that was compiled in may be
// off at run time.
func IRQTime(ctx context.Context, n int, pod bool) (verdict string, err error) {
	var all interval
	for range attempts {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		var i interval
		if pod {
			i, err = sendFromPod(n)
		} else {
			err = runInThrowaway(ctx, func(_ context.Context, h *link.Handle) error {
				if err := h.Up(link.Loopback); err != nil {
					return err
				}
				i, err = sendBusily(n)
				return err
			})
		}
		if err != nil {
			return "", fmt.Errorf("probe interrupt accounting on CPU %d: %w", n, err)
		}
		all.add(i)
		if verdict = all.irqAccounting(); verdict != "" {
			break
		}
	}
	return verdict, nil
}

// sendFromPod calls sendBusily on a thread of this process's namespace, which ends afterwards.
func sendFromPod(n int) (i interval, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		i, err = sendBusily(n)
	}()
	<-done
	return i, err
}

// sendBusily sends datagrams to its own socket on CPU n for busyTime, and returns how far the clocks advanced. The
// calling thread must be inside the throwaway namespace. It stays pinned, so it must end afterwards.
func sendBusily(n int) (interval, error) {
	if err := thread.SetCPUs([]int{n}); err != nil {
		return interval{}, err
	}
	fd, err := selfConnectedSocket()
	if err != nil {
		return interval{}, err
	}
	defer func() { _ = unix.Close(fd) }()
	begin, err := readClocks(n)
	if err != nil {
		return interval{}, err
	}
	var datagram [64]byte
	for thread.Monotonic()-begin.wall < int64(busyTime) {
		// Lost datagrams do not matter: only the work of sending counts. A thread that could block would have to
		// account for its sleep.
		_, _ = unix.Write(fd, datagram[:])
		_, _, _ = unix.Recvfrom(fd, datagram[:], unix.MSG_DONTWAIT)
	}
	end, err := readClocks(n)
	return interval{
		wall: end.wall - begin.wall, task: end.task - begin.task, wait: end.wait - begin.wait,
		interrupts: end.interrupts - begin.interrupts, steal: end.steal - begin.steal,
	}, err
}

// readClocks reads the clocks and counters of an interval at this moment, those of CPU n and of this thread.
func readClocks(n int) (interval, error) {
	stat, err := proc.Stat()
	if err != nil {
		return interval{}, err
	}
	wait, err := proc.ThreadWait()
	if err != nil {
		return interval{}, err
	}
	line, ok := stat[n]
	if !ok {
		return interval{}, fmt.Errorf("/proc/stat has no line for CPU %d", n)
	}
	return interval{
		wall: thread.Monotonic(), task: thread.CPUTime(), wait: wait,
		interrupts: line.Interrupts(), steal: line[sample.Steal],
	}, nil
}

// selfConnectedSocket returns a UDP socket on the loopback of the thread's namespace that is connected to itself.
func selfConnectedSocket() (int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, os.NewSyscallError("socket", err)
	}
	here := &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}, Port: 9}
	err = os.NewSyscallError("bind", unix.Bind(fd, here))
	if err == nil {
		err = os.NewSyscallError("connect", unix.Connect(fd, here))
	}
	if err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}

// kernelRelease returns the kernel's release, as in uname -r.
func kernelRelease() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Release[:])
}
