package affinity

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// SetProcess confines every thread that this process has now to cpus. Threads that are started later inherit it
// from these, until they confine themselves otherwise.
func SetProcess(cpus []int) error {
	// A thread may start another between the listing and its own confinement; the second look finds that one.
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
			if err := confine(tid, maskOf(cpus)); err != nil {
				return fmt.Errorf("confine own thread %d to CPUs %v: %w", tid, cpus, err)
			}
		}
	}
	return nil
}

// confine leaves a thread alone that has gone or is where it should be.
func confine(tid int, set *unix.CPUSet) error {
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
