package plan

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/plan/condition"
	"github.com/cnibench/cnibench/internal/plan/kubetext"
	"github.com/cnibench/cnibench/internal/plan/mesh"
	"github.com/cnibench/cnibench/internal/plan/position"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

func onCluster(t *testing.T, change func(*Plan)) Plan {
	t.Helper()
	p := Preset("standard")
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
	if !slices.Equal(p.Profiles, Variants(Detected)) || p.Baseline != VariantOf("host") || p.Lifetime() != time.Hour {
		t.Errorf("got %+v", p)
	}
	p = p.Resolve(map[string]string{"": "flannel-vxlan"})
	if got := p.Measured(); !slices.Equal(got, Variants("host", "host~twin", "flannel-vxlan")) {
		t.Errorf("measured %q", got)
	}
	if again := p.Settle(); p.Differ(again) != nil {
		t.Errorf("settling twice changes %q", p.Differ(again))
	}
	fit := p.Fit(len(p.Cases()))
	if fit.Duration < shortestClusterFit {
		t.Errorf("a window of %s", fit.Duration)
	}
}

func TestSeveralClusters(t *testing.T) {
	p := onCluster(t, func(p *Plan) { p.Cluster.Contexts = []string{"old", "new"} })
	if p.Baseline != VariantOf("host@old") {
		t.Errorf("baseline %q", p.Baseline)
	}
	p = p.Resolve(map[string]string{"old": "canal", "new": "cilium-native"})
	if want := Variants("cilium-native@new", "canal@old"); !slices.Equal(p.Profiles, want) {
		t.Errorf("profiles %q", p.Profiles)
	}
	if err := p.Validate(); err != nil {
		t.Error(err)
	}
	p.Profiles = Variants("canal@older", "Canal", "raw@old", "aws-vpc@new")
	err := p.Validate()
	for _, want := range []string{`"canal@older" names a context`, `"Canal" is not the name`, "raw exists only in the lab"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
	if strings.Contains(err.Error(), "aws-vpc") {
		t.Errorf("a CNI that the catalogue does not know may stand on a cluster: %v", err)
	}
}

func TestContextOfVariant(t *testing.T) {
	for name, want := range map[Variant][2]string{
		VariantOf("canal"): {"canal", ""}, VariantOf("canal@a"): {"canal", "a"}, VariantOf("host@a~twin"): {"host~twin", "a"}, VariantOf("host~twin"): {"host~twin", ""}, VariantOf("x@a@b"): {"x", "a@b"},
	} {
		if got := [2]string{name.Local().String(), name.Context()}; got != want {
			t.Errorf("%q: got %q", name, got)
		}
	}
}

// TestLifetime: the pods outlive the run, with a budget and without.
func TestLifetime(t *testing.T) {
	one := Workload{Spec: RR{Protocol: TCP, RequestSize: 1, ResponseSize: 1, Flows: 1}}
	long := func(p *Plan) { // 3 cases of 10.16 s
		p.Paths, p.Workloads = []Path{{Pod, Pod, CrossNode}}, []Workload{one}
		p.Budget, p.Duration, p.Warmup, p.Repetitions = 0, 10*time.Second, ClusterWarmup, 200
	}
	const trial = 10160 * time.Millisecond
	for name, c := range map[string]struct {
		change func(*Plan)
		want   time.Duration
		fault  string
		note   bool
	}{
		"a budget":             {func(p *Plan) { p.Budget = 2 * time.Hour }, 4 * time.Hour, "", false},
		"a short budget":       {func(p *Plan) { p.Budget = time.Minute }, time.Hour, "", false},
		"a budget of weeks":    {func(p *Plan) { p.Budget = 20 * 24 * time.Hour }, longestTTL, "168h0m0s is less than the budget of 480h0m0s", false},
		"no budget":            {func(p *Plan) { p.Budget = 0 }, 2*600*trial + aroundTrials, "", false},
		"few repetitions":      {func(p *Plan) { p.Repetitions = 5 }, time.Hour, "", false},
		"adaptive":             {func(p *Plan) { p.Repetitions, p.MaxRepetitions, p.Precision = 10, 400, 0.05 }, 2*1200*trial + aroundTrials, "", false},
		"two clusters":         {func(p *Plan) { p.Cluster.Contexts = []string{"a", "b"} }, 2*800*trial + aroundTrials, "", false},
		"a chosen window":      {func(p *Plan) { p.Duration, p.Repetitions = 0, 1000 }, 2*3000*1160*time.Millisecond + aroundTrials, "", false},
		"searches":             {func(p *Plan) { p.Workloads = []Workload{{Spec: Throughput{MessageSize: 64, Flows: 1}}} }, 2*600*(trial+100*time.Second) + aroundTrials, "", false},
		"weeks":                {func(p *Plan) { p.Duration, p.Repetitions = time.Hour, 100 }, longestTTL, "168h0m0s is less than the 300h", false},
		"more than can be":     {func(p *Plan) { p.Repetitions, p.MaxRepetitions, p.Precision, p.Duration = 5, 1000, 0.05, time.Hour }, longestTTL, "", true},
		"given":                {func(p *Plan) { p.Cluster.TTL = 2 * time.Hour }, 2 * time.Hour, "", false},
		"given and too short":  {func(p *Plan) { p.Cluster.TTL = time.Hour }, time.Hour, "ttl: 1h0m0s is less than the 1h48m12s or so that 200 repetitions of 3 cases take", false},
		"given and too little": {func(p *Plan) { p.Cluster.TTL, p.Repetitions, p.MaxRepetitions, p.Precision = time.Hour, 10, 400, 0.05 }, time.Hour, "", true},
	} {
		p := onCluster(t, func(p *Plan) { long(p); c.change(p) })
		if got := p.Lifetime(); got != c.want {
			t.Errorf("%s: the pods live %s, want %s", name, got, c.want)
		}
		if err := p.Validate(); (err != nil) != (c.fault != "") || err != nil && !strings.Contains(err.Error(), c.fault) {
			t.Errorf("%s: %v, want %q", name, err, c.fault)
		}
		if c.fault != "" {
			continue // notes are on valid plans
		}
		notes := strings.Join(p.Notes(3), "\n")
		if strings.Contains(notes, "the pods end after "+c.want.String()) != c.note {
			t.Errorf("%s: notes %q", name, notes)
		}
	}
}

// TestClusterFaults has every wrong field at once, and all are told.
func TestClusterFaults(t *testing.T) {
	p := onCluster(t, func(p *Plan) {
		p.Budget, p.Duration = 2*time.Hour, time.Second
		p.Cluster = Cluster{
			Contexts: []string{"a", "a"}, ClientNode: "n1", ServerNode: "n1", Tolerations: []string{"a:Never", "=b", "*=x", "ok=1:NoExecute"},
			CPURequest: "much", MemoryRequest: "64Mi", CPULimit: "0", CPUs: []int{-1}, Install: true, TTL: time.Minute,
			LoadBalancerClass: "in ternal", ServiceAnnotations: map[string]string{"sch eme": "x", "example.com/fine": "y"}, LoadBalancerTimeout: time.Millisecond,
		}
		p.Lab.Policies = 3
	})
	err := p.Validate()
	for _, want := range []string{"contexts: \"a\" is given twice", "serverNode", `"a:Never"`, `"=b"`, `"*=x"`, "cpuRequest", "cpuLimit", "kubernetes.cpus", "kubernetes.install", "name the profiles to install", "ttl: 1m0s is less", "lab.policies", `kubernetes.loadBalancerClass: class "in ternal"`, `kubernetes.serviceAnnotations: annotation "sch eme"`, "loadBalancerTimeout: 1ms"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is not among\n%v", want, err)
		}
	}
	for _, good := range []string{"memoryRequest", "ok=1"} {
		if strings.Contains(err.Error(), good) {
			t.Errorf("%s is said to be wrong: %v", good, err)
		}
	}
	lab := Preset("standard")
	lab.Cluster.CPULimit = "1 core"
	if err := lab.Settle().Validate(); err != nil {
		t.Errorf("the lab has no use for what a cluster needs, and minds it: %v", err)
	}
}

// TestWithoutLab: every condition that the lab alone has is taken back and named as a plan file calls it, so that a new key
// of the lab is either given to clusters or refused there.
func TestWithoutLab(t *testing.T) {
	p := onCluster(t, func(p *Plan) {
		p.Lab = Lab{Nodes: 3, PodsPerNode: 4, NIC: "wire", GRO: condition.GROUDP, BigTCP: condition.BigTCPOn, CPU: "split", RPS: condition.RPSOff, MTU: 9000, LineRate: 1e9, PodMTU: 1300, wires: wires{Delay: time.Millisecond, Loss: 0.01, Plants: []mesh.Plant{{Node: "node-1", Loss: 0.1}}},
			Services: 5, Iptables: "nft", ServiceProxy: "ipvs", Family: 6, TrafficPolicy: "Local", Policies: 1, PoliciesUnselected: 2, Connections: 7, Churn: churn{ChurnServices, 5}, tracking: tracking{condition.ConntrackOff, 20}, BridgeNetfilter: condition.BridgeNetfilterOff}
	})
	kept, fields := p.WithoutLab()
	want := Default().Lab
	want.Family, want.TrafficPolicy, want.CPU = 6, "Local", "split"
	if diff := cmp.Diff(want, kept.Lab, cmp.AllowUnexported(Lab{}, wires{}, tracking{})); diff != "" {
		t.Errorf("of the lab's conditions are left (-want +got):\n%s", diff)
	}
	var known []string
	for _, key := range slices.Sorted(maps.Keys((&decoder{}).settingKeys(&Plan{}, "lab."))) {
		if isLabOnly("lab." + key) {
			known = append(known, "lab."+key)
		}
	}
	slices.Sort(fields)
	if diff := cmp.Diff(known, fields); diff != "" {
		t.Errorf("keys of the lab alone (-in a plan file +taken back):\n%s", diff)
	}
	if _, again := kept.WithoutLab(); again != nil {
		t.Errorf("taken back twice: %q", again)
	}
}

func TestParseAnnotations(t *testing.T) {
	for text, want := range map[string]map[string]string{
		"a.io/x=1":                 {"a.io/x": "1"},
		"a.io/x=1,b.io/y=":         {"a.io/x": "1", "b.io/y": ""},
		"a.io/x=s1,s2, b.io/y=k=v": {"a.io/x": "s1,s2", "b.io/y": "k=v"},
		"a.io/tags=k=v,l=w":        {"a.io/tags": "k=v,l=w"},
		"x=1":                      {"x": "1"},
		"x=s1,s2,a.io/y=k":         {"x": "s1,s2", "a.io/y": "k"},
		"x=1,y=2":                  nil, // one annotation or two
		"x":                        nil,
		"=1":                       nil,
		"":                         nil,
	} {
		got, err := kubetext.ParseAnnotations(text)
		if diff := cmp.Diff(want, got); diff != "" || (err != nil) != (want == nil) {
			t.Errorf("%q: %v, %s", text, err, diff)
		}
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
  loadBalancerClass: example.com/internal
  serviceAnnotations: {example.com/subnets: "a,b", "service.beta.kubernetes.io/aws-load-balancer-internal": "true"}
  loadBalancerTimeout: 5m
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
		LoadBalancerClass: "example.com/internal", LoadBalancerTimeout: 5 * time.Minute,
		ServiceAnnotations: map[string]string{"example.com/subnets": "a,b", "service.beta.kubernetes.io/aws-load-balancer-internal": "true"},
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

// TestClusterFileFaults has a file in which every name and quantity of a cluster is wrong: all is said at once, each at its
// line.
func TestClusterFileFaults(t *testing.T) {
	const src = `apiVersion: cnibench/v1
kind: Plan
environment: kubernetes
kubernetes:
  clientNode: Node_1
  serverNode: -n2
  nodeSelector:
    pool: net
    "a b": c
    zone: "x y"
  image: https://example.com/cnibench
  cpuRequest: "2"
  cpuLimit: 500m
  memoryRequest: "0"
  cpus: many
  loadBalancerClass: a/b/c
  serviceAnnotations:
    fine: "yes"
    Example.com/fine: "yes"
    example.com/: "no"
  loadBalancerTimeout: 1ms
`
	_, err := Parse("p", strings.NewReader(src))
	var got []string
	var fs position.Faults
	if errors.As(err, &fs) {
		for _, f := range fs {
			got = append(got, fmt.Sprintf("%d %s %s", f.Line, f.Field, strings.Join(strings.Fields(f.Message)[:2], " ")))
		}
	}
	want := []string{
		`5 kubernetes.clientNode "Node_1" is`,
		`6 kubernetes.serverNode "-n2" is`,
		`9 kubernetes.nodeSelector "a b"`,
		`10 kubernetes.nodeSelector "x y"`,
		`11 kubernetes.image "https://example.com/cnibench" is`,
		`12 kubernetes.cpuRequest 2 is`,
		`14 kubernetes.memoryRequest "0" is`,
		`15 kubernetes.cpus "many" is`,
		`16 kubernetes.loadBalancerClass class "a/b/c":`,
		`20 kubernetes.serviceAnnotations annotation "example.com/":`,
		`21 kubernetes.loadBalancerTimeout 1ms is`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s\n%v", diff, err)
	}
}

// TestFileForBoth: a file that says no environment is judged by that of the command line, and one that says it by its own.
func TestFileForBoth(t *testing.T) {
	const src = "apiVersion: cnibench/v1\nkind: Plan\n"
	for _, tt := range []struct{ name, src, environment, want string }{
		{"detected", "profiles: [detected]", EnvKubernetes, ""},
		{"the lab's zero, too", "profiles: [raw, my-cni]\nbaseline: raw\nlab: {delay: 1ms}", EnvKubernetes, ""},
		{"no profiles for the lab", "\nprofiles: [detected]", "", `p:4: profiles: unknown profile "detected"`},
		{"of the cluster", "profiles: [detected]\nkubernetes:\n  clientNode: A", EnvKubernetes, `p:5: kubernetes.clientNode: "A" is not the name of a node`},
		{"says the lab", "environment: lab\nprofiles: [detected]", EnvKubernetes, `p:4: profiles: unknown profile "detected"`},
		{"says the cluster", "environment: kubernetes\nlab: {delay: 1ms}", EnvKubernetes, "p:4: lab.delay: applies to the lab"},
		{"says the cluster and the lab's zero", "environment: kubernetes\nprofiles: [raw]", EnvKubernetes, "p:4: profiles: raw exists only in the lab"},
		{"a slip", "environment: kubernets\nprofiles: [detected]", "", `p:3: environment: "kubernets" is not one of lab, kubernetes, kind, did you mean "kubernetes"?`},
		{"a slip that is overruled", "environment: kubernets\nprofiles: [detected]", EnvKubernetes, `p:3: environment: "kubernets" is not one of`},
		{"a slip in the key", "enviroment: kubernetes\nprofiles: [detected]", "", `p:3: unknown key "enviroment", did you mean "environment"?`},
		{"a slip in both", "enviroment: kubernets\nprofiles: [detected]", "", `p:3: unknown key "enviroment", did you mean "environment"?`},
	} {
		p, f, err := Read("p", strings.NewReader(src+tt.src), tt.environment)
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		p = p.Settle()
		err = append(f.Faults(), f.Place(p.Validate())...).Err()
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.HasPrefix(err.Error(), tt.want) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%s: got\n%v\nwant\n%s", tt.name, err, tt.want)
		}
		if tt.want == "" && (p.Warmup != ClusterWarmup || slices.Contains(p.Profiles, VariantOf("raw"))) {
			t.Errorf("%s: settled as %s with a warm-up of %s", tt.name, p.Profiles, p.Warmup)
		}
	}
}

func FuzzParseToleration(f *testing.F) {
	f.Add("a=b:NoSchedule")
	f.Add("*:NoExecute")
	f.Fuzz(func(t *testing.T, s string) {
		if tol, err := kubetext.ParseToleration(s); err == nil && tol.Exists && tol.Value != "" {
			t.Errorf("%q: %+v", s, tol)
		}
	})
}

// TestTwinOfACluster: a cluster's own bare node may be measured twice, and one context that is named stays in the name.
func TestTwinOfACluster(t *testing.T) {
	p := onCluster(t, func(p *Plan) {
		p.Cluster.Contexts = []string{"a"}
		p.Profiles = []Variant{VariantOf(Detected).At("a"), VariantOf("host").At("a").Twin()}
		p.Baseline = VariantOf("host").At("a")
	}).Resolve(map[string]string{"a": "canal"})
	if want := Variants("canal@a", "host@a"+twinSuffix); !slices.Equal(p.Profiles, want) {
		t.Errorf("profiles %q, want %q", p.Profiles, want)
	}
	if err := p.Validate(); err != nil {
		t.Error(err)
	}
	p.Profiles = Variants("host@b" + twinSuffix)
	if err := p.Validate(); err == nil || !strings.Contains(err.Error(), "names a context") {
		t.Errorf("a twin on a cluster that is not there: %v", err)
	}
}

// TestDetectedBaseline: where there is no bare node to compare with, it is the CNI that is found, on the first cluster.
func TestDetectedBaseline(t *testing.T) {
	for _, tt := range []struct {
		baseline Variant
		contexts []string
		found    map[string]string
		want     Variant
	}{
		{VariantOf(Detected), nil, map[string]string{"": "canal"}, VariantOf("canal")},
		{VariantOf(Detected), []string{"b", "a"}, map[string]string{"a": "canal", "b": "ptp"}, VariantOf("ptp@b")},
		{VariantOf(Detected).At("a"), []string{"b", "a"}, map[string]string{"a": "canal", "b": "ptp"}, VariantOf("canal@a")},
		{VariantOf(Detected), []string{"a"}, map[string]string{"a": "canal"}, VariantOf("canal")}, // as the profile is called there
		{VariantOf("host"), nil, map[string]string{"": "canal"}, VariantOf("host")},
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

// TestBroughtProfiles: what the run is to install has to be of the catalogue; what stands on a cluster need not.
func TestBroughtProfiles(t *testing.T) {
	for _, tt := range []struct {
		environment string
		install     bool
		profiles    []Variant
		want        string
	}{
		{EnvKubernetes, false, Variants("kindnet"), ""},
		{EnvKubernetes, false, Variants("my-cni", "aws-vpc", "cilium-native-2", "calico-vpp"), ""},
		{EnvKubernetes, false, Variants("cillium-native"), `unknown profile "cillium-native", did you mean "cilium-native"?`},
		{EnvKubernetes, false, Variants("aws-vcp"), `unknown profile "aws-vcp", did you mean "aws-vpc"?`},
		{EnvKubernetes, true, Variants("antrea"), `unknown profile "antrea": Antrea is measured on a cluster that runs it: cnibench run --env kubernetes`},
		{EnvKubernetes, true, Variants("canal", "weave"), `unknown profile "weave"`},
		{EnvKubernetes, true, Variants(Detected), "name the profiles to install"},
		{EnvKind, false, Variants("canal", "host"), ""},
		{EnvKind, false, Variants("cilium-nativ"), `unknown profile "cilium-nativ", did you mean "cilium-native"?`},
		{EnvKind, false, Variants(Detected), "name the profiles to install"},
	} {
		p := onCluster(t, func(p *Plan) {
			p.Environment, p.Cluster.Install, p.Profiles = tt.environment, tt.install, tt.profiles
		})
		err := p.Validate()
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s, install %v, %q: %v", tt.environment, tt.install, tt.profiles, err)
		}
	}
}

// Lists of CPUs as the kernel writes them, and what is none.
func TestParseCPUs(t *testing.T) {
	for list, want := range map[string][]int{"0\n": {0}, "0-2,5\n": {0, 1, 2, 5}, "3,1": {1, 3}} {
		if got, err := number.ParseCPUs(list); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v, %v", list, got, err)
		}
	}
	for _, list := range []string{"", "a", "2-1", "0-99999999"} {
		if got, err := number.ParseCPUs(list); err == nil {
			t.Errorf("%q: %v", list, got)
		}
	}
}

// TestRequestWithinLimit compares quantities in every way of writing them.
func TestRequestWithinLimit(t *testing.T) {
	for _, tt := range []struct {
		request, limit string
		wrong          bool
	}{
		{"500m", "2", false}, {"700m", "0.7", false}, {"0.7", "700m", false}, {"1", "1", false}, {"4", "", false}, {"", "1", false},
		{"2", "500m", true}, {"1.001", "1", true}, {"1k", "999", true}, {"1Ki", "1k", true},
	} {
		p := onCluster(t, func(p *Plan) { p.Cluster.CPURequest, p.Cluster.CPULimit = tt.request, tt.limit })
		err := p.Validate()
		if (err != nil) != tt.wrong || err != nil && !strings.HasPrefix(err.Error(), "kubernetes.cpuRequest: "+tt.request+" is more than the limit of "+tt.limit) {
			t.Errorf("%q of %q: %v", tt.request, tt.limit, err)
		}
	}
}

// TestSecretFaults: the plan names all of them at once.
func TestSecretFaults(t *testing.T) {
	text := strings.Replace(clusterFile, "pullSecrets: [pull]", "pullSecrets: [pull, a/b/c, team/pull, team/other]", 1)
	_, err := Parse("plan.yaml", strings.NewReader(text))
	for _, want := range []string{`plan.yaml:12: kubernetes.pullSecrets: image pull Secret "a/b/c"`, `"pull" and "team/pull": the copies of both would be called pull`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is not in\n%v", want, err)
		}
	}
	if err != nil && strings.Contains(err.Error(), "other") {
		t.Errorf("a good one is a fault: %v", err)
	}
}
