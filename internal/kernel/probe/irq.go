package probe

import (
	"github.com/cnibench/cnibench/internal/measure/facts"
)

// interval is what clocks and counters did while one pinned thread sent packets to itself without a pause, in ns.
type interval struct {
	// wall is real time, task the thread's CPU clock, wait its time in the run queue.
	wall, task, wait int64
	// interrupts and steal are those of its CPU by /proc/stat.
	interrupts, steal int64
}

// Thresholds of the verdict, as shares.
const (
	// enough interrupt time, of the wall time, to see where it went.
	enough = 0.10
	// A thread that never sleeps has all of the time on its CPU except for the wait and, perhaps, the interrupts. So
	// the share of the interrupts that is missing from its clock is 0 or 1 but for ticks and noise.
	mostlyThere, mostlyMissing = 0.3, 0.6
	// little is what a hypervisor may take, of the interrupt time: some kernels take that off a task's clock, too.
	little = 0.2
)

// verdict returns facts.IRQApart, facts.IRQInTask, or "" if the interval does not tell.
func (i interval) verdict() string {
	missing, interrupts := float64(i.wall-i.task-i.wait), float64(i.interrupts)
	if interrupts <= 0 || interrupts < enough*float64(i.wall) || float64(i.steal) > little*interrupts {
		return ""
	}
	switch share := missing / interrupts; {
	case share <= mostlyThere:
		return facts.IRQInTask
	case share >= mostlyMissing:
		return facts.IRQApart
	}
	return ""
}
