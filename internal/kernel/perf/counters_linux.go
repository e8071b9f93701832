package perf

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/kernel/thread"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// Event is an event that a CPU can count.
type Event struct {
	Name   string
	Type   uint32
	Config uint64
}

// Hardware are the events of a processor's own counters, by the names of their metrics.
var Hardware = []Event{
	{metric.Instructions, unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_INSTRUCTIONS},
	{metric.Cycles, unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_CPU_CYCLES},
	{metric.CacheMisses, unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_CACHE_MISSES},
	{metric.BranchMisses, unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_BRANCH_MISSES},
}

// every is the interval between readings of the counters. The value at any other moment is interpolated.
const every = 20 * time.Millisecond

// Counters count events of some CPUs, for all tasks.
type Counters struct {
	list []*counter
	// rate is the number of samples per second of all events of a CPU together.
	rate       int
	stop, done chan struct{}
	failed     error
}

// counter counts one event on one CPU.
type counter struct {
	event   string
	cpu, fd int
	// sampled means that the counter can take samples.
	sampled  bool
	readings []reading
}

// reading is the state of a counter at one moment.
type reading struct {
	// at is the moment in ns on the monotonic clock.
	at    int64
	value uint64
	// enabled is how long the counter was switched on, running how long it counted, in ns. They differ if the processor
	// has too few counters.
	enabled, running uint64
	// lost is the number of samples that had no room in the ring; 0 before Linux 6.0.
	lost uint64
}

// OpenCounters opens counters of events. With rate > 0, a Sampler can take rate samples per second with each of them.
// It omits an event that one of the CPUs cannot count. It fails without the right to count.
func OpenCounters(events []Event, cpus []int, rate int) (*Counters, error) {
	c := &Counters{}
	for _, e := range events {
		before := len(c.list)
		for _, cpu := range cpus {
			fd, sampled, err := openCounter(e, cpu, rate)
			if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EOPNOTSUPP) {
				if err := c.dropCounters(before); err != nil {
					return nil, errors.Join(err, c.Close())
				}
				break
			}
			if err != nil {
				err = fmt.Errorf("count %s on CPU %d: %w", e.Name, cpu, os.NewSyscallError("perf_event_open", err))
				return nil, errors.Join(cmp.Or(missingRightError(err), err), c.Close())
			}
			c.list = append(c.list, &counter{event: e.Name, cpu: cpu, fd: fd, sampled: sampled})
		}
		if len(c.list) > before {
			c.rate += rate
		}
	}
	return c, nil
}

// openCounter opens a counter that can take samples. sampled is false for a counter that only counts. It opens such a
// counter if the processor cannot interrupt, or if the kernel's limit of samples per second
// (perf_event_max_sample_rate) is lower than rate.
func openCounter(e Event, cpu, rate int) (fd int, sampled bool, err error) {
	a := sampling
	a.Type, a.Config, a.Sample = e.Type, e.Config, uint64(rate)
	a.Bits |= unix.PerfBitFreq
	const times = unix.PERF_FORMAT_TOTAL_TIME_ENABLED | unix.PERF_FORMAT_TOTAL_TIME_RUNNING
	for _, a.Read_format = range []uint64{times | unix.PERF_FORMAT_LOST, times} { // the latter before Linux 6.0
		fd, err = unix.PerfEventOpen(&a, -1, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
		if !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.EOPNOTSUPP) {
			return fd, true, err
		}
	}
	a.Sample, a.Bits = 0, unix.PerfBitDisabled
	fd, err = unix.PerfEventOpen(&a, -1, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
	return fd, false, err
}

// dropCounters closes and removes the counters from index i on.
func (c *Counters) dropCounters(i int) error {
	var errs []error
	for _, x := range c.list[i:] {
		errs = append(errs, unix.Close(x.fd))
	}
	c.list = c.list[:i]
	return errors.Join(errs...)
}

// Start begins to count, and reads the counters every 20 ms until Stop.
func (c *Counters) Start() error {
	if len(c.list) == 0 {
		return nil
	}
	for _, x := range c.list {
		if err := unix.IoctlSetInt(x.fd, unix.PERF_EVENT_IOC_ENABLE, 0); err != nil {
			return os.NewSyscallError("ioctl PERF_EVENT_IOC_ENABLE", err)
		}
	}
	if err := c.takeReading(); err != nil {
		return err
	}
	c.stop, c.done = make(chan struct{}), make(chan struct{})
	go func() {
		defer close(c.done)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for c.failed == nil {
			select {
			case <-tick.C:
				c.failed = c.takeReading()
			case <-c.stop:
				c.failed = c.takeReading()
				return
			}
		}
	}()
	return nil
}

// Stop takes the last reading and returns the first error of all readings.
func (c *Counters) Stop() error {
	if c.stop == nil {
		return nil
	}
	close(c.stop)
	<-c.done
	c.stop = nil
	return c.failed
}

func (c *Counters) takeReading() error {
	for _, x := range c.list {
		var b [32]byte
		at := thread.Monotonic()
		if _, err := unix.Read(x.fd, b[:]); err != nil { // the complete value or an error
			return fmt.Errorf("read the counter of %s on CPU %d: %w", x.event, x.cpu, err)
		}
		word := func(i int) uint64 { return binary.NativeEndian.Uint64(b[8*i:]) }
		x.readings = append(x.readings, reading{at, word(0), word(1), word(2), word(3)})
	}
	return nil
}

// Between returns how often each event happened between two moments of the monotonic clock, summed over cpus; empty
// cpus means all. It omits an event that one of the CPUs did not count in this time. Call it after Stop.
func (c *Counters) Between(from, to int64, cpus []int) map[string]float64 {
	all, absent := map[string]float64{}, map[string]bool{}
	for _, x := range c.list {
		if len(cpus) > 0 && !slices.Contains(cpus, x.cpu) {
			continue
		}
		n, ok := x.eventsBetween(from, to)
		all[x.event] += n
		absent[x.event] = absent[x.event] || !ok
	}
	for event, no := range absent {
		if no {
			delete(all, event)
		}
	}
	return all
}

// eventsBetween returns the number of events between two moments, extrapolated for the time in which the counter did not run.
// It returns false if a moment is outside the readings, or if the counter never ran in between.
func (x *counter) eventsBetween(from, to int64) (n float64, ok bool) {
	a, begun := x.valuesAt(from)
	b, ended := x.valuesAt(to)
	running := b[2] - a[2]
	if !begun || !ended || !(running > 0) {
		return 0, false
	}
	return (b[0] - a[0]) * (b[1] - a[1]) / running, true
}

// valuesAt returns value, enabled and running at the moment t, interpolated between two readings. ok is false if t is
// outside the readings.
func (x *counter) valuesAt(t int64) (v [3]float64, ok bool) {
	i, _ := slices.BinarySearchFunc(x.readings, t, func(r reading, t int64) int { return cmp.Compare(r.at, t) })
	if i == len(x.readings) || i == 0 && x.readings[0].at != t {
		return v, false
	}
	b := x.readings[i]
	a := x.readings[max(0, i-1)]
	part := 0.0
	if b.at > a.at {
		part = float64(t-a.at) / float64(b.at-a.at)
	}
	between := func(a, b uint64) float64 { return float64(a) + part*float64(b-a) }
	return [3]float64{between(a.value, b.value), between(a.enabled, b.enabled), between(a.running, b.running)}, true
}

// Close stops and releases the counters.
func (c *Counters) Close() error { return errors.Join(c.Stop(), c.dropCounters(0)) }
