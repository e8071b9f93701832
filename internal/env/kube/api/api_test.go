package api

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// server answers each request of a table, "VERB /path?query", and 404 to others; asked has them in order.
func server(t *testing.T, answers map[string]string) (c *Client, asked *[]string) {
	t.Helper()
	asked = &[]string{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked = append(*asked, r.Method+" "+r.URL.RequestURI())
		w.Header().Set("Content-Type", "application/json")
		text, ok := answers[r.Method+" "+r.URL.RequestURI()]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			text = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`
		}
		fmt.Fprint(w, text)
	}))
	t.Cleanup(s.Close)
	c, err := New(&rest.Config{Host: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	return c, asked
}

// TestClient: requests go where Kubernetes has its resources, with their options, and answers come back typed.
func TestClient(t *testing.T) {
	const pod = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p","namespace":"n"}}`
	c, asked := server(t, map[string]string{
		"GET /api/v1/namespaces/n/pods/p":                                  pod,
		"GET /api/v1/namespaces/n/pods/p/log":                              "line",
		"POST /api/v1/namespaces/n/pods?fieldManager=m":                    pod,
		"GET /apis/apps/v1/daemonsets?labelSelector=a%3Db":                 `{"kind":"DaemonSetList","apiVersion":"apps/v1","items":[{"metadata":{"name":"d"}}]}`,
		"PATCH /api/v1/nodes/x":                                            `{"kind":"Node","apiVersion":"v1","metadata":{"name":"x"}}`,
		"DELETE /apis/networking.k8s.io/v1/namespaces/n/networkpolicies/a": `{"kind":"Status","apiVersion":"v1","status":"Success"}`,
		"GET /version": `{"gitVersion":"v1.36.3"}`,
	})
	ctx := t.Context()
	p, err := c.Pods("n").Get(ctx, "p", metav1.GetOptions{})
	text, logErr := c.Logs(ctx, "n", "p")
	created, createErr := c.Pods("n").Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}}, metav1.CreateOptions{FieldManager: "m"})
	list, listErr := c.DaemonSets("").List(ctx, metav1.ListOptions{LabelSelector: "a=b"})
	n, patchErr := c.Nodes().Patch(ctx, "x", types.MergePatchType, []byte("{}"), metav1.PatchOptions{})
	version, versionErr := c.Version(ctx)
	if err := errors.Join(err, logErr, createErr, listErr, patchErr, versionErr, c.NetworkPolicies("n").Delete(ctx, "a", metav1.DeleteOptions{})); err != nil {
		t.Fatalf("%v after %q", err, *asked)
	}
	if p.Namespace != "n" || string(text) != "line" || created.Name != "p" || len(list.Items) != 1 || list.Items[0].Name != "d" || n.Name != "x" || version != "v1.36.3" {
		t.Errorf("%v %s %v %v %v %s", p, text, created, list, n, version)
	}
	if _, err := c.Secrets("n").Get(ctx, "absent", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("%v, want NotFound", err)
	}
}

// TestVersion: a server of something else is recognized.
func TestVersion(t *testing.T) {
	c, _ := server(t, map[string]string{"GET /version": "<html>"})
	if _, err := c.Version(t.Context()); !errors.Is(err, ErrNotKubernetes) {
		t.Errorf("%v", err)
	}
}

// TestMapper: a group version is asked for once until Reset; subresources are not taken for resources.
func TestMapper(t *testing.T) {
	c, asked := server(t, map[string]string{
		"GET /api/v1":       `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"pods/log","kind":"Pod","namespaced":true},{"name":"pods","kind":"Pod","namespaced":true}]}`,
		"GET /apis/x.io/v2": `{"kind":"APIResourceList","groupVersion":"x.io/v2","resources":[{"name":"pools","kind":"Pool","namespaced":false}]}`,
	})
	m := NewMapper(c)
	for range 2 {
		at, namespaced, err := m.Resource(t.Context(), schema.GroupVersionKind{Version: "v1", Kind: "Pod"})
		if err != nil || at.Resource != "pods" || !namespaced {
			t.Errorf("%v %v %v", at, namespaced, err)
		}
	}
	if len(*asked) != 1 {
		t.Errorf("asked %q", *asked)
	}
	m.Reset()
	for name, want := range map[string]bool{"v1": true, "v1/Pod": true, "v1/Pool": false, "x.io/v2": true, "x.io/v2/Pool": true, "x.io/v2/Pod": false, "x.io/v1": false, "a/b/c/d": false} {
		if got := m.Serves(t.Context(), name); got != want {
			t.Errorf("%s is served: %v", name, got)
		}
	}
	for _, kind := range []schema.GroupVersionKind{{Group: "x.io", Version: "v2", Kind: "Other"}, {Group: "gone.io", Version: "v1", Kind: "Other"}} {
		if _, _, err := m.Resource(t.Context(), kind); !meta.IsNoMatchError(err) {
			t.Errorf("%v: %v", kind, err)
		}
	}
}
