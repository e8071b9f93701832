package load

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/vishvananda/netlink"
)

// insideVar marks the copy of the test binary that lives in a network namespace of its own: crr makes its sockets in
// its load threads, so the whole process has to be there.
const insideVar = "CNIBENCH_LOAD_TEST_INSIDE"

// outside says why the tests that need a namespace cannot run; "" if they can.
var outside string

func TestMain(m *testing.M) {
	if os.Getenv(insideVar) != "" {
		os.Exit(inside(m))
	}
	ns, err := netns.New()
	if err != nil {
		outside = fmt.Sprintf("needs a network namespace of its own: %v", err)
		os.Exit(m.Run())
	}
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Env = append(os.Environ(), insideVar+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	starter := netns.NewStarter()
	if err := starter.Start(ns, cmd); err != nil {
		fmt.Fprintln(os.Stderr, "start the tests in a namespace:", err)
		os.Exit(1)
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		os.Exit(exit.ExitCode())
	case err != nil:
		fmt.Fprintln(os.Stderr, "tests in a namespace:", err)
		os.Exit(1)
	}
}

// inside brings the loopback up and runs the tests, or one side of a trial for a test that wants it in a process.
func inside(m *testing.M) int {
	lo, err := netlink.LinkByName("lo")
	if err == nil {
		err = netlink.LinkSetUp(lo)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bring lo up:", err)
		return 1
	}
	if side := os.Getenv(sideVar); side != "" {
		return alone(side)
	}
	return m.Run()
}

func needNamespace(t *testing.T) {
	t.Helper()
	if outside != "" {
		t.Skip(outside)
	}
}

// options are those of a short trial on the loopback.
func options(w plan.Workload) control.Prepare {
	return control.Prepare{
		Workload: w, Address: "127.0.0.1", Warmup: 30 * time.Millisecond, Window: 150 * time.Millisecond,
		Interval: 50 * time.Millisecond,
	}
}

// prepare prepares one side and closes it with the test.
func prepare(t *testing.T, side string, o control.Prepare) *Trial {
	t.Helper()
	o.Side = side
	trial, err := Prepare(t.Context(), o)
	if err != nil {
		t.Fatalf("prepare %s: %v", side, err)
	}
	t.Cleanup(func() {
		if err := trial.Close(); err != nil {
			t.Errorf("close %s: %v", side, err)
		}
	})
	return trial
}

type result struct {
	o   *sample.Observation
	err error
}

func start(ctx context.Context, trial *Trial) <-chan result {
	done := make(chan result, 1)
	go func() {
		o, err := trial.Run(ctx, func(bool) {})
		done <- result{o, err}
	}()
	return done
}

// pair prepares both sides.
func pair(t *testing.T, o control.Prepare) (server, client *Trial) {
	t.Helper()
	server = prepare(t, control.SideServer, o)
	o.Port = server.Port()
	return server, prepare(t, control.SideClient, o)
}

// wait takes n results, and fails the test when they do not come at all.
func wait(t *testing.T, results <-chan result, n int) []result {
	t.Helper()
	var got []result
	for range n {
		select {
		case r := <-results:
			got = append(got, r)
		case <-time.After(20 * time.Second):
			buf := make([]byte, 1<<20)
			t.Fatalf("a side hangs\n%s", buf[:runtime.Stack(buf, true)])
		}
	}
	return got
}

// eventually passes when one of n tries finds nothing wrong: what a machine with other work may blur now and then, and a
// fault of ours does every time.
func eventually(t *testing.T, n int, try func() (wrong string)) {
	t.Helper()
	for i := range n {
		wrong := try()
		if wrong == "" {
			return
		}
		if i == n-1 {
			t.Error(wrong)
		} else {
			t.Log("once more: " + wrong)
		}
	}
}

// trial runs both sides of a trial, as two agents would: the server first.
func trial(t *testing.T, o control.Prepare) (client, server *sample.Observation) {
	t.Helper()
	return exchange(t, o, o.Address)
}

// exchange is trial with an address to dial that differs from what the server binds to.
func exchange(t *testing.T, o control.Prepare, dial string) (client, server *sample.Observation) {
	t.Helper()
	needNamespace(t)
	s := prepare(t, control.SideServer, o)
	o.Port, o.Address = s.Port(), dial
	c := prepare(t, control.SideClient, o)
	serving, loading := start(t.Context(), s), start(t.Context(), c)
	r := wait(t, loading, 1)[0]
	if r.err != nil {
		t.Fatalf("client: %v", r.err)
	}
	client = r.o
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if r = wait(t, serving, 1)[0]; r.err != nil {
		t.Fatalf("server: %v", r.err)
	}
	return client, r.o
}

func kindOf(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return fmt.Sprintf("(%v)", err)
}
