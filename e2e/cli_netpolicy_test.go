//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"

	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/profile"
)

// denyIngress lets nothing into the pods of its namespace that another policy does not allow.
func denyIngress() *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: "deny-ingress"}, Spec: networkingv1.NetworkPolicySpec{
		PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
	}}
}

// allowPorts lets the pods of its namespace reach one another at TCP ports from first to last.
func allowPorts(first, last int32) *networkingv1.NetworkPolicy {
	protocol, port := corev1.ProtocolTCP, intstr.FromInt32(first)
	p := denyIngress()
	p.Name = fmt.Sprintf("allow-%d-to-%d", first, last)
	p.Spec.Ingress = []networkingv1.NetworkPolicyIngressRule{{
		From:  []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{}}},
		Ports: []networkingv1.NetworkPolicyPort{{Protocol: &protocol, Port: &port, EndPort: &last}},
	}}
	return p
}

// TestPolicyEnforced measures on a cluster on which NetworkPolicies are enforced.
func TestPolicyEnforced(t *testing.T) {
	needsPolicies(t)
	t.Run("denied from the start", policyDenies)
	t.Run("denied in mid-run", policyComes)
	t.Run("allowed", policyAllows)
}

// needsPolicies skips a test on a cluster that enforces no NetworkPolicies.
func needsPolicies(t *testing.T) {
	t.Helper()
	_, err := clientset(admin(t)).AppsV1().DaemonSets("kube-system").Get(t.Context(), "kube-router", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		t.Skip("nothing enforces NetworkPolicies on this cluster: raise one with --policies")
	}
	if err != nil {
		t.Fatal(err)
	}
	disturb(t, "status")
}

// policyDenies: what is blocked from the start is not measured, with the policies named, and what no policy governs is.
func policyDenies(t *testing.T) {
	t.Parallel()
	const blocked, open = "pod-to-pod/cross-node", "host-to-host/cross-node"
	config := governed(t, denyIngress(), allowPorts(80, 80))
	p := startRun(t, "--kubeconfig", config, "--paths", blocked+","+open, "--workloads", "rr", "--duration", "200ms", "--warmup", "10ms", "--repetitions", "2")
	p.wantEnd(t, 4*time.Minute, 0, "trials (0 failed)")
	ns := "cnibench-" + p.run(t)
	measured := 0
	finished, _ := p.trials(t)
	for _, r := range finished {
		if ofHost(r.Profile) {
			continue
		}
		measured++
		if r.Path.String() != open {
			t.Errorf("measured past the policy: %s", r.Key())
		}
	}
	if measured != 2 {
		t.Errorf("%d trials of the CNI between hosts, want 2", measured)
	}
	for _, q := range p.contents(t).Header.Profiles {
		why := q.NotServed[blocked]
		t.Logf("%s: %q", q.Name, why)
		if named := strings.HasSuffix(why, "; NetworkPolicies select its ends: "+ns+"/allow-80-to-80, "+ns+"/deny-ingress"); named == (ofHost(q.Name)) {
			t.Errorf("%s: %q", q.Name, why)
		}
	}
	p.wantNothingLeft(t)
}

// policyComes: the trials under a policy that comes in mid-run fail and name it; those after it has gone do not fail.
func policyComes(t *testing.T) {
	t.Parallel()
	p := startRun(t, many(20)...)
	p.awaitTrials(t, 6)
	ns, client := "cnibench-"+p.run(t), clientset(admin(t))
	policies := client.NetworkingV1().NetworkPolicies(ns)
	if _, err := policies.Create(t.Context(), denyIngress(), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	// An instance that is raised anew meanwhile is tried for 90 s before its trials fail.
	waitFor(t, 3*time.Minute, func() (bool, string) { return strings.Count(p.stderr(), "failed: ") >= 2, p.stderr() })
	if err := policies.Delete(t.Context(), "deny-ingress", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	p.wantEnd(t, 3*time.Minute, 0, "60 trials (")
	finished, failed := p.trials(t)
	for _, r := range failed {
		if ofHost(r.Profile) {
			t.Errorf("a policy for pods reaches the host: %s: %s", r.Key(), r.Error.Message)
		}
	}
	// The last to fail may have met the policy when the object was gone already.
	for _, r := range failed[:min(2, len(failed))] {
		if !strings.HasSuffix(r.Error.Message, "; NetworkPolicies select its ends: "+ns+"/deny-ingress") {
			t.Errorf("the policy is not named: %s", r.Error.Message)
		}
	}
	last := slices.IndexFunc(finished, func(r result.Record) bool {
		return r.Repetition == 20 && !ofHost(r.Profile)
	})
	if len(failed) < 2 || len(finished)+len(failed) != 60 || last < 0 {
		t.Errorf("%d finished, %d failed; the last trial of the CNI finished: %v", len(finished), len(failed), last >= 0)
	}
	p.wantNothingLeft(t)
}

// policyAllows: a policy that allows the ports of the run's pods, and nothing else, is in nobody's way.
func policyAllows(t *testing.T) {
	t.Parallel()
	p := startRun(t, append(many(2), "--kubeconfig", governed(t, denyIngress(), allowPorts(5201, 5220)))...)
	p.wantEnd(t, 2*time.Minute, 0, "6 trials (0 failed)")
	p.wantNothingLeft(t)
}

// governed returns a kubeconfig that leads through a gate which puts policies into a run's namespace before its first
// pod, as policy engines do, and lets no path be tried before they are in force: a policy controller that hears of a pod
// late would let it through for as long.
func governed(t *testing.T, policies ...*networkingv1.NetworkPolicy) string {
	t.Helper()
	client := clientset(admin(t))
	var first, tried sync.Once
	return gate(t, func(r *http.Request) {
		rest, found := strings.CutPrefix(r.URL.Path, "/api/v1/namespaces/")
		ns, what, _ := strings.Cut(rest, "/")
		switch {
		case !found || strings.HasSuffix(ns, "-host"):
		case r.Method == http.MethodPost && what == "pods":
			first.Do(func() {
				for _, p := range policies {
					if _, err := client.NetworkingV1().NetworkPolicies(ns).Create(context.Background(), p, metav1.CreateOptions{}); err != nil {
						t.Error(err)
					}
				}
			})
		case slices.Contains(r.URL.Query()["command"], "--reach"):
			tried.Do(func() {
				if err := enforced(context.Background(), client, ns, policies); err != nil {
					t.Error(err)
				}
			})
		}
	})
}

// enforced waits until the rules of the node that has the run's server know every policy, and the pod.
func enforced(ctx context.Context, client kubernetes.Interface, ns string, policies []*networkingv1.NetworkPolicy) error {
	ctx, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	server, err := client.CoreV1().Pods(ns).Get(ctx, "server", metav1.GetOptions{})
	if err != nil {
		return err
	}
	// Comments of kube-router's rules.
	want := []string{"POD name:server namespace: " + ns}
	for _, p := range policies {
		want = append(want, "policy "+ns+"/"+p.Name)
	}
	for {
		args := []string{"exec", "--name", os.Getenv("CNIBENCH_E2E_CLUSTER"), server.Spec.NodeName, "--", "iptables-save", "-t", "filter"}
		rules, err := exec.CommandContext(ctx, os.Getenv("CNIBENCH_E2E_TOOL"), args...).Output()
		if err == nil && !slices.ContainsFunc(want, func(w string) bool { return !strings.Contains(string(rules), w) }) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the policies of %s are not in force on %s: %w, %v", ns, server.Spec.NodeName, ctx.Err(), err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// ofHost says whether a profile is the bare node's.
func ofHost(name plan.Variant) bool { return name.Original() == plan.VariantOf(profile.Host) }
