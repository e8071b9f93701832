package load

import (
	"runtime"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/kernel/thread"
)

// TestFirstRow: a row has the CPU time that a load thread used within it. A thread of the Go runtime may have worked for
// others before; what it used then counts in no row, whether the thread is there when rows begin or joins later.
func TestFirstRow(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const earlier = int64(50 * time.Millisecond)
	for thread.CPUTime() < earlier {
	}
	for _, joins := range []bool{false, true} {
		trial := &Trial{clock: thread.NewClock(false)}
		trial.o.Interval = time.Second
		w := &worker{trial: trial}
		w.count.thread.Store(int32(thread.ID()))
		if joins {
			w.cpu.before = thread.CPUTime()
			w.cpu.used = w.cpu.before
		} else { // all that it used was for the trial, but before the first row
			trial.roster.workers = append(trial.roster.workers, w)
		}
		rows := newRows(trial)
		began := thread.CPUTime()
		if joins {
			trial.roster.workers = append(trial.roster.workers, w)
		}
		rows.endRow(trial.now() + 1)
		took := thread.CPUTime() - began
		if got := rows.list[0].CPUNs; got < 0 || got >= earlier || got > took+int64(time.Millisecond) {
			t.Errorf("joins later: %v: the first row has %d ns of CPU time, and took %d", joins, got, took)
		}
	}
}
