package load

import (
	"math"
	"slices"
	"sync/atomic"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/kernel/thread"
)

const (
	// yardEvery is the time between two readings of a client's yardstick in ns. A server reads half as often, because a
	// request waits meanwhile.
	yardEvery = 1_000_000
	// yardSteps is the number of timed steps of arithmetic in a reading. yardWarm is the number of untimed steps before
	// them.
	yardSteps, yardWarm = 600, 20
	// yardSpan is the number of the latest readings whose median is the state of the machine.
	yardSpan = 15
	// calm bounds the state of an undisturbed machine, as a multiple of the fastest state.
	calm = 1.08
)

// yardstick measures the state of the machine during the load: the CPU time of a fixed piece of work on the load's CPU.
// It is independent of the path: each reading first warms the caches that it uses. Without that, readings of equal
// machines were 20 % apart from one path to another. The state is the median of the latest readings. A burst that is
// shorter than half of them, such as a softirq of the path's own, does not change it.
//
// The first load thread reads it between two operations. A separate thread would interrupt operations: on a virtual
// machine whose timers cost 25 us, 250 readings a second raised p99 of the bare path from 24 to 39 us, and took 2 % of
// the CPU.
type yardstick struct {
	time, readings atomic.Int64 // sum of the states, and their number, since the last slice
	calm           atomic.Bool  // the state is close to the fastest
	fastest        int64
	every, due     int64 // ns, on the trial's clock
	steps, next    int   // operations since the reading, and their number at the next look at the clock
	stride         int   // operations between two looks at the clock, so that these cost almost nothing
	recent, order  [yardSpan]int64
	read           int // readings so far
	at             [4]uint32
}

// newYardstick returns the yardstick of a side. It returns nil if the trial has no rows, or no CPU for the load alone.
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

// countStep counts an operation, and reports whether it is time to read the clock.
func (y *yardstick) countStep() bool {
	y.steps++
	return y.steps >= y.next
}

// readIfDue reads the yardstick if it is time. The next operation begins after the reading.
func (y *yardstick) readIfDue(w *worker) {
	now := w.trial.now()
	if now < y.due {
		y.next = y.steps + y.stride
		return
	}
	y.due, y.stride, y.steps, y.next = now+y.every, y.steps/8, 0, 0
	y.runSteps(yardWarm)
	thread.CPUTime()
	begin := thread.CPUTime()
	y.runSteps(yardSteps)
	y.addReading(thread.CPUTime() - begin)
	w.last = w.trial.now()
}

// runSteps does steps of arithmetic in four chains, enough to fill the units of a core: other work on the same core slows
// it.
func (y *yardstick) runSteps(steps uint32) {
	a, b, c, d := y.at[0], y.at[1], y.at[2], y.at[3]
	for i := range steps {
		a, b, c, d = a*3+i, b*5+i, c*9+i, d*3+i
	}
	y.at = [4]uint32{a, b, c, d}
}

// addReading adds a reading of took ns, and updates the state of the machine.
func (y *yardstick) addReading(took int64) {
	y.recent[y.read%yardSpan] = took
	y.read++
	n := copy(y.order[:], y.recent[:min(y.read, yardSpan)])
	slices.Sort(y.order[:n])
	state := y.order[n/2]
	if y.read > yardSpan/2 { // with fewer readings, a single quick one could be the median
		y.fastest = min(y.fastest, state)
		y.calm.Store(float64(state) <= calm*float64(y.fastest))
	}
	y.time.Add(state)
	y.readings.Add(1)
}

// takeMean returns the mean state since the last call in ns. It returns 0 without a yardstick or a reading.
func (y *yardstick) takeMean() int64 {
	if y == nil {
		return 0
	}
	return y.time.Swap(0) / max(1, y.readings.Swap(0))
}
