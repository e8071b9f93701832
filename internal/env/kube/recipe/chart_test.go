package recipe

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery/fake"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/cnibench/cnibench/internal/env/kube/api"
)

// archived packs a chart of files.
func archived(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for name, text := range files {
		if err := w.WriteHeader(&tar.Header{Name: "c/" + name, Mode: 0o644, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, text); err != nil {
			t.Fatal(err)
		}
	}
	if w.Close() != nil || z.Close() != nil {
		t.Fatal("the archive is not whole")
	}
	return b.Bytes()
}

var hooked = map[string]string{
	"Chart.yaml":               "{apiVersion: v2, name: c, version: 1.0.0}",
	"templates/b-daemon.yaml":  "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: d}\nspec: {v: '{{ .Capabilities.KubeVersion.Version }}', none: {{ .Capabilities.APIVersions.Has \"x/v1\" }}}\n",
	"templates/a-config.yaml":  "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m, namespace: elsewhere}\n",
	"templates/after.yaml":     "apiVersion: v1\nkind: Secret\nmetadata: {name: after, annotations: {helm.sh/hook: post-install}}\n",
	"templates/before.yaml":    "apiVersion: v1\nkind: Secret\nmetadata: {name: before, annotations: {helm.sh/hook: 'pre-install, pre-upgrade'}}\n",
	"templates/deletion.yaml":  "apiVersion: v1\nkind: Secret\nmetadata: {name: deletion, annotations: {helm.sh/hook: pre-delete}}\n",
	"crds/definition.yaml":     "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: x}\nstatus: {conditions: [{type: Established, status: 'True'}]}\n",
	"templates/tests/try.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: try, annotations: {helm.sh/hook: test}}\n",
}

// serving is an Installer on an API server that takes objects; applied has those that it took, in order.
func serving(t *testing.T) (i *Installer, applied *[]string) {
	t.Helper()
	i, client := standing()
	named := func(name, kind string, namespaced bool) metav1.APIResource {
		return metav1.APIResource{Name: name, Kind: kind, Namespaced: namespaced}
	}
	client.Resources = []*metav1.APIResourceList{
		{GroupVersion: "v1", APIResources: []metav1.APIResource{named("namespaces", "Namespace", false), named("configmaps", "ConfigMap", true), named("secrets", "Secret", true)}},
		{GroupVersion: "apps/v1", APIResources: []metav1.APIResource{named("daemonsets", "DaemonSet", true)}},
		{GroupVersion: "apiextensions.k8s.io/v1", APIResources: []metav1.APIResource{named("customresourcedefinitions", "CustomResourceDefinition", false)}},
	}
	client.Discovery().(*fake.FakeDiscovery).FakedServerVersion = &version.Info{GitVersion: "v1.33.4-gke.1"}
	i.mapper = api.NewMapper(client.Client)
	applied = &[]string{}
	kept := map[string]*unstructured.Unstructured{}
	dyn := i.dynamic.(*dynamicfake.FakeDynamicClient)
	dyn.PrependReactor("patch", "*", func(a k8stesting.Action) (bool, runtime.Object, error) {
		p := a.(k8stesting.PatchAction)
		o := &unstructured.Unstructured{}
		if err := o.UnmarshalJSON(p.GetPatch()); err != nil {
			t.Error(err)
		}
		*applied = append(*applied, strings.TrimPrefix(p.GetNamespace()+"/"+p.GetName(), "/"))
		kept[p.GetResource().Resource+p.GetNamespace()+p.GetName()] = o
		return true, o, nil
	})
	dyn.PrependReactor("get", "*", func(a k8stesting.Action) (bool, runtime.Object, error) {
		g := a.(k8stesting.GetAction)
		o, ok := kept[g.GetResource().Resource+g.GetNamespace()+g.GetName()]
		return ok, o, nil
	})
	return i, applied
}

// repository serves a chart as a repository does.
func repository(t *testing.T, archive []byte, digest string) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/charts/index.yaml":
			fmt.Fprintf(w, "entries: {c: [{version: 2.0.0, urls: [gone.tgz]}, {version: 1.0.0, digest: %q, urls: [c-1.0.0.tgz]}]}\n", digest)
		case "/charts/c-1.0.0.tgz":
			_, _ = w.Write(archive)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// TestInstallChart: a chart is fetched and applied in order, with the hooks of an installation alone, into the namespace of
// its release; all of it is recorded.
func TestInstallChart(t *testing.T) {
	archive := archived(t, hooked)
	sum := sha256.Sum256(archive)
	s := repository(t, archive, hex.EncodeToString(sum[:]))
	i, applied := serving(t)
	inv := &inventory{Profile: "p"}
	a := Action{Kind: installChart, Chart: Chart{Chart: "c", Repo: s.URL + "/charts", Version: "1.0.0", Release: "r", Namespace: "n"}}
	if err := i.performAction(t.Context(), inv, a); err != nil {
		t.Fatal(err)
	}
	if want := []string{"n", "n/before", "x", "elsewhere/m", "n/d", "n/after"}; !slices.Equal(*applied, want) {
		t.Errorf("applied %q, want %q", *applied, want)
	}
	if len(inv.Items) != len(*applied) {
		t.Errorf("recorded %+v", inv.Items)
	}

	i, applied = serving(t)
	var out bytes.Buffer
	i.DryRun, i.Out = DryRunClient, &out
	if err := i.performAction(t.Context(), inv, a); err != nil || len(*applied) > 0 {
		t.Errorf("%v, applied %q", err, *applied)
	}
	if text := out.String(); !strings.Contains(text, "v: 'v1.33.4-gke.1', none: false") || strings.Contains(text, "name: deletion") {
		t.Errorf("a dry run shows\n%s", text)
	}
}

// TestFetchChart: an error says what of the repository is at fault.
func TestFetchChart(t *testing.T) {
	s := repository(t, []byte("other"), "sha256:00")
	for want, c := range map[string]Chart{
		"index.yaml says sha256:00":            {Chart: "c", Repo: s.URL + "/charts/", Version: "1.0.0"},
		"index.yaml does not list version 3":   {Chart: "c", Repo: s.URL + "/charts", Version: "3"},
		"/charts/gone.tgz: 404 Not Found":      {Chart: "c", Repo: s.URL + "/charts", Version: "2.0.0"},
		"/nothing/index.yaml: 404 Not Found":   {Chart: "c", Repo: s.URL + "/nothing", Version: "1"},
		"index.yaml does not list version 1.0": {Chart: "d", Repo: s.URL + "/charts", Version: "1.0"},
		"c-1.0.0.tgz: its digest":              {Chart: "c", Repo: s.URL + "/charts", Version: "1.0"},
	} {
		if _, err := fetchChart(context.Background(), c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
