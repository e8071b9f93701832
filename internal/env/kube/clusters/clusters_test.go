package clusters

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	k8stesting "k8s.io/client-go/testing"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/env/kube"
	"github.com/cnibench/cnibench/internal/env/kube/api/apitest"
	"github.com/cnibench/cnibench/internal/env/kube/detect"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// TestProfilesOfASite: which of a plan's profiles stand on a cluster; the only one is not named by its context.
func TestProfilesOfASite(t *testing.T) {
	one := &site{Location: kube.Location{Context: "a"}, profile: "canal"}
	e := &Environment{sites: []*site{one}}
	e.distributePlan(plan.Plan{Baseline: plan.VariantOf("host"), Twin: true, Profiles: plan.Variants("canal", "ptp")})
	if got, want := one.localVariants(), plan.Variants("host", "host~twin", "canal"); !slices.Equal(got, want) {
		t.Errorf("the only cluster: %q, want %q", got, want)
	}
	other := &site{Location: kube.Location{Context: "b"}, profile: "ptp"}
	e = &Environment{sites: []*site{one, other}}
	e.distributePlan(plan.Plan{Baseline: plan.VariantOf("host@a"), Profiles: plan.Variants("canal@a", "ptp@b", "host@b")})
	if a, b := one.localVariants(), other.localVariants(); !slices.Equal(a, plan.Variants("host", "canal")) || !slices.Equal(b, plan.Variants("ptp", "host")) {
		t.Errorf("two clusters: %q and %q", a, b)
	}
	e.distributePlan(plan.Plan{Baseline: plan.VariantOf("canal@a"), Twin: true, Profiles: plan.Variants("ptp@b")})
	if a, b := one.localVariants(), other.localVariants(); !slices.Equal(a, plan.Variants("canal", "canal~twin")) || !slices.Equal(b, plan.Variants("ptp")) {
		t.Errorf("what was found is the baseline, and has a twin: %q and %q", a, b)
	}
}

// TestClusterOptionsOutlastTheRun: pods end by themselves after what a plan without a budget may take, and not after an hour.
func TestClusterOptionsOutlastTheRun(t *testing.T) {
	p := plan.Preset("standard")
	p.Environment, p.Budget, p.Duration, p.Repetitions = plan.EnvKubernetes, 0, time.Minute, 20
	p = p.Settle()
	o := clusterOptions(p, kube.Location{}, Options{})
	if all := p.Expected(len(p.Cases())); o.TTL < all || all < 2*time.Hour {
		t.Errorf("the pods live %s, the run takes %s", o.TTL, all)
	}
}

// TestSilentRoutesAreNotServed: each Service is proved by itself, and what did not answer is not measured, with the reason.
func TestSilentRoutesAreNotServed(t *testing.T) {
	p := plan.Path{From: plan.Pod, To: plan.Service, Locality: plan.Remote}
	at := &site{Location: kube.Location{Context: "a"}, silent: map[plan.Route]error{
		plan.Single(plan.VariantOf("canal"), p):                               errors.New("one"),
		{Variant: plan.VariantOf("canal"), Path: p, Servers: 3}:               errors.New("three"),
		{Variant: plan.VariantOf("canal"), Path: p, Servers: 3, Rolled: true}: errors.New("three rolled"),
	}}
	e := &Environment{sites: []*site{at, {Location: kube.Location{Context: "b"}}}}
	r := plan.Single(plan.VariantOf("canal@a"), p)
	_, one := e.At(r.Variant).Endpoints(t.Context(), r)
	r.Servers = 3
	_, three := e.At(r.Variant).Endpoints(t.Context(), r)
	r.Rolled = true
	_, rolled := e.At(r.Variant).Endpoints(t.Context(), r)
	for want, err := range map[string]error{"one": one, "three": three, "three rolled": rolled} {
		var not *control.NotServedError
		if !errors.As(err, &not) || not.Profile != plan.VariantOf("canal@a") || not.Reason != "it did not pass its proof before the run: "+want {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// TestNodesToLookAt: only where a pod of this program can run is one posted.
func TestNodesToLookAt(t *testing.T) {
	node := func(name, os string, ready corev1.ConditionStatus) corev1.Node {
		n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if os != "" {
			n.Labels = map[string]string{corev1.LabelOSStable: os}
		}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}
		return n
	}
	down, windows, cordoned := node("a", "", corev1.ConditionFalse), node("b", "windows", corev1.ConditionTrue), node("c", "", corev1.ConditionTrue)
	cordoned.Spec.Unschedulable = true
	linux, unlabelled := node("e", "linux", corev1.ConditionTrue), node("d", "", corev1.ConditionTrue)
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"major":"1","minor":"36","gitVersion":"v1.36.3"}`)
	}))
	t.Cleanup(api.Close)
	kubeconfig := kubeconfigOf(t, api.URL)
	cluster, err := kube.Connect(kube.Options{Kubeconfig: kubeconfig, Cluster: plan.Cluster{Image: "cnibench"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ there, want []corev1.Node }{
		{[]corev1.Node{down, windows, cordoned, linux, unlabelled}, []corev1.Node{unlabelled, linux}},
		{[]corev1.Node{down, windows, cordoned, linux}, []corev1.Node{linux, cordoned}},
		{[]corev1.Node{down, windows}, nil},
		{nil, nil},
	} {
		client := apitest.NewClientset()
		var posted []string
		client.PrependReactor("create", "pods", func(a k8stesting.Action) (bool, runtime.Object, error) {
			p := a.(k8stesting.CreateAction).GetObject().(*corev1.Pod)
			p.Status.Phase = corev1.PodFailed // what it would see is not of interest here
			posted = append(posted, p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields[0].Values[0])
			return false, nil, nil
		})
		s := &site{cluster: cluster, clients: detect.Clients{Kube: client.Client}, snapshot: detect.Snapshot{Nodes: c.there}}
		silent := Options{Say: func(string, ...any) {}, Leaves: func(string) func() { return func() {} }}
		_, err := s.inspectNodes(t.Context(), detect.LookoutOptions{}, silent)
		err = withInspectAdvice(plan.Plan{}, err)
		var want []string
		for _, n := range c.want {
			want = append(want, n.Name)
		}
		if !slices.Equal(posted, want) {
			t.Errorf("%v: looked at %q, want %q", c.there, posted, want)
		}
		if none := err != nil && err.Error() == "no ready Linux node to inspect"; none != (want == nil) || !strings.Contains(advice.Of(err), "leave out --inspect") {
			t.Errorf("%v: %v, hint %q", c.there, err, advice.Of(err))
		}
	}
}
