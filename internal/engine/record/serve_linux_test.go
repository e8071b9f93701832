package record

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/kernel/bpf/space"
	"github.com/cnibench/cnibench/internal/kernel/perf"
	"github.com/cnibench/cnibench/internal/kernel/proc"
	"github.com/cnibench/cnibench/internal/kernel/thread"
	"github.com/cnibench/cnibench/internal/measure/sample"
)

// serving starts a sampler and returns what asks it, after its first word.
func serving(t *testing.T) func(control.SamplerAsk) control.SamplerAnswer {
	t.Helper()
	in, ask := io.Pipe()
	answers, out := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- Serve(t.Context(), in, out) }()
	t.Cleanup(func() {
		_ = ask.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	e, d := json.NewEncoder(ask), json.NewDecoder(answers)
	next := func() (a control.SamplerAnswer) {
		t.Helper()
		if err := d.Decode(&a); err != nil {
			t.Fatal(err)
		}
		return a
	}
	if first := next(); first.Machine == "" {
		t.Errorf("%+v", first)
	}
	return func(a control.SamplerAsk) control.SamplerAnswer {
		t.Helper()
		if err := e.Encode(a); err != nil {
			t.Fatal(err)
		}
		return next()
	}
}

// TestServe samples a thread of this process as the load thread of an agent, found by its PID namespace.
func TestServe(t *testing.T) {
	ask := serving(t)
	if a := ask(control.SamplerAsk{Start: true}); !strings.Contains(a.Error, "out of turn") {
		t.Errorf("started before it was prepared: %+v", a)
	}
	if a := ask(control.SamplerAsk{Begin: &control.SamplerBegin{Rate: 997, Length: 2 * time.Second}}); strings.Contains(a.Error, "no right to sample") {
		t.Skip(a.Error)
	} else if a.Error != "" {
		t.Fatal(a.Error)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if a := ask(control.SamplerAsk{Start: true}); a.Error != "" {
		t.Fatal(a.Error)
	}
	f, err := os.Open("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	began, buf := thread.Monotonic(), make([]byte, 4096)
	for until := time.Now().Add(200 * time.Millisecond); time.Now().Before(until); {
		_, _ = f.ReadAt(buf, 0)
	}
	w := control.SamplerWindow{
		BeganNs: began, Slices: []sample.Interval{{EndNs: int64(time.Second)}},
		Ends: map[string][]sample.Thread{control.SideClient: {{ID: thread.ID(), Space: proc.PIDSpace() + 1}}},
	}
	if a := ask(control.SamplerAsk{Window: &w}); !strings.Contains(a.Error, "hostPID") {
		t.Errorf("a thread of another PID namespace was found: %+v", a)
	}
	w.Ends[control.SideClient][0].Space = proc.PIDSpace()
	a := ask(control.SamplerAsk{Window: &w})
	if a.Error != "" || a.Stacks == nil || a.Stacks.Check() != nil {
		t.Fatalf("%+v", a)
	}
	reads := 0
	for i := range a.Stacks.Counts {
		for frame, n := range a.Stacks.Of(i) {
			if stack := a.Stacks.Stack(frame); stack[0] == control.SideClient && slices.Contains(stack, "do_syscall_64") {
				reads += n.Samples
			}
		}
	}
	if reads == 0 {
		t.Errorf("no sample of this thread in a system call: %+v", a.Stacks)
	}
}

// TestCount: what CPUs count meanwhile is with the stacks, unless packets are followed.
func TestCount(t *testing.T) {
	clock := perf.Event{Name: "clock", Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_CPU_CLOCK}
	tracker, failed := space.Load()
	if failed == nil {
		defer tracker.Close()
	}
	for _, follow := range []*space.Tracker{nil, tracker} {
		r, err := Open(Options{CPUs: []int{0}, Rate: 499, Length: time.Second, Tracker: follow, Count: []perf.Event{clock}})
		if errors.Is(err, perf.ErrRight) {
			t.Skip(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if err := r.Start(); err != nil {
			t.Fatal(err)
		}
		began := thread.Monotonic()
		for thread.Monotonic() < began+int64(60*time.Millisecond) {
		}
		got, err := r.Finish(Window{BeganNs: began, Slices: []sample.Interval{{EndNs: int64(50 * time.Millisecond)}}, CPUs: []int{0}})
		if err != nil {
			t.Fatal(err)
		}
		if n, ok := got.Counters["clock"]; ok != (follow == nil) || ok && (n < 45e6 || n > 55e6) {
			t.Errorf("packets followed %v: %v", follow != nil, got.Counters)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		if failed != nil {
			t.Logf("packets are not followed: %v", failed)
			break
		}
	}
}

// TestServePrograms: a sampler that counts the runs of BPF programs has those between start and window, and samples nothing.
func TestServePrograms(t *testing.T) {
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "served_runs", Type: ebpf.SocketFilter, License: "Dual BSD/GPL", Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
	})
	if err != nil {
		t.Skip(err)
	}
	defer p.Close()
	ask := serving(t)
	if a := ask(control.SamplerAsk{Begin: &control.SamplerBegin{Programs: true, Length: time.Second}}); strings.Contains(a.Error, "not permitted") {
		t.Skip(a.Error)
	} else if a.Error != "" {
		t.Fatal(a.Error)
	}
	began := thread.Monotonic()
	if a := ask(control.SamplerAsk{Start: true}); a.Error != "" {
		t.Fatal(a.Error)
	}
	if _, err := p.Run(&ebpf.RunOptions{Data: make([]byte, 64), Repeat: 500}); err != nil {
		t.Fatal(err)
	}
	a := ask(control.SamplerAsk{Window: &control.SamplerWindow{BeganNs: began}})
	if a.Error != "" || a.Stacks != nil || a.Programs == nil || a.Programs.BeganNs < 0 {
		t.Fatalf("%+v", a)
	}
	if i := slices.IndexFunc(a.Programs.List, func(x sample.Program) bool { return x.Name == "served_runs" }); i < 0 || a.Programs.List[i].Runs != 500 {
		t.Errorf("%+v", a.Programs)
	}
}
