//go:build e2e

package e2e

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// jobOf is a run of a job of three members with short windows.
func jobOf(workload string) []string {
	return []string{"--paths", "pod-to-pod/cross-node", "--workloads", workload, "--duration", "300ms", "--warmup", "10ms", "--repetitions", "3"}
}

// TestCLIJob: each member of a job is a pod on a node of its own, beside members in the network of the nodes.
func TestCLIJob(t *testing.T) {
	p := startRun(t, jobOf("job(members=3,size=1Mi),job(pattern=shuffle,members=3,size=1Mi)")...)
	p.wantEnd(t, 4*time.Minute, 0, "(0 failed)")
	finished, _ := p.trials(t)
	for _, r := range finished {
		if r.Metrics["step_time.p50"] <= 0 || r.Metrics["algorithm_bandwidth"] <= 0 {
			t.Errorf("%s: %v", r.Key(), r.Metrics)
		}
	}
	if len(finished) < 2*2*3 {
		t.Errorf("%d trials", len(finished))
	}
	p.wantNothingLeft(t)
	p = startRun(t, jobOf("job(members=4)")...)
	p.wantEnd(t, time.Minute, 2, "a job of 4 members needs a node each, and 3 nodes alone can take pods")
	p.wantNothingLeft(t)
}

// TestCLIJobMemberGoes takes the pod of a member away: the trial names it, and the run ends with it.
func TestCLIJobMemberGoes(t *testing.T) {
	p := startRun(t, append(jobOf("job(members=3,size=1Mi)"), "--repetitions", "20")...)
	p.awaitTrials(t, 6)
	if err := clientset(admin(t)).CoreV1().Pods("cnibench-"+p.run(t)).Delete(t.Context(), "member-3", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	p.wantEnd(t, 2*time.Minute, 1, "the run ends after ", "pod member-3")
	_, failed := p.trials(t)
	if len(failed) != 1 || !strings.Contains(failed[0].Error.Message, "member-3") {
		t.Errorf("failed: %+v", failed)
	}
	p.wantNothingLeft(t)
}
