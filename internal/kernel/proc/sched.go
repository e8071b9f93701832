package proc

import (
	"bytes"
	"fmt"
	"strconv"
)

// ParseSchedstat returns the time that a thread or process has waited in a run queue, in ns, from its schedstat.
func ParseSchedstat(b []byte) (int64, error) {
	f := bytes.Fields(b) // time on a CPU, time in a run queue, how often it got a CPU
	if len(f) != 3 {
		return 0, fmt.Errorf("schedstat: %q has %d columns, want 3", b, len(f))
	}
	wait, err := strconv.ParseInt(string(f[1]), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("schedstat: column 2: %w", err)
	}
	return wait, nil
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
