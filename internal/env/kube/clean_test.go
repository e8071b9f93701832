package kube

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"
)

// TestClean removes what it may and nothing else.
func TestClean(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	mine := func(run, expires string) map[string]map[string]string {
		return map[string]map[string]string{"labels": {LabelManagedBy: ManagedBy, LabelRun: run}, "annotations": {annotationExpires: expires}}
	}
	namespaces := map[string]map[string]map[string]string{
		"cnibench-old":      mine("old", "2030-01-01T11:59:59Z"),
		"cnibench-old-host": mine("old", "2030-01-01T11:59:59Z"),
		"cnibench-new":      mine("new", "2030-01-01T12:00:01Z"),
		"cnibench-odd":      mine("odd", "tomorrow"),
		"cnibench":          {"labels": {LabelManagedBy: ManagedBy}},
		"production":        mine("old", "2030-01-01T11:59:59Z"), // somebody copied our labels
		"default":           {},
	}
	for name, c := range map[string]struct {
		f    CleanOptions
		gone []string
	}{
		"expired": {CleanOptions{}, []string{"cnibench-old", "cnibench-old-host"}},
		"dry run": {CleanOptions{DryRun: true, All: true}, nil},
		"all":     {CleanOptions{All: true}, []string{"cnibench-new", "cnibench-odd", "cnibench-old", "cnibench-old-host"}},
		"one run": {CleanOptions{Run: "new"}, []string{"cnibench-new"}},
	} {
		w, cluster := newWorld(t, Options{})
		for name, meta := range namespaces {
			if err := w.Tracker().Add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: meta["labels"], Annotations: meta["annotations"]}}); err != nil {
				t.Fatal(err)
			}
		}
		found, err := cluster.clean(t.Context(), c.f, now)
		if err != nil || len(found) != 4 {
			t.Fatalf("%s: found %v, %v", name, found, err)
		}
		list, err := w.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		there := map[string]bool{}
		for _, ns := range list.Items {
			there[ns.Name] = true
		}
		if len(there) != len(namespaces)-len(c.gone) {
			t.Errorf("%s: left are %v", name, there)
		}
		for _, ns := range c.gone {
			if there[ns] {
				t.Errorf("%s: %s is still there", name, ns)
			}
		}
	}
}

// TestCleanPastWhatStays: a namespace that stays in Terminating is named with what holds it, and the others go.
func TestCleanPastWhatStays(t *testing.T) {
	w, c := newWorld(t, Options{})
	for _, run := range []string{"a", "b", "c"} {
		ns := namespaceObject(identity{run: run, expires: time.Unix(0, 0)}, false)
		if run != "c" {
			ns.Status.Phase = corev1.NamespaceTerminating
			ns.Status.Conditions = []corev1.NamespaceCondition{{Type: corev1.NamespaceFinalizersRemaining, Status: corev1.ConditionTrue, Message: "held by " + run}}
		}
		if err := w.Tracker().Add(ns); err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	w.PrependReactor("delete", "namespaces", func(a clienttesting.Action) (bool, runtime.Object, error) {
		return a.(clienttesting.DeleteAction).GetName() != "cnibench-c", nil, nil
	})
	awaited := map[string]bool{} // and so deleted
	w.PrependReactor("get", "namespaces", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if awaited[a.(clienttesting.GetAction).GetName()] = true; len(awaited) == 3 {
			stop() // the time is up
		}
		return false, nil, nil
	})
	late := time.AfterFunc(time.Minute, stop)
	found, err := c.clean(ctx, CleanOptions{}, time.Now())
	if !late.Stop() {
		t.Errorf("one waits for another: awaited were %v", awaited)
	}
	if err != nil || len(found) != 3 || len(awaited) != 3 {
		t.Fatalf("%+v, %v; awaited were %v", found, err, awaited)
	}
	for i, r := range found[:2] {
		want := fmt.Sprintf("namespace %s is still there: ", r.Namespace)
		if r.Err == nil || !strings.Contains(r.Err.Error(), want) || !strings.Contains(r.Err.Error(), "held by "+[]string{"a", "b"}[i]) {
			t.Errorf("%s: %v", r.Namespace, r.Err)
		}
	}
	if found[2].Err != nil {
		t.Errorf("%s: %v", found[2].Namespace, found[2].Err)
	}
}

func TestCleanWithoutTheRight(t *testing.T) {
	w, c := newWorld(t, Options{})
	if err := w.Tracker().Add(namespaceObject(identity{run: "old", expires: time.Unix(0, 0)}, false)); err != nil {
		t.Fatal(err)
	}
	w.refuse("delete", "namespaces", apierrors.NewForbidden(schema.GroupResource{Resource: "namespaces"}, "cnibench-old", errors.New("cannot delete")))
	found, err := c.clean(t.Context(), CleanOptions{}, time.Now())
	if err != nil || len(found) != 1 || found[0].Err == nil {
		t.Errorf("%+v, %v", found, err)
	}
	w.refuse("list", "namespaces", apierrors.NewForbidden(schema.GroupResource{Resource: "namespaces"}, "", errors.New("cannot list")))
	if _, err := c.clean(t.Context(), CleanOptions{}, time.Now()); err == nil {
		t.Error("nobody may list, and nothing is said")
	}
}
