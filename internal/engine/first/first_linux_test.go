package first

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/kernel/sock"
	"github.com/cnibench/cnibench/internal/kernel/thread"
)

// world has a namespace whose loopback carries a server of single bytes.
func world(t *testing.T) (*netns.NS, netip.AddrPort) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: it makes a network namespace")
	}
	ns, err := netns.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ns.Close() })
	h, err := link.Open(ns)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if err := h.Up(link.Loopback); err != nil {
		t.Fatal(err)
	}
	return ns, netip.MustParseAddrPort("127.0.0.1:5201")
}

// answer serves single bytes at an address until the test ends.
func answer(t *testing.T, ns *netns.NS, at netip.AddrPort) {
	t.Helper()
	var l net.Listener
	if err := ns.Do(func() (err error) { l, err = net.Listen("tcp", at.String()); return err }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = io.CopyN(c, c, 1)
			}()
		}
	}()
}

// rules changes the netfilter rules of ns.
func rules(t *testing.T, ns *netns.NS, args ...string) {
	t.Helper()
	err := ns.Do(func() error {
		out, err := exec.Command("iptables", args...).CombinedOutput()
		if err != nil {
			return errors.New(string(out))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// request dials inside ns.
func request(ctx context.Context, ns *netns.NS, to netip.AddrPort, limit time.Duration) (r Result, took time.Duration, err error) {
	err = ns.Do(func() (err error) {
		runtime.LockOSThread()
		begin := thread.Monotonic()
		r, err = Request(ctx, Options{To: to, Begin: begin, End: begin + int64(limit)})
		took = time.Duration(r.Answered - begin)
		return err
	})
	return r, took, err
}

const long = 20 * time.Second

func TestAnsweredByTheFirstAttempt(t *testing.T) {
	ns, to := world(t)
	answer(t, ns, to)
	r, took, err := request(t.Context(), ns, to, long)
	if err != nil || r.Dials < 1 || r.CPUNs <= 0 || took <= 0 || r.Connected <= 0 || r.Answered < r.Connected {
		t.Errorf("%+v after %s: %v", r, took, err)
	}
}

// TestGapOfSomeMilliseconds: SYNs are dropped until a rule goes. The time is that of the gap, and neither below it nor that of
// the kernel's next SYN, a second later.
func TestGapOfSomeMilliseconds(t *testing.T) {
	if _, err := exec.LookPath("iptables"); err != nil {
		t.Skip("needs iptables")
	}
	ns, to := world(t)
	answer(t, ns, to)
	drop := []string{"INPUT", "-p", "tcp", "--dport", "5201", "-j", "DROP"}
	rules(t, ns, append([]string{"-A"}, drop...)...)
	type seen struct {
		r   Result
		err error
	}
	done := make(chan seen)
	started := thread.Monotonic()
	go func() {
		r, _, err := request(t.Context(), ns, to, long)
		done <- seen{r, err}
	}()
	thread.SleepUntil(started + int64(5*time.Millisecond))
	lifting := thread.Monotonic()
	rules(t, ns, append([]string{"-D"}, drop...)...)
	lifted := thread.Monotonic()
	s := <-done
	if s.err != nil {
		t.Fatal(s.err)
	}
	if s.r.Answered < lifting {
		t.Errorf("answered %s before the rule went", time.Duration(lifting-s.r.Answered))
	}
	if late := time.Duration(s.r.Answered - lifted); late > 300*time.Millisecond {
		t.Errorf("answered %s after the rule had gone, by %d dials", late, s.r.Dials)
	}
	if s.r.Dials < 2 {
		t.Errorf("%d dials within %s", s.r.Dials, time.Duration(s.r.Answered-started))
	}
}

// TestNeverAnswered: the end of the time is a timeout, and a refusal is not the end before.
func TestNeverAnswered(t *testing.T) {
	ns, to := world(t)
	r, _, err := request(t.Context(), ns, to, 30*time.Millisecond)
	if !errors.Is(err, syscall.ECONNREFUSED) || r.Answered != 0 || r.Dials < 3 {
		t.Errorf("%+v: %v", r, err)
	}
	if _, lacks := exec.LookPath("iptables"); lacks != nil {
		t.Skip("needs iptables")
	}
	rules(t, ns, "-A", "INPUT", "-p", "tcp", "-j", "DROP")
	if _, _, err := request(t.Context(), ns, to, 30*time.Millisecond); !errors.Is(err, syscall.ETIMEDOUT) {
		t.Error(err)
	}
}

// TestServerThatComesLater: attempts before it are refused.
func TestServerThatComesLater(t *testing.T) {
	ns, to := world(t)
	came := make(chan int64)
	go func() {
		time.Sleep(10 * time.Millisecond)
		at := thread.Monotonic()
		answer(t, ns, to)
		came <- at
	}()
	r, _, err := request(t.Context(), ns, to, long)
	if at := <-came; err != nil || r.Answered < at || r.Dials < 2 {
		t.Errorf("%+v, the server came at %d: %v", r, at, err)
	}
}

// TestServerThatOnlyTakesConnections: a connection is not an answer.
func TestServerThatOnlyTakesConnections(t *testing.T) {
	ns, to := world(t)
	err := ns.Do(func() error {
		l, err := net.Listen("tcp", to.String())
		if err == nil {
			t.Cleanup(func() { _ = l.Close() })
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if r, _, err := request(t.Context(), ns, to, 30*time.Millisecond); !errors.Is(err, syscall.ETIMEDOUT) || r.Answered != 0 {
		t.Errorf("%+v: %v", r, err)
	}
}

func TestCancelled(t *testing.T) {
	ns, to := world(t)
	why := errors.New("the run ends")
	ctx, stop := context.WithCancelCause(t.Context())
	time.AfterFunc(5*time.Millisecond, func() { stop(why) })
	if _, _, err := request(ctx, ns, to, long); !errors.Is(err, why) {
		t.Error(err)
	}
}

// TestFewDescriptors: where the process may open no more sockets, the oldest attempt ends for a new one.
func TestFewDescriptors(t *testing.T) {
	ns, to := world(t)
	var opened, refused int
	var r Result
	err := ns.Do(func() (err error) {
		runtime.LockOSThread()
		l, err := net.Listen("tcp", to.String())
		if err != nil {
			return err
		}
		defer l.Close() // it never answers
		begin := thread.Monotonic()
		r, err = Request(t.Context(), Options{To: to, Begin: begin, End: begin + int64(40*time.Millisecond), Open: func() (*os.File, error) {
			if opened > 3 && refused <= opened-4 {
				refused++
				return nil, os.NewSyscallError("socket", syscall.EMFILE)
			}
			fd, e := sock.Socket(sock.IPv4, sock.Stream, 0)
			if e != 0 {
				return nil, e
			}
			opened++
			return os.NewFile(uintptr(fd), "socket"), nil
		}})
		return err
	})
	if !errors.Is(err, syscall.ETIMEDOUT) || refused == 0 || opened != r.Dials {
		t.Errorf("%d dials, %d sockets, %d refused: %v", r.Dials, opened, refused, err)
	}
}

// TestAttemptsAreBounded follows the schedule of attempts to its end.
func TestAttemptsAreBounded(t *testing.T) {
	for limit, want := range map[time.Duration]int{5 * time.Second: 494, time.Minute: 743} {
		n := 0
		for at := int64(0); at < int64(limit); at += attemptInterval(at) {
			n++
		}
		if n != want || n > mostOpen {
			t.Errorf("%s: %d attempts, want %d", limit, n, want)
		}
	}
}
