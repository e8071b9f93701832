// Package affinity asks and says on which CPUs a thread may run.
package affinity

import (
	"os"

	"golang.org/x/sys/unix"
)

// most bounds the CPU numbers that are looked at; the kernel's own mask type in package unix ends there.
const most = 1024

// Get returns the CPUs on which the calling thread may run, in ascending order.
func Get() ([]int, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, os.NewSyscallError("sched_getaffinity", err)
	}
	var cpus []int
	for c := range most {
		if set.IsSet(c) {
			cpus = append(cpus, c)
		}
	}
	return cpus, nil
}

// Set confines the calling thread, and the processes that it starts from then on, to cpus. The goroutine must be locked
// to its thread.
func Set(cpus []int) error {
	return os.NewSyscallError("sched_setaffinity", unix.SchedSetaffinity(0, maskOf(cpus)))
}

func maskOf(cpus []int) *unix.CPUSet {
	var set unix.CPUSet
	for _, c := range cpus {
		set.Set(c)
	}
	return &set
}
