package kube

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/cnibench/cnibench/internal/env/kube/api/apitest"
	"github.com/cnibench/cnibench/internal/plan"
)

// world is a cluster without machines: its pods are what become says of them as soon as they are made.
type world struct {
	*apitest.Clientset
	// become changes the status of a pod when it is made; nil makes it run.
	become func(*corev1.Pod)
	// balance gives a Service of type LoadBalancer its way in when it is made; nil gives an address of IPv4.
	balance func(*corev1.Service)
	// missing are the rights that it does not grant.
	missing map[string]bool
	// execs are the commands that were run, as "pod: argv".
	execs chan string
}

// newWorld returns a world with nodes, and a Cluster in it.
func newWorld(t testing.TB, o Options, nodes ...corev1.Node) (*world, *Cluster) {
	t.Helper()
	w := &world{Clientset: apitest.NewClientset(), missing: map[string]bool{}, execs: make(chan string, 1000)}
	for i := range nodes {
		if err := w.Tracker().Add(&nodes[i]); err != nil {
			t.Fatal(err)
		}
	}
	addresses := 0
	w.PrependReactor("create", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		p, ok := a.(clienttesting.CreateAction).GetObject().(*corev1.Pod)
		if !ok || a.GetSubresource() != "" {
			return false, nil, nil
		}
		addresses++
		if runs(p, addresses); w.become != nil {
			w.become(p)
		}
		return false, nil, nil
	})
	services := 0
	w.PrependReactor("create", "services", func(a clienttesting.Action) (bool, runtime.Object, error) {
		svc := a.(clienttesting.CreateAction).GetObject().(*corev1.Service)
		services++
		svc.Spec.ClusterIP = fmt.Sprintf("10.96.0.%d", services)
		if svc.Spec.Type == corev1.ServiceTypeLoadBalancer {
			if w.balance == nil {
				svc.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: fmt.Sprintf("203.0.113.%d", services)}}
			} else {
				w.balance(svc)
			}
		}
		if svc.Spec.Type == corev1.ServiceTypeNodePort {
			for i := range svc.Spec.Ports {
				svc.Spec.Ports[i].NodePort = 30000 + int32(services*100+i/2)
			}
		}
		return false, nil, nil
	})
	// A namespace takes everything in it along.
	w.PrependReactor("delete", "namespaces", func(a clienttesting.Action) (bool, runtime.Object, error) {
		name := a.(clienttesting.DeleteAction).GetName()
		// A reactor that asked the client would wait for itself.
		list, err := w.Tracker().List(corev1.SchemeGroupVersion.WithResource("pods"), corev1.SchemeGroupVersion.WithKind("Pod"), name)
		if err != nil {
			return true, nil, err
		}
		for _, p := range list.(*corev1.PodList).Items {
			if err := w.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("pods"), name, p.Name); err != nil {
				return true, nil, err
			}
		}
		return false, nil, nil
	})
	w.PrependReactor("create", "selfsubjectaccessreviews", func(a clienttesting.Action) (bool, runtime.Object, error) {
		review := a.(clienttesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview)
		ask := review.Spec.ResourceAttributes
		right := Right{Group: ask.Group, Resource: ask.Resource, Subresource: ask.Subresource, Verb: ask.Verb}
		if ask.Name != "" {
			right.Namespace, right.Name = ask.Namespace, ask.Name
		}
		review.Status.Allowed = !w.missing[right.String()]
		return true, review, nil
	})
	c := newCluster(o.withDefaults(), w.Client)
	c.exec, c.config = w.exec, &rest.Config{Host: "here"}
	return w, c
}

// runs makes a pod ready on its node, with the nth address.
func runs(p *corev1.Pod, n int) {
	p.Spec.NodeName = p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields[0].Values[0]
	p.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, PodIPs: []corev1.PodIP{{IP: fmt.Sprintf("10.244.0.%d", n)}, {IP: fmt.Sprintf("fd00::%d", n)}},
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
	}
}

// exec stands for hold: all ports are free, all servers answer, everything is reached.
func (w *world) exec(ctx context.Context, pod string, argv []string, o remotecommand.StreamOptions) error {
	w.execs <- pod + ": " + strings.Join(argv, " ")
	switch {
	case argv[1] == agentVerb:
		_, _ = io.WriteString(o.Stdout, "hello\n")
		_, err := io.Copy(o.Stdout, o.Stdin)
		return err
	case argv[2] == "--free":
		_, err := io.WriteString(o.Stdout, "["+strings.Join(argv[3:], ",")+"]\n")
		return err
	case argv[2] == "--clock":
		for b := []byte{0}; ; {
			if _, err := o.Stdin.Read(b); err != nil {
				return nil
			}
			fmt.Fprintln(o.Stdout, time.Now().Add(time.Hour).UnixNano())
		}
	case argv[2] == "--answer":
		_, _ = io.WriteString(o.Stdout, answering)
		_, err := io.Copy(io.Discard, o.Stdin)
		return err
	}
	_, err := io.WriteString(o.Stdout, "{}\n")
	return err
}

// nodes3 are three good nodes.
func nodes3() []corev1.Node { return []corev1.Node{node("n1", "z"), node("n2", "z"), node("n3", "z")} }

// allPaths are options for every path.
func allPaths() Options {
	return Options{Cluster: plan.Cluster{Image: "cnibench.local/cnibench:1"}, Paths: plan.Paths, Host: true, Backends: []int{2, 3}, Waits: Waits{Ready: 5 * time.Second}}
}

// left returns the names of what is in the cluster besides its nodes.
func (w *world) left(t *testing.T) []string {
	t.Helper()
	var all []string
	list, err := w.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, ns := range list.Items {
		all = append(all, ns.Name)
	}
	pods, err := w.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pods.Items {
		all = append(all, p.Namespace+"/"+p.Name)
	}
	return all
}
