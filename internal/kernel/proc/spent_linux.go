package proc

import (
	"bytes"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Usage is the CPU time that this process and its children have used so far, and the kernel's memory.
type Usage struct {
	// CPU is the time of this process and of children that have ended.
	CPU time.Duration
	// KernelMemory is the kernel's total slab, vmalloc and per-CPU memory in bytes, 0 if unreadable.
	KernelMemory uint64
}

// Spent returns the CPU time and the kernel memory that are used until now.
func Spent() Usage {
	var u Usage
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var r unix.Rusage
		if unix.Getrusage(who, &r) == nil { // it never fails for valid arguments
			u.CPU += time.Duration(r.Utime.Nano() + r.Stime.Nano())
		}
	}
	u.KernelMemory, _ = parseFile("/proc/meminfo", ParseKernelMemory)
	return u
}

// ParseKernelMemory returns the sum of Slab, VmallocUsed and Percpu of /proc/meminfo in bytes.
func ParseKernelMemory(b []byte) (uint64, error) {
	var sum uint64
	for line := range bytes.Lines(b) {
		name, rest, _ := bytes.Cut(line, []byte(":"))
		f := bytes.Fields(rest)
		if len(f) == 0 {
			continue
		}
		switch string(name) {
		case "Slab", "VmallocUsed", "Percpu":
			n, err := strconv.ParseUint(string(f[0]), 10, 54)
			if err != nil {
				return 0, err
			}
			sum += n << 10
		}
	}
	return sum, nil
}
