package perf

import (
	"errors"
	"maps"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/kernel/thread"
)

// TestCounters counts page faults of a CPU in a window that has them, and in one that has none. What no machine counts is
// absent.
func TestCounters(t *testing.T) {
	const pages = 3000
	runtime.LockOSThread() // never unlocked: the thread is pinned
	cpus, err := thread.CPUs()
	if err != nil {
		t.Fatal(err)
	}
	cpu := cpus[len(cpus)-1]
	c, err := OpenCounters([]Event{
		{"faults", unix.PERF_TYPE_SOFTWARE, unix.PERF_COUNT_SW_PAGE_FAULTS_MIN}, {"clock", unix.PERF_TYPE_SOFTWARE, unix.PERF_COUNT_SW_CPU_CLOCK},
		{"none", unix.PERF_TYPE_SOFTWARE, 9999},
	}, []int{cpu}, 199)
	if err != nil {
		t.Skip(err)
	}
	defer c.Close()
	if err := thread.SetCPUs([]int{cpu}); err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	spin := func(d time.Duration) {
		for until := time.Now().Add(d); time.Now().Before(until); {
		}
	}
	spin(30 * time.Millisecond)
	began := thread.Monotonic()
	spin(30 * time.Millisecond) // between two readings the pages are spread evenly
	memory, err := unix.Mmap(-1, 0, pages*unix.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	_ = unix.Madvise(memory, unix.MADV_NOHUGEPAGE)
	for i := 0; i < len(memory); i += unix.Getpagesize() {
		memory[i] = 1
	}
	spin(30 * time.Millisecond)
	ended := thread.Monotonic()
	spin(100 * time.Millisecond)
	after := thread.Monotonic()
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	_ = unix.Munmap(memory)
	got, later := c.Between(began, ended, nil), c.Between(after-int64(50*time.Millisecond), after, []int{cpu})
	if !slices.Equal(slices.Sorted(maps.Keys(got)), []string{"clock", "faults"}) {
		t.Fatalf("%v", got)
	}
	if got["faults"] < pages || later["faults"] > got["faults"]/2 {
		t.Errorf("%.0f page faults in the window, want %d, and %.0f after it", got["faults"], pages, later["faults"])
	}
	if took := float64(ended - began); got["clock"] < 0.9*took || got["clock"] > 1.1*took {
		t.Errorf("%.0f ns of the CPU in %.0f", got["clock"], took)
	}
	if got := c.Between(began, after+int64(time.Second), nil); len(got) != 0 {
		t.Errorf("a window that was not counted to its end has %v", got)
	}
}

// TestLostOfCounters: samples by a counter that found no room are counted as lost.
func TestLostOfCounters(t *testing.T) {
	runtime.LockOSThread() // never unlocked: the thread is pinned
	cpus, err := thread.CPUs()
	if err != nil {
		t.Fatal(err)
	}
	cpus = cpus[len(cpus)-1:]
	c, err := OpenCounters([]Event{{"clock", unix.PERF_TYPE_SOFTWARE, unix.PERF_COUNT_SW_CPU_CLOCK}}, cpus, 20_000)
	if err != nil {
		t.Skip(err)
	}
	defer c.Close()
	c.rate = 0 // the ring has room for the samples of the timers only
	s, err := Open(Options{CPUs: cpus, Rate: 16, Length: time.Millisecond, Counters: c})
	if err != nil {
		t.Skip(err)
	}
	defer s.Close()
	if err := errors.Join(thread.SetCPUs(cpus), c.Start(), s.Start()); err != nil {
		t.Fatal(err)
	}
	for until := time.Now().Add(300 * time.Millisecond); time.Now().Before(until); {
	}
	if err := errors.Join(s.Stop(), c.Stop()); err != nil {
		t.Fatal(err)
	}
	if lost := c.list[0].readings[len(c.list[0].readings)-1].lost; lost == 0 {
		t.Skip("the kernel does not count samples that found no room (Linux 6.0 does)")
	}
	got, err := s.Read()
	if err != nil {
		t.Fatal(err)
	}
	if got.Lost < 1000 || len(got.List) == 0 {
		t.Errorf("%d samples are lost and %d read of about 6000", got.Lost, len(got.List))
	}
}

// TestBetween: a counter that takes turns is scaled to the whole time, edges are interpolated, and one that did not run is
// absent.
func TestBetween(t *testing.T) {
	shared := counter{event: "i", readings: []reading{{100, 0, 0, 0, 0}, {200, 50, 100, 50, 0}, {300, 100, 200, 100, 0}}}
	idle := counter{event: "i", cpu: 1, readings: []reading{{100, 7, 0, 0, 0}, {300, 7, 200, 0, 0}}}
	if n, ok := shared.eventsBetween(150, 250); !ok || n != 100 {
		t.Errorf("%v, %v", n, ok)
	}
	for _, x := range [][2]int64{{50, 200}, {200, 301}} {
		if n, ok := shared.eventsBetween(x[0], x[1]); ok {
			t.Errorf("%v: %v", x, n)
		}
	}
	c := Counters{list: []*counter{&shared, &idle}}
	if got := c.Between(100, 300, []int{0}); got["i"] != 200 {
		t.Errorf("%v", got)
	}
	if got := c.Between(100, 300, nil); len(got) != 0 {
		t.Errorf("an event that one CPU did not count: %v", got)
	}
}
