package probe

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/kernel/thread"
	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/profile"
)

// needNamespaces skips where none can be made.
func needNamespaces(t *testing.T) {
	t.Helper()
	ns, err := netns.New()
	if errors.Is(err, os.ErrPermission) {
		t.Skipf("no right to make a network namespace: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	ns.Close()
}

func links(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir("/sys/class/net")
	if err != nil {
		t.Skipf("devices of this namespace cannot be listed: %v", err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// TestCheckAll probes this machine and wants a whole answer to each question, and nothing left behind.
func TestCheckAll(t *testing.T) {
	needNamespaces(t)
	before := links(t)
	found, err := Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != len(Features()) {
		t.Fatalf("%d findings for %d features", len(found), len(Features()))
	}
	for i, f := range found {
		t.Logf("%-13s %-14s %s %s", f.Feature, f.Outcome, f.Missing, f.WayOut)
		if f.Feature != Features()[i] || f.About == "" {
			t.Errorf("finding %d is %+v", i, f)
		}
		if (f.Outcome == Yes) != (f.Missing == "") || f.Outcome == No && f.WayOut == "" {
			t.Errorf("%s: %s, missing %q, way out %q", f.Feature, f.Outcome, f.Missing, f.WayOut)
		}
	}
	if after := links(t); !slices.Equal(before, after) {
		t.Errorf("devices before %v, after %v", before, after)
	}
}

// TestCheckAgreesWithUse: what the other tests of this repository stand on is found.
func TestCheckAgreesWithUse(t *testing.T) {
	needNamespaces(t)
	found, err := Check(t.Context(), "netns", "veth", "bridge", "no such thing")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found[:3] {
		if f.Outcome != Yes {
			t.Errorf("%s: %s: %s", f.Feature, f.Outcome, f.Missing)
		}
	}
	if f := found[3]; f.Outcome != Unknown || !strings.Contains(f.WayOut, "veth") {
		t.Errorf("of an unknown feature: %+v", f)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Check(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestEveryNeedIsKnown: a profile may only need what can be probed.
func TestEveryNeedIsKnown(t *testing.T) {
	for _, p := range profile.All() {
		for _, need := range p.Needs {
			if !slices.Contains(Features(), need) {
				t.Errorf("profile %s needs %q, which no probe knows", p.Name, need)
			}
		}
	}
}

func TestEveryRequirementIsTried(t *testing.T) {
	for _, r := range requirements {
		if _, ok := tries[r.name]; !ok && r.program == "" {
			t.Errorf("%s has neither a probe nor a program", r.name)
		}
	}
	for name := range tries {
		if !slices.Contains(Features(), name) {
			t.Errorf("the probe %s is for no feature", name)
		}
	}
}

func TestJudge(t *testing.T) {
	m := machine{family: debian, release: "6.1"}
	r := requirement{name: "x", about: "x", option: "CONFIG_X", module: "x"}
	for name, c := range map[string]struct {
		err     error
		outcome Outcome
		wayOut  string
	}{
		"yes":            {nil, Yes, ""},
		"not supported":  {fmt.Errorf("add: %w", unix.EOPNOTSUPP), No, "modprobe x; or on Ubuntu: apt-get install linux-modules-extra-6.1; or a kernel with CONFIG_X"},
		"absent":         {&os.PathError{Op: "stat", Path: "/proc/x", Err: unix.ENOENT}, No, "modprobe x; or on Ubuntu: apt-get install linux-modules-extra-6.1; or a kernel with CONFIG_X"},
		"no right":       {fmt.Errorf("add: %w", unix.EPERM), Unknown, "run as root"},
		"program":        {&programError{[]string{"x"}, "No such file or directory", errors.New("exit status 3")}, No, "modprobe x; or on Ubuntu: apt-get install linux-modules-extra-6.1; or a kernel with CONFIG_X"},
		"program, right": {&programError{[]string{"x"}, "Permission denied (you must be root)", errors.New("exit status 4")}, Unknown, "run as root"},
		"too slow":       {context.DeadlineExceeded, Unknown, "try again when the machine is less busy"},
		"anything":       {unix.ENOBUFS, Unknown, ""},
	} {
		f := r.findingFor(m, c.err)
		if f.Outcome != c.outcome || f.WayOut != c.wayOut || (f.Missing == "") != (c.err == nil) {
			t.Errorf("%s: %+v", name, f)
		}
	}
	r.program = "no-such-program-of-ours"
	if f := r.check(t.Context(), m); f.Outcome != No || f.WayOut != "apt-get install no-such-program-of-ours" {
		t.Errorf("without the program: %+v", f)
	}
}

// TestIRQTimeAgreesWithConfiguration: a kernel built without the option cannot account interrupts apart.
func TestIRQTimeAgreesWithConfiguration(t *testing.T) {
	needNamespaces(t)
	config, err := os.ReadFile("/boot/config-" + kernelRelease())
	if f, openErr := os.Open("/proc/config.gz"); openErr == nil {
		defer f.Close()
		r, zipErr := gzip.NewReader(f)
		if zipErr != nil {
			t.Fatal(zipErr)
		}
		config, err = io.ReadAll(r)
	}
	t.Logf("configuration of %d bytes, %v", len(config), err)
	cpus, err := thread.CPUs()
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range cpus[:min(len(cpus), 2)] {
		verdict, err := IRQTime(t.Context(), n, false)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("CPU %d: %q", n, verdict)
		if verdict == facts.IRQApart && strings.Contains(string(config), "# CONFIG_IRQ_TIME_ACCOUNTING is not set") {
			t.Errorf("CPU %d: the verdict %q contradicts the configuration", n, verdict)
		}
	}
}

// TestIRQTimeInPod: IRQTime answers the same on the loopback of a pod and in a namespace that it makes. The pod is this test
// program once more, in a namespace of its own.
func TestIRQTimeInPod(t *testing.T) {
	const inPod = "CNIBENCH_TEST_IRQ_IN_POD"
	cpus, err := thread.CPUs()
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv(inPod) != "" {
		if out, err := exec.CommandContext(t.Context(), "ip", "link", "set", "lo", "up").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		verdict, err := IRQTime(t.Context(), cpus[0], true)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("verdict=%s;\n", verdict)
		return
	}
	needNamespaces(t)
	want, err := IRQTime(t.Context(), cpus[0], false)
	if err != nil {
		t.Fatal(err)
	}
	pod := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestIRQTimeInPod$")
	pod.Env = append(os.Environ(), inPod+"=1")
	pod.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	out, err := pod.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	_, got, _ := strings.Cut(string(out), "verdict=")
	got, _, ok := strings.Cut(got, ";")
	if !ok {
		t.Fatalf("no verdict in\n%s", out)
	}
	if want == "" || got == "" {
		t.Skipf("undecided: %q in a namespace that was made, %q in the pod's", want, got)
	}
	if got != want {
		t.Errorf("%q in the pod's namespace, %q in one that was made", got, want)
	}
}

func TestCollect(t *testing.T) {
	f, err := Collect(t.Context(), Collection{Idle: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range f.Names() {
		t.Logf("%s = %s", name, f[name])
		if f[name] == "" || strings.TrimSpace(f[name]) != f[name] {
			t.Errorf("%s is %q", name, f[name])
		}
	}
	for _, name := range []string{facts.Kernel, facts.Architecture, facts.CPUs, facts.LoadAverage, facts.IdleBusy, facts.IdleInterrupt} {
		if f[name] == "" {
			t.Errorf("no %s", name)
		}
	}
	for _, name := range []string{facts.IdleBusy, facts.IdleInterrupt} {
		if v, err := strconv.ParseFloat(f[name], 64); err != nil || v < 0 || v > 1 {
			t.Errorf("%s is %q", name, f[name])
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Collect(ctx, Collection{Idle: time.Hour}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestIdleSeesLoad: a CPU that spins is busy.
func TestIdleSeesLoad(t *testing.T) {
	cpus, err := thread.CPUs()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			continue
		}
	}()
	load, err := Idle(t.Context(), cpus, 300*time.Millisecond)
	cancel()
	<-done
	if err != nil {
		t.Fatal(err)
	}
	// One of the CPUs span all the time; on a busy machine others may have taken it from us and still be busy.
	if want := 0.5 / float64(len(cpus)); load.Busy < want || load.Interrupt > load.Busy {
		t.Errorf("busy %.2f, interrupts %.2f with one of %d CPUs spinning, want %.2f at least", load.Busy, load.Interrupt, len(cpus), want)
	}
}
