package cli

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// tellingCluster is an API server that says which nodes there are and where it answers itself.
func tellingCluster(t *testing.T) (kubeconfig string) {
	t.Helper()
	node := func(name, cidr string) string {
		return fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"podCIDR":%q}}`, name, cidr)
	}
	answers := map[string]string{
		"/version":      `{"major":"1","minor":"36","gitVersion":"v1.36.3"}`,
		"/api/v1/nodes": `{"kind":"NodeList","apiVersion":"v1","items":[` + node("n1", "10.7.1.0/24") + "," + node("n2", "10.7.2.0/24") + `]}`,
		"/api/v1/namespaces/kube-system/configmaps/kubeadm-config": `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"kubeadm-config"},
			"data":{"ClusterConfiguration":"networking: {podSubnet: 10.7.0.0/16}"}}`,
		"/apis/discovery.k8s.io/v1/namespaces/default/endpointslices": `{"kind":"EndpointSliceList","apiVersion":"discovery.k8s.io/v1","items":[
			{"metadata":{"name":"kubernetes"},"addressType":"IPv4","endpoints":[{"addresses":["192.0.2.7"]}],"ports":[{"port":6443}]}]}`,
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer, ok := answers[r.URL.Path]
		if !ok || r.Method != http.MethodGet {
			w.WriteHeader(http.StatusNotFound)
			answer = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`
		}
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(s.Close)
	return kubeconfigOf(t, s.URL)
}

// TestShowAsks: the cluster of KUBECONFIG is asked for what is not told, and only then; one that a flag names tells of its
// nodes.
func TestShowAsks(t *testing.T) {
	kubeconfig := tellingCluster(t)
	t.Setenv("KUBECONFIG", kubeconfig)
	for _, tt := range []struct {
		line       string
		want, lack []string
	}{
		{"cni show cilium-native", []string{"k8sServiceHost: 192.0.2.7", "k8sServicePort: 6443", "10.7.0.0/16"}, nil},
		{"cni show cilium-native --api-server 192.0.2.9:6443", []string{"k8sServiceHost: 192.0.2.9"}, nil},
		{"cni show bridge", []string{podCIDRWord}, []string{"10.7.1.0/24"}},
		{"cni show bridge --kubeconfig " + kubeconfig, []string{`"10.7.1.0/24"`, `"10.7.2.0/24"`, "node n1;", "node n2;"}, []string{podCIDRWord, "differs for each node"}},
	} {
		code, out, errs := command(strings.Fields(tt.line)...)
		if code != 0 {
			t.Errorf("%s: exit code %d: %s", tt.line, code, errs)
			continue
		}
		for _, want := range tt.want {
			if !strings.Contains(out, want) {
				t.Errorf("%s: %q is not in\n%s", tt.line, want, out)
			}
		}
		for _, lack := range tt.lack {
			if strings.Contains(out, lack) {
				t.Errorf("%s: %q is in\n%s", tt.line, lack, out)
			}
		}
	}
}

// podCIDRWord stands for what is not known of a node.
const podCIDRWord = "PODCIDR-OF-NODE"
