package agent

import (
	"net/netip"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/kernel/nft"
	"github.com/cnibench/cnibench/internal/kernel/thread"
	"github.com/cnibench/cnibench/internal/measure/outcome"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// startOn starts a program on one CPU, and ends it with the test.
func startOn(t *testing.T, cpu int, name string, args ...string) {
	t.Helper()
	c := exec.Command(name, args...)
	failed := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if err := thread.SetCPUs([]int{cpu}); err != nil {
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

// beside runs a trial on one CPU, and returns what client and server saw, and what came of it.
func beside(t *testing.T, pl *place, cpus []int) (c, s *sample.Observation, metrics map[string]float64, warnings []sample.Warning) {
	t.Helper()
	server, _ := pl.dial(t)
	client, _ := pl.dial(t)
	w := plan.Workload{Spec: plan.RR{}}
	listen, call := ask(control.SideServer, w, 0), ask(control.SideClient, w, 0)
	listen.CPUs, call.CPUs = cpus, cpus
	listen.Window, call.Window = time.Second, time.Second
	call.Port = prepare(t, server, listen).Port
	prepare(t, client, call)
	start(t, server, client)
	var err error
	if c, err = client.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s, err = server.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c.Host.KsoftirqdNs == nil {
		t.Skip("kernel threads cannot be seen from here")
	}
	metrics, warnings = outcome.Derive(w, c, s, outcome.Conditions{CPUs: cpus})
	return c, s, metrics, warnings
}

func lastCPU(t *testing.T) []int {
	t.Helper()
	cpus, err := thread.CPUs()
	if err != nil {
		t.Fatal(err)
	}
	return cpus[len(cpus)-1:]
}

// TestNeighbourIsNamed: a program on the CPU of the path is in the observations of both ends, with its time, and the trial
// says its name. The agents themselves are in neither.
func TestNeighbourIsNamed(t *testing.T) {
	pl, one := newPlace(t), lastCPU(t)
	startOn(t, one[0], "sh", "-c", "while :; do :; done")
	c, s, _, warnings := beside(t, pl, one)
	for _, o := range []*sample.Observation{c, s} {
		found := false
		for _, task := range o.Host.Tasks {
			if task.CPU >= 0 && strings.HasSuffix(task.Command, ".test") && task.Ns > o.CPU.ThreadsNs/2 {
				t.Errorf("%s: an agent is among the others: %+v", o.Side, task)
			}
			// It has at least a tenth of what a fair scheduler gives one of three.
			found = found || task.Command == "sh" && task.CPU == one[0] && task.Ns > o.Host.SpanNs/30
		}
		if !found || o.Host.SpanNs < int64(time.Second) {
			t.Errorf("%s: in %d ns the other tasks were %+v", o.Side, o.Host.SpanNs, o.Host.Tasks)
		}
	}
	for _, x := range warnings {
		if x.ID == outcome.OtherLoad && strings.Contains(x.Message, "sh ") {
			return
		}
	}
	t.Errorf("no trial with a neighbour: %+v", warnings)
}

// TestWorkersCount: the CPU time of a kernel worker that works for the network is in service demand. This one goes through
// the elements of a set, over and over.
func TestWorkersCount(t *testing.T) {
	pl, one := newPlace(t), lastCPU(t)
	table := nft.NewTable(nft.IPv4, "planted")
	set := table.Set("elements", nft.Addr)
	set.Timeout, set.Collect = time.Hour, 10*time.Millisecond
	for i := range 50_000 {
		set.Insert(netip.AddrFrom4([4]byte{240, byte(i >> 16), byte(i >> 8), byte(i)}))
	}
	if err := nft.Replace(t.Context(), pl.ns, table); err != nil {
		t.Skipf("no such set: %v", err)
	}
	c, _, metrics, warnings := beside(t, pl, one)
	var worked int64
	for _, task := range c.Host.Tasks {
		if strings.HasPrefix(task.Command, "kworker/") && task.OfPath() {
			worked += task.Ns
		}
	}
	if worked < c.Host.SpanNs/500 {
		t.Errorf("workers of the network had %d of %d ns: %+v", worked, c.Host.SpanNs, c.Host.Tasks)
	}
	if each := float64(worked) / float64(c.Operations); metrics[metric.KernelCPU] < each || metrics[metric.ServiceDemand] < metrics[metric.ClientCPU]+each {
		t.Errorf("workers had %.0f ns for a transaction: %v", each, metrics)
	}
	for _, x := range warnings {
		if x.ID == outcome.OtherLoad && strings.Contains(x.Message, "events_power_efficient") {
			t.Errorf("it is taken for another's: %+v", x)
		}
	}
}
