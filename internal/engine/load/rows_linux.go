package load

import (
	"math"

	"github.com/cnibench/cnibench/internal/kernel/thread"
	"github.com/cnibench/cnibench/internal/measure/sample"
)

// rows collects the progress rows of a trial. Times are on the trial's clock until relativeIntervals makes them
// relative to the window.
type rows struct {
	trial             *Trial
	every             int64 // length of a row in ns, 0 for no rows
	next              int64 // when the row under way ends
	start             int64
	warm              bool
	operations, bytes uint64 // at start
	cpu               int64  // at start
	list              []sample.Interval
}

func newRows(t *Trial) *rows {
	r := &rows{trial: t, every: int64(t.o.Interval), start: t.now(), next: math.MaxInt64, warm: true}
	if r.every > 0 {
		r.next = r.start + r.every
		r.list = make([]sample.Interval, 0, int((t.o.Warmup+t.o.Window)/t.o.Interval)+4)
		r.operations, r.bytes, r.cpu = r.sumCounters()
	}
	return r
}

// endRowIfDue ends the current row if it is time.
func (r *rows) endRowIfDue(now int64) {
	if now < r.next {
		return
	}
	r.endRow(now)
	for r.next <= now {
		r.next += r.every
	}
}

// endPhase ends the current row at the end of a phase. If the row is shorter than half of every, endPhase merges it
// into the previous row.
func (r *rows) endPhase() {
	if r.every == 0 {
		return
	}
	n := len(r.list)
	r.endRow(r.trial.now())
	if n == 0 || n == len(r.list) || r.list[n-1].Warmup != r.warm {
		return
	}
	if last, before := r.list[n], &r.list[n-1]; last.EndNs-last.StartNs < r.every/2 {
		before.EndNs = last.EndNs
		before.Operations += last.Operations
		before.Bytes += last.Bytes
		before.CPUNs += last.CPUNs
		r.list = r.list[:n]
	}
}

// beginWindow begins the first row of the window at now.
func (r *rows) beginWindow(now int64) {
	r.warm, r.start = false, now
	if r.every > 0 {
		r.next = now + r.every
	}
}

// sumCounters returns the sums of the threads' counters so far. cpu is their CPU time as load threads in ns.
func (r *rows) sumCounters() (operations, bytes uint64, cpu int64) {
	for _, w := range r.trial.workers() {
		if used, ok := thread.CPUTimeOf(int(w.count.thread.Load())); ok {
			w.cpu.used = used
		}
		cpu += w.cpu.used - w.cpu.before
		if w.beside {
			continue
		}
		n := w.count.operations.Load()
		operations += n
		bytes += w.count.sent.Load() + w.count.received.Load() + n*(w.each.sent+w.each.received)
	}
	return operations, bytes, cpu
}

func (r *rows) endRow(now int64) {
	if now <= r.start {
		return
	}
	operations, bytes, cpu := r.sumCounters()
	r.list = append(r.list, sample.Interval{
		StartNs: r.start, EndNs: now, Operations: operations - r.operations, Bytes: bytes - r.bytes, CPUNs: cpu - r.cpu,
		YardNs: r.trial.yard.takeMean(), Warmup: r.warm,
	})
	r.start, r.operations, r.bytes, r.cpu = now, operations, bytes, cpu
}

// relativeIntervals makes the times of the rows relative to window, the start of the window, and returns the rows.
func (r *rows) relativeIntervals(window int64) []sample.Interval {
	for i := range r.list {
		r.list[i].StartNs -= window
		r.list[i].EndNs -= window
	}
	return r.list
}
