package load

import (
	"math"
	"sync/atomic"

	"github.com/cnibench/cnibench/internal/conduct/control"
	"github.com/cnibench/cnibench/internal/kernel/thread"
)

const (
	// yardEvery is the time between two readings of a client's yardstick in ns. A server reads half as often, because a
	// request waits meanwhile.
	yardEvery = 1_000_000
	// yardSteps is how many steps of arithmetic a reading is made of, each from the result of the one before.
	yardSteps = 1000
	// calm is how much longer than the fastest reading one may be that begins an undisturbed time. The 5th percentile of a trial
	// is 2 % above its fastest.
	calm = 1.08
)

// yardstick measures the state of the machine beside the load: the CPU time of a fixed piece of work on the load's CPU. It
// knows nothing of the path, so it tells a slow moment of the machine from one of the dataplane.
//
// The first load thread reads it between two operations. A thread of its own would interrupt operations: where a timer costs
// a virtual machine 25 us, 250 readings a second made p99 of the bare path 39 us instead of 24, and took 2 % of the CPU.
type yardstick struct {
	time, readings atomic.Int64
	calm           atomic.Bool // the latest reading was close to the fastest
	fastest        int64
	every, due     int64 // ns, on the trial's clock
	steps, next    int   // operations since the reading, and of how many the next look at the clock is
	stride         int   // between two looks, so that they cost fast operations nothing
	at             uint32
}

// newYardstick returns the yardstick of a side, nil without rows or a CPU of the load's own.
func newYardstick(t *Trial) *yardstick {
	if t.o.Interval == 0 || len(t.o.CPUs) == 0 {
		return nil
	}
	y := &yardstick{every: yardEvery, fastest: math.MaxInt64}
	if t.o.Side == control.SideServer {
		y.every *= 2
	}
	return y
}

// pass counts an operation, and reports whether it is time to look at the clock.
func (y *yardstick) pass() bool {
	y.steps++
	return y.steps >= y.next
}

// look reads the yardstick when it is time to. The next operation begins after that.
func (y *yardstick) look(w *worker) {
	now := w.trial.now()
	if now < y.due {
		y.next = y.steps + y.stride
		return
	}
	y.due, y.stride, y.steps, y.next = now+y.every, y.steps/8, 0, 0
	begin := thread.CPUTime()
	for i := range uint32(yardSteps) {
		y.at = y.at*3 + i
	}
	took := thread.CPUTime() - begin
	y.fastest = min(y.fastest, took)
	y.calm.Store(float64(took) <= calm*float64(y.fastest))
	y.time.Add(took)
	y.readings.Add(1)
	w.last = w.trial.now()
}

// take returns the mean of the readings since the last call, 0 without one.
func (y *yardstick) take() int64 {
	if y == nil {
		return 0
	}
	return y.time.Swap(0) / max(1, y.readings.Swap(0))
}
