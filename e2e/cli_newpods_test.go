//go:build e2e

package e2e

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnibench/cnibench/internal/external/externaltest"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// newPods is a run that makes pods slowly enough for a small machine.
var newPods = []string{"--paths", "pod-to-pod/cross-node,pod-to-service/remote", "--baseline", "detected", "--no-twin", "--duration", "5s",
	"--workloads", "ttfr(rate=1,timeout=30s)"}

// TestCLINewPods: new pods come, answer and go. What their first requests waited for adds up to the times.
func TestCLINewPods(t *testing.T) {
	p := startRun(t, append(newPods, "--repetitions", "1")...)
	if n := len(p.fine(t)); n != 2 {
		t.Errorf("%d trials", n)
	}
	all, err := externaltest.Whole(p.file)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		if r.Client == nil || r.Client.Pods == nil {
			continue
		}
		var sum float64
		for _, part := range metric.Waits {
			sum += r.Metrics[metric.TTFRWait+"."+part]
		}
		if mean := r.Metrics[metric.FromDue+".mean"]; mean < 1e7 || sum < 0.98*mean || sum > 1.02*mean || r.Client.Operations != 5 || r.Server.Operations < 5 {
			t.Errorf("%s: mean %v, parts %v, %d answers, served %d, errors %v: %s", r.Key(), mean, sum, r.Client.Operations, r.Server.Operations, r.Client.Errors, r.Client.Pods.Failure)
		}
		if start := r.Metrics[metric.FromStart+".mean"]; start <= 0 || start >= r.Metrics[metric.FromDue+".mean"] || r.Client.Pods.Dials < 5 || r.Client.Pods.DialNs <= 0 {
			t.Errorf("%s: from the start of the program %v, %d dials in %d ns", r.Key(), start, r.Client.Pods.Dials, r.Client.Pods.DialNs)
		}
		for _, part := range []string{metric.WaitSandbox, metric.WaitContainer} {
			if r.Metrics[metric.TTFRWait+"."+part] < 1e6 {
				t.Errorf("%s: %s took %v ns", r.Key(), part, r.Metrics[metric.TTFRWait+"."+part])
			}
		}
		if _, known := r.Metrics[metric.ServiceDemand]; known || r.Client.Pods.ClockNs <= 0 {
			t.Errorf("%s: %v, clock %d", r.Key(), r.Metrics, r.Client.Pods.ClockNs)
		}
	}
}

// TestCLINewPodsKilled: pods that a killed run has made go with its namespaces.
func TestCLINewPodsKilled(t *testing.T) {
	p := startRun(t, append(newPods, "--repetitions", "100", "--duration", "1m")...)
	run := p.run(t)
	waitFor(t, 2*time.Minute, func() (bool, string) {
		list, err := clientset(admin(t)).CoreV1().Pods("cnibench-"+run).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return false, err.Error()
		}
		return slices.ContainsFunc(list.Items, func(p corev1.Pod) bool { return strings.HasPrefix(p.Name, "new-") }), "no new pod"
	})
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-p.over
	q := start(t, "kube", "clean", "--run", run)
	q.wantEnd(t, time.Minute, 0)
	if left := leftOf(t, run); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
