package clusters

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/env/kube"
	"github.com/cnibench/cnibench/internal/env/kube/recipe"
	"github.com/cnibench/cnibench/internal/plan"
)

// heldCluster is an API server on which ptp is installed by the recipe. Namespaces are not to be made there; once held, those
// that are deleted stay, as finalizers keep them.
type heldCluster struct {
	mu sync.Mutex
	// held is true when a namespace may be deleted, sealed when records may not be read; installed is true while ptp is.
	held, sealed, installed bool
}

func (c *heldCluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	status := func(code int, reason string) {
		w.WriteHeader(code)
		fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"message":"here it is %s","code":%d}`, reason, reason, code)
	}
	list := func(kind, version string, items ...string) {
		fmt.Fprintf(w, `{"kind":%q,"apiVersion":%q,"items":[%s]}`, kind, version, strings.Join(items, ","))
	}
	const records = "/api/v1/namespaces/kube-system/configmaps"
	w.Header().Set("Content-Type", "application/json")
	switch path := r.URL.Path; {
	case path == "/version":
		_, _ = io.WriteString(w, `{"major":"1","minor":"36","gitVersion":"v1.36.3"}`)
	case path == "/api/v1/nodes":
		list("NodeList", "v1", ready("n1"), ready("n2"))
	case path == "/apis/apps/v1/daemonsets":
		list("DaemonSetList", "apps/v1")
	case strings.HasSuffix(path, "/customresourcedefinitions"):
		list("CustomResourceDefinitionList", "apiextensions.k8s.io/v1")
	case strings.HasSuffix(path, "/pods"):
		list("PodList", "v1")
	case path == records && c.sealed:
		status(http.StatusForbidden, "Forbidden")
	case path == records && c.installed:
		list("ConfigMapList", "v1", `{"metadata":{"name":"cnibench-recipe-ptp"},"data":{"inventory.json":"{\"profile\":\"ptp\"}"}}`)
	case path == records:
		list("ConfigMapList", "v1")
	case r.Method == http.MethodDelete && path == records+"/cnibench-recipe-ptp":
		c.installed = false
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Success"}`)
	case strings.HasPrefix(path, "/api/v1/namespaces/cnibench-") && c.held:
		_, _ = io.WriteString(w, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"n","finalizers":["example.com/hold"]}}`)
	case r.Method != http.MethodGet:
		status(http.StatusForbidden, "Forbidden")
	default:
		status(http.StatusNotFound, "NotFound")
	}
}

// heldTurns is an environment with ptp installed, of whose run a namespace does not go.
func heldTurns(t *testing.T, api *heldCluster) (*inTurn, string) {
	t.Helper()
	s := httptest.NewServer(api)
	t.Cleanup(s.Close)
	kubeconfig := kubeconfigOf(t, s.URL)
	cluster, err := kube.Connect(kube.Options{
		Kubeconfig: kubeconfig, Cluster: plan.Cluster{Image: "cnibench"}, Paths: []plan.Path{{From: plan.Pod, To: plan.Pod, Locality: plan.Remote}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := cluster.Up(t.Context()); err == nil || !strings.Contains(err.Error(), "create namespace") {
		t.Fatalf("%v, want that a namespace is refused, for the run to have one to remove", err)
	}
	installer, err := recipe.NewInstaller(cluster.Config(), recipe.Options{})
	if err != nil {
		t.Fatal(err)
	}
	api.mu.Lock()
	defer api.mu.Unlock()
	api.held, api.installed = true, true
	return &inTurn{
		options: Options{Say: t.Logf, Leaves: func(string) func() { return func() {} }}, installer: installer, stages: [][]plan.Variant{{plan.VariantOf("ptp")}, {plan.VariantOf("macvlan")}}, gone: func() {},
		where: kube.Location{Kubeconfig: kubeconfig}, patience: 500 * time.Millisecond,
		now: &Environment{sites: []*site{{cluster: cluster}}},
	}, kubeconfig
}

// TestHeldNamespaceInTurns: a namespace that does not go holds up neither the run nor the removal of the profile, and what
// comes next is not installed beside what is left.
func TestHeldNamespaceInTurns(t *testing.T) {
	api := &heldCluster{}
	e, _ := heldTurns(t, api)
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	err := e.Enter(ctx, 1)
	if err == nil || !strings.Contains(err.Error(), "finalizer example.com/hold") || strings.Contains(err.Error(), "installed") {
		t.Errorf("%v, want what holds the namespace, and nothing else", err)
	}
	if ctx.Err() != nil || api.installed || e.at != -1 {
		t.Errorf("%v, ptp is installed: %t, stage %d", ctx.Err(), api.installed, e.at)
	}
}

// TestHeldNamespaceAtTheEnd: the pods may use up all the time that there is for taking the environment down.
func TestHeldNamespaceAtTheEnd(t *testing.T) {
	api := &heldCluster{}
	e, _ := heldTurns(t, api)
	ctx, stop := context.WithCancelCause(t.Context())
	stop(errors.New("the time is up"))
	if err := e.Close(ctx); err == nil || !strings.Contains(err.Error(), "namespace") {
		t.Errorf("%v, want the namespace that is left", err)
	}
	if api.installed {
		t.Error("ptp is still installed")
	}
}

// TestStillInstalled: a profile that could not be taken away is named with the command that does it.
func TestStillInstalled(t *testing.T) {
	api := &heldCluster{}
	e, kubeconfig := heldTurns(t, api)
	api.mu.Lock()
	api.sealed = true
	api.mu.Unlock()
	e.where.Context = "here"
	err := e.Close(t.Context())
	want := "ptp is still installed: cnibench cni uninstall ptp --context here --kubeconfig " + kubeconfig
	if err == nil || !strings.Contains(err.Error(), "finalizer example.com/hold") || !strings.HasSuffix(err.Error(), "\n"+want) {
		t.Errorf("%v\nwant the namespace that is left, and: %s", err, want)
	}
}

// TestRefusedIsNotOurs: a profile was installed before the run, which cannot begin to install it again. The end of the run
// leaves it installed.
func TestRefusedIsNotOurs(t *testing.T) {
	api := &heldCluster{}
	e, _ := heldTurns(t, api)
	e.at, e.now = -1, nil // nothing of the run is there
	if err := e.Enter(t.Context(), 0); err == nil || e.installer.Begun {
		t.Fatalf("%v, begun: %t", err, e.installer.Begun)
	}
	if err := e.Close(t.Context()); err != nil || !api.installed {
		t.Errorf("%v; ptp is installed: %t", err, api.installed)
	}
}

// kubeconfigOf writes one that leads to an API server.
func kubeconfigOf(t *testing.T, server string) string {
	t.Helper()
	kubeconfig := filepath.Join(t.TempDir(), "config")
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: here
contexts: [{name: here, context: {cluster: c, user: u}}, {name: c0, context: {cluster: c, user: u}}, {name: c1, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: %q}}]
users: [{name: u, user: {}}]
`, server)
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return kubeconfig
}

// ready is a node that is.
func ready(name string) string {
	return fmt.Sprintf(`{"metadata":{"name":%q},"status":{"conditions":[{"type":"Ready","status":"True"}]}}`, name)
}
