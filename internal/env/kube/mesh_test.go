package kube

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/plan/mesh"
)

// meshOptions are those of a run over pairs.
func meshOptions(which string, listed ...string) Options {
	p := mesh.Pairs{Which: which}
	for i, text := range listed {
		from, to, _ := strings.Cut(text, " ")
		p.Listed = append(p.Listed, mesh.Line{Pair: mesh.Pair{From: from, To: to}, Number: i + 1})
	}
	return Options{Cluster: plan.Cluster{Image: "cnibench.local/cnibench:1"}, Paths: []plan.Path{plan.ZeroPath, betweenPods}, Sends: Sends{Pairs: p}, Waits: Waits{Ready: 5 * time.Second}}
}

// meshNodes are n nodes of two zones.
func meshNodes(n int) []corev1.Node {
	var nodes []corev1.Node
	for i := range n {
		nodes = append(nodes, node(fmt.Sprintf("n%d", i+1), fmt.Sprintf("z%d", i%2)))
	}
	return nodes
}

// raisedMesh is a run over pairs whose pods are ready.
func raisedMesh(t *testing.T, o Options, nodes ...corev1.Node) (*world, Mesh) {
	t.Helper()
	w, c := newWorld(t, o, nodes...)
	if err := c.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(t.Context()); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
	})
	return w, Mesh{c}
}

// TestAgentsOnEveryNode: each node that can take pods has one in its network and one beside it, and any two are the ends of
// a route.
func TestAgentsOnEveryNode(t *testing.T) {
	nodes := append(meshNodes(4), node("n10", "z0"), node("n5", "z0", cordoned), node("n6", "z0", controlPlane), node("n7", "z0", unready))
	var said []string
	o := meshOptions(mesh.All)
	o.Say = func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }
	w, m := raisedMesh(t, o, nodes...)
	var names []string
	for _, n := range m.Nodes() {
		names = append(names, n.Name)
	}
	if !slices.Equal(names, []string{"n1", "n2", "n3", "n4", "n10"}) || m.Nodes()[1].Labels["zone"] != "z1" {
		t.Errorf("nodes %v", m.Nodes())
	}
	left := "n5: it is cordoned; n6: it has the taint node-role.kubernetes.io/control-plane:NoSchedule, which is not tolerated; n7: it is not ready: NodeStatusUnknown Kubelet stopped posting node status."
	if f := m.Facts(); f[factLeftOut] != left || f[factClient] != "" || !slices.Contains(said, "left out: "+left) {
		t.Errorf("facts %v, said %q", f, said)
	}
	if pods := len(w.left(t)); pods != 2+2*5 {
		t.Errorf("%d objects", pods)
	}
	seen := map[string]bool{}
	for _, from := range names {
		for _, to := range names {
			for _, p := range m.options.Paths {
				if from == to {
					continue
				}
				e, err := m.Endpoints(plan.Route{Variant: plan.VariantOf("cni"), Path: p, Servers: 1, Pair: mesh.Pair{From: from, To: to}})
				if err != nil {
					t.Fatal(err)
				}
				if !strings.HasSuffix(e.Client.Name, " on node "+from) || !strings.HasSuffix(e.Servers[0].Name, " on node "+to) || e.Servers[0].Port == 0 {
					t.Errorf("%s to %s: %+v", from, to, e)
				}
				seen[e.Client.Name], seen[e.Servers[0].Name] = true, true
			}
		}
	}
	if len(seen) != 2*5 {
		t.Errorf("%d agents", len(seen))
	}
	ground := m.Ground("cni")
	if len(ground.Ends) != 4 || len(ground.Routes) != 2 || !slices.Equal(m.Cluster.Nodes(), []string{"n1", "n2"}) {
		t.Errorf("it is proved between %+v", ground)
	}
}

// TestWhichNodesMeet: a file of pairs needs its nodes alone; a listed node that cannot take pods is away, and an unknown one
// refused.
func TestWhichNodesMeet(t *testing.T) {
	nodes := append(meshNodes(5), node("n6", "z0", cordoned))
	_, m := raisedMesh(t, meshOptions("pairs.txt", "n2 n4", "n4 n6"), nodes...)
	if all := m.Nodes(); len(all) != 3 {
		t.Errorf("nodes %v", all)
	}
	if node, why := m.Away(t.Context(), mesh.Pair{From: "n4", To: "n6"}, false); node != "n6" || why != "its pods are gone; it is cordoned" {
		t.Errorf("%s: %s", node, why)
	}
	if _, m := raisedMesh(t, meshOptions("sample=1"), meshNodes(5)...); len(m.Nodes()) != 2 {
		t.Errorf("a sample of one pair has nodes %v", m.Nodes())
	}
	for which, want := range map[string]string{"pairs.txt": `pairs.txt:1: unknown node "n44"`, "sample=99": "6 nodes have 15 pairs"} {
		w, c := newWorld(t, meshOptions(which, "n1 n44"), meshNodes(6)...)
		err := c.Up(t.Context())
		var config *ConfigError
		if !errors.As(err, &config) || !strings.Contains(err.Error(), want) || len(w.left(t)) > 0 {
			t.Errorf("%s: %v", which, err)
		}
	}
	_, c := newWorld(t, meshOptions(mesh.All), node("n1", "z"), node("n2", "z", cordoned))
	if err := c.Up(t.Context()); err == nil || !strings.Contains(err.Error(), "a pair needs two nodes, and there is one: n1 (n2: it is cordoned)") {
		t.Errorf("one node: %v", err)
	}
}

// TestNodesThatDoNotCome: a node whose pods do not start is away, with the reason, and the run begins without it.
func TestNodesThatDoNotCome(t *testing.T) {
	o := meshOptions(mesh.Ring)
	o.Ready = 300 * time.Millisecond
	w, c := newWorld(t, o, meshNodes(4)...)
	w.become = func(p *corev1.Pod) {
		switch p.Spec.NodeName {
		case "n1":
			waiting("ImagePullBackOff", "not found")(p)
		case "n3":
			p.Status.Conditions = nil
		}
	}
	if err := c.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	m := Mesh{c}
	for pair, want := range map[mesh.Pair]string{{From: "n1", To: "n2"}: "cannot be pulled", {From: "n2", To: "n3"}: "is not ready after 300ms", {From: "n2", To: "n4"}: ""} {
		if _, why := m.Away(t.Context(), pair, false); !strings.Contains(why, want) || why != "" && want == "" {
			t.Errorf("%s: %q", pair, why)
		}
	}
	if !slices.Equal(c.Nodes(), []string{"n2", "n4"}) {
		t.Errorf("it is proved on %v", c.Nodes())
	}
	w.become = waiting("ImagePullBackOff", "not found")
	_, c = newWorld(t, o, meshNodes(3)...)
	c.client, c.exec = w.Client, w.exec
	if err := c.Up(t.Context()); err == nil || !strings.Contains(err.Error(), "no node alone can take pods: n1: ") {
		t.Errorf("none comes: %v", err)
	}
	if left := w.left(t); len(left) != 2+8 {
		t.Errorf("left: %v", left)
	}
}

// TestAwayAndBack: pods that are gone are made anew where the node takes them.
func TestAwayAndBack(t *testing.T) {
	w, m := raisedMesh(t, meshOptions(mesh.All), meshNodes(3)...)
	pair := mesh.Pair{From: "n1", To: "n2"}
	if node, why := m.Away(t.Context(), pair, true); node != "" {
		t.Fatalf("%s: %s", node, why)
	}
	change := func(do func(*corev1.Node)) {
		n, err := w.CoreV1().Nodes().Get(t.Context(), "n2", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		do(n)
		if _, err := w.CoreV1().Nodes().Update(t.Context(), n, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	before, err := m.Endpoints(plan.Route{Variant: plan.VariantOf("cni"), Path: betweenPods, Servers: 1, Pair: pair})
	if err != nil {
		t.Fatal(err)
	}
	for name, ns := range map[string]string{"member-2": m.namespace(false), "host-member-2": m.namespace(true)} {
		if err := w.CoreV1().Pods(ns).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	change(func(n *corev1.Node) { n.Spec.Unschedulable = true })
	if node, why := m.Away(t.Context(), pair, false); node != "" {
		t.Errorf("no trial failed, and the API server was asked: %s: %s", node, why)
	}
	if node, why := m.Away(t.Context(), pair, true); node != "n2" || why != "its pods are gone; it is cordoned" {
		t.Errorf("%s: %q", node, why)
	}
	change(func(n *corev1.Node) { n.Spec.Unschedulable = false })
	if _, why := m.Away(t.Context(), pair, false); why != "its pods are gone; it is cordoned" {
		t.Errorf("asked again at once: %q", why)
	}
	if _, why := m.Away(t.Context(), pair, true); why != "its pods are made anew" {
		t.Errorf("%q", why)
	}
	m.Await(t.Context())
	if node, why := m.Away(t.Context(), pair, false); node != "" {
		t.Errorf("%s: %s", node, why)
	}
	after, err := m.Endpoints(plan.Route{Variant: plan.VariantOf("cni"), Path: betweenPods, Servers: 1, Pair: pair})
	if err != nil || after.Servers[0].Address == before.Servers[0].Address {
		t.Errorf("the address stays %s, %v", after.Servers[0].Address, err)
	}
	change(unready)
	if _, why := m.Away(t.Context(), pair, true); !strings.HasPrefix(why, "it is not ready: NodeStatusUnknown") {
		t.Errorf("%q", why)
	}
	if err := w.CoreV1().Nodes().Delete(t.Context(), "n2", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, why := m.Away(t.Context(), pair, true); why != "it is not a node of the cluster" {
		t.Errorf("%q", why)
	}
	if _, why := m.Away(t.Context(), mesh.Pair{From: "n3", To: "n9"}, true); why != "it is not a node of the cluster" {
		t.Errorf("a node of a resumed file: %q", why)
	}
	if wrong, err := m.Recover(t.Context()); wrong != "" || err != nil {
		t.Errorf("the run goes on: %q, %v", wrong, err)
	}
}

// BenchmarkThousandNodes raises a run over pairs on 1,000 nodes: docs/how-to/find-the-slow-node.md.
func BenchmarkThousandNodes(b *testing.B) {
	nodes := meshNodes(1000)
	for b.Loop() {
		w, c := newWorld(b, meshOptions(mesh.All), nodes...)
		w.execs = make(chan string, 4000)
		if err := c.Up(b.Context()); err != nil {
			b.Fatal(err)
		}
		var seen runtime.MemStats
		runtime.ReadMemStats(&seen)
		b.ReportMetric(float64(seen.Sys)/1e6, "MB")
		if err := c.Close(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
