package kube

import (
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnibench/cnibench/internal/plan"
)

// node returns a node that is ready, changed by how.
func node(name, zone string, how ...func(*corev1.Node)) corev1.Node {
	n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelTopologyZone: zone, corev1.LabelOSStable: "linux"}}}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: name}, {Type: corev1.NodeInternalIP, Address: "10.0.0.1"}, {Type: corev1.NodeInternalIP, Address: "fd00::1"}}
	for _, h := range how {
		h(&n)
	}
	return n
}

func unready(n *corev1.Node) {
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, Reason: "NodeStatusUnknown", Message: "Kubelet stopped posting node status."}}
}
func cordoned(n *corev1.Node) { n.Spec.Unschedulable = true }
func windows(n *corev1.Node)  { n.Labels[corev1.LabelOSStable] = "windows" }
func controlPlane(n *corev1.Node) {
	n.Spec.Taints = []corev1.Taint{{Key: "node-role.kubernetes.io/control-plane", Effect: corev1.TaintEffectNoSchedule}}
}
func role(name string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Labels["node-role.kubernetes.io/"+name] = "true" }
}
func large(n *corev1.Node) { n.Labels[corev1.LabelInstanceTypeStable] = "large" }

func TestChoose(t *testing.T) {
	for name, c := range map[string]struct {
		nodes                 []corev1.Node
		options               Options
		client, server, third string
		why                   string
		controls              string
	}{
		"by name":         {nodes: []corev1.Node{node("c", "z"), node("a", "z"), node("b", "z")}, client: "a", server: "b", third: "c"},
		"one zone":        {nodes: []corev1.Node{node("a", "x"), node("b", "y"), node("c", "x"), node("d", "y")}, client: "a", server: "c", third: "b"},
		"one kind":        {nodes: []corev1.Node{node("a", "x", large), node("b", "x"), node("c", "x", large)}, client: "a", server: "c", third: "b"},
		"zone over kind":  {nodes: []corev1.Node{node("a", "x", large), node("b", "x"), node("c", "y", large)}, client: "a", server: "b", third: "c"},
		"client is given": {nodes: []corev1.Node{node("a", "x"), node("b", "x"), node("c", "x")}, options: Options{Cluster: plan.Cluster{ClientNode: "c"}}, client: "c", server: "a", third: "b"},
		"server is given": {nodes: []corev1.Node{node("a", "x"), node("b", "x"), node("c", "y")}, options: Options{Cluster: plan.Cluster{ServerNode: "a"}}, client: "b", server: "a", third: "c"},
		"zones if asked":  {nodes: []corev1.Node{node("a", "x"), node("b", "x"), node("c", "y")}, options: Options{Cluster: plan.Cluster{ClientNode: "a", ServerNode: "c"}}, client: "a", server: "c", third: "b"},
		"unfit ones": {nodes: []corev1.Node{node("a", "x", controlPlane), node("b", "x", cordoned), node("c", "x", windows), node("d", "x"), node("e", "x", unready), node("f", "x")},
			client: "d", server: "f", why: "a: it has the taint node-role.kubernetes.io/control-plane:NoSchedule, which is not tolerated; b: it is cordoned; c: it runs windows; e: it is not ready: NodeStatusUnknown"},
		"tolerated": {nodes: []corev1.Node{node("a", "x", controlPlane), node("b", "x")}, options: Options{Cluster: plan.Cluster{Tolerations: []string{"*"}}}, client: "a", server: "b", why: "two nodes alone"},
		"one node":  {nodes: []corev1.Node{node("a", "x"), node("b", "x", cordoned)}, client: "a", why: "one node alone can take pods: b: it is cordoned"},
		"workers first": {nodes: []corev1.Node{node("a", "x", role("control-plane")), node("b", "x", role("master")), node("c", "x", role("etcd")), node("d", "x"), node("e", "y"), node("f", "x")},
			client: "d", server: "f", third: "e", controls: ""},
		"workers of two zones": {nodes: []corev1.Node{node("a", "x", role("control-plane")), node("b", "x"), node("c", "y")}, client: "b", server: "c", third: "a", controls: "a"},
		"one worker":           {nodes: []corev1.Node{node("a", "y", role("etcd")), node("b", "x", role("master")), node("c", "x")}, client: "b", server: "c", third: "a", controls: "b, a"},
		"no worker":            {nodes: []corev1.Node{node("a", "x", role("master")), node("b", "y", role("master")), node("c", "x", role("master"))}, client: "a", server: "c", third: "b", controls: "a, c, b"},
		"control plane asked":  {nodes: []corev1.Node{node("a", "x", role("master")), node("b", "x"), node("c", "x")}, options: Options{Cluster: plan.Cluster{ServerNode: "a"}}, client: "b", server: "a", third: "c", controls: "a"},
		"selected": {nodes: []corev1.Node{node("a", "x"), node("b", "x", large), node("c", "x", large)}, options: Options{Cluster: plan.Cluster{NodeSelector: map[string]string{corev1.LabelInstanceTypeStable: "large"}}},
			client: "b", server: "c", why: "a: it has no label node.kubernetes.io/instance-type=large"},
	} {
		p, err := choosePlacement(c.nodes, c.options)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if p.client != c.client || p.server != c.server || p.third != c.third || !strings.Contains(p.why, c.why) {
			t.Errorf("%s: %s, %s, %s, %q; want %s, %s, %s, %q", name, p.client, p.server, p.third, p.why, c.client, c.server, c.third, c.why)
		}
		if got := p.controlPlanes(); got != c.controls {
			t.Errorf("%s: control planes %q, want %q", name, got, c.controls)
		}
		for _, chosen := range []string{c.client, c.server, c.third} {
			if chosen != "" && !slices.ContainsFunc(p.nodes, func(n corev1.Node) bool { return n.Name == chosen }) {
				t.Errorf("%s: node %s is chosen and not kept", name, chosen)
			}
		}
	}
}

func TestChooseFaults(t *testing.T) {
	nodes := []corev1.Node{node("a", "x"), node("b", "x", unready)}
	_, err := choosePlacement(nodes, Options{Cluster: plan.Cluster{ClientNode: "b", ServerNode: "nowhere"}})
	var bad *ConfigError
	if !errors.As(err, &bad) {
		t.Fatalf("%v is no ConfigError", err)
	}
	for _, want := range []string{"node b: it is not ready: NodeStatusUnknown Kubelet stopped", `no node "nowhere"; there are a, b`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %q", want, err)
		}
	}
	if _, err = choosePlacement(nodes[1:], Options{}); err == nil || !strings.Contains(err.Error(), "no node can take pods: b: it is not ready") {
		t.Errorf("no fit node: %v", err)
	}
	if _, err = choosePlacement(nil, Options{}); err == nil || !strings.Contains(err.Error(), "the cluster has no nodes") {
		t.Errorf("no node: %v", err)
	}
}

func TestTolerated(t *testing.T) {
	taint := corev1.Taint{Key: "gpu", Value: "yes", Effect: corev1.TaintEffectNoSchedule}
	for text, want := range map[string]bool{"gpu": true, "gpu=yes": true, "gpu=yes:NoSchedule": true, "gpu:NoExecute": false, "gpu=no": false, "cpu": false, "*": true, "*:NoExecute": false} {
		o := Options{Cluster: plan.Cluster{Tolerations: []string{text}}}
		if got := isTolerated(&taint, tolerations(o)); got != want {
			t.Errorf("%s tolerates %s: %t, want %t", text, taint.ToString(), got, want)
		}
	}
}
