package proc

import (
	"os"

	"golang.org/x/sys/unix"
)

// CPU clocks of others are numbered by the kernel as the inverted id, shifted, with the kind of clock below it.
const (
	schedClock = 2
	perThread  = 4
)

// ProcessCPU returns the CPU time that process pid has used in all its threads, in ns, to this moment. Kernel threads
// have such a clock too.
func ProcessCPU(pid int) (int64, error) { return clock(int32(^pid<<3 | schedClock)) }

// ThreadCPU returns the CPU time of thread tid of this process, in ns, to this moment.
func ThreadCPU(tid int) (int64, error) { return clock(int32(^tid<<3 | schedClock | perThread)) }

// SelfCPU returns the CPU time of this process, ended threads included, in ns.
func SelfCPU() (int64, error) { return clock(unix.CLOCK_PROCESS_CPUTIME_ID) }

func clock(id int32) (int64, error) {
	var ts unix.Timespec
	if err := unix.ClockGettime(id, &ts); err != nil {
		return 0, os.NewSyscallError("clock_gettime", err)
	}
	return ts.Nano(), nil
}
