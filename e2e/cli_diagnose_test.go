//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/cnibench/cnibench/internal/env/kube"
	"github.com/cnibench/cnibench/internal/env/kube/api"
)

// diagnosed is what diagnose says, for programs.
type diagnosed struct {
	Verdict string   `json:"verdict"`
	Cause   string   `json:"cause"`
	Answer  string   `json:"answer"`
	Missing []string `json:"missing"`
}

// diagnose begins a diagnosis between n1 and n2.
func diagnose(t *testing.T, args ...string) *process {
	t.Helper()
	return start(t, append([]string{"diagnose", "--env", "kubernetes", "--image", options(t).Image, "--from", "n1", "--to", "n2", "--format", "json"}, args...)...)
}

// wantDiagnosis waits for the answer, and wants it to be this one.
func (p *process) wantDiagnosis(t *testing.T, code int, verdict, cause string) {
	t.Helper()
	got, said := p.end(t, 5*time.Minute)
	var d diagnosed
	if err := json.Unmarshal(p.out.Bytes(), &d); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	t.Logf("%s/%s: %s", d.Verdict, d.Cause, d.Answer)
	if got != code || d.Verdict != verdict || d.Cause != cause {
		t.Errorf("exit code %d, %s/%s; want %d, %s/%s\n%s", got, d.Verdict, d.Cause, code, verdict, cause, p.out.String())
	}
	if left := leftOf(t, ""); len(left) > 0 {
		t.Errorf("left in the cluster: %v", left)
	}
}

// podsReady waits for the pods of the only run, and returns them by name.
func podsReady(t *testing.T) map[string]corev1.Pod {
	t.Helper()
	pods := map[string]corev1.Pod{}
	waitFor(t, 2*time.Minute, func() (bool, string) {
		list, err := clientset(admin(t)).CoreV1().Pods("").List(t.Context(), metav1.ListOptions{LabelSelector: kube.LabelManagedBy + "=" + kube.ManagedBy})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range list.Items {
			if p.Status.Phase != corev1.PodRunning || p.Status.PodIP == "" {
				return false, p.Name
			}
			pods[p.Name] = p
		}
		return len(pods) > 0, "no pod"
	})
	return pods
}

// inPod runs a command in the network namespace of a pod of the run, from its node.
func inPod(t *testing.T, pod, command string) {
	t.Helper()
	p := podsReady(t)[pod]
	disturb(t, "exec", p.Spec.NodeName, "--", "sh", "-c", fmt.Sprintf(
		`for n in /run/netns/*; do nsenter --net=$n ip -o -4 addr | grep -q "inet %s/" && exec nsenter --net=$n %s; done; exit 1`, p.Status.PodIP, command))
}

// lateResolver makes the cluster's resolver answer so late, with "" in time, and waits until each of its pods does.
func lateResolver(t *testing.T, late string) {
	t.Helper()
	sets := clientset(admin(t)).AppsV1().DaemonSets("kube-system")
	ctx := context.WithoutCancel(t.Context()) // in a clean-up, too
	set, err := sets.Get(ctx, "resolver", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c := &set.Spec.Template.Spec.Containers[0]
	c.Args = slices.DeleteFunc(c.Args, func(arg string) bool { return strings.HasPrefix(arg, "late=") })
	if late != "" {
		c.Args = slices.Insert(c.Args, 1, "late="+late)
	}
	if set, err = sets.Update(ctx, set, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	generation := set.Generation
	waitFor(t, 2*time.Minute, func() (bool, string) {
		set, err := sets.Get(ctx, "resolver", metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		s := set.Status
		return s.ObservedGeneration >= generation && s.UpdatedNumberScheduled == s.DesiredNumberScheduled && s.NumberReady == s.DesiredNumberScheduled,
			fmt.Sprintf("%d of %d resolvers are ready", s.NumberReady, s.DesiredNumberScheduled)
	})
}

// openShop makes a namespace with a pod that takes connections, one that refuses them, and Services of the first and of both.
func openShop(t *testing.T, name string) {
	t.Helper()
	client := clientset(admin(t))
	meta := func(name string, labels map[string]string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Labels: labels}
	}
	if _, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: meta(name, nil)}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		_ = client.CoreV1().Namespaces().Delete(ctx, name, metav1.DeleteOptions{})
		waitFor(t, time.Minute, func() (bool, string) {
			_, err := client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
			return apierrors.IsNotFound(err), "namespace " + name + " is there"
		})
	})
	const port = 8080
	for pod, listens := range map[string]string{"good": strconv.Itoa(port), "mute": strconv.Itoa(port + 1)} {
		p := api.Restricted(meta(pod, map[string]string{"pod": pod, "both": "yes"}), "n2", corev1.Container{
			Name: "app", Image: options(t).Image, Command: []string{"/cnibench", "look", "--serve", listens, "--for", "1h"}, Ports: []corev1.ContainerPort{{ContainerPort: port}},
		})
		if _, err := client.CoreV1().Pods(name).Create(t.Context(), p, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for service, selector := range map[string]map[string]string{"fine": {"pod": "good"}, "half": {"both": "yes"}} {
		s := &corev1.Service{ObjectMeta: meta(service, nil), Spec: corev1.ServiceSpec{Selector: selector, Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(port)}}}}
		if _, err := client.CoreV1().Services(name).Create(t.Context(), s, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	waitFor(t, 2*time.Minute, func() (bool, string) {
		list, err := client.DiscoveryV1().EndpointSlices(name).List(t.Context(), metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=half"})
		if err != nil {
			t.Fatal(err)
		}
		ready := 0
		for _, s := range list.Items {
			for _, e := range s.Endpoints {
				if e.Conditions.Ready != nil && *e.Conditions.Ready {
					ready++
				}
			}
		}
		return ready == 2, fmt.Sprintf("%d of 2 pods are ready", ready)
	})
}

// TestCLIDiagnose plants faults by plain tools, and wants each to be named, and none where nothing is planted.
func TestCLIDiagnose(t *testing.T) {
	disturb(t, "status")
	openShop(t, "cnibench-e2e-shop")
	node := func(name string, words ...string) func(*testing.T) {
		return func(t *testing.T) { disturb(t, append([]string{"exec", name, "--"}, words...)...) }
	}
	drop := func(how string) []string {
		return []string{"iptables", "-t", "mangle", how, "PREROUTING", "-i", "eth0", "-m", "statistic", "--mode", "random", "--probability", "0.02", "-j", "DROP"}
	}
	var most []byte
	const limit = "/proc/sys/net/netfilter/nf_conntrack_max"
	for _, tt := range []struct {
		name           string
		args           []string
		before, within func(*testing.T)
		after          func(*testing.T)
		code           int
		verdict, cause string
	}{
		{name: "nothing", args: []string{"--to", "cnibench-e2e-shop/fine"}, verdict: "fine"},
		{name: "a Service of which one pod refuses", args: []string{"--to", "cnibench-e2e-shop/half"}, code: 3, verdict: "service", cause: "backend"},
		{name: "a pod's MTU is too large", within: func(t *testing.T) { inPod(t, "server", "ip link set eth0 mtu 9000") }, code: 3, verdict: "cni", cause: "mtu"},
		{name: "a CPU limit", args: []string{"--cpu-limit", "100m"}, code: 3, verdict: "prober", cause: "cpu-limit"},
		{name: "a backend is down", within: func(t *testing.T) { inPod(t, "backend-2-1", "ip link set eth0 down") }, code: 3, verdict: "service", cause: "backend"},
		{name: "a lossy link", before: node("n2", drop("-I")...), after: node("n2", drop("-D")...), code: 3, verdict: "node", cause: "loss"},
		{name: "a shaper", before: node("n1", "tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", "100mbit", "burst", "64k", "latency", "50ms"),
			after: node("n1", "tc", "qdisc", "del", "dev", "eth0", "root"), code: 3, verdict: "node", cause: "shaper"},
		{name: "a slow resolver", before: func(t *testing.T) { lateResolver(t, "90ms") }, after: func(t *testing.T) { lateResolver(t, "") }, code: 3, verdict: "resolver", cause: "names"},
		// It is one limit for the whole machine. Connections of the tests before count for two minutes, and the API server
		// needs room.
		{name: "conntrack is full", before: func(t *testing.T) {
			most, _ = os.ReadFile(limit)
			tracked, err := strconv.Atoi(strings.TrimSpace(disturb(t, "exec", "n1", "--", "cat", "/proc/sys/net/netfilter/nf_conntrack_count")))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(limit, []byte(strconv.Itoa(tracked+500)), 0); err != nil {
				t.Fatal(err)
			}
		}, after: func(*testing.T) { _ = os.WriteFile(limit, most, 0) }, code: 3, verdict: "node", cause: "conntrack-full"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.after != nil {
				t.Cleanup(func() { tt.after(t) })
			}
			if tt.before != nil {
				tt.before(t)
			}
			p := diagnose(t, tt.args...)
			if tt.within != nil {
				tt.within(t)
			}
			p.wantDiagnosis(t, tt.code, tt.verdict, tt.cause)
		})
	}
}

// TestPolicyDiagnosed: a NetworkPolicy that lets nothing into the run's pods is the CNI's, and no slow network.
func TestPolicyDiagnosed(t *testing.T) {
	needsPolicies(t)
	diagnose(t, "--kubeconfig", governed(t, denyIngress())).wantDiagnosis(t, 3, "cni", "unreachable")
}
