//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/env/kube"
	"github.com/cnibench/cnibench/internal/measure/result"
)

// many is a run of one path that is long enough for something to happen in it.
func many(repetitions int) []string {
	return append([]string{"--repetitions", strconv.Itoa(repetitions)}, onePath...)
}

// wantKinds wants that every one of failed trials is of one of kinds.
func wantKinds(t *testing.T, failed []result.Record, kinds ...string) {
	t.Helper()
	for _, r := range failed {
		if !strings.Contains(strings.Join(kinds, ","), r.Error.Kind) {
			t.Errorf("%s: %s, want one of %v", r.Key(), r.Error.Kind, kinds)
		}
	}
}

// TestCLIAgentIsKilled kills the agents of a run in their pods: a trial fails, and those that follow do not.
func TestCLIAgentIsKilled(t *testing.T) {
	p := startRun(t, many(10)...)
	p.awaitTrials(t, 6)
	for _, pid := range agents(t, tokenOf(t, p.run(t))) {
		id, err := strconv.Atoi(pid)
		if err == nil {
			err = syscall.Kill(id, syscall.SIGKILL)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	p.wantSurvived(t, 2*time.Minute, 30, 3, control.KindGone)
}

// wantSurvived waits for the end of a run of so many trials, of which at most some have failed, all as one of kinds, and wants
// nothing to be left.
func (p *process) wantSurvived(t *testing.T, limit time.Duration, trials, most int, kinds ...string) {
	t.Helper()
	p.wantEnd(t, limit, 0, fmt.Sprintf("%d trials (", trials))
	finished, failed := p.trials(t)
	if len(failed) > most || len(finished)+len(failed) != trials {
		t.Errorf("%d finished, %d failed", len(finished), len(failed))
	}
	wantKinds(t, failed, kinds...)
	p.wantNothingLeft(t)
}

// TestCLIPodIsDeleted takes a pod away for good: the run ends with the trial that this broke, and can be ended later.
func TestCLIPodIsDeleted(t *testing.T) {
	p := startRun(t, append(many(10), "--duration", "1s")...)
	p.awaitTrials(t, 7) // of an instance that has more for some seconds: before the next, pods are made anew
	ns := "cnibench-" + p.run(t)
	if err := clientset(admin(t)).CoreV1().Pods(ns).Delete(t.Context(), "server", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	p.wantEnd(t, time.Minute, 1, "the run ends after ", "pod server", "hint: finished trials are kept; when the cluster is ready again, resume: cnibench run --resume -o "+p.file)
	finished, failed := p.trials(t)
	if len(finished) < 6 || len(failed) != 1 {
		t.Errorf("%d finished, %d failed", len(finished), len(failed))
	}
	for _, r := range failed {
		if !strings.Contains(r.Error.Message, "pod server") {
			t.Errorf("the trial does not say why: %s", r.Error.Message)
		}
	}
	p.wantNothingLeft(t)
	q := start(t, "run", "--resume", "--verbose", "--format", "none", "-o", p.file)
	q.file = p.file
	if said := q.wantEnd(t, 2*time.Minute, 0); strings.Contains(said, "when the file was created") {
		t.Error("on the same cluster the facts are other ones")
	}
	if finished, _ = q.trials(t); len(finished) != 29 {
		t.Errorf("%d finished after all", len(finished))
	}
	q.wantNothingLeft(t)
}

// TestCLIStreamIsCut ends every connection to the API server in mid-run: what follows is measured by new ones.
func TestCLIStreamIsCut(t *testing.T) {
	w, config := behindWall(t)
	p := startRun(t, append(many(10), "--kubeconfig", config)...)
	p.awaitTrials(t, 6)
	w.cut()
	p.wantSurvived(t, 2*time.Minute, 30, 2, control.KindGone)
}

// TestCLIAPIServerRestarts kills the API server in mid-run.
func TestCLIAPIServerRestarts(t *testing.T) {
	disturb(t, "status")
	p := startRun(t, many(10)...)
	p.awaitTrials(t, 6)
	disturb(t, "restart", "apiserver")
	p.wantSurvived(t, 5*time.Minute, 30, 3, control.KindGone, control.KindLost, control.KindStart)
}

// TestCLIAPIServerIsAway has the API server not answer for a while: the run waits for it.
func TestCLIAPIServerIsAway(t *testing.T) {
	disturb(t, "status")
	p := startRun(t, many(8)...)
	p.awaitTrials(t, 4)
	disturb(t, "pause", "n1/kube-apiserver")
	resume := func() { disturb(t, "resume", "n1/kube-apiserver") }
	t.Cleanup(func() { resume() })
	waitFor(t, time.Minute, func() (bool, string) {
		return strings.Contains(p.stderr(), "waiting: the API server at "), p.stderr()
	})
	resume()
	resume = func() {}
	p.wantSurvived(t, 3*time.Minute, 24, 3, control.KindGone, control.KindLost, control.KindStart, "timeout")
}

// TestCLINodeGoesNotReady stops a kubelet: the run ends when the node is given up, and says which. The kubelet is back when
// the run removes its pods, because it must take part in that.
func TestCLINodeGoesNotReady(t *testing.T) {
	disturb(t, "status")
	p := startRun(t, append(many(1000), "--server-node", "n2")...)
	p.awaitTrials(t, 3)
	t.Cleanup(func() { disturb(t, "resume", "n2") })
	disturb(t, "pause", "n2")
	waitFor(t, 4*time.Minute, func() (bool, string) { return strings.Contains(p.stderr(), "removing what the run made"), p.stderr() })
	disturb(t, "resume", "n2")
	p.wantEnd(t, 4*time.Minute, 1, "the run ends after ", "node n2 is not ready", "finished trials are kept; when the cluster is ready again")
	finished, failed := p.trials(t)
	if len(finished) < 3 {
		t.Errorf("%d finished, %d failed", len(finished), len(failed))
	}
	wantKinds(t, failed, control.KindGone, control.KindLost, control.KindStart, "timeout")
	p.wantNothingLeft(t)
}

// hold keeps a namespace by a finalizer, until the test ends or release is called.
func hold(t *testing.T, client kubernetes.Interface, ns string) (release func()) {
	t.Helper()
	held := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "held", Finalizers: []string{"example.com/held"}}}
	if _, err := client.CoreV1().ConfigMaps(ns).Create(t.Context(), held, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	done := false
	release = func() {
		if done {
			return
		}
		done, held.Finalizers = true, nil
		if _, err := client.CoreV1().ConfigMaps(ns).Update(context.Background(), held, metav1.UpdateOptions{}); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(release)
	return release
}

// TestCLINamespaceIsStuck holds the run's namespace when it is to go: the run waits its time, and says what holds it.
func TestCLINamespaceIsStuck(t *testing.T) {
	t.Parallel()
	p := startRun(t, many(1)...)
	run := p.run(t)
	release := hold(t, clientset(admin(t)), "cnibench-"+run)
	p.wantEnd(t, 5*time.Minute, 1, "namespace cnibench-"+run+" is still there: ", "example.com/held", "hint: cnibench kube clean")
	if finished, _ := p.trials(t); len(finished) != 3 {
		t.Errorf("%d trials are kept", len(finished))
	}
	release()
	q := start(t, "kube", "clean", "--run", run)
	q.wantEnd(t, time.Minute, 0)
	p.wantNothingLeft(t)
}

// TestCLITimeIsUp kills a run whose time is short: its pods end by themselves, and the namespaces are then fair game.
func TestCLITimeIsUp(t *testing.T) {
	t.Parallel()
	p := startRun(t, append(many(30), "--ttl", "1m")...)
	p.awaitTrials(t, 1)
	run := p.run(t)
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-p.over
	client := clientset(admin(t))
	waitFor(t, 3*time.Minute, func() (bool, string) {
		pods, err := client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{LabelSelector: kube.LabelRun + "=" + run})
		if err != nil {
			return false, err.Error()
		}
		for _, one := range pods.Items {
			if one.Status.Phase == corev1.PodRunning {
				return false, one.Name + " runs"
			}
		}
		return len(pods.Items) > 0, fmt.Sprint(len(pods.Items), " pods")
	})
	q := start(t, "kube", "clean")
	q.wantEnd(t, time.Minute, 0)
	p.wantNothingLeft(t)
}

// TestCLITwoRunsAtOnce has two runs on one cluster that do not know of one another.
func TestCLITwoRunsAtOnce(t *testing.T) {
	t.Parallel()
	a, b := startRun(t, many(5)...), startRun(t, many(5)...)
	for _, p := range []*process{a, b} {
		p.wantEnd(t, 3*time.Minute, 0, "15 trials (0 failed)")
		p.wantNothingLeft(t)
	}
	if a.run(t) == b.run(t) {
		t.Error("two runs have one name")
	}
}

// TestCLIInterruptedWhileRaised interrupts a run before its first trial: nothing is left, not even a file.
func TestCLIInterruptedWhileRaised(t *testing.T) {
	p := startRun(t, many(5)...)
	p.run(t)
	if err := p.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	p.wantEnd(t, time.Minute, 130, "interrupted")
	p.wantNothingLeft(t)
	if _, err := os.Stat(p.file); err == nil {
		t.Error("it left a result file without a header")
	}
}
