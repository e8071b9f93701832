package clusters

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnibench/cnibench/internal/env/kube"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/plan/condition"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// apiServer is a cluster as its API describes it.
type apiServer struct {
	nodes []string
	// cni names the DaemonSet, proxy is kube-proxy's mode; "" for none.
	cni, proxy string
	// refused is a verb and a resource that the user may not use.
	refused string
	// made are requests that would have created something.
	made []string
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	var answer any
	switch last := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]; {
	case last == "selfsubjectaccessreviews":
		var asked authorizationv1.SelfSubjectAccessReview
		if json.NewDecoder(r.Body).Decode(&asked) == nil {
			a := asked.Spec.ResourceAttributes
			asked.Status.Allowed = a.Verb+" "+a.Resource != s.refused
		}
		answer = asked
	case r.Method != http.MethodGet:
		s.made = append(s.made, r.Method+" "+r.URL.Path)
		http.Error(w, "nothing can be made here", http.StatusForbidden)
		return
	case last == "version":
		answer = map[string]string{"major": "1", "minor": "36", "gitVersion": "v1.36.3"}
	case last == "nodes":
		var list corev1.NodeList
		for _, name := range s.nodes {
			n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelOSStable: "linux"}}}
			if s.cni == "kube-flannel-ds" {
				n.Annotations = map[string]string{"flannel.alpha.coreos.com/backend-type": "vxlan"}
			}
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
			list.Items = append(list.Items, n)
		}
		answer = list
	case last == "daemonsets":
		var list appsv1.DaemonSetList
		for _, name := range []string{s.cni, "kube-proxy"} {
			if name == "" || name == "kube-proxy" && s.proxy == "" {
				continue
			}
			d := appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name}}
			d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
			d.Spec.Template.Spec.Containers = []corev1.Container{{Name: name, Image: name + ":v1", Args: []string{"--proxy-mode=" + s.proxy}}}
			d.Status.DesiredNumberScheduled, d.Status.NumberReady = int32(len(s.nodes)), int32(len(s.nodes))
			list.Items = append(list.Items, d)
		}
		answer = list
	default:
		http.NotFound(w, r)
		return
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// TestBeside: a cluster that the lab cannot be compared with is refused before anything is made there, all faults at once.
func TestBeside(t *testing.T) {
	two := []string{"n1", "n2"}
	for name, tt := range map[string]struct {
		servers []*apiServer
		asked   condition.ProxyMode
		proxy   condition.ProxyMode
		words   []string
		hint    string
	}{
		"flannel":                             {servers: []*apiServer{{nodes: two, cni: "kube-flannel-ds", proxy: "nftables"}}, proxy: condition.ProxyNftables},
		"the mode of kube-proxy is not known": {servers: []*apiServer{{nodes: two, cni: "kube-flannel-ds"}}, proxy: condition.ProxyIptables},
		"another mode is asked for": {servers: []*apiServer{{nodes: two, cni: "kube-flannel-ds", proxy: "iptables"}}, asked: condition.ProxyNftables,
			words: []string{"kube-proxy is in iptables mode, not in nftables mode"}, hint: "leave out --service-proxy"},
		"no CNI":    {servers: []*apiServer{{nodes: two}}, words: []string{"the CNI is unknown"}, hint: "--inspect looks at the nodes"},
		"other CNI": {servers: []*apiServer{{nodes: two, cni: "antrea-agent"}}, words: []string{"the lab has no profile for "}, hint: "cnibench cni detect"},
		"one node": {servers: []*apiServer{{nodes: two[:1], cni: "kube-flannel-ds", proxy: "iptables"}},
			words: []string{"not all paths are served: pod-to-pod/cross-node: one node alone can take pods"}, hint: "--paths pod-to-pod/same-node"},
		"a right less": {servers: []*apiServer{{nodes: two, cni: "kube-flannel-ds", refused: "create pods"}},
			words: []string{"2 rights are missing on this cluster", "create pods/exec"}, hint: "cnibench kube access --manifest"},
		"two faults": {servers: []*apiServer{{nodes: two[:1]}}, words: []string{"the CNI is unknown", "not all paths are served"}, hint: "--inspect"},
		"two clusters": {servers: []*apiServer{{nodes: two}, {nodes: two[:1], cni: "kube-flannel-ds"}},
			words: []string{"context c0: the CNI is unknown", "context c1: not all paths are served"}, hint: "--inspect"},
		"two modes": {servers: []*apiServer{{nodes: two, cni: "kube-flannel-ds", proxy: "nftables"}, {nodes: two, cni: "kube-flannel-ds", proxy: "iptables"}},
			words: []string{"context c0: kube-proxy is in nftables mode, not in all clusters"}, hint: "a run of their own"},
	} {
		t.Run(name, func(t *testing.T) {
			want := plan.Default()
			want.Environment, want.Lab.ServiceProxy = plan.EnvKubernetes, condition.ProxyIptables
			if tt.asked != "" {
				want.Lab.ServiceProxy = tt.asked
			}
			want.Paths = []plan.Path{{From: plan.Pod, To: plan.Pod, Locality: plan.CrossNode}}
			want.Profiles = nil
			var at []kube.Location
			for i, s := range tt.servers {
				server := httptest.NewServer(s)
				t.Cleanup(server.Close)
				context := ""
				if len(tt.servers) > 1 {
					context = []string{"c0", "c1"}[i]
					want.Cluster.Contexts = append(want.Cluster.Contexts, context)
				}
				at = append(at, kube.Location{Kubeconfig: kubeconfigOf(t, server.URL), Context: context})
				want.Profiles = append(want.Profiles, plan.VariantOf(plan.Detected).At(context))
			}
			want.Baseline = want.Profiles[0]
			var found plan.Plan
			enough := errors.New("enough")
			o := Options{Say: func(string, ...any) {}, Leaves: func(string) func() { return func() {} }, Beside: func(_ context.Context, p plan.Plan) error {
				found = p
				return enough
			}}
			_, _, err := OpenAt(t.Context(), want, at, o)
			if tt.proxy != "" {
				if !errors.Is(err, enough) || found.Lab.ServiceProxy != tt.proxy || found.Profiles[0].Profile() != "flannel-vxlan" {
					t.Errorf("%v, with %s and %v", err, found.Lab.ServiceProxy, found.Profiles)
				}
			}
			for _, words := range tt.words {
				if err == nil || !strings.Contains(err.Error(), words) {
					t.Errorf("%q is not in %v", words, err)
				}
			}
			if hint := advice.Of(err); !strings.Contains(hint, tt.hint) {
				t.Errorf("hint %q, want %q", hint, tt.hint)
			}
			var config *kube.ConfigError
			var access *kube.AccessError
			if tt.proxy == "" && !errors.As(err, &config) && !errors.As(err, &access) {
				t.Errorf("not named as what was asked for: %v", err)
			}
			for _, s := range tt.servers {
				if s.made != nil {
					t.Errorf("made %q", s.made)
				}
			}
		})
	}
}
