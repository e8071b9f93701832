//go:build e2e

package e2e

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnibench/cnibench/internal/env/kube"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
)

// sampledStacks counts the samples of the sampled trials of profiles other than the bare node, and those with a function.
func sampledStacks(t *testing.T, c result.Contents, function string) (all, with int) {
	t.Helper()
	for _, r := range c.Records {
		if r.Type != result.TypeSampled {
			continue
		}
		if r.Status != result.OK || r.Stacks == nil {
			t.Errorf("%s: %+v", r.Profile, r.Error)
			continue
		}
		for i := range r.Stacks.Counts {
			for frame, n := range r.Stacks.Of(i) {
				if r.Profile.Profile() == "host" {
					continue
				}
				all += n.Samples
				if slices.Contains(r.Stacks.Stack(frame), function) {
					with += n.Samples
				}
			}
		}
	}
	return all, with
}

// TestCLIExplain samples the nodes: the path of the CNI is in the stacks, and nothing is left.
func TestCLIExplain(t *testing.T) {
	p := startRun(t, append(slices.Clone(onePath), "--explain", "--inspect", "--repetitions", "2", "--profiles", string(plan.Detected))...)
	p.wantEnd(t, 3*time.Minute, 0)
	if all, with := sampledStacks(t, p.contents(t), "tcp_sendmsg"); all < 50 || with == 0 {
		t.Errorf("%d samples, %d of them send", all, with)
	}
	p.wantNothingLeft(t)
}

// TestCLIExplainRefused: where a policy forbids such pods, the run says so before it measures, and leaves nothing.
func TestCLIExplainRefused(t *testing.T) {
	const message = "no pod sees the processes of its node"
	config := account(t, kube.Rights)
	refuse(t, subject(t, config), "pods", "has(object.spec.hostPID) && object.spec.hostPID", message)
	inForce(t, config, message, func(ctx context.Context, c *kube.Cluster) error {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: corev1.PodSpec{HostPID: true, Containers: []corev1.Container{{Name: "a", Image: "a"}}}}
		_, err := clientset(c).CoreV1().Pods("default").Create(ctx, pod, dry)
		return err
	})
	p := startRun(t, append(slices.Clone(onePath), "--explain", "--inspect", "--kubeconfig", config)...)
	said := p.wantEnd(t, 2*time.Minute, 1, message, "leave out --explain")
	if strings.Contains(said, "panic") {
		t.Error(said)
	}
	p.wantNothingLeft(t)
}
