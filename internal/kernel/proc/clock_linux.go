package proc

import (
	"os"

	"golang.org/x/sys/unix"
)

// ProcessCPU returns the CPU time that process pid has used in all its threads, in ns. Kernel threads have such a clock
// too.
func ProcessCPU(pid int) (int64, error) { return clock(int32(^pid<<3 | schedClock)) }

// schedClock is the kind of clock below a process's inverted and shifted id.
const schedClock = 2

func clock(id int32) (int64, error) {
	var ts unix.Timespec
	if err := unix.ClockGettime(id, &ts); err != nil {
		return 0, os.NewSyscallError("clock_gettime", err)
	}
	return ts.Nano(), nil
}
