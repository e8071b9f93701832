package load

import (
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/cnibench/cnibench/internal/kernel/sock"
	"github.com/cnibench/cnibench/internal/plan"
)

// TestStreamOpensItsWindows: a stream that asks for CUBIC has Reno until the middle of the warm-up, and CUBIC in the window.
func TestStreamOpensItsWindows(t *testing.T) {
	needNamespace(t)
	for _, c := range []struct {
		spec         plan.Spec
		before, then string
	}{
		{plan.Stream{Congestion: "cubic", Flows: 2}, "reno", "cubic"},
		{plan.Stream{Congestion: "cubic", Bidirectional: true}, "reno", "cubic"},
		{plan.Stream{Congestion: "reno"}, "reno", "reno"},
		{plan.RR{Congestion: "cubic"}, "cubic", "cubic"},
	} {
		server, client := pair(t, options(plan.Workload{Spec: c.spec}))
		inForce := func(want string) {
			t.Helper()
			for _, side := range []*Trial{client, server} {
				for _, w := range side.workers() {
					if got, err := sock.Congestion(w.fd); got != want || err != nil {
						t.Errorf("%+v: congestion control is %q (%v), want %q", c.spec, got, err, want)
					}
				}
			}
		}
		inForce(c.before)
		serving, loading := start(t.Context(), server), start(t.Context(), client)
		for _, r := range append(wait(t, loading, 1), wait(t, serving, 1)...) {
			if r.err != nil {
				t.Fatalf("%+v: %v", c.spec, r.err)
			}
			if r.o.TCP.Congestion != c.then {
				t.Errorf("%+v: %s measured %q, want %q", c.spec, r.o.Side, r.o.TCP.Congestion, c.then)
			}
		}
		inForce(c.then)
	}
}

// TestCongestionThatIsNotAllowed takes the thread the right to choose, as an ordinary pod has none: the system's stays, and
// can be read back.
func TestCongestionThatIsNotAllowed(t *testing.T) {
	allowed, err := os.ReadFile("/proc/sys/net/ipv4/tcp_allowed_congestion_control")
	if err != nil {
		t.Fatal(err)
	}
	have, err := sock.Congestions()
	if err != nil {
		t.Fatal(err)
	}
	barred := slices.DeleteFunc(have, func(name string) bool { return slices.Contains(strings.Fields(string(allowed)), name) })
	if len(barred) == 0 {
		t.Skipf("every user may choose any of %s here", allowed)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlock: the thread ends with its lack of rights
		const version3 = 0x20080522
		header := [2]uint32{version3, 0}
		if _, _, errno := syscall.RawSyscall(syscall.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&[6]uint32{})), 0); errno != 0 {
			t.Errorf("capset: %v", errno)
			return
		}
		fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
		if err != nil {
			t.Error(err)
			return
		}
		defer syscall.Close(fd)
		usual, err := sock.Congestion(fd)
		if err != nil {
			t.Error(err)
		}
		if err := setCongestion(fd, barred[0]); err != nil {
			t.Errorf("%s: %v", barred[0], err)
		}
		stream := &Trial{traits: plan.Workload{Spec: plan.Stream{Congestion: "cubic"}}.Traits()}
		if err := stream.setReno(fd); err != nil {
			t.Errorf("open: %v", err)
		}
		if got, err := sock.Congestion(fd); got != usual || err != nil {
			t.Errorf("congestion control is %q (%v), want the system's %q", got, err, usual)
		}
	}()
	<-done
}
