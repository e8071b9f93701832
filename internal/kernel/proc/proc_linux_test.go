package proc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/measure/sample"
)

// takeAround returns snapshots before and after do, and what took them.
func takeAround(t *testing.T, do func()) (s *Sampler, before, after Snapshot) {
	t.Helper()
	s, err := NewSampler()
	if err != nil {
		t.Fatal(err)
	}
	if before, err = s.Take(nil); err != nil {
		t.Fatal(err)
	}
	do()
	if after, err = s.Take(nil); err != nil {
		t.Fatal(err)
	}
	return s, before, after
}

// TestTake takes a snapshot of this machine twice and wants counters that exist and do not run backwards.
func TestTake(t *testing.T) {
	s, before, after := takeAround(t, func() {})
	if len(after.CPUs) < runtime.NumCPU() || len(after.Softnet) == 0 || after.MemoryBytes == 0 || after.NodeMemoryUsedBytes == 0 {
		t.Errorf("snapshot %+v", after)
	}
	if _, ok := after.SNMP["Tcp.RetransSegs"]; !ok {
		t.Error("no Tcp.RetransSegs of snmp")
	}
	if _, ok := after.SNMP["TcpExt.TCPOFOQueue"]; !ok {
		t.Error("no TcpExt.TCPOFOQueue of netstat")
	}
	if _, ok := after.Devices["lo.rx_bytes"]; !ok {
		t.Error("no loopback")
	}
	d := Delta(before, after)
	for n, modes := range d.CPUs {
		if modes[sample.User] < 0 || modes[sample.SoftIRQ] < 0 {
			t.Errorf("CPU %d ran backwards: %v", n, modes)
		}
	}
	if some, err := s.Take([]int{0}); err != nil || len(some.CPUs) != 1 || len(some.KsoftirqdNs) > 1 {
		t.Errorf("of CPU 0 alone: %+v, %v", some, err)
	}
}

// TestHotStops: slow-downs for heat are those of the chosen CPUs, and none where the processor does not count them.
func TestHotStops(t *testing.T) {
	root := t.TempDir()
	count := func(cpu int, name, n string) {
		dir := filepath.Join(root, fmt.Sprintf("cpu%d", cpu), "thermal_throttle")
		if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, name), []byte(n+"\n"), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	s := Sampler{hot: findThermalFiles(root)}
	var failed []error
	if n := s.hotStops(nil, &failed); n != 0 || len(s.hot) != 0 {
		t.Errorf("%d of a machine that does not count", n)
	}
	count(0, "core_throttle_count", "4")
	count(0, "package_throttle_count", "2")
	count(1, "core_throttle_count", "40")
	s.hot = findThermalFiles(root)
	if one, all := s.hotStops([]int{0}, &failed), s.hotStops(nil, &failed); one != 6 || all != 46 || failed != nil {
		t.Errorf("%d of CPU 0, %d of all, %v", one, all, failed)
	}
	if d := Delta(Snapshot{HotStops: 6}, Snapshot{HotStops: 9}); d.HotStops != 3 {
		t.Errorf("%+v", d)
	}
}

func TestKsoftirqdIsFound(t *testing.T) {
	if b, err := os.ReadFile("/proc/2/comm"); err != nil || string(b) != "kthreadd\n" {
		t.Skipf("kernel threads cannot be seen from here: process 2 is %q, %v", b, err)
	}
	s, err := NewSampler()
	if err != nil {
		t.Fatal(err)
	}
	snap, err := s.Take(nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(snap.KsoftirqdNs) < runtime.NumCPU() {
		t.Errorf("ksoftirqd of %d CPUs, there are %d: %v", len(snap.KsoftirqdNs), runtime.NumCPU(), snap.KsoftirqdNs)
	}
	for n, pid := range s.ksoftirqd {
		b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/schedstat")
		if err != nil {
			t.Skipf("this kernel keeps no schedstat to compare with: %v", err)
		}
		var ran int64 // the first column: time on a CPU, in ns
		if _, err := fmt.Sscan(string(b), &ran); err != nil || ran < snap.KsoftirqdNs[n] {
			t.Errorf("ksoftirqd/%d: the clock showed %d, schedstat shows %d later, %v", n, snap.KsoftirqdNs[n], ran, err)
		}
	}
}

// TestOnlyKernelThreadsCount: a program that calls itself ksoftirqd is none. The tree stands for /proc.
func TestOnlyKernelThreadsCount(t *testing.T) {
	root := t.TempDir()
	for name, content := range map[string]string{
		"17/comm": "ksoftirqd/1\n", "17/cmdline": "",
		"99/comm": "ksoftirqd/0\n", "99/cmdline": "ksoftirqd/0\x00",
		"50/comm": "kworker/0:1\n", "50/cmdline": "", "self/comm": "ksoftirqd/5\n", "self/cmdline": "",
	} {
		if err := os.MkdirAll(filepath.Join(root, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := findKsoftirqd(root)
	if err != nil || len(got) != 1 || got[1] != 17 {
		t.Errorf("found %v, %v, want 17 for CPU 1 alone", got, err)
	}
}

// TestClocks: the clock of one thread shows that thread's work, the process's clock all of it.
func TestClocks(t *testing.T) {
	type reading struct{ thread, process, self int64 }
	tids, work, quit := make(chan int), make(chan chan int64), make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		tids <- unix.Gettid()
		for {
			select {
			case done := <-work:
				// Until the thread's own clock says so: no assumption about how long that takes.
				begin := mustThreadCPU(t, unix.Gettid())
				for mustThreadCPU(t, unix.Gettid())-begin < 20_000_000 {
					continue
				}
				done <- mustThreadCPU(t, unix.Gettid()) - begin
			case <-quit:
				return
			}
		}
	}()
	defer close(quit)
	tid := <-tids
	read := func() (r reading) {
		r.thread = mustThreadCPU(t, tid)
		var err error
		if r.process, err = ProcessCPU(os.Getpid()); err != nil {
			t.Fatal(err)
		}
		if r.self, err = readClock(unix.CLOCK_PROCESS_CPUTIME_ID); err != nil {
			t.Fatal(err)
		}
		return r
	}
	before := read()
	done := make(chan int64)
	work <- done
	spent := <-done
	after := read()
	if d := after.thread - before.thread; d < spent {
		t.Errorf("the thread spent %d ns, its clock shows %d", spent, d)
	}
	if after.process-before.process < spent || after.self-before.self < spent || after.self < after.process {
		t.Errorf("the process's clock: %+v, then %+v; a thread of it spent %d ns", before, after, spent)
	}
	if _, err := ProcessCPU(1 << 22); err == nil {
		t.Error("a process that cannot be has a clock")
	}
}

// perThread marks the clock of one thread.
const perThread = 4

func mustThreadCPU(t *testing.T, tid int) int64 {
	ns, err := readClock(int32(^tid<<3 | schedClock | perThread))
	if err != nil {
		t.Error(err)
	}
	return ns
}

func TestUserHz(t *testing.T) {
	if hz := UserHz(); hz < 1 || hz > 10_000 {
		t.Errorf("%d ticks per second", hz)
	}
}

// TestThrottledIsSeen limits a group and keeps a process in it busy until the account says that it was stopped.
func TestThrottledIsSeen(t *testing.T) {
	const own = "cnibench-test-throttle"
	limit := map[string]string{"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "1000"}
	dir := groupRoot + "/cpu/" + own
	if _, err := os.Stat(groupRoot + "/cgroup.controllers"); err == nil {
		dir, limit = groupRoot+"/"+own, map[string]string{"cpu.max": "1000 100000"}
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Skipf("no group can be made: %v", err)
	}
	t.Cleanup(func() { // a process that was killed leaves a moment later
		for range 1000 {
			if os.Remove(dir) == nil {
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
		t.Error("the group stays: " + dir)
	})
	for name, value := range limit {
		if err := os.WriteFile(dir+"/"+name, []byte(value), 0); err != nil {
			t.Skipf("no limit can be set: %v", err)
		}
	}
	busy := exec.CommandContext(t.Context(), "sh", "-c", "while :; do :; done")
	if err := busy.Start(); err != nil {
		t.Fatal(err)
	}
	defer busy.Wait()
	defer busy.Process.Kill()
	if err := os.WriteFile(dir+"/cgroup.procs", []byte(strconv.Itoa(busy.Process.Pid)), 0); err != nil {
		t.Fatal(err)
	}
	s := Sampler{throttle: dir + "/cpu.stat"}
	before, err := s.Take(nil)
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		after, err := s.Take(nil)
		if err != nil {
			t.Fatal(err)
		}
		if Delta(before, after).ThrottledNs > 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("not stopped: %d, then %d", before.ThrottledNs, after.ThrottledNs)
		}
	}
}
