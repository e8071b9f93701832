//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/measure/result"
)

// pairsOf is a run over pairs of nodes with short windows.
func pairsOf(which string, repetitions int) []string {
	return []string{"--pairs", which, "--repetitions", strconv.Itoa(repetitions), "--workloads", "rr", "--duration", "100ms", "--warmup", "10ms"}
}

// patchNode changes a node of the cluster under test.
func patchNode(t *testing.T, node, change string) {
	t.Helper()
	if _, err := clientset(admin(t)).CoreV1().Nodes().Patch(context.Background(), node, types.StrategicMergePatchType, []byte(change), metav1.PatchOptions{}); err != nil {
		t.Error(err)
	}
}

// cordon keeps new pods from a node until the test ends, or until the returned function is called.
func cordon(t *testing.T, node string) (undo func()) {
	t.Helper()
	patchNode(t, node, `{"spec":{"unschedulable":true}}`)
	undo = func() { patchNode(t, node, `{"spec":{"unschedulable":null}}`) }
	t.Cleanup(undo)
	return undo
}

// nodesOf returns the nodes that trials were measured between.
func nodesOf(trials []result.Record) []string {
	var all []string
	for _, r := range trials {
		all = append(all, r.Pair.From, r.Pair.To)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// TestCLIPairs: every pair of nodes is measured between the hosts and between pods, each a record in both directions.
func TestCLIPairs(t *testing.T) {
	p := startRun(t, pairsOf("all", 2)...)
	p.wantEnd(t, 3*time.Minute, 0, "(0 failed)")
	finished, _ := p.trials(t)
	seen := map[string]bool{}
	for _, r := range finished {
		seen[r.Key()] = true
	}
	if want := 3 * 2 * 2; len(seen) != want {
		t.Errorf("%d different trials, want %d", len(seen), want)
	}
	h := p.contents(t).Header
	if len(h.Nodes) != 3 || h.Nodes[0].Labels["kernel"] == "" || len(h.Profiles) != 1 {
		t.Errorf("nodes %v, profiles %v", h.Nodes, h.Profiles)
	}
	p.wantNothingLeft(t)
}

// TestCLIPairsLeaveOut: nodes that cannot take pods are left out and named, and those of a file are waited for.
func TestCLIPairsLeaveOut(t *testing.T) {
	patchNode(t, "n2", `{"spec":{"taints":[{"key":"cnibench-e2e","effect":"NoSchedule"}]}}`)
	untaint := func() { patchNode(t, "n2", `{"spec":{"taints":null}}`) }
	t.Cleanup(untaint)
	p := startRun(t, pairsOf("ring", 2)...)
	p.wantEnd(t, 2*time.Minute, 0, "left out: n2: it has the taint cnibench-e2e:NoSchedule, which is not tolerated")
	if finished, _ := p.trials(t); !slices.Equal(nodesOf(finished), []string{"n1", "n3"}) {
		t.Errorf("measured on %v", nodesOf(finished))
	}
	p.wantNothingLeft(t)
	p = startRun(t, append(pairsOf("ring", 1), "--tolerations", "cnibench-e2e")...)
	p.wantEnd(t, 2*time.Minute, 0)
	if finished, _ := p.trials(t); len(nodesOf(finished)) != 3 {
		t.Errorf("tolerated, and measured on %v", nodesOf(finished))
	}
	file := filepath.Join(t.TempDir(), "pairs.txt")
	if err := os.WriteFile(file, []byte("n1 n3\nn2 n3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p = startRun(t, pairsOf(file, 1)...)
	p.wantEnd(t, 2*time.Minute, 0, "node n2 is away", "2 trials not measured: n2 away; --resume measures what is missing")
	untaint()
	q := start(t, "run", "--resume", "--verbose", "--format", "none", "-o", p.file)
	q.file = p.file
	q.wantEnd(t, 2*time.Minute, 0)
	if finished, _ := q.trials(t); len(finished) < 4 || len(nodesOf(finished)) != 3 {
		t.Errorf("%d trials on %v", len(finished), nodesOf(finished))
	}
	q.wantNothingLeft(t)
}

// TestCLIPairsNodeGoes takes agents and the pods of a node away in mid-run: the trials that this broke name them, the run
// goes on, and the node comes back. One that does not is resumed later.
func TestCLIPairsNodeGoes(t *testing.T) {
	p := startRun(t, pairsOf("all", 30)...)
	p.awaitTrials(t, 6)
	for _, pid := range agents(t, tokenOf(t, p.run(t))) {
		if id, err := strconv.Atoi(pid); err != nil || syscall.Kill(id, syscall.SIGKILL) != nil {
			t.Fatal(pid, err)
		}
	}
	p.awaitTrials(t, 20)
	remove := func(run, pod string) {
		t.Helper()
		ns := "cnibench-" + run
		if strings.HasPrefix(pod, "host-") {
			ns += "-host"
		}
		if err := clientset(admin(t)).CoreV1().Pods(ns).Delete(t.Context(), pod, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	remove(p.run(t), "member-2")
	p.wantEnd(t, 5*time.Minute, 0, "node n2 is away, and its pairs are left out until it is back: ", "node n2 is back")
	finished, failed := p.trials(t)
	if len(finished)+len(failed) < 30*3*2 || len(failed) == 0 || len(failed) > 16 {
		t.Errorf("%d finished, %d failed", len(finished), len(failed))
	}
	wantKinds(t, failed, control.KindGone, control.KindLost, control.KindStart, "reset", "connect", "timeout", "stalled")
	if !slices.ContainsFunc(failed, func(r result.Record) bool { return strings.Contains(r.Error.Message, "node n2: ") }) {
		t.Error("no trial names n2")
	}
	p.wantNothingLeft(t)

	p = startRun(t, pairsOf("all", 10)...)
	p.awaitTrials(t, 6)
	undo := cordon(t, "n3")
	remove(p.run(t), "member-3")
	remove(p.run(t), "host-member-3")
	p.wantEnd(t, 3*time.Minute, 0, "node n3 is away", "it is cordoned", "not measured: n3 away; --resume")
	undo()
	before, _ := p.trials(t)
	q := start(t, "run", "--resume", "--verbose", "--format", "none", "-o", p.file)
	q.file = p.file
	q.wantEnd(t, 3*time.Minute, 0)
	finished, failed = q.trials(t)
	keys := map[string]bool{}
	for _, r := range slices.Concat(finished, failed) {
		keys[fmt.Sprint(r.Key(), r.Repetition)] = true
	}
	if len(keys) < 10*3*2 || len(finished) <= len(before) {
		t.Errorf("%d different trials after all, %d finished before", len(keys), len(before))
	}
	q.wantNothingLeft(t)
}

// TestCLIPairsKubeletStops stops a kubelet in mid-run: trials of its node fail, until the node is known to be away. Then its
// pods are evicted. The other pair is measured on, and the node's pairs again when it is back.
func TestCLIPairsKubeletStops(t *testing.T) {
	disturb(t, "status")
	const repetitions = 80
	p := startRun(t, pairsOf("all", repetitions)...)
	p.awaitTrials(t, 12)
	disturb(t, "pause", "n2")
	resume := sync.OnceFunc(func() { disturb(t, "resume", "n2") })
	t.Cleanup(resume)
	waitFor(t, 2*time.Minute, func() (bool, string) {
		return strings.Contains(p.stderr(), "node n2 is away, and its pairs are left out until it is back: "), p.stderr()
	})
	finished, failed := p.trials(t)
	p.awaitTrials(t, len(finished)+len(failed)+10)
	resume()
	p.wantEnd(t, 6*time.Minute, 0, "node n2 is back")
	finished, failed = p.trials(t)
	others := 0
	for _, r := range finished {
		if !slices.Contains(nodesOf([]result.Record{r}), "n2") {
			others++
		}
	}
	if others < 2*repetitions || len(finished)+len(failed) < 3*2*repetitions {
		t.Errorf("%d finished, %d of them without n2, %d failed", len(finished), others, len(failed))
	}
	said := ""
	for _, r := range failed {
		if said += r.Error.Message + "\n"; !slices.Contains(nodesOf([]result.Record{r}), "n2") {
			t.Errorf("failed: %s", r.Key())
		}
	}
	if !strings.Contains(said, "on node n2: ") || !strings.Contains(said, "not ready") {
		t.Error("no trial says that n2 is not ready")
	}
	p.wantNothingLeft(t)
}

// TestCLIPairsCannotConnect: a pair whose pods cannot reach each other fails by itself, and is named.
func TestCLIPairsCannotConnect(t *testing.T) {
	disturb(t, "status")
	rule := func(how string) {
		disturb(t, "exec", "n2", "--", "iptables", how, "FORWARD", "-s", podsOf(t, "n3"), "-j", "DROP")
		disturb(t, "exec", "n2", "--", "iptables", how, "FORWARD", "-d", podsOf(t, "n3"), "-j", "DROP")
	}
	rule("-I")
	t.Cleanup(func() { rule("-D") })
	p := startRun(t, append(pairsOf("all", 2), "--format", "text")...)
	p.wantEnd(t, 6*time.Minute, 0)
	finished, failed := p.trials(t)
	for _, r := range failed {
		if !slices.Equal(nodesOf([]result.Record{r}), []string{"n2", "n3"}) || r.Path.From != "pod" {
			t.Errorf("failed: %s", r.Key())
		}
	}
	if len(failed) < 2 || len(finished) < 10 {
		t.Errorf("%d finished, %d failed", len(finished), len(failed))
	}
	if !strings.Contains(p.out.String(), "n2 - n3: failed trials") {
		t.Errorf("the link is not named:\n%s", p.out.String())
	}
	p.wantNothingLeft(t)
}

// podsOf returns the addresses of a node's pods.
func podsOf(t *testing.T, node string) string {
	t.Helper()
	n, err := clientset(admin(t)).CoreV1().Nodes().Get(context.Background(), node, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return n.Spec.PodCIDR
}
