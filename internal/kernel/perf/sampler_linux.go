package perf

import (
	"cmp"
	"errors"
	"fmt"
	"math/big"
	"math/bits"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/kernel/bpf/space"
	"github.com/cnibench/cnibench/internal/kernel/proc"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// The events by which a Sampler takes samples.
const (
	Cycles   = "cycles"
	CPUClock = "cpu-clock"
)

// Options configure a Sampler.
type Options struct {
	CPUs []int
	// Rate is the number of samples per second of a busy CPU.
	Rate int
	// Length is the longest time between Start and Stop. The rings are large enough for its samples.
	Length time.Duration
	// Space finds the network namespace of the packet that a CPU handles. If it is nil, samples have no namespace.
	Space *space.Tracker
	// Counters are open counters whose events are sampled too; nil means none.
	Counters *Counters
}

// Sample is the state of a CPU at one moment.
type Sample struct {
	// Event is the counter that took the sample, "" for a sample of time. Period is the number of events that the
	// sample represents. For a sample of time, it is in ns (CPUClock) or in cycles (Cycles).
	Event  string
	Period uint64
	// Time is on the monotonic clock in ns.
	Time           int64
	CPU, PID, Task int
	// Kernel and User are the addresses of the stack, innermost first.
	Kernel, User []uint64
	// Space is the inode of the network namespace of the packet that the CPU handled last, 0 if unknown.
	Space uint32
}

// Deepest returns the maximum number of frames of a stack that the kernel keeps; 0 if unknown. It drops the outermost
// frames.
func Deepest() int {
	n, err := strconv.Atoi(proc.Text("/proc/sys/kernel/perf_event_max_stack"))
	if err != nil {
		return 0
	}
	return n
}

// Samples has the samples that a Sampler took, and counts those that it missed.
type Samples struct {
	List []Sample
	// Lost is the number of samples for which a ring had no room. Throttled is how often the kernel paused the sampling
	// because it took too much time.
	Lost, Throttled uint64
}

// Sampler takes samples of some CPUs.
type Sampler struct {
	// Event is Cycles or CPUClock.
	Event string
	rings []*ring
}

// ErrRight means that this process may not sample a CPU.
var ErrRight = errors.New("no right to sample the CPU")

// missingRightError returns ErrRight with advice if err means a missing right. It returns nil for any other err.
func missingRightError(err error) error {
	if !errors.Is(err, unix.EACCES) && !errors.Is(err, unix.EPERM) {
		return nil
	}
	return advice.With(fmt.Errorf("%w: %w", ErrRight, err), "run as root of the machine; in a user namespace the kernel refuses it")
}

// bytesPerSample is the size of an average sample in a ring; a deep stack has 80 frames.
const bytesPerSample = 700

// Open opens the events, which do not count yet: the cycle counter of each CPU, or timers if there is none. It fails
// without the right to sample a CPU.
func Open(o Options) (*Sampler, error) {
	s := &Sampler{}
	rate := o.Rate
	if o.Counters != nil {
		rate += o.Counters.rate
	}
	need := int(o.Length.Seconds()*float64(rate)*bytesPerSample) / unix.Getpagesize()
	pages := 1 << bits.Len(uint(max(need, 63)))
	var err error
	for _, event := range []string{Cycles, CPUClock} {
		s.Event = event
		if err = s.openRings(o, pages); err == nil {
			return s, nil
		}
		err = errors.Join(err, s.Close())
		s.rings = nil
		if refused := missingRightError(err); refused != nil {
			return nil, refused
		}
	}
	return nil, err
}

func (s *Sampler) openRings(o Options, pages int) error {
	for _, cpu := range o.CPUs {
		r, err := openRing(eventAttributes(s.Event, o.Rate), cpu, o, pages)
		if err != nil {
			return fmt.Errorf("sample CPU %d by %s: %w", cpu, s.Event, err)
		}
		s.rings = append(s.rings, r)
	}
	return nil
}

// Start begins to take samples.
func (s *Sampler) Start() error { return s.ioctlEvents(unix.PERF_EVENT_IOC_ENABLE) }

// Stop stops taking samples.
func (s *Sampler) Stop() error { return s.ioctlEvents(unix.PERF_EVENT_IOC_DISABLE) }

func (s *Sampler) ioctlEvents(request uint) error {
	var errs []error
	for _, r := range s.rings {
		for _, event := range r.events {
			errs = append(errs, unix.IoctlSetInt(event, request, 0))
		}
	}
	return errors.Join(errs...)
}

// Read returns the samples of all CPUs. Call it after Stop.
func (s *Sampler) Read() (Samples, error) {
	var all Samples
	for _, r := range s.rings {
		if err := r.readSamples(&all); err != nil {
			return all, err
		}
	}
	return all, nil
}

// Close releases the events and their rings.
func (s *Sampler) Close() error {
	var errs []error
	for _, r := range s.rings {
		errs = append(errs, r.close())
	}
	s.rings = nil
	return errors.Join(errs...)
}

// timers is the number of timers that take turns in sampling a CPU. A single timer may synchronize with a path whose
// transactions all take the same time: then hundreds of samples hit the same few functions.
const timers = 16

// sampling has the common attributes of all events that share a ring.
var sampling = unix.PerfEventAttr{
	Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{})), Sample_type: sampleType,
	Bits:    unix.PerfBitDisabled | unix.PerfBitUseClockID | unix.PerfBitWatermark,
	Clockid: unix.CLOCK_MONOTONIC,
	Wakeup:  1 << 31, // no reader waits for samples
}

// eventAttributes returns the sampling events of a CPU: its cycle counter, or timers with different random periods.
func eventAttributes(event string, rate int) []unix.PerfEventAttr {
	a := sampling
	a.Type, a.Config, a.Read_format = unix.PERF_TYPE_SOFTWARE, unix.PERF_COUNT_SW_CPU_CLOCK, unix.PERF_FORMAT_LOST
	if event == Cycles {
		a.Type, a.Config = unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_CPU_CYCLES
		a.Sample = nextPrime(uint64((0.8 + 0.4*rand.Float64()) * cyclesPerSecond() / float64(rate)))
		return []unix.PerfEventAttr{a}
	}
	all := make([]unix.PerfEventAttr, timers)
	for i := range all {
		// Within a fifth of the mean, each in a different part of that range.
		factor := 0.8 + 0.4*(float64(i)+rand.Float64())/timers
		all[i] = a
		all[i].Sample = uint64(factor * timers * float64(time.Second) / float64(rate))
	}
	return all
}

// nextPrime returns the least prime number that is not less than n. A processor has few counters, so a trial samples
// with one period of cycles. Each trial and each CPU draws another prime, so that no load synchronizes with all of
// them.
func nextPrime(n uint64) uint64 {
	for n = max(n, 2); !big.NewInt(0).SetUint64(n).ProbablyPrime(0); n++ { // exact below 2^64
	}
	return n
}

// usualCycles is the assumed speed of a processor in Hz if the kernel does not report it.
const usualCycles = 2.5e9

// cyclesPerSecond returns the processor's approximate maximum speed in Hz. At another speed the rate of samples
// differs, but they are weighted by their period.
func cyclesPerSecond() float64 {
	if khz, err := strconv.ParseFloat(proc.Text("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq"), 64); err == nil && khz > 0 {
		return khz * 1e3
	}
	fastest := 0.0 // an idle CPU is slow
	for line := range strings.Lines(proc.Text("/proc/cpuinfo")) {
		name, value, _ := strings.Cut(line, ":")
		if mhz, err := strconv.ParseFloat(strings.TrimSpace(value), 64); err == nil && strings.TrimSpace(name) == "cpu MHz" {
			fastest = max(fastest, mhz*1e6)
		}
	}
	return cmp.Or(fastest, usualCycles)
}
