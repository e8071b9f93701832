package plan

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func onCluster(t *testing.T, change func(*Plan)) Plan {
	t.Helper()
	p, _ := Preset("quick")
	p.Environment = EnvKubernetes
	if change != nil {
		change(&p)
	}
	return p.Settle()
}

// TestClusterSettles has what a plan for the lab becomes on a cluster: one CNI stands there, and the zero is the node.
func TestClusterSettles(t *testing.T) {
	p := onCluster(t, nil)
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(p.Profiles, []string{Detected}) || p.Baseline != "host" || p.Cluster.TTL != time.Hour {
		t.Errorf("got %+v", p)
	}
	p = p.Resolve(map[string]string{"": "flannel-vxlan"})
	if got := p.Measured(); !slices.Equal(got, []string{"host", "host~twin", "flannel-vxlan"}) {
		t.Errorf("measured %q", got)
	}
	if again := p.Settle(); Differ(p, again) != nil {
		t.Errorf("settling twice changes %q", Differ(p, again))
	}
	fit := p.Fit(len(p.Cases()))
	if fit.Duration < shortestClusterFit {
		t.Errorf("a window of %s", fit.Duration)
	}
}

func TestSeveralClusters(t *testing.T) {
	p := onCluster(t, func(p *Plan) { p.Cluster.Contexts = []string{"old", "new"} })
	if p.Baseline != "host@old" {
		t.Errorf("baseline %q", p.Baseline)
	}
	p = p.Resolve(map[string]string{"old": "canal", "new": "cilium-native"})
	if want := []string{"cilium-native@new", "canal@old"}; !slices.Equal(p.Profiles, want) {
		t.Errorf("profiles %q", p.Profiles)
	}
	if err := p.Validate(); err != nil {
		t.Error(err)
	}
	p.Profiles = []string{"canal@older", "Canal", "raw@old", "aws-vpc-cni@new"}
	err := p.Validate()
	for _, want := range []string{`"canal@older" names a context`, `"Canal" is not the name`, "raw is of the lab only"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
	if strings.Contains(err.Error(), "aws-vpc-cni") {
		t.Errorf("a CNI that the catalogue does not know may stand on a cluster: %v", err)
	}
}

func TestCutContext(t *testing.T) {
	for name, want := range map[string][2]string{
		"canal": {"canal", ""}, "canal@a": {"canal", "a"}, "host@a~twin": {"host~twin", "a"}, "host~twin": {"host~twin", ""}, "x@a@b": {"x", "a@b"},
	} {
		if p, c := CutContext(name); [2]string{p, c} != want {
			t.Errorf("%q: got %q %q", name, p, c)
		}
	}
}

// TestClusterFaults has every wrong field at once, and all are told.
func TestClusterFaults(t *testing.T) {
	p := onCluster(t, func(p *Plan) {
		p.Budget, p.Duration = 2*time.Hour, time.Second
		p.Cluster = Cluster{
			Contexts: []string{"a", "a"}, ClientNode: "n1", ServerNode: "n1", Tolerations: []string{"a:Never", "=b", "*=x", "ok=1:NoExecute"},
			CPURequest: "much", MemoryRequest: "64Mi", CPULimit: "1 core", CPUs: []int{-1}, Install: true, TTL: time.Minute,
		}
		p.Lab.Policies = 3
	})
	err := p.Validate()
	for _, want := range []string{"contexts: \"a\" is given twice", "serverNode", `"a:Never"`, `"=b"`, `"*=x"`, "cpuRequest", "cpuLimit", "kubernetes.cpus", "kubernetes.install", "which profiles", "ttl: 1m0s is less", "lab.policies"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is not among\n%v", want, err)
		}
	}
	for _, good := range []string{"memoryRequest", "ok=1"} {
		if strings.Contains(err.Error(), good) {
			t.Errorf("%s is said to be wrong: %v", good, err)
		}
	}
	lab, _ := Preset("quick")
	lab.Cluster.CPULimit = "1 core"
	if err := lab.Settle().Validate(); err != nil {
		t.Errorf("the lab has no use for what a cluster needs, and minds it: %v", err)
	}
}

const clusterFile = `apiVersion: cnibench/v1
kind: Plan
profiles: [flannel-vxlan, my-cni]
environment: kubernetes
kubernetes:
  contexts: [a]
  clientNode: n1
  serverNode: n2
  nodeSelector: {pool: net, "kubernetes.io/arch": amd64}
  tolerations: ["dedicated=net:NoSchedule"]
  image: example.com/cnibench:1
  pullSecrets: [pull]
  cpuRequest: 500m
  memoryRequest: 64Mi
  cpuLimit: "2"
  cpus: 1,4-5
  sessionAffinity: true
  ttl: 2h
`

func TestClusterFile(t *testing.T) {
	p, err := Parse("plan.yaml", strings.NewReader(clusterFile))
	if err != nil {
		t.Fatal(err)
	}
	want := Cluster{
		Contexts: []string{"a"}, ClientNode: "n1", ServerNode: "n2", NodeSelector: map[string]string{"pool": "net", "kubernetes.io/arch": "amd64"},
		Tolerations: []string{"dedicated=net:NoSchedule"}, Image: "example.com/cnibench:1", PullSecrets: []string{"pull"}, CPURequest: "500m",
		MemoryRequest: "64Mi", CPULimit: "2", CPUs: []int{1, 4, 5}, SessionAffinity: true, TTL: 2 * time.Hour,
	}
	if diff := cmp.Diff(want, p.Cluster); diff != "" || p.Warmup != ClusterWarmup {
		t.Errorf("warm-up %s; %s", p.Warmup, diff)
	}
	if p, err := Parse("plan.yaml", strings.NewReader(clusterFile+"warmup: 20ms\n")); err != nil || p.Warmup != 20*time.Millisecond {
		t.Errorf("a warm-up that is said: %s, %v", p.Warmup, err)
	}
	_, err = Parse("plan.yaml", strings.NewReader(strings.NewReplacer("contexts: [a]", "context: a", "cpus: 1,4-5", "cpus: 5-4", "{pool: net,", "{[1]: net,").Replace(clusterFile)))
	for _, want := range []string{`plan.yaml:6:`, `unknown key "kubernetes.context"`, `"5-4" is not a list of CPUs`, "plan.yaml:9:"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is not in\n%v", want, err)
		}
	}
	if _, err := Parse("p", strings.NewReader(strings.Replace(clusterFile, "environment: kubernetes", "environment: lab", 1))); err == nil || !strings.Contains(err.Error(), `p:3: profiles: unknown profile "my-cni"`) {
		t.Errorf("a lab with any profile: %v", err)
	}
}

func FuzzParseToleration(f *testing.F) {
	f.Add("a=b:NoSchedule")
	f.Add("*:NoExecute")
	f.Fuzz(func(t *testing.T, s string) {
		if tol, err := ParseToleration(s); err == nil && tol.Exists && tol.Value != "" {
			t.Errorf("%q: %+v", s, tol)
		}
	})
}

// TestTwinOfACluster: a cluster's own bare node may be measured twice, and one context that is named stays in the name.
func TestTwinOfACluster(t *testing.T) {
	p := onCluster(t, func(p *Plan) {
		p.Cluster.Contexts = []string{"a"}
		p.Profiles = []string{At(Detected, "a"), At("host", "a") + TwinSuffix}
		p.Baseline = At("host", "a")
	}).Resolve(map[string]string{"a": "canal"})
	if want := []string{"canal@a", "host@a" + TwinSuffix}; !slices.Equal(p.Profiles, want) {
		t.Errorf("profiles %q, want %q", p.Profiles, want)
	}
	if err := p.Validate(); err != nil {
		t.Error(err)
	}
	p.Profiles = []string{"host@b" + TwinSuffix}
	if err := p.Validate(); err == nil || !strings.Contains(err.Error(), "names a context") {
		t.Errorf("a twin on a cluster that is not there: %v", err)
	}
}

// TestDetectedBaseline: where there is no bare node to compare with, it is the CNI that is found, on the first cluster.
func TestDetectedBaseline(t *testing.T) {
	for _, tt := range []struct {
		baseline string
		contexts []string
		found    map[string]string
		want     string
	}{
		{Detected, nil, map[string]string{"": "canal"}, "canal"},
		{Detected, []string{"b", "a"}, map[string]string{"a": "canal", "b": "ptp"}, "ptp@b"},
		{At(Detected, "a"), []string{"b", "a"}, map[string]string{"a": "canal", "b": "ptp"}, "canal@a"},
		{Detected, []string{"a"}, map[string]string{"a": "canal"}, "canal"}, // as the profile is called there
		{"host", nil, map[string]string{"": "canal"}, "host"},
	} {
		p := onCluster(t, func(p *Plan) { p.Cluster.Contexts, p.Baseline = tt.contexts, tt.baseline }).Resolve(tt.found)
		if p.Baseline != tt.want {
			t.Errorf("%s of %v: %q, want %q", tt.baseline, tt.found, p.Baseline, tt.want)
		}
		if err := p.Validate(); err != nil {
			t.Errorf("%s of %v: %v", tt.baseline, tt.found, err)
		}
	}
}
