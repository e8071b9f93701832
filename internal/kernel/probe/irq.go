package probe

import (
	"github.com/cnibench/cnibench/internal/measure/facts"
)

// interval has the advance of clocks and counters, in ns, while one pinned thread continuously sent packets to itself.
type interval struct {
	// wall is real time, task the thread's CPU clock, wait its time in the run queue.
	wall, task, wait int64
	// interrupts and steal are those of the thread's CPU, from /proc/stat.
	interrupts, steal int64
}

// Thresholds of irqAccounting, as shares from 0 to 1.
const (
	// enough is the least share of interrupt time in the thread's time, and the time it lost, for a decision.
	enough = 0.10
	// mostlyThere and mostlyMissing are limits for the share of interrupt time that the thread's clock lacks. A thread
	// that never sleeps has all of its CPU's time except for the wait and, perhaps, the interrupts. So the share is 0
	// or 1, except for ticks and noise.
	mostlyThere, mostlyMissing = 0.3, 0.6
	// sending is the least share of softirq in the time of the thread.
	sending = 0.35
	// little is the largest share of steal in the interrupt time: some kernels subtract steal from a task's clock, too.
	little = 0.2
)

// add adds another interval to i.
func (i *interval) add(o interval) {
	i.wall, i.task, i.wait = i.wall+o.wall, i.task+o.task, i.wait+o.wait
	i.interrupts, i.steal = i.interrupts+o.interrupts, i.steal+o.steal
}

// irqAccounting returns facts.IRQApart, facts.IRQInTask, or "" if the interval does not decide.
func (i interval) irqAccounting() string {
	missing, interrupts := float64(i.wall-i.task-i.wait), float64(i.interrupts)
	if interrupts <= 0 || interrupts < enough*float64(i.wall-i.wait) || float64(i.steal) > little*interrupts {
		return ""
	}
	// Interrupts while the thread waited are those of other tasks. They lower the share: with them it is at least least.
	own := sending * float64(i.wall-i.wait)
	least := own / (own + float64(i.wait))
	switch share := missing / interrupts; {
	case share <= min(mostlyThere, least/2):
		return facts.IRQInTask
	case share >= mostlyMissing:
		return facts.IRQApart
	}
	return ""
}
