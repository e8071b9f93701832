package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/env/kube/api"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// TestUp raises every path, asks for all ends, and wants nothing to be left after Close.
func TestUp(t *testing.T) {
	w, c := newWorld(t, allPaths(), nodes3()...)
	if err := c.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	listening := map[string]string{}
	for _, profile := range []string{"cilium-native", "cilium-native~twin", "host", "host~twin"} {
		for _, p := range plan.Paths {
			client, server, err := endsOf(c, plan.VariantOf(profile), p)
			var not *control.NotServedError
			if errors.As(err, &not) && p.To == plan.External {
				continue
			}
			if err != nil {
				t.Errorf("%s %s: %v", profile, p, err)
				continue
			}
			if client.Start == nil || server.Start == nil || server.Address == "" || server.Port == 0 || server.ListenPort == 0 || client.Name == "" || client.Lifeline == 0 {
				t.Errorf("%s %s: %+v, %+v", profile, p, client, server)
			}
			// Agents that are kept side by side in a pod must not meet on a port.
			place := net.JoinHostPort(server.ListenAddress, strconv.Itoa(server.ListenPort))
			if other := listening[place]; other != "" && other != server.Name {
				t.Errorf("%s and %s both listen on %s", other, server.Name, place)
			}
			listening[place] = server.Name
			if p.To == plan.Service && !strings.HasPrefix(server.Address, "10.96.") {
				t.Errorf("%s dials %s", p, server.Address)
			}
			if p.To == plan.LoadBalancer && (!strings.HasPrefix(server.Address, "203.0.113.") || server.Port != server.ListenPort) {
				t.Errorf("%s dials %s:%d", p, server.Address, server.Port)
			}
			if p.To == plan.NodePort && (server.Address != "10.0.0.1" || server.Port < 30000) {
				t.Errorf("%s dials %s:%d", p, server.Address, server.Port)
			}
		}
	}
	client, servers, err := backendsOf(c, plan.Route{Variant: plan.VariantOf("cilium-native"), Path: plan.Path{From: plan.Pod, To: plan.Service, Locality: plan.Remote}, Servers: 3})
	if err != nil || len(servers) != 3 || client.Name != "cilium-native/client" {
		t.Errorf("three backends: %v, %v", servers, err)
	}
	if silent, err := c.Reach(t.Context(), plan.Variants("cilium-native", "host")); err != nil || len(silent) > 0 {
		t.Errorf("reach: %v, %v", silent, err)
	}
	if f := c.Facts(); f[FactAgents] != "exec" || f[factClient] != "n1" || f[FactServer] != "n2" || f[factThird] != "n3" {
		t.Errorf("facts %v", f)
	}
	for range 2 {
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if left := w.left(t); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if _, err := client.Start(t.Context()); !errors.Is(err, errGone) {
		t.Errorf("an agent starts after Close: %v", err)
	}
}

func TestFamilies(t *testing.T) {
	for family, want := range map[int]string{0: "10.244.", 4: "10.244.", 6: "fd00::"} {
		o := Options{Family: family, Paths: []plan.Path{{From: plan.Pod, To: plan.Pod, Locality: plan.CrossNode}}}
		_, c := newWorld(t, o, nodes3()...)
		if err := c.Up(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, server, err := endsOf(c, plan.VariantOf("x"), o.Paths[0]); err != nil || !strings.HasPrefix(server.Address, want) {
			t.Errorf("family %d: %s, %v", family, server.Address, err)
		}
	}
	w, c := newWorld(t, Options{Family: 6, Paths: []plan.Path{{From: plan.Pod, To: plan.Pod, Locality: plan.CrossNode}}}, nodes3()...)
	w.become = func(p *corev1.Pod) { p.Status.PodIPs = p.Status.PodIPs[:1] }
	err := c.Up(t.Context())
	var bad *ConfigError
	if !errors.As(err, &bad) || !strings.Contains(err.Error(), "no IPv6 address, but 10.244.") {
		t.Errorf("a cluster without IPv6: %v", err)
	}
	if left := w.left(t); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// waiting returns a status of a container that waits.
func waiting(reason, message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Phase, p.Status.Conditions = corev1.PodPending, nil
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Image: p.Spec.Containers[0].Image, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}}
	}
}

func failed(reason, message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Phase, p.Status.Reason, p.Status.Message = corev1.PodFailed, reason, message
	}
}

// refuse makes the API server answer a verb on a resource with an error.
func (w *world) refuse(verb, resource string, err error) {
	w.PrependReactor(verb, resource, func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, err })
}

var podResource = schema.GroupResource{Resource: "pods"}

// TestUpInTheWordsOfTheCluster has everything that can stand in the way do so; nothing may be left of the attempt.
func TestUpInTheWordsOfTheCluster(t *testing.T) {
	for name, c := range map[string]struct {
		become func(*corev1.Pod)
		break_ func(*world)
		want   []string
		advice string
	}{
		"image cannot be pulled": {become: waiting("ImagePullBackOff", "no such host"), want: []string{"pod host-client on node n1", "image cnibench.local/cnibench:1 cannot be pulled", "no such host"}, advice: api.AdviceImage},
		"image is not there":     {become: waiting("ErrImageNeverPull", "is not present"), want: []string{"ErrImageNeverPull"}, advice: api.AdviceImage},
		"evicted":                {become: failed("Evicted", "The node was low on resource: memory."), want: []string{"Evicted: The node was low on resource"}},
		"refused by its node":    {become: failed("SysctlForbidden", "forbidden sysctl"), want: []string{"SysctlForbidden"}},
		"being deleted":          {become: func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Now()} }, want: []string{"it is being deleted"}},
		"wrong node":             {become: func(p *corev1.Pod) { p.Spec.NodeName = "n9" }, want: []string{`runs on node "n9" and belongs on "n1"`}},
		"late": {become: waiting("ContainerCreating", ""), break_: func(w *world) {
			w.PrependReactor("list", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, &corev1.EventList{Items: []corev1.Event{{Type: "Warning", Reason: "FailedCreatePodSandBox", Message: "plugin type=flannel failed", InvolvedObject: corev1.ObjectReference{Name: "backend-1-1"}}}}, nil
			})
		}, want: []string{"not ready after", "FailedCreatePodSandBox: plugin type=flannel failed"}},
		"quota": {break_: func(w *world) {
			w.refuse("create", "pods", apierrors.NewForbidden(podResource, "client", errors.New("exceeded quota: small, requested: pods=1, used: pods=0, limited: pods=0")))
		}, want: []string{"create pod ", "exceeded quota: small"}, advice: adviceQuota},
		"webhook": {break_: func(w *world) {
			w.refuse("create", "pods", apierrors.NewForbidden(podResource, "client", errors.New(`admission webhook "policy.example" denied the request: no labels`)))
		}, want: []string{`"policy.example" denied the request: no labels`}, advice: adviceAdmit},
		"PodSecurity": {break_: func(w *world) {
			w.PrependReactor("create", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
				name := a.(clienttesting.CreateAction).GetObject().(*corev1.Pod).Name
				return isHostPod(name), nil, apierrors.NewForbidden(podResource, name, errors.New(`violates PodSecurity "restricted:latest": host namespaces`))
			})
		}, want: []string{"violates PodSecurity"}, advice: adviceHost},
		"no privileged namespace": {break_: func(w *world) {
			w.PrependReactor("create", "namespaces", func(a clienttesting.Action) (bool, runtime.Object, error) {
				name := a.(clienttesting.CreateAction).GetObject().(*corev1.Namespace).Name
				return strings.HasSuffix(name, "-host"), nil, apierrors.NewForbidden(schema.GroupResource{Resource: "namespaces"}, name, errors.New(`ValidatingAdmissionPolicy 'p' denied request: no`))
			})
		}, want: []string{"create namespace cnibench-", "-host", "denied request"}, advice: adviceHost},
		"a verb is missing": {break_: func(w *world) {
			w.refuse("create", "services", apierrors.NewForbidden(schema.GroupResource{Resource: "services"}, "local", errors.New(`User "u" cannot create resource "services"`)))
		}, want: []string{"create Service", `cannot create resource "services"`}, advice: "cnibench kube access"},
		"nodes may not be listed": {break_: func(w *world) {
			w.refuse("list", "nodes", apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "", errors.New(`User "u" cannot list resource "nodes"`)))
		}, want: []string{"list the nodes"}, advice: "cnibench kube access"},
		"namespace goes": {break_: func(w *world) {
			err := apierrors.NewForbidden(podResource, "client", errors.New("unable to create new content because it is being terminated"))
			err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
			w.refuse("create", "pods", err)
		}, want: []string{"being terminated"}, advice: "do not delete it"},
		"port list is no list": {break_: func(w *world) {}, want: []string{"look for free ports on node n1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := allPaths()
			o.Ready = 500 * time.Millisecond
			w, cluster := newWorld(t, o, nodes3()...)
			w.become = c.become
			if c.break_ != nil {
				c.break_(w)
			}
			if name == "port list is no list" {
				cluster.exec = func(_ context.Context, _ string, _ []string, o remotecommand.StreamOptions) error {
					_, err := fmt.Fprintln(o.Stdout, "usage: hold")
					return err
				}
			}
			err := cluster.Up(t.Context())
			if err == nil {
				t.Fatal("it came up")
			}
			t.Log(err, "| hint:", advice.Of(err))
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in the error", want)
				}
			}
			if !strings.Contains(advice.Of(err), c.advice) {
				t.Errorf("the advice is %q, want %q", advice.Of(err), c.advice)
			}
			if left := w.left(t); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// TestServiceAccountComesLater has the API server refuse pods until the namespace has its service account.
func TestServiceAccountComesLater(t *testing.T) {
	w, c := newWorld(t, Options{Paths: []plan.Path{{From: plan.Pod, To: plan.Pod, Locality: plan.SameNode}}}, nodes3()...)
	refusals := 2
	w.PrependReactor("create", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		if refusals--; refusals < 0 {
			return false, nil, nil
		}
		return true, nil, apierrors.NewForbidden(podResource, "client", errors.New(`error looking up service account x/default: serviceaccount "default" not found`))
	})
	if err := c.Up(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestRenew makes all pods anew, which have other addresses, although requests fail and answers are lost; their Services stay.
func TestRenew(t *testing.T) {
	w, c := newWorld(t, allPaths(), nodes3()...)
	if err := c.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !c.Renews(t.Context()) {
		t.Error("it does not say that it can")
	}
	direct, service := plan.Path{From: plan.Pod, To: plan.Pod, Locality: plan.CrossNode}, plan.Path{From: plan.Pod, To: plan.Service, Locality: plan.Remote}
	_, before, err := endsOf(c, plan.VariantOf("canal"), direct)
	_, behind, other := endsOf(c, plan.VariantOf("canal"), service)
	if err = errors.Join(err, other); err != nil {
		t.Fatal(err)
	}
	// The API server answers the first requests with errors that pass, and makes one pod without an answer.
	faults := 3
	w.PrependReactor("delete", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		if faults--; faults < 0 {
			return false, nil, nil
		}
		return true, nil, io.ErrUnexpectedEOF
	})
	lost := true
	w.PrependReactor("create", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if a.GetSubresource() != "" || !lost {
			return false, nil, nil
		}
		lost = false
		p := a.(clienttesting.CreateAction).GetObject().(*corev1.Pod).DeepCopy()
		runs(p, 99)
		return true, nil, errors.Join(io.ErrUnexpectedEOF, w.Tracker().Add(p))
	})
	made := len(w.left(t))
	if err := c.Renew(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, after, err := endsOf(c, plan.VariantOf("canal"), direct)
	_, still, other := endsOf(c, plan.VariantOf("canal"), service)
	if err = errors.Join(err, other); err != nil {
		t.Fatal(err)
	}
	if after.Address == before.Address || after.ListenPort != before.ListenPort || still.Address != behind.Address || len(w.left(t)) != made {
		t.Errorf("pod at %s:%d, before %s:%d; Service at %s, before %s", after.Address, after.ListenPort, before.Address, before.ListenPort, still.Address, behind.Address)
	}
	w.missing["delete pods"] = true
	if c.Renews(t.Context()) {
		t.Error("it says that it can without the right")
	}
	if err := c.Close(t.Context()); err != nil || len(w.left(t)) > 0 {
		t.Errorf("left %v, %v", w.left(t), err)
	}
}

func TestUpIsInterrupted(t *testing.T) {
	w, c := newWorld(t, allPaths(), nodes3()...)
	interrupted := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(t.Context())
	w.become = func(p *corev1.Pod) {
		waiting("ContainerCreating", "")(p)
		if p.Name == podServer {
			cancel(interrupted)
		}
	}
	if err := c.Up(ctx); !errors.Is(err, interrupted) {
		t.Errorf("%v does not say that it was interrupted", err)
	}
	if left := w.left(t); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestNamespaceThatDoesNotGo wants the finalizer and the condition named, when the time is up.
func TestNamespaceThatDoesNotGo(t *testing.T) {
	w, c := newWorld(t, Options{Paths: []plan.Path{{From: plan.Pod, To: plan.Pod, Locality: plan.SameNode}}}, nodes3()...)
	if err := c.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.PrependReactor("delete", "namespaces", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, nil })
	w.PrependReactor("get", "namespaces", func(a clienttesting.Action) (bool, runtime.Object, error) {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: a.(clienttesting.GetAction).GetName(), Finalizers: []string{"example.com/keep"}}}
		ns.Status.Conditions = []corev1.NamespaceCondition{{Type: corev1.NamespaceContentRemaining, Status: corev1.ConditionTrue, Message: "Some resources are remaining: pods. has 1 resource instances"}}
		return true, ns, nil
	})
	ctx, stop := context.WithTimeout(t.Context(), 3*beat)
	defer stop()
	err := c.Close(ctx)
	t.Log(err)
	for _, want := range []string{"is still there", "pods. has 1", "example.com/keep"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
	if !strings.Contains(advice.Of(err), "kube clean") {
		t.Errorf("the advice is %q", advice.Of(err))
	}
}

// TestUnreached names what was dialled, what came of it, and the policies that may be why.
func TestUnreached(t *testing.T) {
	paths := []plan.Path{{From: plan.Pod, To: plan.Pod, Locality: plan.CrossNode}, {From: plan.Host, To: plan.Host, Locality: plan.CrossNode}}
	w, c := newWorld(t, Options{Paths: paths}, nodes3()...)
	if err := c.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, selector := range map[string]map[string]string{"deny-all": nil, "others": {"app": "db"}, "servers": {labelPod: podServer}} {
		policy := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: c.namespace(false)}, Spec: networkingv1.NetworkPolicySpec{PodSelector: metav1.LabelSelector{MatchLabels: selector}}}
		if _, err := w.NetworkingV1().NetworkPolicies(c.namespace(false)).Create(t.Context(), policy, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	c.exec = func(ctx context.Context, pod string, argv []string, o remotecommand.StreamOptions) error {
		if argv[2] == "--reach" {
			_, err := fmt.Fprintf(o.Stdout, "{%q:\"i/o timeout\"}\n", argv[len(argv)-1])
			return err
		}
		return w.exec(ctx, pod, argv, o)
	}
	silent, err := c.Reach(t.Context(), plan.Variants("canal"))
	if err != nil || len(silent) != 2 {
		t.Fatalf("%v, %v", silent, err)
	}
	pod := silent[plan.Single(plan.VariantOf("canal"), paths[0])].Error()
	if !strings.Contains(pod, "i/o timeout") || !strings.Contains(pod, "deny-all, ") || !strings.Contains(pod, "/servers") || strings.Contains(pod, "others") {
		t.Errorf("between pods: %s", pod)
	}
	if host := silent[plan.Single(plan.VariantOf("canal"), paths[1])].Error(); strings.Contains(host, "NetworkPolicies") {
		t.Errorf("between hosts: %s", host)
	}
	if got := c.Policies(t.Context(), plan.VariantOf("canal"), paths[0]); len(got) != 2 {
		t.Errorf("policies %v", got)
	}
}

// TestPodsHaveNoCompany: what a webhook puts beside the agent, before it or with it, is named, and nothing is measured.
func TestPodsHaveNoCompany(t *testing.T) {
	for name, list := range map[string]func(*corev1.Pod) *[]corev1.Container{
		"proxy":      func(p *corev1.Pod) *[]corev1.Container { return &p.Spec.Containers },
		"proxy-init": func(p *corev1.Pod) *[]corev1.Container { return &p.Spec.InitContainers },
	} {
		w, c := newWorld(t, allPaths(), nodes3()...)
		w.become = func(p *corev1.Pod) { *list(p) = append(*list(p), corev1.Container{Name: name}) }
		err := c.Up(t.Context())
		if err == nil || !strings.Contains(err.Error(), "adds containers to it: "+name+";") || !strings.Contains(advice.Of(err), LabelManagedBy) {
			t.Errorf("%s: %v, %q", name, err, advice.Of(err))
		}
	}
}
