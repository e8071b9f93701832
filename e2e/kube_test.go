//go:build e2e

package e2e

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/env/kube"
	"github.com/cnibench/cnibench/internal/plan"
)

// options are those of a run on the cluster under test.
func options(t *testing.T) kube.Options {
	t.Helper()
	o := kube.Options{
		Kubeconfig: os.Getenv("KUBECONFIG"), Say: t.Logf,
		Cluster: plan.Cluster{Image: os.Getenv("CNIBENCH_IMAGE"), TTL: 10 * time.Minute, CPURequest: "50m", MemoryRequest: "32Mi"},
	}
	if o.Kubeconfig == "" || o.Image == "" {
		t.Fatal("KUBECONFIG and CNIBENCH_IMAGE say which cluster and which image: set both")
	}
	return o
}

// raise returns a cluster in which o's paths stand, and removes it with the test.
func raise(t *testing.T, o kube.Options) *kube.Cluster {
	t.Helper()
	c, err := kube.Connect(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Preflight(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { takeDown(t, c) })
	began := time.Now()
	if err := c.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Logf("up after %s", time.Since(began).Round(time.Millisecond))
	return c
}

// takeDown closes c and looks whether anything of its run is left.
func takeDown(t *testing.T, c *kube.Cluster) {
	t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	began := time.Now()
	if err := c.Close(ctx); err != nil {
		t.Error(err)
	}
	t.Logf("down after %s", time.Since(began).Round(time.Millisecond))
	list, err := clientset(c).CoreV1().Namespaces().List(ctx, metav1.ListOptions{LabelSelector: kube.LabelRun + "=" + c.Run()})
	if err != nil {
		t.Fatal(err)
	}
	for _, ns := range list.Items {
		t.Errorf("namespace %s is left", ns.Name)
	}
}

// measure runs one short trial of rr between two ends and returns the transactions that the client counted.
func measure(ctx context.Context, client control.Endpoint, servers ...control.Endpoint) (uint64, error) {
	ask := control.Prepare{Workload: plan.Workload{Spec: plan.RR{}}.Normalize(), Warmup: 10 * time.Millisecond, Window: 200 * time.Millisecond, Timeout: 2 * time.Second}
	var serving []*control.Client
	defer func() {
		for _, s := range serving {
			_ = s.Close()
		}
	}()
	for _, end := range servers {
		s, err := control.Dial(ctx, end)
		if err != nil {
			return 0, err
		}
		serving = append(serving, s)
		ask.Side, ask.Address, ask.Port, ask.Name = control.SideServer, end.ListenAddress, end.ListenPort, end.Name
		if _, err := s.Prepare(ctx, ask); err != nil {
			return 0, err
		}
	}
	c, err := control.Dial(ctx, client)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	ask.Side, ask.Address, ask.Port, ask.Name = control.SideClient, servers[0].Address, servers[0].Port, ""
	if _, err := c.Prepare(ctx, ask); err != nil {
		return 0, err
	}
	for _, one := range append(serving, c) {
		if err := one.Start(ctx, 0); err != nil {
			return 0, err
		}
	}
	seen, err := c.Wait(ctx)
	if err != nil {
		return 0, err
	}
	return seen.Operations, nil
}

// TestPaths measures every path of the catalogue under the cluster's CNI, the bare node and their twins.
func TestPaths(t *testing.T) {
	o := options(t)
	o.Paths, o.Host, o.Backends, o.UDP, o.LoadBalancerClass = plan.Paths, true, []int{2, 3}, true, balancerClass
	balance(t)
	c := raise(t, o)
	profiles := []string{"cni", "cni~twin", "host", "host~twin"}
	began := time.Now()
	silent, err := c.Reach(t.Context(), plan.Variants(profiles...))
	t.Logf("reached after %s", time.Since(began).Round(time.Millisecond))
	if err != nil || len(silent) > 0 {
		t.Errorf("not reached: %v, %v", silent, err)
	}
	for _, p := range plan.Paths {
		for _, profile := range profiles {
			client, server, err := endsOf(c, plan.VariantOf(profile), p)
			var not *control.NotServedError
			if errors.As(err, &not) {
				t.Logf("%-14s %-28s not served: %s", profile, p, not.Reason)
				if p.To != plan.External {
					t.Errorf("%s is to be served: %s", p, not.Reason)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s %s: %v", profile, p, err)
				continue
			}
			n, err := measure(t.Context(), client, server)
			if err != nil || n == 0 {
				t.Errorf("%s %s: %d transactions, %v", profile, p, n, err)
				continue
			}
			t.Logf("%-14s %-28s %6d transactions, %s -> %s %s:%d", profile, p, n, client.Name, server.Name, server.Address, server.Port)
		}
	}
	for _, n := range o.Backends {
		for _, p := range []plan.Path{{From: plan.Pod, To: plan.Service, Locality: plan.Local}, {From: plan.Host, To: plan.Service, Locality: plan.Remote}, {From: plan.External, To: plan.NodePort, Locality: plan.Local}, {From: plan.External, To: plan.LoadBalancer}} {
			client, servers, err := backendsOf(c, plan.Route{Variant: plan.VariantOf("cni"), Path: p, Servers: n})
			if err != nil || len(servers) != n {
				t.Errorf("%d backends of %s: %d, %v", n, p, len(servers), err)
				continue
			}
			if got, err := measure(t.Context(), client, servers...); err != nil || got == 0 {
				t.Errorf("%d backends of %s: %d transactions, %v", n, p, got, err)
			}
		}
	}
}

// TestImageThatCannotBePulled ends early, with the reason and the way out, and leaves nothing.
func TestImageThatCannotBePulled(t *testing.T) {
	o := options(t)
	o.Image = "cnibench.local/nowhere:0"
	o.Paths = []plan.Path{{From: plan.Pod, To: plan.Pod, Locality: plan.CrossNode}}
	c, err := kube.Connect(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { takeDown(t, c) })
	began := time.Now()
	err = c.Up(t.Context())
	t.Logf("after %s: %v", time.Since(began).Round(time.Millisecond), err)
	if err == nil || !strings.Contains(err.Error(), o.Image) {
		t.Errorf("the error does not name the image: %v", err)
	}
	if time.Since(began) > o.TTL/2 {
		t.Errorf("it waited %s", time.Since(began))
	}
}
