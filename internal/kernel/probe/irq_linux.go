package probe

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/kernel/affinity"
	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/kernel/proc"
	"github.com/cnibench/cnibench/internal/kernel/thread"
	"github.com/cnibench/cnibench/internal/measure/cpu"
)

const (
	// busyTime is how long the thread sends: some twenty ticks of /proc/stat.
	busyTime = 200 * time.Millisecond
	// attempts bounds how often an undecided measurement is made again.
	attempts = 3
)

// IRQTime finds out, in at most 0.6 s, whether the kernel keeps interrupt time apart from the CPU clocks of tasks, on
// CPU n. A thread sends datagrams over the loopback of a throwaway namespace, which makes about half of its time
// softirq; the question is whether its clock shows it. The kernel's configuration is evidence only: a feature that
// it allows may be off at run time.
func IRQTime(ctx context.Context, n int) (IRQ, error) {
	ns, err := netns.New()
	if err != nil {
		return IRQ{}, fmt.Errorf("probe interrupt accounting: %w", err)
	}
	// A failed close loses nothing: the kernel removes the namespace with the process.
	defer func() { _ = ns.Close() }()
	var found IRQ
	for range attempts {
		if err := ctx.Err(); err != nil {
			return IRQ{}, err
		}
		var i interval
		if err := ns.Do(func() (err error) {
			i, err = sendBusily(n)
			return err
		}); err != nil {
			return IRQ{}, fmt.Errorf("probe interrupt accounting on CPU %d: %w", n, err)
		}
		if found = (IRQ{Verdict: i.verdict(), Evidence: i.String()}); found.Verdict != "" {
			break
		}
	}
	if s := configured(); s != "" {
		found.Evidence += "; " + s
	}
	return found, nil
}

// sendBusily measures while the calling thread, which is inside the namespace and ends afterwards, sends and receives
// on CPU n.
func sendBusily(n int) (interval, error) {
	if err := affinity.Set([]int{n}); err != nil {
		return interval{}, err
	}
	fd, err := selfConnected()
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
		// What is lost is lost: only the work of sending counts. A thread that may block would have to explain its sleep.
		_, _ = unix.Write(fd, datagram[:])
		_, _, _ = unix.Recvfrom(fd, datagram[:], unix.MSG_DONTWAIT)
	}
	end, err := readClocks(n)
	return interval{
		wall: end.wall - begin.wall, task: end.task - begin.task, wait: end.wait - begin.wait,
		interrupts: end.interrupts - begin.interrupts, steal: end.steal - begin.steal,
	}, err
}

// readClocks reads all that an interval is the difference of.
func readClocks(n int) (interval, error) {
	stat, err := proc.Stat()
	if err != nil {
		return interval{}, err
	}
	sched, err := proc.ThreadSched()
	if err != nil {
		return interval{}, err
	}
	line, ok := stat[n]
	if !ok {
		return interval{}, fmt.Errorf("/proc/stat has no line for CPU %d", n)
	}
	return interval{
		wall: thread.Monotonic(), task: thread.CPUTime(), wait: sched.WaitNs,
		interrupts: line.Interrupts(), steal: line[cpu.Steal],
	}, nil
}

// selfConnected returns a UDP socket on the loopback of the thread's namespace that is connected to itself.
func selfConnected() (int, error) {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return -1, err
	}
	if err := netlink.LinkSetUp(lo); err != nil {
		return -1, err
	}
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

// configured says what the kernel's configuration has to say about interrupt accounting, "" if it cannot be read.
func configured() string {
	const option = "CONFIG_IRQ_TIME_ACCOUNTING"
	for _, name := range []string{"/proc/config.gz", "/boot/config-" + release()} {
		value, err := optionIn(name, option)
		if err != nil {
			continue
		}
		if value == "" {
			return option + " is not set"
		}
		return option + "=" + value
	}
	return ""
}

func optionIn(name, option string) (value string, err error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	var r io.Reader = f
	if name == "/proc/config.gz" {
		if r, err = gzip.NewReader(f); err != nil {
			return "", err
		}
	}
	return ConfigOption(r, option)
}

// release is the kernel's name of itself, as uname -r prints it.
func release() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Release[:])
}
