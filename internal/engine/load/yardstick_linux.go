package load

import (
	"runtime"
	"sync/atomic"

	"github.com/cnibench/cnibench/internal/kernel/affinity"
	"github.com/cnibench/cnibench/internal/kernel/thread"
)

const (
	// yardEvery is the time between two readings of the yardstick in ns. A reading takes about 2 us with its wake-up.
	yardEvery = 4_000_000
	// yardSteps is how many loads a reading is made of, each from an address that the one before gave. They touch as many
	// cache lines: 64 KiB, more than the first cache of a core, and of a table that stays in its second.
	yardSteps = 1000
	yardWords = 1 << 16
)

// yardTable leads from each of its words to another, to all of its cache lines in turn and in no order that a core predicts.
var yardTable = func() *[yardWords]uint32 {
	var t [yardWords]uint32
	for i := range t {
		t[i] = uint32(i*40503+12345) % yardWords
	}
	return &t
}()

// yardstick measures the state of the machine beside the load: the CPU time of a fixed piece of work on the load's CPU. It
// knows nothing of the path, so it tells a slow moment of the machine from one of the dataplane.
type yardstick struct{ time, readings atomic.Int64 }

// startYardstick measures until the window ends. Without a CPU of the load's own there is nothing to measure.
func (t *Trial) startYardstick() *yardstick {
	y := &yardstick{}
	t.roster.mu.Lock()
	defer t.roster.mu.Unlock()
	if len(t.o.CPUs) > 0 && !t.roster.closed {
		t.roster.tasks.Go(func() { y.measure(t) })
	}
	return y
}

// measure is the thread. It ends with its goroutine, because it is pinned. Without a CPU it measures nothing: the load's own
// thread reports why it cannot be pinned.
func (y *yardstick) measure(t *Trial) {
	runtime.LockOSThread()
	if affinity.Set(t.o.CPUs[:1]) != nil {
		return
	}
	t.prefer()
	at := uint32(0)
	for due := t.now(); t.phase.Load() < drain; due += yardEvery {
		thread.SleepUntil(t.clock.Offset + due)
		begin := thread.CPUTime()
		for range yardSteps {
			at = yardTable[at%yardWords]
		}
		y.time.Add(thread.CPUTime() - begin)
		y.readings.Add(1)
	}
}

// take returns the mean of the readings since the last call, 0 without one.
func (y *yardstick) take() int64 {
	return y.time.Swap(0) / max(1, y.readings.Swap(0))
}
