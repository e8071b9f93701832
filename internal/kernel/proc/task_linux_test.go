package proc

import (
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/kernel/thread"
)

// TestWorkersAreSeen: the work that the kernel does after the end of a network namespace is that of a worker with a name.
func TestWorkersAreSeen(t *testing.T) {
	s, err := NewSampler()
	if err != nil {
		t.Fatal(err)
	}
	if s.tasks == nil {
		t.Skip("kernel threads cannot be seen from here")
	}
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
		before, err := s.Take(nil)
		if err != nil {
			t.Fatal(err)
		}
		for range 10 {
			c := exec.Command("true")
			c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
			if err := c.Run(); err != nil {
				t.Skipf("no right to make a network namespace: %v", err)
			}
		}
		after, err := s.Take(nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, task := range Delta(before, after).Tasks {
			if strings.HasPrefix(task.Command, "kworker/") && strings.HasSuffix(task.Command, "netns") {
				return
			}
		}
	}
	t.Error("the worker that removes network namespaces was not seen")
}

// TestIdle: a CPU is not idle for longer than time passes, and /proc/timer_list says what /proc/stat says, to its resolution.
func TestIdle(t *testing.T) {
	type reading struct{ at, exact, coarse int64 }
	look := func() (r reading) {
		r.at = thread.Monotonic()
		exact, err := ParseIdle(timerList(), r.at)
		coarse := must(t, Stat)
		if err != nil || len(exact) == 0 {
			t.Skip("/proc/timer_list is for root, or counts no idle time")
		}
		for n, ns := range exact {
			r.exact += ns
			r.coarse += coarse[n]["idle"] + coarse[n]["iowait"]
		}
		return r
	}
	a := look()
	cpus := int64(len(must(t, Stat)))
	for begin := thread.Monotonic(); thread.Monotonic() < begin+100e6; {
		continue
	}
	b := look()
	// A reading lasts, and a CPU may be idle meanwhile.
	slack := cpus * (20e6 + 2*(thread.Monotonic()-b.at))
	if d := b.exact - a.exact; d < 0 || d > (b.at-a.at)*cpus+slack {
		t.Errorf("%d CPUs were idle for %d ns within %d", cpus, d, b.at-a.at)
	}
	if d := (b.exact - a.exact) - (b.coarse - a.coarse); d > slack || -d > slack {
		t.Errorf("idle for %d ns, by /proc/stat %d", b.exact-a.exact, b.coarse-a.coarse)
	}
}

func must[T any](t *testing.T, read func() (T, error)) T {
	t.Helper()
	v, err := read()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// BenchmarkTake is what a look at the machine costs at an edge of a window.
func BenchmarkTake(b *testing.B) {
	s, err := NewSampler()
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := s.Take([]int{0}); err != nil {
			b.Fatal(err)
		}
	}
}
