package kube

import (
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/plan"
)

var toRemote = plan.Path{From: plan.Pod, To: plan.Service, Locality: plan.Remote}

// behind returns the names of the pods that a Service selects.
func (w *world) behind(t *testing.T, namespace, service string) []string {
	t.Helper()
	svc, err := w.CoreV1().Services(namespace).Get(t.Context(), service, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pods, err := w.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: labels.SelectorFromSet(svc.Spec.Selector).String()})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range pods.Items {
		names = append(names, p.Name)
	}
	return slices.Sorted(slices.Values(names))
}

// TestRoll: one pod goes from behind the Service that is rolled, and stays behind all others; then it is back.
func TestRoll(t *testing.T) {
	o := Options{Cluster: plan.Cluster{Image: "cnibench.local/cnibench:1"}, Paths: []plan.Path{toRemote}, Host: true, Backends: []int{3}, Rolled: []int{2, 3}}
	w, c := newWorld(t, o, nodes3()...)
	if err := c.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	client, servers, err := backendsOf(c, plan.Route{Variant: plan.VariantOf("cni"), Path: toRemote, Servers: 3, Rolled: true})
	_, kept, err2 := backendsOf(c, plan.Route{Variant: plan.VariantOf("cni"), Path: toRemote, Servers: 3})
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	if len(servers) != 3 || client.Name != "cni/client" || servers[0].Address == kept[0].Address || servers[1].Name != kept[1].Name {
		t.Errorf("rolled %+v\nkept %+v", servers, kept)
	}
	rolledPods, keptPods := w.behind(t, c.namespace(false), "remote-3-rolled"), w.behind(t, c.namespace(false), "remote-3")
	if !slices.Equal(rolledPods, keptPods) || len(keptPods) != 3 {
		t.Fatalf("behind %v and %v", rolledPods, keptPods)
	}
	b := control.Backend{Route: plan.Route{Variant: plan.VariantOf("cni"), Path: toRemote, Servers: 3, Rolled: true}, Index: 1}
	gone := strings.TrimPrefix(servers[1].Name, "cni/")
	for range 2 {
		if err := c.Roll(t.Context(), b, false); err != nil {
			t.Fatal(err)
		}
		now := w.behind(t, c.namespace(false), "remote-3-rolled")
		if len(now) != 2 || slices.Contains(now, gone) || len(w.behind(t, c.namespace(false), "remote-3")) != 3 || len(w.behind(t, c.namespace(false), "remote-2-rolled")) != 2 {
			t.Errorf("without %s: %v", gone, now)
		}
		if err := c.Roll(t.Context(), b, true); err != nil {
			t.Fatal(err)
		}
		if now := w.behind(t, c.namespace(false), "remote-3-rolled"); !slices.Equal(now, keptPods) {
			t.Errorf("again: %v", now)
		}
	}
	// The bare node's backends are in its own namespace; three do not fit two nodes.
	if err := c.Roll(t.Context(), control.Backend{Route: plan.Route{Variant: plan.VariantOf("host"), Path: toRemote, Servers: 2, Rolled: true}}, false); err != nil {
		t.Error(err)
	}
	if now := w.behind(t, c.namespace(true), "remote-2-rolled"); len(now) != 1 {
		t.Errorf("of the bare node: %v", now)
	}
	b.Index = 3
	if err := c.Roll(t.Context(), b, false); err == nil || !strings.Contains(err.Error(), "has no backend 4") {
		t.Errorf("one too many: %v", err)
	}
}

// TestRollIsRefused: the reason is the API server's, and names the pod.
func TestRollIsRefused(t *testing.T) {
	w, c := newWorld(t, Options{Cluster: plan.Cluster{Image: "cnibench.local/cnibench:1"}, Paths: []plan.Path{toRemote}, Rolled: []int{2}}, nodes3()...)
	if err := c.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.PrependReactor("patch", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(corev1.Resource("pods"), "backend", errors.New("cannot patch pods"))
	})
	err := c.Roll(t.Context(), control.Backend{Route: plan.Route{Variant: plan.VariantOf("cni"), Path: toRemote, Servers: 2, Rolled: true}, Index: 1}, false)
	if err == nil || !strings.Contains(err.Error(), "change the labels of pod backend-") || !strings.Contains(err.Error(), "patch pods") {
		t.Errorf("%v", err)
	}
}

// TestRollRight is asked for where something is rolled, and nowhere else.
func TestRollRight(t *testing.T) {
	for _, c := range []struct {
		rolled []int
		wants  bool
	}{{nil, false}, {[]int{2}, true}} {
		if got := slices.Contains((&Cluster{options: Options{Rolled: c.rolled}}).requiredRights(), rollRight); got != c.wants {
			t.Errorf("rolled %v: asked %v", c.rolled, got)
		}
	}
}
