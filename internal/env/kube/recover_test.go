package kube

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/cnibench/cnibench/internal/env/kube/api"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// refusedDial is what a client sees of an API server that is away.
var refusedDial = &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}

func TestRecover(t *testing.T) {
	change := func(do func(*corev1.Pod)) func(*testing.T, *world, string) {
		return func(t *testing.T, w *world, ns string) {
			p, err := w.CoreV1().Pods(ns).Get(t.Context(), podServer, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			do(p)
			if _, err := w.CoreV1().Pods(ns).UpdateStatus(t.Context(), p, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, tt := range []struct {
		name string
		do   func(*testing.T, *world, string)
		want string // "" for nothing wrong
		wait bool   // it is waited for
	}{
		{"nothing", func(*testing.T, *world, string) {}, "", false},
		{"a pod deleted", func(t *testing.T, w *world, ns string) {
			if err := w.CoreV1().Pods(ns).Delete(t.Context(), podServer, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}, "pod server is gone", false},
		{"a pod evicted", change(func(p *corev1.Pod) {
			p.Status.Phase, p.Status.Reason, p.Status.Message = corev1.PodFailed, "Evicted", "The node was low on resource: memory."
		}), "pod server on node n2: it ended: Evicted: The node was low on resource", false},
		{"a pod not ready", change(func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse }), "after 100ms still pod server on node n2", true},
		{"no API server", func(_ *testing.T, w *world, _ string) {
			w.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, refusedDial })
		}, "the API server at here does not say how the pods are: dial tcp: connection refused", true},
		{"no API server for a moment", func(_ *testing.T, w *world, _ string) {
			var n atomic.Int32
			w.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) { return n.Add(1) < 4, nil, refusedDial })
		}, "", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var told []string
			o := Options{Cluster: plan.Cluster{Image: "i"}, Paths: []plan.Path{{From: plan.Pod, To: plan.Pod, Locality: plan.CrossNode}}, Say: func(format string, _ ...any) { told = append(told, format) }}
			w, c := newWorld(t, o, nodes3()...)
			if err := c.Up(t.Context()); err != nil {
				t.Fatal(err)
			}
			told = nil
			tt.do(t, w, c.namespace(false))
			wrong, err := c.awaitRecovery(t.Context(), time.Millisecond, 100*time.Millisecond)
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if len(told) > 1 || (len(told) == 1) != tt.wait || (wrong != "") != tt.wait {
				t.Errorf("told %q, found %q", told, wrong)
			}
		})
	}
}

// TestCloseBearsAnAbsentAPIServer deletes and waits although the API server does not answer at first.
func TestCloseBearsAnAbsentAPIServer(t *testing.T) {
	w, c := newWorld(t, Options{Cluster: plan.Cluster{Image: "i"}, Paths: []plan.Path{{From: plan.Pod, To: plan.Pod, Locality: plan.CrossNode}}}, nodes3()...)
	if err := c.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"delete", "get"} {
		var n atomic.Int32
		w.PrependReactor(verb, "namespaces", func(clienttesting.Action) (bool, runtime.Object, error) {
			switch n.Add(1) {
			case 1:
				return true, nil, refusedDial
			case 2:
				return true, nil, apierrors.NewServiceUnavailable("etcd is away")
			}
			return false, nil, nil
		})
	}
	if err := c.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if left := w.left(t); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestCloseWithoutAPIServer says what stays when the API server is away until the end.
func TestCloseWithoutAPIServer(t *testing.T) {
	w, c := newWorld(t, Options{Cluster: plan.Cluster{Image: "i"}, Paths: []plan.Path{{From: plan.Pod, To: plan.Pod, Locality: plan.CrossNode}}}, nodes3()...)
	if err := c.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.PrependReactor("delete", "namespaces", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, refusedDial })
	ctx, stop := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer stop()
	err := c.Close(ctx)
	if err == nil || !strings.Contains(err.Error(), "delete namespace "+c.namespace(false)) || !strings.Contains(err.Error(), "connection refused") || !strings.Contains(advice.Of(err), "cnibench kube clean") {
		t.Errorf("%v | hint: %s", err, advice.Of(err))
	}
}

func TestPassing(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{refusedDial, true},
		{errors.New("unexpected EOF"), true},
		{apierrors.NewServiceUnavailable("x"), true},
		{apierrors.NewTooManyRequests("x", 1), true},
		{apierrors.NewUnauthorized("x"), false},
		{apierrors.NewForbidden(corev1.Resource("namespaces"), "x", nil), false},
		{apierrors.NewBadRequest("x"), false},
	} {
		if got := api.Passing(tt.err); got != tt.want {
			t.Errorf("%v: %v", tt.err, got)
		}
	}
}
