//go:build e2e

package e2e

import (
	"cmp"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/cnibench/cnibench/internal/env/kube"
	"github.com/cnibench/cnibench/internal/measure/outcome"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// servicesOf returns the Services that stand during a run.
func servicesOf(t *testing.T, run string) []corev1.Service {
	t.Helper()
	list, err := clientset(admin(t)).CoreV1().Services("").List(t.Context(), metav1.ListOptions{LabelSelector: kube.LabelRun + "=" + run})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// fine waits for the end of a run in which nothing goes wrong, and returns its trials.
func (p *process) fine(t *testing.T) []result.Record {
	t.Helper()
	p.wantEnd(t, 4*time.Minute, 0)
	finished, failed := p.trials(t)
	if len(finished) == 0 || len(failed) > 0 {
		t.Errorf("%d finished, %d failed", len(finished), len(failed))
	}
	p.wantNothingLeft(t)
	return finished
}

// briefly are the windows of the tests below.
var briefly = []string{"--duration", "200ms", "--warmup", "10ms", "--repetitions", "2"}

// TestCLIFamily6 measures by IPv6, to pods, Services and node ports.
func TestCLIFamily6(t *testing.T) {
	paths := "pod-to-pod/cross-node,pod-to-service/remote,external-to-nodeport/remote"
	p := startRun(t, append(briefly, "--family", "6", "--workloads", "rr", "--paths", paths)...)
	p.awaitTrials(t, 1)
	for _, s := range servicesOf(t, p.run(t)) {
		if !strings.Contains(s.Spec.ClusterIP, ":") {
			t.Errorf("Service %s is at %s", s.Name, s.Spec.ClusterIP)
		}
	}
	seen := map[string]bool{}
	for _, r := range p.fine(t) {
		seen[r.Path.String()] = true
	}
	if len(seen) != 3 {
		t.Errorf("measured: %v", seen)
	}
}

// TestCLILocalPolicy: with externalTrafficPolicy Local the node that is called serves its own endpoints and no others.
func TestCLILocalPolicy(t *testing.T) {
	p := startRun(t, append(briefly, "--traffic-policy", "Local", "--workloads", "rr", "--paths", "external-to-nodeport/local,external-to-nodeport/remote")...)
	p.awaitTrials(t, 1)
	for _, s := range servicesOf(t, p.run(t)) {
		if s.Spec.Type == corev1.ServiceTypeNodePort && s.Spec.ExternalTrafficPolicy != corev1.ServiceExternalTrafficPolicyLocal {
			t.Errorf("Service %s: %s", s.Name, s.Spec.ExternalTrafficPolicy)
		}
	}
	for _, r := range p.fine(t) {
		if r.Path.String() != "external-to-nodeport/local" {
			t.Errorf("measured: %s", r.Key())
		}
	}
	for _, q := range p.contents(t).Header.Profiles {
		if why := q.NotServed["external-to-nodeport/remote"]; !strings.Contains(why, "externalTrafficPolicy Local") {
			t.Errorf("%s: %q", q.Name, why)
		}
	}
}

// TestCLIBackends spreads requests over three backends, or with session affinity gives them all to one.
func TestCLIBackends(t *testing.T) {
	for _, sticky := range []bool{false, true} {
		args := append(slices.Clone(briefly), "--workloads", "http(backends=3,connection=close)", "--paths", "pod-to-service/remote")
		if sticky {
			args = append(args, "--session-affinity")
		}
		p := startRun(t, args...)
		for _, r := range p.fine(t) {
			low, high := r.Metrics[metric.BackendShare+".min"], r.Metrics[metric.BackendShare+".max"]
			t.Logf("%s: shares %.3f to %.3f, p %.3f", r.Profile, low, high, r.Metrics[metric.BackendEvenness])
			switch {
			case sticky && high != 1:
				t.Errorf("with affinity one backend has a share of %.3f", high)
			case !sticky && (low <= 0 || high >= 1):
				t.Errorf("shares from %.3f to %.3f", low, high)
			}
		}
	}
}

// TestCLIBackendIsDeleted takes a backend away in mid-run: the trial says which.
func TestCLIBackendIsDeleted(t *testing.T) {
	p := startRun(t, "--duration", "300ms", "--repetitions", "50", "--workloads", "http(backends=2)", "--paths", "pod-to-service/remote", "--baseline", "detected", "--no-twin")
	p.awaitTrials(t, 2)
	client := clientset(admin(t))
	pods, err := client.CoreV1().Pods("cnibench-"+p.run(t)).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(pods.Items, func(p corev1.Pod) bool { return strings.HasPrefix(p.Name, "backend-") })
	if i < 0 {
		t.Fatal("there is no backend")
	}
	name := pods.Items[i].Name
	if err := client.CoreV1().Pods(pods.Items[i].Namespace).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	p.wantEnd(t, 2*time.Minute, 1, "the run ends after ", "pod "+name)
	_, failed := p.trials(t)
	if len(failed) == 0 || !strings.Contains(failed[len(failed)-1].Error.Message, "pod "+name) {
		t.Errorf("no trial names %s", name)
	}
	p.wantNothingLeft(t)
}

// TestCLITwoContexts measures two contexts interleaved. Here both lead to one cluster, in which two runs stand then.
func TestCLITwoContexts(t *testing.T) {
	config := rewrite(t, func(c *clientcmdapi.Config) {
		one := c.Contexts[c.CurrentContext]
		c.Contexts = map[string]*clientcmdapi.Context{"a": one, "b": one}
		c.CurrentContext = "a"
	})
	p := startRun(t, append(briefly, "--kubeconfig", config, "--context", "a,b", "--workloads", "rr", "--paths", "pod-to-pod/cross-node")...)
	seen, changes, last := map[string]int{}, 0, ""
	for _, r := range p.fine(t) {
		context := r.Profile.Context()
		seen[context]++
		if context != last {
			changes++
		}
		last = context
	}
	if seen["a"] == 0 || seen["b"] == 0 || seen[""] != 0 || changes < 3 {
		t.Errorf("trials by context %v, %d changes", seen, changes)
	}
	p = startRun(t, append(briefly, "--kubeconfig", config, "--context", "a,nowhere", "--workloads", "rr")...)
	p.wantEnd(t, time.Minute, 2, "context nowhere: ", `context "nowhere" does not exist`)
	p.wantNothingLeft(t)
}

// TestCLIInstall installs two plugins in turn on a cluster of its own without a CNI, which CNIBENCH_RECIPE_KUBECONFIG leads
// to, and measures both; then nothing of them is there.
func TestCLIInstall(t *testing.T) {
	config := os.Getenv("CNIBENCH_RECIPE_KUBECONFIG")
	if config == "" {
		t.Skip("CNIBENCH_RECIPE_KUBECONFIG names no cluster without a CNI")
	}
	t.Setenv("KUBECONFIG", config)
	p := startRun(t, append(briefly, "--install", "--profiles", "bridge,ptp", "--workloads", "rr", "--paths", "pod-to-pod/cross-node")...)
	seen := map[string]int{}
	for _, r := range p.fine(t) {
		seen[r.Profile.String()]++
	}
	if seen["bridge"] != 2 || seen["ptp"] != 2 || seen["host"] != 2 {
		t.Errorf("trials: %v", seen)
	}
	if left, err := exec.Command(binary(t), "cni", "uninstall", "--image", options(t).Image).CombinedOutput(); err != nil {
		t.Errorf("left on the nodes: %v\n%s", err, left)
	}
	out, err := exec.Command(cmp.Or(os.Getenv("KUBECTL"), "kubectl"), "get", "nodes").CombinedOutput()
	if err != nil || strings.Count(string(out), "NotReady") == 0 {
		t.Errorf("a cluster without CNI has nodes that are not ready: %v\n%s", err, out)
	}
}

// TestCLICPULimit: a limit holds back what flows as fast as it can, and each trial says so; without one none does.
func TestCLICPULimit(t *testing.T) {
	for limit, want := range map[string]bool{"200m": true, "": false} {
		args := []string{"--paths", "pod-to-pod/cross-node", "--baseline", "detected", "--no-twin", "--repetitions", "2", "--duration", "1s", "--workloads", "stream"}
		if limit != "" {
			args = append(args, "--cpu-limit", limit)
		}
		trials := startRun(t, args...).fine(t)
		if len(trials) != 2 {
			t.Errorf("limit %q: %d trials", limit, len(trials))
		}
		for _, r := range trials {
			if said := slices.ContainsFunc(r.Warnings, func(w sample.Warning) bool { return w.ID == outcome.CPUThrottled }); said != want {
				t.Errorf("limit %q: %s: warnings %v", limit, r.Key(), r.Warnings)
			}
		}
	}
}
