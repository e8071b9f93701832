package perf

import (
	"encoding/binary"
	"errors"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/kernel/bpf/space"
	"github.com/cnibench/cnibench/internal/kernel/thread"
)

// record is one record of a ring.
func record(kind uint32, body ...uint64) []byte {
	b := binary.NativeEndian.AppendUint32(nil, kind)
	b = binary.NativeEndian.AppendUint16(b, 0)
	b = binary.NativeEndian.AppendUint16(b, uint16(8+8*len(body)))
	for _, v := range body {
		b = binary.NativeEndian.AppendUint64(b, v)
	}
	return b
}

// TestDecode reads a sample with the namespace that comes before it, one without, and what was lost.
func TestDecode(t *testing.T) {
	const output, counter = 77, 78
	var b []byte
	b = append(b, record(recordSample, output, 4026531840<<32|12)...)
	b = append(b, record(recordSample, 5, 9<<32|8, 1000, 1, 1, 5, contextKernel, 0xffff1, 0xffff2, contextUser, 0x1)...)
	b = append(b, record(recordThrottle, 1, 2, 3)...)
	b = append(b, record(recordLost, 5, 40)...)
	b = append(b, record(recordSample, counter, 9<<32|8, 1001, 0, 700, 0)...)
	var all Samples
	names := map[uint64]string{output: packetSpace, counter: "misses"}
	if err := decodeRecords(b, names, &all); err != nil {
		t.Fatal(err)
	}
	if len(all.List) != 2 || all.Lost != 40 || all.Throttled != 1 {
		t.Fatalf("%+v", all)
	}
	s := all.List[0]
	if s.PID != 8 || s.Task != 9 || s.Time != 1000 || s.CPU != 1 || s.Space != 4026531840 || !slices.Equal(s.Kernel, []uint64{0xffff1, 0xffff2}) || !slices.Equal(s.User, []uint64{1}) {
		t.Errorf("%+v", s)
	}
	if s := all.List[1]; s.Space != 0 || s.Event != "misses" || s.Period != 700 || all.List[0].Event != "" {
		t.Errorf("the namespace or event of one sample is that of another: %+v", all.List)
	}
	for n := 1; n < len(b); n++ {
		_ = decodeRecords(b[:n], names, new(Samples)) // must not panic
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(record(recordSample, 6, 9<<32|8, 1000, 1, 1, 2, contextKernel, 0xffff1))
	f.Fuzz(func(_ *testing.T, b []byte) { _ = decodeRecords(b, map[uint64]string{5: packetSpace}, new(Samples)) })
}

func TestSymbols(t *testing.T) {
	s, err := parseSymbols(strings.NewReader("ffffffff81000000 T one\nffffffff81000000 t alias\nffffffff81000100 t two\nffffffff81000200 d data\nffffffffc0000000 t bpf_prog_0011223344556677_three\t[bpf]\n"))
	if err != nil {
		t.Fatal(err)
	}
	for address, want := range map[uint64]string{
		0xffffffff81000000: "one", 0xffffffff810000ff: "one", 0xffffffff81000110: "two", 0xffffffffc0000010: "bpf_prog_0011223344556677_three",
		0xffffffff80ffffff: Unknown, 0xffffffffc1000000: Unknown, 0: Unknown,
	} {
		if got := s.Name(address); got != want {
			t.Errorf("%x is %q, want %q", address, got, want)
		}
	}
	if _, err := parseSymbols(strings.NewReader("0000000000000000 T one\n0000000000000000 T two\n")); !errors.Is(err, ErrHidden) {
		t.Errorf("hidden addresses: %v", err)
	}
	if _, err := parseSymbols(strings.NewReader("xyz T one\n")); err == nil {
		t.Error("an address that is none is accepted")
	}
}

// TestSample samples a thread that spins in a system call of its own.
func TestSample(t *testing.T) {
	runtime.LockOSThread() // never unlocked: the thread is pinned
	cpus, err := thread.CPUs()
	if err != nil {
		t.Fatal(err)
	}
	cpu := cpus[len(cpus)-1]
	o := Options{CPUs: []int{cpu}, Rate: 997, Length: time.Second}
	if tracker, err := space.Load(); err == nil {
		defer tracker.Close()
		if err := tracker.Follow(); err != nil {
			t.Fatal(err)
		}
		o.Space = tracker
	} else {
		t.Logf("without namespaces: %v", err)
	}
	s, err := Open(o)
	if errors.Is(err, ErrRight) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := thread.SetCPUs([]int{cpu}); err != nil {
		t.Fatal(err)
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	var began, ended unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &began)
	f, err := os.Open("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	buf := make([]byte, 4096)
	for until := time.Now().Add(300 * time.Millisecond); time.Now().Before(until); {
		_, _ = f.ReadAt(buf, 0)
	}
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ended)
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	got, err := s.Read()
	if err != nil {
		t.Fatal(err)
	}
	symbols, err := ReadKernel()
	if err != nil {
		t.Fatal(err)
	}
	mine, reads, users := 0, 0, 0
	for _, x := range got.List {
		if x.Task != unix.Gettid() || x.Time < began.Nano() || x.Time > ended.Nano() {
			continue
		}
		mine++
		if len(x.User) > 0 && runtime.FuncForPC(uintptr(x.User[len(x.User)-1])) != nil {
			users++
		}
		if slices.ContainsFunc(x.Kernel, func(a uint64) bool { return symbols.Name(a) == "do_syscall_64" }) {
			reads++
		}
	}
	if mine == 0 || reads == 0 || users == 0 {
		t.Errorf("%d samples, %d of this thread, %d in a system call, %d with a stack of this program; lost %d", len(got.List), mine, reads, users, got.Lost)
	}
}

// TestPeriods: a sample has the period that it stands for, with a fixed one and where the kernel keeps up a frequency by
// changing it. The periods of all samples add up to the time that was sampled. Nothing is asserted on how long anything
// takes.
func TestPeriods(t *testing.T) {
	runtime.LockOSThread() // never unlocked: the thread is pinned
	cpus, err := thread.CPUs()
	if err != nil {
		t.Fatal(err)
	}
	cpu := cpus[0]
	fixed := sampling
	fixed.Type, fixed.Config, fixed.Sample = unix.PERF_TYPE_SOFTWARE, unix.PERF_COUNT_SW_TASK_CLOCK, 1_000_003
	frequency := fixed // of page faults: the kernel's clocks have a fixed period in this mode, too
	frequency.Config, frequency.Sample, frequency.Bits = unix.PERF_COUNT_SW_PAGE_FAULTS, 997, frequency.Bits|unix.PerfBitFreq
	if err := thread.SetCPUs([]int{cpu}); err != nil {
		t.Fatal(err)
	}
	for name, a := range map[string]unix.PerfEventAttr{"fixed": fixed, "frequency": frequency} {
		r, err := openRing([]unix.PerfEventAttr{a}, cpu, Options{}, 64)
		if refused := missingRightError(err); refused != nil {
			t.Skip(refused)
		}
		if err != nil {
			t.Fatal(err)
		}
		s := Sampler{Event: CPUClock, rings: []*ring{r}}
		began := thread.Monotonic()
		if err := s.Start(); err != nil {
			t.Fatal(err)
		}
		for until := time.Now().Add(200 * time.Millisecond); time.Now().Before(until); {
			pages, err := unix.Mmap(-1, 0, 64*os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
			if err != nil {
				t.Fatal(err)
			}
			for i := 0; i < len(pages); i += os.Getpagesize() {
				pages[i] = 1
			}
			if err := unix.Munmap(pages); err != nil {
				t.Fatal(err)
			}
		}
		err = s.Stop()
		sampled := thread.Monotonic() - began
		got, read := s.Read()
		if err := errors.Join(err, read, s.Close()); err != nil {
			t.Fatal(err)
		}
		periods, sum := map[uint64]bool{}, uint64(0)
		for _, x := range got.List {
			periods[x.Period], sum = true, sum+x.Period
		}
		t.Logf("%s: %d samples with %d periods stand for %d events in %d ns", name, len(got.List), len(periods), sum, sampled)
		switch {
		case len(got.List) == 0 || periods[0]:
			t.Errorf("%s: %d samples with periods of %v", name, len(got.List), periods)
		case name == "fixed" && (len(periods) != 1 || !periods[fixed.Sample] || int64(sum) > sampled):
			t.Errorf("periods are %v, want %d: they are %d of %d ns", periods, fixed.Sample, sum, sampled)
		case name == "frequency" && (len(periods) < 2 || sum <= uint64(len(got.List))):
			t.Errorf("%d samples with periods of %v stand for %d faults", len(got.List), periods, sum)
		}
	}
}

// TestTimers: the timers of a CPU take as many samples as asked, with periods of their own; the cycle counter is one event,
// whose period is another prime number each time.
func TestTimers(t *testing.T) {
	for _, rate := range []int{499, 3989} {
		periods, sum := map[uint64]bool{}, 0.0
		for _, a := range eventAttributes(CPUClock, rate) {
			periods[a.Sample] = true
			sum += 1e9 / float64(a.Sample)
		}
		if len(periods) != timers || sum < 0.97*float64(rate) || sum > 1.06*float64(rate) {
			t.Errorf("%d periods take %.0f samples in a second, want %d", len(periods), sum, rate)
		}
	}
	periods := map[uint64]bool{}
	mean := cyclesPerSecond() / 499
	for range 8 {
		all := eventAttributes(Cycles, 499)
		n := all[0].Sample
		if len(all) != 1 || all[0].Bits&unix.PerfBitFreq != 0 || float64(n) < 0.79*mean || float64(n) > 1.21*mean {
			t.Errorf("%+v", all)
		}
		for d := uint64(2); d*d <= n; d++ {
			if n%d == 0 {
				t.Errorf("%d is a period, and is a multiple of %d", n, d)
			}
		}
		periods[n] = true
	}
	if len(periods) < 7 {
		t.Errorf("8 trials have %d periods", len(periods))
	}
}
