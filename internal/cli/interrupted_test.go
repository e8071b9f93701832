package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// bareCluster is an API server of a cluster with two nodes and no CNI that objects show. Whoever makes a namespace, or
// deletes one, is kept waiting; asked says which.
func bareCluster(t *testing.T) (kubeconfig string, asked <-chan string) {
	t.Helper()
	const allowed = `{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1","status":{"allowed":true}}`
	answers := map[string]string{
		"GET /version":                 `{"major":"1","minor":"36","gitVersion":"v1.36.3"}`,
		"GET /api/v1/nodes":            `{"kind":"NodeList","apiVersion":"v1","items":[` + ready("n1") + "," + ready("n2") + `]}`,
		"GET /apis/apps/v1/daemonsets": `{"kind":"DaemonSetList","apiVersion":"apps/v1","items":[]}`,
		"POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews": allowed,
	}
	ask := make(chan string)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // it has gone
		}
		w.Header().Set("Content-Type", "application/json")
		if r.Method != http.MethodGet && strings.HasPrefix(r.URL.Path, "/api/v1/namespaces") {
			select {
			case ask <- r.Method + " " + r.URL.Path + " " + string(body):
				<-r.Context().Done()
			case <-r.Context().Done():
			}
			return
		}
		answer, ok := answers[r.Method+" "+r.URL.Path]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			answer = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`
		}
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(s.Close)
	return kubeconfigOf(t, s.URL), ask
}

// kubeconfigOf writes one that leads to an API server.
func kubeconfigOf(t *testing.T, server string) string {
	t.Helper()
	kubeconfig := filepath.Join(t.TempDir(), "config")
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: here
contexts: [{name: here, context: {cluster: c, user: u}}]
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

// TestInterruptedTwiceWithLookouts: who does not wait until the lookouts have gone is told that they stay, and how to remove
// them.
func TestInterruptedTwiceWithLookouts(t *testing.T) {
	t.Run("run", func(t *testing.T) {
		interruptTwice(t, "run", "--env", "kubernetes", "--inspect", "-o", filepath.Join(t.TempDir(), "r.jsonl"))
	})
	t.Run("cni detect", func(t *testing.T) { interruptTwice(t, "cni", "detect", "--image", "cnibench", "--nodes", "n1,n2") })
}

func interruptTwice(t *testing.T, args ...string) {
	kubeconfig, asked := bareCluster(t)
	cmd := exec.CommandContext(t.Context(), "cnibench", append(args, "--kubeconfig", kubeconfig)...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	run := ""
	for _, method := range []string{http.MethodPost, http.MethodDelete} {
		select {
		case request := <-asked:
			name := regexp.MustCompile(`cnibench-([^"/]+)-look`).FindStringSubmatch(request)
			if name == nil || !strings.HasPrefix(request, method) {
				t.Fatalf("asked for %s", request)
			}
			run = name[1]
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
		case err := <-ended:
			t.Fatalf("it ended before its %s: %v\n%s", method, err, &said)
		}
	}
	err := <-ended
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != exitInterrupted {
		t.Errorf("%v, want exit code %d", err, exitInterrupted)
	}
	remedy := fmt.Sprintf("run %s is still in the cluster; remove it: cnibench kube clean --run %s --kubeconfig %s\n", run, run, kubeconfig)
	if !strings.Contains(said.String(), remedy) {
		t.Errorf("it does not say %q:\n%s", remedy, &said)
	}
}

// TestLeaves: what was removed is not named, and what has the same words and was not still is.
func TestLeaves(t *testing.T) {
	p := &program{}
	gone := p.noteLeftover("a run")
	p.noteLeftover("a cluster")
	p.noteLeftover("a run")
	for range 2 { // the second does nothing more
		gone()
		if want := []string{"a cluster", "a run"}; !slices.Equal(p.leftovers.lines, want) {
			t.Errorf("left are %q, want %q", p.leftovers.lines, want)
		}
	}
}
