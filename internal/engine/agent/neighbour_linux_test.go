package agent

import (
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/conduct/control"
	"github.com/cnibench/cnibench/internal/kernel/affinity"
	"github.com/cnibench/cnibench/internal/measure/outcome"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
)

// startOn starts a program on one CPU, and ends it with the test.
func startOn(t *testing.T, cpu int, name string, args ...string) {
	t.Helper()
	c := exec.Command(name, args...)
	failed := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if err := affinity.Set([]int{cpu}); err != nil {
			failed <- err
			return
		}
		failed <- c.Start() // a child begins where its parent may run
	}()
	if err := <-failed; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait() // it was killed
	})
}

// TestNeighbourIsNamed: a program on the CPU of the path is in the observations of both ends, with its time, and the trial says its
// name. The agents themselves are in neither.
func TestNeighbourIsNamed(t *testing.T) {
	pl := newPlace(t)
	server, _ := pl.dial(t)
	client, _ := pl.dial(t)
	cpus, err := affinity.Get()
	if err != nil {
		t.Fatal(err)
	}
	one := cpus[len(cpus)-1:]
	startOn(t, one[0], "sh", "-c", "while :; do :; done")
	w := plan.Workload{Spec: plan.RR{}}
	s, c := ask(control.SideServer, w, 0), ask(control.SideClient, w, 0)
	s.CPUs, c.CPUs = one, one
	s.Window, c.Window = 500*time.Millisecond, 500*time.Millisecond
	c.Port = prepare(t, server, s).Port
	prepare(t, client, c)
	start(t, server, client)
	var seen []*sample.Observation
	for _, agent := range []*control.Client{client, server} {
		o, err := agent.Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if o.Host.KsoftirqdNs == nil {
			t.Skip("kernel threads cannot be seen from here")
		}
		found := false
		for _, task := range o.Host.Tasks {
			if strings.HasSuffix(task.Command, ".test") && task.Ns > o.CPU.ThreadsNs/2 {
				t.Errorf("%s: an agent is among the others: %+v", o.Side, task)
			}
			// It has at least a tenth of what a fair scheduler gives one of three.
			found = found || task.Command == "sh" && task.CPU == one[0] && task.Ns > o.Host.SpanNs/30
		}
		if !found || o.Host.SpanNs < int64(s.Window) {
			t.Errorf("%s: in %d ns the other tasks were %+v", o.Side, o.Host.SpanNs, o.Host.Tasks)
		}
		seen = append(seen, o)
	}
	_, warnings := outcome.Derive(w, seen[0], seen[1], outcome.Conditions{CPUs: one})
	for _, x := range warnings {
		if x.ID == outcome.OtherLoad && strings.Contains(x.Message, "sh ") {
			return
		}
	}
	t.Errorf("no trial with a neighbour: %+v", warnings)
}
