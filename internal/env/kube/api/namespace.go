package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// Namespace returns a namespace object with a level of PodSecurity, such as "restricted". It adds labels to meta.Labels, which
// must not be nil.
func Namespace(meta metav1.ObjectMeta, level string) *corev1.Namespace {
	for _, mode := range []string{"enforce", "warn", "audit"} {
		meta.Labels["pod-security.kubernetes.io/"+mode] = level
	}
	return &corev1.Namespace{ObjectMeta: meta}
}

// RemoveNamespace deletes a namespace and waits until it is gone or ctx ends. While the API server does not answer, it tries
// again every interval. A missing namespace is not an error. If ctx ends, the error says what keeps the namespace.
func RemoveNamespace(ctx context.Context, client *Client, name string, interval time.Duration) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, interval, true, func(ctx context.Context) (bool, error) {
		last = client.Namespaces().Delete(ctx, name, metav1.DeleteOptions{})
		return last == nil || !Passing(last), nil
	})
	if last != nil {
		err = last
	}
	switch {
	case err == nil, apierrors.IsConflict(err): // it is being deleted
		return awaitRemoval(ctx, client, name, interval)
	case apierrors.IsNotFound(err):
		return nil
	}
	return fmt.Errorf("delete namespace %s: %w", name, errors.Join(context.Cause(ctx), err))
}

const unsaid = "the API server does not say what keeps it"

// awaitRemoval waits until a namespace is gone. If ctx ends first, the error says what keeps the namespace.
func awaitRemoval(ctx context.Context, client *Client, name string, interval time.Duration) error {
	why := unsaid
	err := wait.PollUntilContextCancel(ctx, interval, true, func(ctx context.Context) (bool, error) {
		ns, err := client.Namespaces().Get(ctx, name, metav1.GetOptions{})
		switch {
		case err == nil:
			why = stuckReason(ns)
			return false, nil
		case apierrors.IsNotFound(err):
			return true, nil
		case Passing(err):
			return false, nil
		}
		return false, err
	})
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("namespace %s is still there: %s", name, why)
	}
	return fmt.Errorf("wait until namespace %s is gone: %w", name, err)
}

// stuckReason returns what keeps a namespace that is being deleted: the messages of its conditions, and its finalizers. It
// returns unsaid if there are none.
func stuckReason(ns *corev1.Namespace) string {
	var why []string
	for _, c := range ns.Status.Conditions {
		if c.Status == corev1.ConditionTrue && c.Message != "" && c.Type != corev1.NamespaceConditionType("") {
			why = append(why, c.Message)
		}
	}
	for _, f := range ns.Spec.Finalizers {
		if f != corev1.FinalizerKubernetes {
			why = append(why, "finalizer "+string(f))
		}
	}
	for _, f := range ns.Finalizers {
		why = append(why, "finalizer "+f)
	}
	return cmp.Or(strings.Join(why, "; "), unsaid)
}
