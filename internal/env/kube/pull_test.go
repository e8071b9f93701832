package kube

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// pulling is a cluster with image pull Secrets of two namespaces, the first of them at home.
func pulling(t *testing.T) (*world, *Cluster) {
	t.Helper()
	o := allPaths()
	o.PullSecrets = []string{"registry", "vault/mirror"}
	w, c := newWorld(t, o, nodes3()...)
	c.home = "team"
	for _, at := range [][2]string{{"team", "registry"}, {"vault", "mirror"}} {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: at[0], Name: at[1]}, Type: corev1.SecretTypeDockerConfigJson, Data: map[string][]byte{".dockerconfigjson": []byte("{}")}}
		if err := w.Tracker().Add(s); err != nil {
			t.Fatal(err)
		}
	}
	return w, c
}

// TestPullPreflight asks for each Secret in its own namespace and by its name, so that a Role that names it is enough.
func TestPullPreflight(t *testing.T) {
	w, c := pulling(t)
	if err := c.Preflight(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.missing["create secrets"], w.missing["get secrets/registry -n team"], w.missing["get secrets/mirror -n vault"] = true, true, true
	err := c.Preflight(t.Context())
	var missing *AccessError
	if !errors.As(err, &missing) || len(missing.Missing) != 3 {
		t.Fatalf("%v", err)
	}
	for _, want := range []string{"get secrets/registry -n team", "Secret mirror from namespace vault", "create secrets"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in\n%v", want, err)
		}
	}
	if advice := advice.Of(err); !strings.Contains(advice, "--manifest --pull-secrets team/registry,vault/mirror |") {
		t.Errorf("the advice does not grant them: %s", advice)
	}
	c.options.PullSecrets = nil
	if err := c.Preflight(t.Context()); err != nil {
		t.Errorf("without image pull Secrets: %v", err)
	}
}

// TestPullSecretsAreCopied to the namespaces of the run, and every request for Secrets is among the rights.
func TestPullSecretsAreCopied(t *testing.T) {
	w, c := pulling(t)
	if err := c.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	rights := map[string]bool{}
	for _, r := range c.Rights() {
		rights[r.String()] = true
	}
	got := map[string]bool{}
	for _, a := range w.Actions() {
		if a.GetResource().Resource != "secrets" {
			continue
		}
		r := Right{Resource: "secrets", Verb: a.GetVerb()}
		switch a := a.(type) {
		case clienttesting.CreateAction:
			twin := a.GetObject().(*corev1.Secret)
			got[strings.Replace(a.GetNamespace(), c.run, "RUN", 1)+"/"+twin.Name] = true
			if twin.Labels[LabelRun] != c.run || string(twin.Data[".dockerconfigjson"]) != "{}" || twin.Type != corev1.SecretTypeDockerConfigJson {
				t.Errorf("the copy is %+v", twin)
			}
		case clienttesting.GetAction:
			r.Namespace, r.Name = a.GetNamespace(), a.GetName()
		}
		if !rights[r.String()] {
			t.Errorf("%s is no right that is listed", r)
		}
	}
	want := []string{"cnibench-RUN-host/mirror", "cnibench-RUN-host/registry", "cnibench-RUN/mirror", "cnibench-RUN/registry"}
	if all := slices.Sorted(maps.Keys(got)); !slices.Equal(all, want) {
		t.Errorf("copies %v, want %v", all, want)
	}
}

// TestPullSecretIsNotThere names the namespace where it was looked for.
func TestPullSecretIsNotThere(t *testing.T) {
	w, c := pulling(t)
	c.home = "elsewhere"
	err := c.Up(t.Context())
	if err == nil || !strings.Contains(err.Error(), "image pull Secret registry in namespace elsewhere") {
		t.Errorf("%v", err)
	}
	if left := w.left(t); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	w, c = pulling(t)
	w.PrependReactor("create", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("a quota") })
	if err := c.Up(t.Context()); err == nil || !strings.Contains(err.Error(), "Secret registry from namespace team to namespace "+c.namespace(false)+": a quota") {
		t.Errorf("%v", err)
	}
}

// TestPullManifest grants the copies in the ClusterRole, and reading in a Role of each namespace.
func TestPullManifest(t *testing.T) {
	parts := strings.Split(string(Manifest(false, "registry", "vault/mirror", "vault/other")), "\n---\n")
	if len(parts) != 3 {
		t.Fatalf("%d documents", len(parts))
	}
	var all rbacv1.ClusterRole
	if err := yaml.UnmarshalStrict([]byte(parts[0]), &all); err != nil {
		t.Fatal(err)
	}
	if last := all.Rules[len(all.Rules)-1]; !slices.Equal(last.Resources, []string{"secrets"}) || !slices.Equal(last.Verbs, []string{"create"}) || last.ResourceNames != nil {
		t.Errorf("rule %+v", last)
	}
	for i, want := range []struct {
		namespace string
		names     []string
	}{{"", []string{"registry"}}, {"vault", []string{"mirror", "other"}}} {
		var role rbacv1.Role
		if err := yaml.UnmarshalStrict([]byte(parts[i+1]), &role); err != nil {
			t.Fatal(err)
		}
		rule := role.Rules[0]
		if role.Kind != "Role" || role.Namespace != want.namespace || len(role.Rules) != 1 || !slices.Equal(rule.ResourceNames, want.names) || !slices.Equal(rule.Verbs, []string{"get"}) {
			t.Errorf("%+v", role)
		}
	}
}
