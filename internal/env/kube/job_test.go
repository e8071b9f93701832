package kube

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/cnibench/cnibench/internal/plan"
)

// jobRoute returns the route of a job of n members.
func jobRoute(v plan.Variant, p plan.Path, n int) plan.Route {
	return plan.Route{Variant: v, Path: p, Servers: n - 1, Members: n}
}

var betweenPods = plan.Path{From: plan.Pod, To: plan.Pod, Locality: plan.CrossNode}

// TestMembersOfAJob: each member is a pod on a node of its own, in its network or not, and a smaller job has the first of
// them.
func TestMembersOfAJob(t *testing.T) {
	var nodes []corev1.Node
	for i := range 6 {
		nodes = append(nodes, node(fmt.Sprintf("n%d", i+1), "z"))
	}
	o := Options{Cluster: plan.Cluster{Image: "cnibench.local/cnibench:1"}, Paths: []plan.Path{betweenPods, plan.ZeroPath}, Host: true, Sends: Sends{Members: 5}}
	w, c := newWorld(t, o, nodes...)
	if err := c.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		variant plan.Variant
		path    plan.Path
		n       int
		pods    []string
	}{
		{plan.VariantOf("cni"), betweenPods, 5, []string{"client", "server", "member-3", "member-4", "member-5"}},
		{plan.VariantOf("cni"), betweenPods, 3, []string{"client", "server", "member-3"}},
		{plan.VariantOf("cni"), betweenPods, 2, []string{"client", "server"}},
		{plan.VariantOf("cni"), plan.ZeroPath, 4, []string{"host-client", "host-server", "host-member-3", "host-member-4"}},
		{plan.VariantOf("host"), betweenPods, 4, []string{"host-client", "host-server", "host-member-3", "host-member-4"}},
	} {
		r := jobRoute(tt.variant, tt.path, tt.n)
		ends, err := c.Endpoints(r)
		if err != nil {
			t.Fatal(err)
		}
		on, err := c.NodesOf(r)
		if err != nil {
			t.Fatal(err)
		}
		var pods []string
		addresses := map[string]bool{}
		for _, e := range append(ends.Servers[:len(ends.Servers):len(ends.Servers)], ends.Client) {
			addresses[e.Address] = true
			if e.ListenPort == 0 || e.ListenAddress != e.Address {
				t.Errorf("%s listens at %s port %d", e.Name, e.ListenAddress, e.ListenPort)
			}
		}
		pods = append(pods, strings.TrimPrefix(ends.Client.Name, tt.variant.String()+"/"))
		for _, e := range ends.Servers {
			pods = append(pods, strings.TrimPrefix(e.Name, tt.variant.String()+"/"))
			if e.Port != e.ListenPort {
				t.Errorf("%s is dialled at port %d and listens at %d", e.Name, e.Port, e.ListenPort)
			}
		}
		slices.Sort(on)
		if !slices.Equal(pods, tt.pods) || len(slices.Compact(on)) != tt.n || len(addresses) != tt.n {
			t.Errorf("%+v: pods %q on nodes %q at %v", r, pods, on, addresses)
		}
	}
	if silent, err := c.Reach(t.Context(), plan.Variants("cni", "host")); err != nil || len(silent) > 0 {
		t.Errorf("%v, %v", silent, err)
	}
	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := w.left(t); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// TestTooManyMembers: a job with more members than nodes is refused before anything is made, with the nodes that cannot be
// used.
func TestTooManyMembers(t *testing.T) {
	cordoned := node("n4", "z")
	cordoned.Spec.Unschedulable = true
	w, c := newWorld(t, Options{Cluster: plan.Cluster{Image: "cnibench.local/cnibench:1"}, Paths: []plan.Path{betweenPods}, Sends: Sends{Members: 4}}, append(nodes3(), cordoned)...)
	err := c.Up(t.Context())
	var config *ConfigError
	if !errors.As(err, &config) || !strings.Contains(err.Error(), "a job of 4 members needs a node each, and 3 nodes alone can take pods: n4: it is cordoned") {
		t.Errorf("%v", err)
	}
	if left := w.left(t); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
	if _, err := c.Endpoints(jobRoute(plan.VariantOf("cni"), betweenPods, 9)); err == nil {
		t.Error("a job without nodes has ends")
	}
}
