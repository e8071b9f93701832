package netns

import (
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/kernel/thread"
)

func fresh(t *testing.T) *NS {
	t.Helper()
	ns, err := New()
	if errors.Is(err, os.ErrPermission) {
		t.Skipf("no right to make a network namespace: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ns.Close() })
	return ns
}

func inode(t *testing.T, ns *NS) uint64 {
	t.Helper()
	i, err := ns.Inode()
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func TestDoIsInsideAndTheCallerStaysOutside(t *testing.T) {
	ns := fresh(t)
	home, err := Current()
	if err != nil {
		t.Fatal(err)
	}
	defer home.Close()
	var inside []string
	if err := ns.Do(func() error {
		here, err := Current()
		if err != nil {
			return err
		}
		defer here.Close()
		if inode(t, here) != inode(t, ns) {
			t.Error("Do is in another namespace")
		}
		b, err := os.ReadFile("/proc/thread-self/net/dev")
		inside = strings.Split(strings.TrimSpace(string(b)), "\n")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if len(inside) != 3 || !strings.Contains(inside[2], "lo:") {
		t.Errorf("a fresh namespace has lo alone, got:\n%s", strings.Join(inside, "\n"))
	}
	after, err := Current()
	if err != nil {
		t.Fatal(err)
	}
	defer after.Close()
	if inode(t, after) != inode(t, home) {
		t.Error("the caller was moved")
	}
}

func TestSocketsStayWhereTheyWereMade(t *testing.T) {
	a, b := fresh(t), fresh(t)
	listen := func(ns *NS) net.PacketConn {
		var c net.PacketConn
		if err := ns.Do(func() (err error) {
			c, err = net.ListenPacket("udp4", "0.0.0.0:4242")
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return c
	}
	// Both bind the same port, which one namespace would refuse.
	defer listen(a).Close()
	defer listen(b).Close()
}

func TestErrorsAndPanicsComeBack(t *testing.T) {
	ns := fresh(t)
	cause := errors.New("cause")
	if err := ns.Do(func() error { return cause }); !errors.Is(err, cause) {
		t.Errorf("Do returned %v", err)
	}
	if err := ns.Do(func() error { panic("oops") }); err == nil || !strings.Contains(err.Error(), "oops") {
		t.Errorf("a panic became %v", err)
	}
}

func TestStarterStartsInsideAndKillsAtItsEnd(t *testing.T) {
	ns := fresh(t)
	s := NewStarter()
	cmd := exec.Command("readlink", "/proc/self/ns/net")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(ns, cmd); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 64)
	n, _ := out.Read(b)
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	var want string
	if err := ns.Do(func() (err error) { want, err = os.Readlink(threadNS); return err }); err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimSpace(string(b[:n])); got != want {
		t.Errorf("the process is in %s, want %s", got, want)
	}

	sleeper := exec.Command("sleep", "60")
	if err := s.Start(ns, sleeper); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- sleeper.Wait() }()
	s.Close()
	select {
	case err := <-done:
		if err == nil || !strings.Contains(err.Error(), "killed") {
			t.Errorf("the process ended with %v, want killed", err)
		}
	case <-time.After(10 * time.Second):
		sleeper.Process.Kill()
		t.Error("the process outlived its starter")
	}
}

func TestStartOnConfinesTheProcessAlone(t *testing.T) {
	all, err := thread.CPUs()
	if err != nil {
		t.Fatal(err)
	}
	s := NewStarter()
	defer s.Close()
	allowed := func(cpus []int) string {
		cmd := exec.Command("sed", "-n", `s/^Cpus_allowed_list:[[:space:]]*//p`, "/proc/self/status")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Start(nil, cmd, cpus...); err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(out)
		if err := errors.Join(err, cmd.Wait()); err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(b))
	}
	before := allowed(nil)
	last := all[len(all)-1]
	if got := allowed([]int{last}); got != strconv.Itoa(last) {
		t.Errorf("a process for CPU %d may run on %s", last, got)
	}
	if got := allowed(nil); got != before {
		t.Errorf("the next process may run on %s, want %s", got, before)
	}
	if err := s.Start(nil, exec.Command("true"), 1023); err == nil && !slices.Contains(all, 1023) {
		t.Error("a process starts on a CPU that is not there")
	}
}

func TestManyAtOnceLeaveNoDescriptors(t *testing.T) {
	before := descriptors(t)
	var wg sync.WaitGroup
	for range 50 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			ns, err := New()
			if err != nil {
				if !errors.Is(err, os.ErrPermission) {
					t.Error(err)
				}
				return
			}
			defer ns.Close()
			if err := ns.Do(func() error { return nil }); err != nil {
				t.Error(err)
			}
		}()
	}
	wg.Wait()
	runtime.GC()
	if after := descriptors(t); after > before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// TestHere: the namespace that the program is in is entered without any right, by staying.
func TestHere(t *testing.T) {
	here, err := Here()
	if err != nil {
		t.Fatal(err)
	}
	defer here.Close()
	want, err := here.Inode()
	if err != nil {
		t.Fatal(err)
	}
	err = here.Do(func() error {
		now, err := Current()
		if err != nil {
			return err
		}
		defer now.Close()
		if got, err := now.Inode(); err != nil || got != want {
			t.Errorf("inside is %d, want %d (%v)", got, want, err)
		}
		return errors.New("handed on")
	})
	if err == nil || err.Error() != "handed on" {
		t.Errorf("got %v", err)
	}
}
