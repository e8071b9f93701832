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

	"github.com/cnibench/cnibench/internal/kernel/affinity"
	"github.com/cnibench/cnibench/internal/kernel/bpf/space"
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
	if err := decode(b, names, &all); err != nil {
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
		_ = decode(b[:n], names, new(Samples)) // must not panic
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(record(recordSample, 6, 9<<32|8, 1000, 1, 1, 2, contextKernel, 0xffff1))
	f.Fuzz(func(_ *testing.T, b []byte) { _ = decode(b, map[uint64]string{5: packetSpace}, new(Samples)) })
}

func TestSymbols(t *testing.T) {
	s, err := parse(strings.NewReader("ffffffff81000000 T one\nffffffff81000000 t alias\nffffffff81000100 t two\nffffffff81000200 d data\nffffffffc0000000 t bpf_prog_0011223344556677_three\t[bpf]\n"))
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
	if _, err := parse(strings.NewReader("0000000000000000 T one\n0000000000000000 T two\n")); !errors.Is(err, ErrHidden) {
		t.Errorf("hidden addresses: %v", err)
	}
	if _, err := parse(strings.NewReader("xyz T one\n")); err == nil {
		t.Error("an address that is none is accepted")
	}
}

// TestSample samples a thread that spins in a system call of its own.
func TestSample(t *testing.T) {
	runtime.LockOSThread() // never unlocked: the thread is pinned
	cpus, err := affinity.Get()
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
	if err := affinity.Set([]int{cpu}); err != nil {
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

// TestTimers: the timers of a CPU take as many samples as asked, with periods of their own; the cycle counter is one event.
func TestTimers(t *testing.T) {
	for _, rate := range []int{499, 3989} {
		periods, sum := map[uint64]bool{}, 0.0
		for _, a := range attributes(CPUClock, rate) {
			periods[a.Sample] = true
			sum += 1e9 / float64(a.Sample)
		}
		if len(periods) != timers || sum < 0.97*float64(rate) || sum > 1.06*float64(rate) {
			t.Errorf("%d periods take %.0f samples in a second, want %d", len(periods), sum, rate)
		}
	}
	if all := attributes(Cycles, 499); len(all) != 1 || all[0].Sample != 499 || all[0].Bits&unix.PerfBitFreq == 0 {
		t.Errorf("%+v", all)
	}
}
