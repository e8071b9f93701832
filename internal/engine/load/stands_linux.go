package load

import (
	"fmt"
	"time"

	"github.com/cnibench/cnibench/internal/kernel/proc"
	"github.com/cnibench/cnibench/internal/kernel/thread"
)

// starved is the share of a CPU below which a thread that is ready to run counts as held up by other tasks.
const starved = 0.1

// glance is a reading of a load thread by Stands: the time, and the thread's CPU time, in ns.
type glance struct{ at, cpu int64 }

// Stands describes what the trial is doing, and which load threads other tasks have kept from their CPU since the last
// call. Only one goroutine may call it.
func (t *Trial) Stands() string {
	said := []string{"in its warm-up", "in its window", "at the end of its window", "at the end of its window", "ending"}[min(t.phase.Load(), stop)]
	if !t.ran.Load() {
		said = "prepared"
	}
	if t.looks == nil {
		t.looks = map[*worker]glance{}
	}
	for _, w := range t.workers() {
		id := int(w.count.thread.Load())
		used, alive := thread.CPUTimeOf(id)
		if !alive {
			continue
		}
		now := glance{t.now(), used}
		before, known := t.looks[w]
		t.looks[w] = now
		if known {
			said += stallReason(thread.State(id), now.cpu-before.cpu, now.at-before.at)
		}
	}
	return said
}

// stallReason returns why a thread makes no progress. It returns "" if the thread does, or if the cause is unknown.
// state is the letter of the kernel for the thread's state. used is the CPU time of the thread since the last reading,
// and in is the time since then, both in ns.
func stallReason(state byte, used, in int64) string {
	if float64(used) >= starved*float64(in) {
		return ""
	}
	switch state {
	case 'R':
		return fmt.Sprintf(", a load thread that is ready to run had %s of CPU time in %s: something else holds its CPU",
			time.Duration(used).Round(time.Millisecond), time.Duration(in).Round(time.Millisecond))
	case 'D':
		return ", a load thread waits in the kernel and cannot be interrupted"
	}
	return ""
}

// cpuWait returns how long the load threads have waited for their CPUs since they began, in ns. Threads for which the
// kernel does not report it count as 0.
func (t *Trial) cpuWait() (ns int64) {
	for _, w := range t.workers() {
		n, _ := proc.WaitOf(int(w.count.thread.Load()))
		ns += n
	}
	return ns
}
