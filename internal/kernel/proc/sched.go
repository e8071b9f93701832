package proc

import (
	"bytes"
	"fmt"
	"strconv"
)

// Sched is a line of /proc/<pid>/schedstat or of one thread, since the thread's start.
type Sched struct {
	// RunNs is the time on a CPU, as of the last tick; WaitNs the time in a run queue, both in ns.
	RunNs, WaitNs int64
	// Slices counts how often it was given a CPU.
	Slices int64
}

// ParseSchedstat parses /proc/<pid>/schedstat.
func ParseSchedstat(b []byte) (Sched, error) {
	f := bytes.Fields(b)
	if len(f) != 3 {
		return Sched{}, fmt.Errorf("schedstat: %q has %d columns, want 3", b, len(f))
	}
	var v [3]int64
	for i := range v {
		var err error
		if v[i], err = strconv.ParseInt(string(f[i]), 10, 64); err != nil {
			return Sched{}, fmt.Errorf("schedstat: column %d: %w", i+1, err)
		}
	}
	return Sched{RunNs: v[0], WaitNs: v[1], Slices: v[2]}, nil
}

// KsoftirqdCPU returns the CPU that a process called comm (as /proc/<pid>/comm has it) does deferred softirq work for;
// false if it is not ksoftirqd.
func KsoftirqdCPU(comm []byte) (int, bool) {
	s, ok := bytes.CutPrefix(bytes.TrimSpace(comm), []byte("ksoftirqd/"))
	if !ok {
		return 0, false
	}
	cpu, err := strconv.ParseUint(string(s), 10, 31)
	return int(cpu), err == nil
}
