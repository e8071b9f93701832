package load

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/tool/strace"
)

// TestNoAllocationPerOperation counts the allocations of each side's whole process, Run included, between the edges of
// its window: a handful, and not one per operation. Each side has a process, because the counting stops the world, in which
// the other would not answer.
func TestNoAllocationPerOperation(t *testing.T) {
	for _, w := range everyWorkload {
		t.Run(w.String(), func(t *testing.T) {
			o := options(w)
			o.Interval, o.Side = 0, control.SideServer
			p := sideProcess(t, o)
			o.Port = p.port
			c := prepare(t, control.SideClient, o)
			p.run(t)
			var own allocated
			got, err := c.Run(t.Context(), own.edge)
			if err != nil {
				t.Fatal(err)
			}
			check := func(side string, a allocated, operations uint64) {
				t.Logf("%s: %d allocations in %d operations", side, a.N, operations)
				// What is left is Run's and the runtime's own: maps of TCP_INFO, a new thread.
				if limit := max(200, operations/50); a.N > limit || a.Collected {
					t.Errorf("%s: %d allocations in %d operations; the collector ran: %v", side, a.N, operations, a.Collected)
				}
			}
			check(control.SideClient, own, got.Operations)
			if w.Traits().Kernel() {
				return // the kernel answers
			}
			served := p.read(t)
			if served.Observation == nil {
				t.Fatalf("the server failed: %s", served.Kind)
			}
			check(control.SideServer, served.Allocated, served.Observation.Operations)
		})
	}
}

// allocated is what a process allocates in a window, and whether the collector ran.
type allocated struct {
	N         uint64
	Collected bool
	before    runtime.MemStats
}

// edge is called at the edges of the window.
func (a *allocated) edge(end bool) {
	if !end {
		runtime.ReadMemStats(&a.before)
		return
	}
	var after runtime.MemStats
	runtime.ReadMemStats(&after)
	a.N, a.Collected = after.Mallocs-a.before.Mallocs, after.NumGC != a.before.NumGC
}

// TestNothingLeaks: after fifty trials of all kinds there are no more descriptors, threads or goroutines than before,
// and the runtime has its settings back.
func TestNothingLeaks(t *testing.T) {
	needNamespace(t)
	o := options(plan.Workload{})
	o.Warmup, o.Window, o.Interval = 0, 10*time.Millisecond, 0
	round := func(w plan.Workload) {
		o.Workload = w
		s, c := pair(t, o)
		results := []<-chan result{start(t.Context(), s), start(t.Context(), c)}
		for _, r := range results {
			wait(t, r, 1)
		}
		for _, side := range []*Trial{c, s} {
			if err := side.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 2 {
		for _, w := range everyWorkload {
			round(w)
		}
	}
	fds, threads, goroutines := census(t)
	for i := range 50 {
		round(everyWorkload[i%len(everyWorkload)])
	}
	// A thread that has left its goroutine takes a moment to be gone, and the runtime keeps a few idle ones of its own:
	// how many there were at once at most. A leak of one per trial would be fifty.
	var fdsAfter, threadsAfter, goroutinesAfter int
	for range 100 {
		fdsAfter, threadsAfter, goroutinesAfter = census(t)
		if threadsAfter <= threads+8 && goroutinesAfter <= goroutines {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if fdsAfter > fds || threadsAfter > threads+8 || goroutinesAfter > goroutines {
		t.Errorf("descriptors %d -> %d, threads %d -> %d, goroutines %d -> %d",
			fds, fdsAfter, threads, threadsAfter, goroutines, goroutinesAfter)
	}
}

func census(t *testing.T) (fds, threads, goroutines int) {
	t.Helper()
	return entries(t, "/proc/self/fd"), entries(t, "/proc/self/task"), runtime.NumGoroutine()
}

func entries(t *testing.T, dir string) int {
	t.Helper()
	list, err := os.ReadDir(dir)
	must(t, err)
	return len(list)
}

func TestRuntimeIsGivenBack(t *testing.T) {
	processors := runtime.GOMAXPROCS(0)
	collector := debug.SetGCPercent(123)
	defer debug.SetGCPercent(collector)
	QuiesceRuntime(10)
	QuiesceRuntime(20)
	if got := runtime.GOMAXPROCS(0); got < 30+spare {
		t.Errorf("%d processors for 30 threads", got)
	}
	RestoreRuntime(10)
	if got := debug.SetGCPercent(-1); got != -1 {
		t.Errorf("the collector is back at %d with a trial under way", got)
	}
	RestoreRuntime(20)
	if got := runtime.GOMAXPROCS(0); got != processors {
		t.Errorf("%d processors, were %d", got, processors)
	}
	if got := debug.SetGCPercent(123); got != 123 {
		t.Errorf("the collector is at %d, was 123", got)
	}
}

// TestThreadsArePinned reads the affinity of the load threads from /proc.
func TestThreadsArePinned(t *testing.T) {
	needNamespace(t)
	o := options(plan.Workload{Spec: plan.RR{Flows: 3}})
	o.CPUs = []int{runtime.NumCPU() - 1}
	before := pinnedThreads(t, o.CPUs[0])
	s, c := pair(t, o)
	if got := pinnedThreads(t, o.CPUs[0]) - before; got != 6 {
		t.Errorf("%d threads are pinned to CPU %d, want 6", got, o.CPUs[0])
	}
	for _, r := range []<-chan result{start(t.Context(), s), start(t.Context(), c)} {
		if got := wait(t, r, 1)[0]; got.err != nil {
			t.Error(got.err)
		}
	}
	o.Side, o.CPUs = control.SideServer, []int{1023}
	o.Workload = plan.Workload{Spec: plan.CRR{}}
	if _, err := Prepare(t.Context(), o); err == nil {
		t.Error("a CPU that is not there can be pinned to")
	}
}

func pinnedThreads(t *testing.T, cpu int) int {
	t.Helper()
	files, err := filepath.Glob("/proc/self/task/*/status")
	must(t, err)
	n := 0
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err == nil && strings.Contains(string(b), "Cpus_allowed_list:\t"+strconv.Itoa(cpu)+"\n") {
			n++
		}
	}
	return n
}

// TestSystemCallsPerTransaction runs one side under strace: a transaction of rr is two system calls at either side, one
// of crr five at the client and four at the server, and nothing else grows with the number of transactions.
func TestSystemCallsPerTransaction(t *testing.T) {
	needNamespace(t)
	if _, err := exec.LookPath("strace"); err != nil {
		t.Skipf("needs strace: %v", err)
	}
	for _, c := range []struct {
		workload plan.Workload
		side     string
		calls    []string
	}{
		{plan.Workload{Spec: plan.RR{}}, control.SideClient, []string{"sendto", "recvfrom"}},
		{plan.Workload{Spec: plan.RR{}}, control.SideServer, []string{"sendto", "recvfrom"}},
		{plan.Workload{Spec: plan.RR{Protocol: plan.UDP}}, control.SideClient, []string{"sendto", "recvfrom"}},
		{plan.Workload{Spec: plan.CRR{}}, control.SideClient, []string{"socket", "connect", "sendto", "recvfrom", "close"}},
		{plan.Workload{Spec: plan.CRR{RequestSize: 1024, ResponseSize: 1024}}, control.SideServer, []string{"accept4", "recvfrom", "sendto", "close"}},
	} {
		t.Run(c.workload.String()+" "+c.side, func(t *testing.T) {
			o := options(c.workload)
			o.Warmup, o.Window, o.Interval = 0, 300*time.Millisecond, 0
			operations, calls := traced(t, o, c.side)
			for operations < 1000 && o.Window < 5*time.Second {
				o.Window *= 3 // what happens once must not look like what happens each time
				operations, calls = traced(t, o, c.side)
			}
			// Transactions outside the window are not counted, and a busy machine makes any number of them.
			all := calls[c.calls[0]]
			for _, name := range c.calls {
				all = min(all, calls[name])
			}
			if all < operations {
				t.Errorf("%d transactions with %d calls", operations, all)
			}
			for name, n := range calls {
				// The runtime's monitor thread sleeps by the clock, not by the transaction.
				if n > all/2 && !slices.Contains(c.calls, name) && name != "nanosleep" {
					t.Errorf("%s was called %d times in %d transactions", name, n, all)
				}
			}
			for _, name := range c.calls {
				// Setting up adds a few.
				if n := calls[name]; n > all+all/20+60 {
					t.Errorf("%s was called %d times in %d transactions", name, n, all)
				}
			}
			t.Logf("%d transactions, calls %v", operations, calls)
		})
	}
}

// TestConnectTime: the time to connect is that of connect alone. Before, it had socket in it, and in the paced client
// epoll_ctl and the first send.
func TestConnectTime(t *testing.T) {
	needNamespace(t)
	if _, err := exec.LookPath("strace"); err != nil {
		t.Skipf("needs strace: %v", err)
	}
	for _, spec := range []plan.Spec{plan.CRR{}, plan.CRR{Rate: 50}} {
		o := options(plan.Workload{Spec: spec})
		o.Warmup, o.Window, o.Interval = 0, 500*time.Millisecond, 0
		o.Side = control.SideServer
		server := prepare(t, control.SideServer, o)
		o.Side, o.Port = control.SideClient, server.Port()
		slow := append(strace.Counted(filepath.Join(t.TempDir(), "calls")), "-e", "inject=socket,epoll_ctl,sendto:delay_exit=5000")
		client := sideProcess(t, o, slow...)
		client.run(t)
		done := start(t.Context(), server)
		got := client.read(t)
		if got.Observation == nil {
			t.Fatalf("%s: the client failed: %s", o.Workload, got.Kind)
		}
		if err := server.Close(); err != nil {
			t.Fatal(err)
		}
		wait(t, done, 1)
		client.end(t)
		connect, whole := got.Observation.Connect, got.Observation.RTT
		if connect.Count() == 0 || connect.Quantile(0.5) > 2_500_000 || whole.Quantile(0.5) < 5_000_000 {
			t.Errorf("%s: %d times to connect, half of them beyond %v ns, beside calls that are 5 ms late; %v ns in all",
				o.Workload, connect.Count(), connect.Quantile(0.5), whole.Quantile(0.5))
		}
	}
}

// traced returns how many operations the traced side completed and how often it made each system call.
func traced(t *testing.T, o control.Prepare, side string) (uint64, map[string]uint64) {
	t.Helper()
	table := filepath.Join(t.TempDir(), "calls")
	var p *process
	var other *Trial
	o.Side = side
	if side == control.SideServer {
		p = sideProcess(t, o, strace.Counted(table)...)
		o.Port = p.port
		other = prepare(t, control.SideClient, o)
	} else {
		o.Window *= 3 // the server's window must cover a slow client's
		other = prepare(t, control.SideServer, o)
		o.Window /= 3
		o.Port = other.Port()
		p = sideProcess(t, o, strace.Counted(table)...)
	}
	p.run(t)
	done := start(t.Context(), other)
	got := p.read(t)
	if got.Observation == nil {
		t.Fatalf("the traced side failed: %s", got.Kind)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	wait(t, done, 1)
	p.end(t)
	calls, err := strace.SystemCalls(table)
	must(t, err)
	return got.Observation.Operations, calls
}
