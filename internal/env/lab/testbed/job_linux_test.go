package testbed

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/env/lab"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// agents starts an agent at each end of a workload's path.
func agents(t *testing.T, l *lab.Lab, profile plan.Variant, path plan.Path, workload string) (w plan.Workload, ends control.Ends, client *control.Client, servers []*control.Client) {
	t.Helper()
	w, err := plan.ParseWorkload(workload)
	if err != nil {
		t.Fatal(err)
	}
	if ends, err = l.Endpoints(plan.Case{Profile: profile, Path: path, Workload: w}.Route()); err != nil {
		t.Fatal(err)
	}
	dial := func(e control.Endpoint) *control.Client {
		c, err := control.Dial(t.Context(), e)
		if err != nil {
			t.Fatal(err)
		}
		c.HeartbeatLimit = time.Minute // other tests use the machine
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	return w, ends, dial(ends.Client), each.Of(ends.Servers, dial)
}

// members are the agents of a job in a lab, prepared, with their ends.
func members(t *testing.T, l *lab.Lab, profile plan.Variant, path plan.Path, workload string, window time.Duration) (control.Members, control.Ends) {
	t.Helper()
	w, ends, client, servers := agents(t, l, profile, path, workload)
	m := control.Members{Client: client, Servers: servers}
	if err := m.Prepare(t.Context(), ends, control.Prepare{Workload: w, Window: window, Setup: time.Minute}); err != nil {
		t.Fatal(err)
	}
	return m, ends
}

// TestAllReduceOnTheWire: each of n nodes sends 2(n-1)/n of the data over its line, and no more than headers, acknowledgements
// and the words that begin and end a step beside it: within 2 %. The bytes of devices are counted, on lines that are shaped.
func TestAllReduceOnTheWire(t *testing.T) {
	const size = 4 << 20
	for _, n := range []int{4, 8} {
		l := raised(t, plan.Lab{Nodes: n, LineRate: 1e9}, plan.VariantOf("raw"))
		if err := l.Instance(plan.VariantOf("raw")).Err; err != nil {
			t.Skipf("not in this lab: %v", err)
		}
		m, _ := members(t, l, plan.VariantOf("raw"), plan.ZeroPath, fmt.Sprintf("job(members=%d,size=%d)", n, size), 300*time.Millisecond)
		all := append([]*control.Client{m.Client}, m.Servers...)
		for i := len(all) - 1; i >= 0; i-- {
			if err := all[i].Start(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
		}
		var seen []*sample.Observation
		for _, c := range all {
			o, err := c.Wait(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			seen = append(seen, o)
		}
		least := 2 * float64(n-1) / float64(n) * size * float64(seen[0].Operations)
		for i, o := range seen {
			for _, counter := range []string{"eth0.tx_bytes", "eth0.rx_bytes"} {
				over := float64(o.Host.Devices[counter])/least - 1
				t.Logf("%d nodes, %d steps: %s of node %d is %+.2f %% over the bound", n, o.Operations, counter, i+1, 100*over)
				if math.Abs(over) > 0.02 {
					t.Errorf("%d nodes: %s of node %d is %+.2f %% over 2(n-1)/n of the data", n, counter, i+1, 100*over)
				}
			}
		}
	}
}

// TestKilledMemberIsNamed: the error of a job is that of the member whose agent ended, not of a neighbour that missed it.
func TestKilledMemberIsNamed(t *testing.T) {
	l := raised(t, plan.Lab{Nodes: 4}, plan.VariantOf("ptp"))
	if err := l.Instance(plan.VariantOf("ptp")).Err; err != nil {
		t.Skipf("not in this lab: %v", err)
	}
	for _, lost := range []int{0, 2} {
		m, _ := members(t, l, plan.VariantOf("ptp"), crossNode, "job(members=4)", time.Hour)
		all := append([]*control.Client{m.Client}, m.Servers...)
		_, err := m.Run(t.Context(), false, func() { _ = all[lost].Close() })
		for _, c := range all {
			_ = c.Close() // the next members listen where these do
		}
		var said *control.Error
		if want := fmt.Sprintf("ptp/node-%d/pod-1", lost+1); !errors.As(err, &said) || said.Kind != control.KindGone || !strings.Contains(err.Error(), want) {
			t.Errorf("member %d was killed: %v", lost, err)
		}
	}
}

// TestJobContinues: when a member is killed the first tells of the steps before, and the others play the rest in a smaller
// group.
func TestJobContinues(t *testing.T) {
	l := raised(t, plan.Lab{Nodes: 4}, plan.VariantOf("ptp"))
	if err := l.Instance(plan.VariantOf("ptp")).Err; err != nil {
		t.Skipf("not in this lab: %v", err)
	}
	m, ends := members(t, l, plan.VariantOf("ptp"), crossNode, "job(members=4,lost=continue)", time.Hour)
	victim := m.Servers[1].Hello().PID
	_, err := m.Run(t.Context(), true, func() { time.AfterFunc(100*time.Millisecond, func() { _ = syscall.Kill(victim, syscall.SIGKILL) }) })
	lost, ok := errors.AsType[*control.LostError](err)
	if !ok || lost.Rank != 2 || lost.Before.Job.Loss == nil || !strings.Contains(err.Error(), "ptp/node-3/pod-1") {
		t.Fatalf("member 2 was killed: %v", err)
	}
	left, ends := m.Without(lost.Rank, ends)
	w, err := plan.ParseWorkload("job(members=3)")
	if err != nil {
		t.Fatal(err)
	}
	if err := left.Prepare(t.Context(), ends, control.Prepare{Workload: w, Window: 50 * time.Millisecond, Setup: time.Minute}); err != nil {
		t.Fatal(err)
	}
	whole, err := left.Run(t.Context(), false, func() {})
	if err != nil || whole.Operations == 0 || len(whole.Job.Members) != 3 || whole.Job.Members[2].Name != "ptp/node-4/pod-1" {
		t.Errorf("the others: %+v, %v", whole, err)
	}
}

// TestJobNeedsNodes: a job with more members than nodes is not served, and why is said.
func TestJobNeedsNodes(t *testing.T) {
	l := raised(t, plan.Lab{Nodes: 3}, plan.VariantOf("ptp"))
	w, err := plan.ParseWorkload("job(members=4)")
	if err != nil {
		t.Fatal(err)
	}
	_, err = l.Endpoints(plan.Case{Profile: plan.VariantOf("ptp"), Path: crossNode, Workload: w}.Route())
	var not *control.NotServedError
	if !errors.As(err, &not) || !strings.Contains(not.Reason, "3 nodes") {
		t.Error(err)
	}
}
