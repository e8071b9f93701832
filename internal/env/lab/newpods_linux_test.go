package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/dataplane/walktest"
	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// answering serves single bytes at the end of a path.
func answering(t *testing.T, inst *Instance, p plan.Path) control.Endpoint {
	t.Helper()
	ends, err := inst.Spec.Ends(p)
	if err != nil {
		t.Fatal(err)
	}
	h := inst.Host(ends.Server)
	walktest.Answer(t, h.NS, net.JoinHostPort(h.Addr.String(), "5201"))
	return control.Endpoint{Address: ends.Address.String(), Port: ends.Port}
}

// state describes what new pods could leave on a node: its devices and its rules.
func state(t *testing.T, l *Lab, n *Node) string {
	t.Helper()
	devices, err := link.At(n.NS, (*link.Handle).Devices)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, d := range devices {
		lines = append(lines, "device "+d.Name)
	}
	if tool, err := l.tools.iptables(); err == nil {
		rules, err := tool.Save(context.Background(), n.NS, "filter")
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(rules) {
			if _, rule, ok := strings.Cut(line, "] "); ok {
				line = rule
			}
			if chain, _, ok := strings.Cut(line, " ["); ok && strings.HasPrefix(line, ":") {
				line = chain
			}
			if !strings.HasPrefix(line, "#") {
				lines = append(lines, strings.TrimSpace(line))
			}
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func TestNewPodsComeAnswerAndGo(t *testing.T) {
	path := plan.Path{From: plan.Pod, To: plan.Pod, Locality: plan.CrossNode}
	names := []string{"flannel-vxlan", "canal(policies=3)", "macvlan", "cilium-vxlan(policies=3)", "calico-ebpf"}
	l := up(t, plan.Lab{}, names...)
	for _, inst := range l.Instances() {
		if inst.Err != nil {
			t.Logf("%s is not raised: %v", inst.Name, inst.Err)
			continue
		}
		before := state(t, l, inst.Nodes[0])
		opened := 0
		o, err := l.NewPods(t.Context(), control.Arrivals{
			Route: plan.Single(inst.Name, path), To: answering(t, inst, path), Rate: 20, Window: 300 * time.Millisecond, Timeout: 20 * time.Second,
			Opens: func() error { opened++; return nil },
		})
		if err != nil {
			t.Errorf("%s: %v", inst.Name, err)
			continue
		}
		if opened != 1 || o.Schedule.Due != 6 || o.Operations != o.Schedule.Sent || o.Operations == 0 || len(o.Errors) > 0 {
			t.Errorf("%s: opened %d times, %d due, %d started, %d answered, errors %v: %s", inst.Name, opened, o.Schedule.Due, o.Schedule.Sent, o.Operations, o.Errors, o.Pods.Failure)
		}
		partsAddUp(t, o)
		if after := state(t, l, inst.Nodes[0]); after != before {
			t.Errorf("%s: the node is\n%s\nand was\n%s", inst.Name, after, before)
		}
	}
}

// partsAddUp checks that the parts of the slowest time are that time, and those of all times their sum.
func partsAddUp(t *testing.T, o *sample.Observation) {
	t.Helper()
	sum := func(parts map[string]int64) (n int64) {
		for _, ns := range parts {
			n += ns
		}
		return n
	}
	// A histogram rounds up by less than a hundredth.
	if got, want := sum(o.Pods.Slowest), o.Pods.First.Max(); got > want || float64(got) < 0.99*float64(want) {
		t.Errorf("the parts of the slowest pod are %d ns, and it took %d", got, want)
	}
	mean := float64(sum(o.Pods.Waits)) / float64(o.Pods.First.Count())
	if want := o.Pods.First.Mean(); mean < 0.99*want || mean > 1.01*want {
		t.Errorf("the mean of the parts is %.0f ns, and that of the times %.0f", mean, want)
	}
}

func TestNewPodsWithoutAnAnswerFail(t *testing.T) {
	path := plan.Path{From: plan.Pod, To: plan.Pod, Locality: plan.CrossNode}
	l := up(t, plan.Lab{}, "flannel-vxlan")
	inst := l.Instances()[0]
	before := state(t, l, inst.Nodes[0])
	_, err := l.NewPods(t.Context(), control.Arrivals{
		Route: plan.Single(inst.Name, path), To: control.Endpoint{Address: inst.Nodes[1].Pods[0].Addr.String(), Port: 5299},
		Rate: 10, Window: 200 * time.Millisecond, Timeout: 300 * time.Millisecond, Opens: func() error { return nil },
	})
	var said *control.Error
	if !errors.As(err, &said) || said.Kind != "connection refused" {
		t.Errorf("%v", err)
	}
	if after := state(t, l, inst.Nodes[0]); after != before {
		t.Errorf("the node is\n%s\nand was\n%s", after, before)
	}
}

// dropping adds rules at a namespace for SYNs to the port of answering.
func dropping(t *testing.T, l *Lab, n *Node, rules ...string) {
	t.Helper()
	for _, rule := range rules {
		args := append([]string{"-t", "mangle", "-A", "FORWARD", "-p", "tcp", "--syn", "--dport", "5201"}, strings.Fields(rule)...)
		if err := n.NS.Do(func() error {
			out, err := exec.Command("iptables", args...).CombinedOutput()
			if err != nil {
				t.Logf("%s", out)
			}
			return err
		}); err != nil {
			t.Skip("needs iptables with ", rule)
		}
	}
}

// TestNewPodsBehindAGap: of each pod the first attempts are lost. Its time is that of the attempts, a few milliseconds, and
// not that of the kernel's next SYN, a second later.
func TestNewPodsBehindAGap(t *testing.T) {
	const attempts = 5
	path := plan.Path{From: plan.Pod, To: plan.Pod, Locality: plan.CrossNode}
	l := up(t, plan.Lab{}, "flannel-host-gw")
	inst := l.Instances()[0]
	// Each pod's own attempts count: pods dial at the same time, and the more of them do, the busier the machine is.
	dropping(t, l, inst.Nodes[1], fmt.Sprintf("-m recent --name gap --rcheck --hitcount %d -m recent --name gap --remove -j ACCEPT", attempts-1),
		"-m recent --name gap --set -j DROP")
	o, err := l.NewPods(t.Context(), control.Arrivals{
		Route: plan.Single(inst.Name, path), To: answering(t, inst, path), Rate: 10, Window: 500 * time.Millisecond, Timeout: 20 * time.Second,
		Opens: func() error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	if o.Operations == 0 || o.Pods.Unanswered > 0 || o.Pods.Dials < attempts*o.Operations || o.Pods.DialNs <= 0 {
		t.Errorf("%d answered, %d not, %d dials, %d ns", o.Operations, o.Pods.Unanswered, o.Pods.Dials, o.Pods.DialNs)
	}
	least, most := time.Duration(o.Pods.Start.Min()), time.Duration(o.Pods.Start.Quantile(0.5))
	if least < (attempts-1)*time.Millisecond || most > 300*time.Millisecond {
		t.Errorf("from the start of the program: %s to %s (median)", least, most)
	}
	if o.Pods.First.Min() <= o.Pods.Start.Min() {
		t.Errorf("from due %d ns, from start %d", o.Pods.First.Min(), o.Pods.Start.Min())
	}
	partsAddUp(t, o)
}

// TestNewPodsThatAreNeverAnswered: they have the timeout as their time, and are counted.
func TestNewPodsThatAreNeverAnswered(t *testing.T) {
	path := plan.Path{From: plan.Pod, To: plan.Pod, Locality: plan.CrossNode}
	l := up(t, plan.Lab{}, "flannel-host-gw")
	inst := l.Instances()[0]
	to := answering(t, inst, path)
	const timeout = 400 * time.Millisecond
	opened := 0
	o, err := l.NewPods(t.Context(), control.Arrivals{
		Route: plan.Single(inst.Name, path), To: to, Rate: 10, Window: 600 * time.Millisecond, Timeout: timeout,
		Opens: func() error {
			opened++
			time.AfterFunc(300*time.Millisecond, func() { dropping(t, l, inst.Nodes[1], "-j DROP") }) // later pods are lost
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	pods := o.Pods
	if o.Operations == 0 || pods.Unanswered == 0 || o.Errors["timeout"] != pods.Unanswered || pods.First.Count() != int64(o.Operations+pods.Unanswered) {
		t.Fatalf("%d answered, %d not, %d in the distribution, %v", o.Operations, pods.Unanswered, pods.First.Count(), o.Errors)
	}
	for name, h := range map[string]*sample.Histogram{"from due": pods.First, "from start": pods.Start} {
		if got := float64(h.Max()); got < float64(timeout) || got > 1.01*float64(timeout) || pods.TimeoutNs != int64(timeout) {
			t.Errorf("%s: the longest time is %s", name, time.Duration(h.Max()))
		}
	}
	if pods.Waits[metric.WaitUnanswered] == 0 || pods.Attached != sample.AttachedInProcess {
		t.Errorf("%+v", pods)
	}
	partsAddUp(t, o)
}

// TestProgramsStartBeforeFelixIsDone: Calico's plugin does not wait for the rules, so packets are lost until they stand.
func TestProgramsStartBeforeFelixIsDone(t *testing.T) {
	path := plan.Path{From: plan.Pod, To: plan.Pod, Locality: plan.CrossNode}
	l := up(t, plan.Lab{}, "canal")
	inst := l.Instances()[0]
	if inst.Err != nil {
		t.Skip(inst.Err)
	}
	o, err := l.NewPods(t.Context(), control.Arrivals{
		Route: plan.Single(inst.Name, path), To: answering(t, inst, path), Rate: 10, Window: 300 * time.Millisecond, Timeout: 20 * time.Second,
		Opens: func() error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	n := int64(o.Operations)
	if rule := o.Pods.Waits[metric.WaitRule]; rule == 0 || float64(rule/n) > 1.01*o.Pods.Start.Mean() {
		t.Errorf("rules took %d ns, from the start it was %.0f", rule/n, o.Pods.Start.Mean())
	}
	if o.Pods.Dials <= uint64(n) {
		t.Errorf("%d pods dialled %d times: nothing was dropped before the rules stood", n, o.Pods.Dials)
	}
	partsAddUp(t, o)
}

func TestProfilesThatTakeNoNewPods(t *testing.T) {
	l := up(t, plan.Lab{}, "host", "calico-nftables")
	for _, inst := range l.Instances() {
		r := plan.Single(inst.Name, plan.Path{From: plan.Pod, To: plan.Pod, Locality: plan.CrossNode})
		r.NewPods = true
		_, err := l.Endpoints(r)
		var not *control.NotServedError
		if inst.Err == nil && !errors.As(err, &not) {
			t.Errorf("%s: %v", inst.Name, err)
		}
	}
}
