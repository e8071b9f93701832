//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/cnibench/cnibench/internal/env/kube"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// balancerClass is that of the load balancer that the tests play. A Service keeps its class, so nobody else takes it.
const balancerClass = "cnibench.dev/e2e"

// balance gives every Service of the class an address, as a load balancer does whose addresses the nodes serve themselves,
// until the test ends. The addresses are of a network for documentation: no machine has them.
func balance(t *testing.T) {
	t.Helper()
	client := clientset(admin(t))
	ctx, stop := context.WithCancel(context.Background())
	over := make(chan struct{})
	t.Cleanup(func() { stop(); <-over })
	go func() {
		defer close(over)
		given := 0
		for ctx.Err() == nil {
			if err := giveAddresses(ctx, client, &given); err != nil && ctx.Err() == nil {
				t.Errorf("play the load balancer: %v", err)
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
	}()
}

func giveAddresses(ctx context.Context, client kubernetes.Interface, given *int) error {
	list, err := client.CoreV1().Services("").List(ctx, metav1.ListOptions{LabelSelector: kube.LabelManagedBy + "=" + kube.ManagedBy})
	if err != nil {
		return err
	}
	for _, s := range list.Items {
		class := s.Spec.LoadBalancerClass
		if class == nil || *class != balancerClass || len(s.Status.LoadBalancer.Ingress) > 0 || s.DeletionTimestamp != nil {
			continue
		}
		*given++
		s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: fmt.Sprintf("203.0.113.%d", *given)}}
		if _, err := client.CoreV1().Services(s.Namespace).UpdateStatus(ctx, &s, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// TestCLIBalancer measures through the address of a load balancer: one server, and several, all of which get their share.
func TestCLIBalancer(t *testing.T) {
	balance(t)
	p := startRun(t, append(briefly, "--paths", "external-to-loadbalancer", "--workloads", "rr,crr,rr(udp),http(backends=3,connection=close)",
		"--load-balancer-class", balancerClass, "--service-annotations", "example.com/scheme=internal")...)
	p.awaitTrials(t, 1)
	services := map[string]bool{}
	for _, s := range servicesOf(t, p.run(t)) {
		if s.Spec.Type != corev1.ServiceTypeLoadBalancer {
			t.Errorf("Service %s is of type %s: no path needs it", s.Name, s.Spec.Type)
			continue
		}
		services[s.Name] = true
		if s.Annotations["example.com/scheme"] != "internal" {
			t.Errorf("Service %s has the annotations %v", s.Name, s.Annotations)
		}
	}
	if !services["balancer"] || !services["balancer-3"] {
		t.Errorf("Services: %v", slices.Sorted(maps.Keys(services)))
	}
	kinds := map[string]int{}
	for _, r := range p.fine(t) {
		kinds[r.Workload.String()]++
		if !strings.HasPrefix(r.Workload.String(), "http") {
			continue
		}
		low, high := r.Metrics[metric.BackendShare+".min"], r.Metrics[metric.BackendShare+".max"]
		t.Logf("%s: shares %.3f to %.3f, p %.3f", r.Profile, low, high, r.Metrics[metric.BackendEvenness])
		if low <= 0 || high >= 1 {
			t.Errorf("%s: shares from %.3f to %.3f", r.Profile, low, high)
		}
	}
	if len(kinds) != 4 {
		t.Errorf("measured: %v", kinds)
	}
	h := p.contents(t).Header
	if f := h.Facts[kube.FactBalancer]; !strings.Contains(f, "203.0.113.") || !strings.Contains(f, "ipMode VIP") || !strings.Contains(f, "class "+balancerClass) {
		t.Errorf("the fact is %q", f)
	}
	if f := h.Facts[kube.FactBalancerWay]; !strings.Contains(f, "not part of what is measured") {
		t.Errorf("what is measured is not said: %q", f)
	}
	if !strings.Contains(p.stderr(), "its address exposes this run's servers") {
		t.Error("nobody is warned that the address is open")
	}
}

// TestCLINoBalancer: where nobody gives an address the path is not served, and the path beside it is measured.
func TestCLINoBalancer(t *testing.T) {
	args := append(briefly, "--workloads", "rr", "--load-balancer-class", balancerClass, "--load-balancer-timeout", "2s")
	p := startRun(t, append(args, "--paths", "external-to-loadbalancer,pod-to-pod/cross-node")...)
	for _, r := range p.fine(t) {
		if r.Path.String() != "pod-to-pod/cross-node" {
			t.Errorf("measured without an address: %s", r.Key())
		}
	}
	for _, q := range p.contents(t).Header.Profiles {
		if why := q.NotServed["external-to-loadbalancer"]; !strings.Contains(why, "no load balancer of class "+balancerClass+" gave the Service an address within 2s") {
			t.Errorf("%s: %q", q.Name, why)
		}
	}
	p = startRun(t, append(args, "--paths", "external-to-loadbalancer")...)
	p.wantEnd(t, time.Minute, 1, "nothing can be measured", "gave the Service an address within 2s", "MetalLB")
	p.wantNothingLeft(t)
}
