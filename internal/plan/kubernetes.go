package plan

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/plan/kubetext"
	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/vocab/advice"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/pattern"
)

// Names of the environments.
const (
	EnvLab        = "lab"
	EnvKubernetes = "kubernetes"
	// EnvKind is Kubernetes on clusters that the run itself creates with kind, one for each profile, and deletes.
	EnvKind = "kind"
)

var environments = []string{EnvLab, EnvKubernetes, EnvKind}

// Detected is the profile of a cluster whose CNI is not known yet. The run replaces it with the name of the CNI that it
// detects.
const Detected = "detected"

// Defaults of a plan for a cluster.
const (
	// leastTTL and longestTTL bound the lifetime of a run's objects, which remain if the run is killed.
	leastTTL   = time.Hour
	longestTTL = 7 * 24 * time.Hour
	// aroundTrials is how much time a run without a budget takes at most in addition to its trials: for images,
	// addresses of load balancers and proofs.
	aroundTrials = 15 * time.Minute
	// searchWindows is how many windows the probes of a throughput search take at most.
	searchWindows = 10
	// ClusterWarmup is longer than the lab's: the queues and CPUs of real machines need it.
	ClusterWarmup = 100 * time.Millisecond
	// betweenClusterTrials is the time that a trial takes on a cluster in addition to its warm-up and window: its messages
	// pass the API server and the kubelet.
	betweenClusterTrials = 60 * time.Millisecond
	// DefaultBalancerTimeout is how long a run waits for the address of a load balancer: in clouds it takes a minute or
	// more.
	DefaultBalancerTimeout = 2 * time.Minute
	shortestClusterFit     = 500 * time.Millisecond
)

// Cluster has the conditions of a run on Kubernetes. The family of addresses and the externalTrafficPolicy are in Lab.
type Cluster struct {
	// Contexts are the contexts of the kubeconfig to measure, interleaved if there are several; an empty list means the
	// current context.
	Contexts []string `json:"contexts,omitempty"`
	// ClientNode and ServerNode are the nodes of the path. If one is "", the run chooses a node that NodeSelector selects.
	ClientNode   string            `json:"client_node,omitempty"`
	ServerNode   string            `json:"server_node,omitempty"`
	NodeSelector map[string]string `json:"node_selector,omitempty"`
	// Tolerations are written key[=value][:effect].
	Tolerations []string `json:"tolerations,omitempty"`
	// Image is the image of the agents; "" is the image that cnibench image makes of this version.
	Image string `json:"image,omitempty"`
	// PullSecrets are Secrets that the run copies into its namespace: namespace/name, or name for a Secret in the namespace
	// of the kubeconfig's context.
	PullSecrets []string `json:"pull_secrets,omitempty"`
	// CPURequest, MemoryRequest, CPULimit and MemoryLimit are quantities for each agent's pod; "" means no request or limit.
	CPURequest    string `json:"cpu_request,omitempty"`
	MemoryRequest string `json:"memory_request,omitempty"`
	CPULimit      string `json:"cpu_limit,omitempty"`
	MemoryLimit   string `json:"memory_limit,omitempty"`
	// BackendCPULimit is the CPU limit of each backend, for workloads with several backends; "" means CPULimit.
	BackendCPULimit string `json:"backend_cpu_limit,omitempty"`
	// CPUs are the CPUs for the load, on every node. With an empty list the kernel's scheduler chooses.
	CPUs            []int `json:"cpus,omitempty"`
	SessionAffinity bool  `json:"session_affinity,omitempty"`
	// LoadBalancerClass and ServiceAnnotations choose one of several load balancers of a cluster.
	LoadBalancerClass  string            `json:"load_balancer_class,omitempty"`
	ServiceAnnotations map[string]string `json:"service_annotations,omitempty"`
	// LoadBalancerTimeout bounds the wait for the address of a load balancer; 0 is DefaultBalancerTimeout.
	LoadBalancerTimeout time.Duration `json:"load_balancer_timeout,omitempty"`
	// Inspect puts a privileged pod on both nodes; without it some proofs are missing.
	Inspect bool `json:"inspect,omitempty"`
	// Install installs each profile in turn, measures it and removes it again; otherwise the installed CNI is measured.
	Install bool `json:"install,omitempty"`
	// TTL is how long the objects of a killed run may exist; 0 means Lifetime's default.
	TTL time.Duration `json:"ttl,omitempty"`
}

// OnCluster reports whether p is measured on Kubernetes.
func (p Plan) OnCluster() bool { return p.Environment == EnvKubernetes || p.Environment == EnvKind }

// Beside reports whether p measures profiles in the lab in addition to those on clusters. A variant without a context
// is measured in the lab.
func (p Plan) Beside() bool {
	inLab := func(v Variant) bool { return v.Context() == "" }
	lab := each.Where(p.Profiles, inLab)
	return p.OnCluster() && len(lab) > 0 && len(lab) < len(p.Profiles)
}

// withClusterDefaults returns a plan for a cluster with the defaults of the lab replaced: the default profiles by Detected
// and the default baseline by host. It also removes raw. A plan for the lab is returned unchanged.
func (p Plan) withClusterDefaults() Plan {
	if !p.OnCluster() {
		return p
	}
	usual := Default()
	if slices.Equal(p.Profiles, usual.Profiles) {
		p.Profiles = Variants(Detected)
	}
	p.Profiles = each.Where(p.Profiles, func(v Variant) bool { return v.Profile() != profile.Raw })
	if p.Baseline == usual.Baseline {
		p.Baseline = VariantOf(profile.Host)
		if len(p.Cluster.Contexts) > 1 {
			p.Baseline = VariantOf(profile.Host).At(p.Cluster.Contexts[0])
		}
	}
	return p
}

// Lifetime returns how long the objects of a run on a cluster may exist. It is the TTL, or else twice the maximum time
// of the run, at least an hour and at most a week. The maximum time is the budget, or an estimate with the most
// repetitions. For pairs of nodes without a budget, Lifetime returns a week.
func (p Plan) Lifetime() time.Duration {
	switch {
	case p.Cluster.TTL != 0:
		return p.Cluster.TTL
	case p.Budget > 0:
		return max(leastTTL, 2*min(p.Budget, longestTTL/2))
	case p.Pairs.Given(): // only the cluster knows their number
		return longestTTL
	}
	return min(max(leastTTL, 2*p.longestRunTime()+aroundTrials), longestTTL)
}

// longestRunTime returns an estimate of how long the measurement takes with the most repetitions, if throughput searches
// send as many probes as they may.
func (p Plan) longestRunTime() time.Duration {
	p = p.withEveryContext()
	cases := p.Cases()
	p = p.Fit(len(cases))
	var once time.Duration
	for _, c := range cases {
		once += p.TrialTime()
		if c.Workload.Traits().Searches {
			once += searchWindows * p.Duration
		}
	}
	const most = 1 << 60 // decades, twice which still fits a Duration
	repetitions := time.Duration(max(p.Repetitions, p.MaxRepetitions, 1))
	if once > most/repetitions {
		return most
	}
	return repetitions * once
}

// withEveryContext returns p with the profile Detected once for each context. So the cases can be counted before the CNIs
// of the clusters are known.
func (p Plan) withEveryContext() Plan {
	yet := map[string]string{}
	for _, c := range p.Cluster.Contexts {
		yet[c] = Detected
	}
	if len(yet) == 0 {
		yet[""] = Detected
	}
	return p.Resolve(yet)
}

// isLabOnly reports whether a key of a plan file applies only to the lab. A cluster has its own nodes, links, Services
// and policies.
func isLabOnly(field string) bool {
	return slices.ContainsFunc(Settings(), func(s Setting) bool { return s.Key == field && s.Where == inLab })
}

// WithoutLab returns p with the settings that apply only to the lab at their defaults, and the keys of the settings
// that it changed. A plan file for both environments may have such settings; the result of a cluster must not.
func (p Plan) WithoutLab() (Plan, []string) {
	usual := Default()
	var changed []string
	for _, s := range Settings() {
		if s.Where == inLab && s.Text(p) != s.Text(usual) {
			changed = append(changed, s.Key)
			_ = s.Set(&p, s.Text(usual)) // Set accepts every result of Text
		}
	}
	return p, changed
}

// Resolve returns p with the profile Detected replaced by the CNIs in found, in the baseline too. The keys of found are
// contexts, "" for the current context. With several clusters, the variants include their context.
func (p Plan) Resolve(found map[string]string) Plan {
	var names []Variant
	for _, name := range p.Profiles {
		context := name.Context()
		if name.Profile() != Detected {
			names = append(names, name)
			continue
		}
		for _, c := range slices.Sorted(maps.Keys(found)) {
			switch {
			case context != "" && c != context:
			case len(found) > 1 || context != "":
				names = append(names, VariantOf(found[c]).At(c))
			default:
				names = append(names, VariantOf(found[c]))
			}
		}
	}
	p.Profiles = each.Once(names)
	p.Baseline = p.resolveBaseline(found)
	return p
}

// resolveBaseline returns the baseline, with Detected replaced by the CNI in found. With several clusters it is the CNI of
// the first context, unless the baseline names another.
func (p Plan) resolveBaseline(found map[string]string) Variant {
	context := p.Baseline.Context()
	if p.Baseline.Profile() != Detected {
		return p.Baseline
	}
	if context == "" && len(p.Cluster.Contexts) > 1 {
		context = p.Cluster.Contexts[0]
	}
	if context != "" {
		return VariantOf(found[context]).At(context)
	}
	for _, name := range found {
		return VariantOf(name) // the only one
	}
	return p.Baseline
}

// clusterName matches the name of a CNI outside the catalogue: the name of an object of Kubernetes.
var clusterName = pattern.New(`^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$`)

// installsCNIs reports whether the run installs the CNIs that it measures. It must then know their profiles.
func (p Plan) installsCNIs() bool { return p.Environment == EnvKind || p.Cluster.Install }

// checkClusterProfile adds a fault if a variant cannot be measured on a cluster. The profile must be one of the catalogue
// except raw, or Detected; if the run installs no CNI, any other name is allowed too. It also checks conditions and context.
func (fs *faults) checkClusterProfile(field string, name Variant, p Plan) {
	base, context := name.Profile(), name.Context()
	switch {
	case name.hasCondition(isLabCondition):
		fs.Add(field, "%s: on a cluster, a variant may have version and set.KEY; other conditions are for the lab", name)
	case name.hasCondition(isRecipeCondition) && !p.installsCNIs():
		fs.Add(field, "%s: version and set.KEY are for what the run installs: add --install or --env kind", name)
	case name.hasCondition(isRecipeCondition) && base == profile.Host:
		fs.Add(field, "%s: nothing is installed for host", name)
	case !clusterName.MatchString(base):
		fs.Add(field, "%q is not the name of a profile", name)
	case p.installsCNIs() && base != Detected:
		fs.checkProfile(field, VariantOf(base))
	default:
		if meant := suggestedName(base); meant != "" {
			fs.Add(field, "unknown profile %q, did you mean %q? If not, choose a name that is less like it", base, meant)
		}
	}
	if base == profile.Raw {
		fs.Add(field, "raw exists only in the lab: on a cluster the zero is host")
	}
	if context != "" && !slices.Contains(p.Cluster.Contexts, context) {
		fs.Add(field, "%q names a context that is not among kubernetes.contexts", name)
	}
}

// suggestedName returns the profile or CNI whose name differs from name by one or two typing errors. It returns "" if
// there is none, and for names that begin with a known name, such as cilium-native-2: users may name a cluster's CNI.
func suggestedName(name string) string {
	names := append(profile.Names(), Detected)
	names = append(names, each.Of(profile.CNIs(), func(c profile.CNI) string { return c.Name })...)
	longer := func(n string) bool { return strings.HasPrefix(name, n) }
	if slices.ContainsFunc(names, longer) {
		return ""
	}
	return advice.Slip(name, names)
}

// checkTTL adds a fault if the lifetime of the run's objects is out of range or shorter than the run.
func (fs *faults) checkTTL(p Plan) {
	ttl := p.Lifetime()
	if ttl < time.Minute || ttl > longestTTL {
		fs.Add("kubernetes.ttl", "%s is out of range: want 1m to 168h", ttl)
	}
	if p.Budget > 0 {
		if ttl < p.Budget {
			fs.Add("kubernetes.ttl", "%s is less than the budget of %s: the pods would end within the run", ttl, p.Budget)
		}
		return
	}
	cases := len(p.withEveryContext().Cases())
	if all := p.Fit(cases).Expected(cases); ttl < all {
		fs.Add("kubernetes.ttl", "%s is less than the %s or so that %d repetitions of %d cases take: the pods would end within the run; "+
			"give it more, at most 168h, or the run a budget", ttl, all.Round(time.Second), p.Repetitions, cases)
	}
}

func (fs *faults) checkCluster(p Plan) {
	c := p.Cluster
	for _, w := range p.Workloads {
		if w.nicModel() != "" {
			fs.Add("workloads", "%s: nic is for the lab, and the NICs of a cluster are what they are: leave nic out", w)
		}
	}
	if p.Explain && !c.Inspect {
		fs.Add("explain", "the CPUs of a cluster are sampled by privileged pods: add --inspect, which allows them, or leave out --explain")
	}
	fs.checkTTL(p)
	for _, name := range slices.Sorted(maps.Keys(c.NodeSelector)) {
		if !kubetext.IsQualified(name) {
			fs.AddItem("kubernetes.nodeSelector", name, "%q is not the name of a label: want name or prefix/name, such as pool or example.com/pool", name)
		}
		if value := c.NodeSelector[name]; !kubetext.IsLabelValue(value) {
			fs.AddItem("kubernetes.nodeSelector", name, "%q is not the value of a label (%s): want at most 63 letters, digits, -, _ and ., "+
				"the first and the last of them a letter or digit", value, name)
		}
	}
	if c.ClientNode != "" && c.ClientNode == c.ServerNode {
		fs.Add("kubernetes.serverNode", "%q is the client's node, too: paths across nodes need two", c.ServerNode)
	}
	for i, context := range c.Contexts {
		if context == "" || slices.Index(c.Contexts, context) != i {
			fs.Add("kubernetes.contexts", "%q is given twice, or has no name", context)
		}
	}
	for _, t := range c.Tolerations {
		if _, err := kubetext.ParseToleration(t); err != nil {
			fs.Add("kubernetes.tolerations", "%s", err)
		}
	}
	for _, err := range kubetext.SecretFaults(c.PullSecrets) {
		fs.Add("kubernetes.pullSecrets", "%s", err)
	}
	for _, r := range []struct{ key, request, limit, limitKey string }{
		{"cpuRequest", c.CPURequest, c.CPULimit, "cpuLimit"}, {"cpuRequest", c.CPURequest, c.BackendCPULimit, "backendCPULimit"},
		{"memoryRequest", c.MemoryRequest, c.MemoryLimit, "memoryLimit"},
	} {
		if request, limit := quantityValue(r.request), quantityValue(r.limit); limit > 0 && request > limit {
			fs.Add("kubernetes."+r.key, "%s is more than the limit of %s (%s)", r.request, r.limit, r.limitKey)
		}
	}
	fs.checkBalancer(c)
	if c.Install && len(c.Contexts) > 1 {
		fs.Add("kubernetes.install", "installing in turn is for one cluster, and %d contexts are given", len(c.Contexts))
	}
	if p.installsCNIs() && slices.Contains(p.Profiles, VariantOf(Detected)) {
		fs.Add("profiles", "name the profiles to install")
	}
	if p.Lab.Policies+p.Lab.PoliciesUnselected > 0 {
		fs.Add("lab.policies", "a run creates no NetworkPolicies on a cluster: create them there, or leave this out")
	}
}

// quantity matches the quantities of Kubernetes that a plan may use.
var quantity = pattern.New(`^[0-9]+(\.[0-9]+)?(m|k|M|G|T|Ki|Mi|Gi|Ti)?$`)

// multiples are the factors of the suffixes of quantities.
var multiples = map[string]float64{"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40}

// quantityValue returns the value of a quantity, 0 if the text is not one.
func quantityValue(text string) float64 {
	m := quantity.FindStringSubmatch(text)
	if m == nil {
		return 0
	}
	number, err := strconv.ParseFloat(strings.TrimSuffix(text, m[2]), 64)
	switch {
	case err != nil: // a number beyond the range
		return 0
	case m[2] == "m":
		return number / 1000 // exact, while multiplying by 0.001 would not be
	case m[2] != "":
		return number * multiples[m[2]]
	}
	return number
}

// checkBalancer adds faults for a class or annotations that a Service of type LoadBalancer cannot have.
func (fs *faults) checkBalancer(c Cluster) {
	const want = "want name or prefix/name, such as internal or example.com/internal"
	if c.LoadBalancerClass != "" && !kubetext.IsQualified(c.LoadBalancerClass) {
		fs.Add("kubernetes.loadBalancerClass", "class %q: %s", c.LoadBalancerClass, want)
	}
	for _, name := range slices.Sorted(maps.Keys(c.ServiceAnnotations)) {
		if !kubetext.IsQualified(strings.ToLower(name)) { // as Kubernetes does, which accepts the prefix of annotations in any case
			fs.AddItem("kubernetes.serviceAnnotations", name, "annotation %q: %s", name, want)
		}
	}
}
