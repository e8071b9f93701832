package thread

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// mostCPUs bounds the CPU numbers, as the kernel's mask type in package unix does.
const mostCPUs = 1024

// CPUs returns the CPUs on which the calling thread may run, in ascending order.
func CPUs() ([]int, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, os.NewSyscallError("sched_getaffinity", err)
	}
	var cpus []int
	for c := range mostCPUs {
		if set.IsSet(c) {
			cpus = append(cpus, c)
		}
	}
	return cpus, nil
}

// SetCPUs confines the calling thread, and the processes that it starts from then on, to cpus. The goroutine must be
// locked to its thread.
func SetCPUs(cpus []int) error {
	return os.NewSyscallError("sched_setaffinity", unix.SchedSetaffinity(0, maskOf(cpus)))
}

func maskOf(cpus []int) *unix.CPUSet {
	var set unix.CPUSet
	for _, c := range cpus {
		set.Set(c)
	}
	return &set
}

// SetProcessCPUs confines every present thread of this process to cpus. Threads that start later inherit these CPUs.
func SetProcessCPUs(cpus []int) error {
	// A thread may start another between the listing and its own confinement; the second pass finds that one.
	for range 2 {
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return err
		}
		for _, e := range threads {
			tid, err := strconv.Atoi(e.Name())
			if err != nil {
				return err
			}
			if err := setAffinity(tid, maskOf(cpus)); err != nil {
				return fmt.Errorf("confine own thread %d to CPUs %v: %w", tid, cpus, err)
			}
		}
	}
	return nil
}

// setAffinity confines a thread to set, unless the thread has ended.
func setAffinity(tid int, set *unix.CPUSet) error {
	var now unix.CPUSet
	if err := unix.SchedGetaffinity(tid, &now); err == nil && now == *set {
		return nil
	}
	err := unix.SchedSetaffinity(tid, set)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	return os.NewSyscallError("sched_setaffinity", err)
}
