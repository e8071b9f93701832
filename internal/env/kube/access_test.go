package kube

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/advice"

	"github.com/cnibench/cnibench/internal/control"
)

// TestPreflight lists all the rights that are missing, in one error, and only those that matter.
func TestPreflight(t *testing.T) {
	w, c := newWorld(t, Options{}, nodes3()...)
	if err := c.Preflight(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.missing["list events"] = true
	if err := c.Preflight(t.Context()); err != nil {
		t.Errorf("an optional right: %v", err)
	}
	w.missing["create pods/exec"], w.missing["delete namespaces"], w.missing["create secrets"] = true, true, true
	err := c.Preflight(t.Context())
	var missing *AccessError
	if !errors.As(err, &missing) || len(missing.Missing) != 2 {
		t.Fatalf("%v", err)
	}
	for _, want := range []string{"2 rights", "create pods/exec", "delete namespaces", "to start agents"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
	if advice.Of(err) != c.AdviceAccess() {
		t.Errorf("advice %q", advice.Of(err))
	}
}

// TestManifest grants exactly the rights, each once.
func TestManifest(t *testing.T) {
	var role rbacv1.ClusterRole
	if err := yaml.UnmarshalStrict(Manifest(false), &role); err != nil {
		t.Fatal(err)
	}
	var granted, wanted []string
	for _, rule := range role.Rules {
		for _, verb := range rule.Verbs {
			resource, sub, _ := strings.Cut(rule.Resources[0], "/")
			granted = append(granted, Right{Group: rule.APIGroups[0], Resource: resource, Subresource: sub, Verb: verb}.String())
		}
	}
	for _, r := range Rights {
		if r.Why == "" {
			t.Errorf("%s has no reason", r)
		}
		wanted = append(wanted, r.String())
	}
	if !slices.Equal(granted, wanted) || len(slices.Compact(slices.Sorted(slices.Values(wanted)))) != len(wanted) {
		t.Errorf("granted %v\nwanted %v", granted, wanted)
	}
}

// TestNothingWithoutARight runs a whole life against a fake that notes every request, and wants each to be among Rights.
func TestNothingWithoutARight(t *testing.T) {
	o := allPaths()
	o.Rolled = []int{2}
	w, c := newWorld(t, o, nodes3()...)
	if err := c.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Reach(t.Context(), plan.Variants("x", "host")); err != nil {
		t.Fatal(err)
	}
	if err := c.Roll(t.Context(), control.Backend{Route: plan.Route{Variant: plan.VariantOf("x"), Path: toRemote, Servers: 2, Rolled: true}}, false); err != nil {
		t.Fatal(err)
	}
	if err := c.Renew(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.become = reporting(t, func(begin time.Time) First { return First{Answered: begin.UnixNano() + 1e6} })
	if _, err := c.NewPods(t.Context(), arriving()); err != nil {
		t.Fatal(err)
	}
	c.currentPodFault(podClient)
	c.Policies(t.Context(), plan.VariantOf("x"), allPaths().Paths[0])
	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.clean(t.Context(), CleanOptions{}, time.Now()); err != nil {
		t.Fatal(err)
	}
	asked := map[string]bool{}
	for _, a := range w.Actions() {
		r := Right{Group: a.GetResource().Group, Resource: a.GetResource().Resource, Subresource: a.GetSubresource(), Verb: a.GetVerb()}
		asked[r.String()] = true
	}
	var allowed []string
	for _, r := range Rights {
		allowed = append(allowed, r.String())
		// What goes over a stream is no request that the fake sees.
		if !asked[r.String()] && r.Subresource == "" && r.Resource != "events" {
			t.Errorf("%s is never asked for", r)
		}
	}
	for what := range asked {
		if !slices.Contains(allowed, what) {
			t.Errorf("%s is no right that is listed", what)
		}
	}
}
