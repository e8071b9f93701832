package plan

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/profile"
)

// Names of the environments.
const (
	EnvLab        = "lab"
	EnvKubernetes = "kubernetes"
	// EnvKind is Kubernetes on clusters that the run makes for its profiles, and deletes.
	EnvKind = "kind"
)

// Detected is the profile of a cluster whose CNI is yet to be found out: the run replaces it by the name of what it finds.
const Detected = "detected"

// What a plan for a cluster has where it says nothing else.
const (
	// DefaultTTL is how long the objects of a run may live when nobody is left to delete them.
	DefaultTTL = time.Hour
	// ClusterWarmup is longer than the lab's: the queues and CPUs of real machines need it.
	ClusterWarmup = 100 * time.Millisecond
	// betweenClusterTrials is what a trial costs there besides its warm-up and window: its messages go by way of the API
	// server and the kubelet.
	betweenClusterTrials = 60 * time.Millisecond
	shortestClusterFit   = 500 * time.Millisecond
)

// Cluster has the conditions of a run on Kubernetes. The family of addresses and the externalTrafficPolicy are those of Lab.
type Cluster struct {
	// Contexts are those of the kubeconfig that are measured, interleaved if there are several; none is the current one.
	Contexts []string `json:"contexts,omitempty"`
	// ClientNode and ServerNode are the nodes of the path; "" leaves the choice to the run.
	ClientNode string `json:"client_node,omitempty"`
	ServerNode string `json:"server_node,omitempty"`
	// NodeSelector bounds the choice; Tolerations are written key[=value][:effect].
	NodeSelector map[string]string `json:"node_selector,omitempty"`
	Tolerations  []string          `json:"tolerations,omitempty"`
	// Image is that of the agents; "" is the one that cnibench image makes of this version. PullSecrets are Secrets as
	// namespace/name, or name in the namespace default, copied into that of the run.
	Image       string   `json:"image,omitempty"`
	PullSecrets []string `json:"pull_secrets,omitempty"`
	// CPURequest, MemoryRequest and CPULimit are quantities for each agent's pod; no limit is "".
	CPURequest    string `json:"cpu_request,omitempty"`
	MemoryRequest string `json:"memory_request,omitempty"`
	CPULimit      string `json:"cpu_limit,omitempty"`
	// CPUs are those that load runs on, on every node; none leaves it to the kernel's scheduler.
	CPUs []int `json:"cpus,omitempty"`
	// SessionAffinity makes the measured Services keep a client with one backend.
	SessionAffinity bool `json:"session_affinity,omitempty"`
	// Inspect puts a pod with the rights to look on both nodes, to prove what runs there; otherwise some of it stays unproven.
	Inspect bool `json:"inspect,omitempty"`
	// Install installs each profile in turn, measures it and removes it again; otherwise what stands there is measured.
	Install bool `json:"install,omitempty"`
	// TTL is how long the objects may live when nobody is left to delete them, 1 minute to a week.
	TTL time.Duration `json:"ttl,omitempty"`
}

// OnCluster says whether p is measured on Kubernetes.
func (p Plan) OnCluster() bool { return p.Environment == EnvKubernetes || p.Environment == EnvKind }

// settleCluster is what follows from the environment: on a cluster stands one CNI and not the lab's many, and the zero of
// the comparison is the bare node.
func (p Plan) settleCluster() Plan {
	if !p.OnCluster() {
		return p
	}
	usual := Default()
	if slices.Equal(p.Profiles, usual.Profiles) {
		p.Profiles = []string{Detected}
	}
	p.Profiles = slices.DeleteFunc(slices.Clone(p.Profiles), func(s string) bool { return s == profile.Raw })
	if p.Baseline == usual.Baseline {
		p.Baseline = profile.Host
		if len(p.Cluster.Contexts) > 1 {
			p.Baseline = At(profile.Host, p.Cluster.Contexts[0])
		}
	}
	if p.Cluster.TTL == 0 {
		p.Cluster.TTL = max(DefaultTTL, 2*p.Budget)
	}
	return p
}

// At is the name of a profile on one of several clusters.
func At(name, context string) string { return name + "@" + context }

// CutContext takes a name apart that At has put together; context is "" where it has none.
func CutContext(name string) (profile, context string) {
	name, twin := strings.CutSuffix(name, TwinSuffix)
	profile, context, _ = strings.Cut(name, "@")
	if twin {
		profile += TwinSuffix
	}
	return profile, context
}

// Resolve returns p with each Detected, the baseline too, replaced by what was found, by context ("" for the current one): on
// several clusters each profile is called by its context, too.
func (p Plan) Resolve(found map[string]string) Plan {
	var names []string
	for _, name := range p.Profiles {
		base, context := CutContext(name)
		if base != Detected {
			names = append(names, name)
			continue
		}
		for _, c := range slices.Sorted(maps.Keys(found)) {
			switch {
			case context != "" && c != context:
			case len(found) > 1 || context != "":
				names = append(names, At(found[c], c))
			default:
				names = append(names, found[c])
			}
		}
	}
	p.Profiles = nil
	for _, name := range names {
		if !slices.Contains(p.Profiles, name) {
			p.Profiles = append(p.Profiles, name)
		}
	}
	p.Baseline = p.resolveBaseline(found)
	return p
}

// resolveBaseline returns the baseline, which is one even where there are several clusters: that of the first context.
func (p Plan) resolveBaseline(found map[string]string) string {
	base, context := CutContext(p.Baseline)
	if base != Detected {
		return p.Baseline
	}
	if context == "" && len(p.Cluster.Contexts) > 1 {
		context = p.Cluster.Contexts[0]
	}
	if context != "" {
		return At(found[context], context)
	}
	for _, name := range found {
		return name // the only one
	}
	return p.Baseline
}

// clusterName is how a CNI may be called that the catalogue does not know: like an object of Kubernetes.
var clusterName = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$`)

// validClusterProfile takes what may stand on a cluster: one of the catalogue, another CNI by its name, or Detected.
func (fs *Faults) validClusterProfile(field, name string, c Cluster) {
	base, context := CutContext(strings.TrimSuffix(name, TwinSuffix))
	if !clusterName.MatchString(base) {
		fs.add(field, "%q is not the name of a profile", name)
	}
	if base == profile.Raw {
		fs.add(field, "raw is of the lab only: the zero of a cluster is host")
	}
	if context != "" && !slices.Contains(c.Contexts, context) {
		fs.add(field, "%q names a context that is not among kubernetes.contexts", name)
	}
}

func (fs *Faults) validCluster(p Plan) {
	c := p.Cluster
	if c.TTL != 0 && (c.TTL < time.Minute || c.TTL > 7*24*time.Hour) {
		fs.add("kubernetes.ttl", "%s is out of range: want 1m to 168h", c.TTL)
	}
	if c.TTL != 0 && p.Budget > 0 && c.TTL < p.Budget {
		fs.add("kubernetes.ttl", "%s is less than the budget of %s: the pods would end within the run", c.TTL, p.Budget)
	}
	if c.ClientNode != "" && c.ClientNode == c.ServerNode {
		fs.add("kubernetes.serverNode", "%q is the client's node, too: paths across nodes need two", c.ServerNode)
	}
	for i, context := range c.Contexts {
		if context == "" || slices.Index(c.Contexts, context) != i {
			fs.add("kubernetes.contexts", "%q is given twice, or has no name", context)
		}
	}
	for _, t := range c.Tolerations {
		if _, err := ParseToleration(t); err != nil {
			fs.add("kubernetes.tolerations", "%s", err)
		}
	}
	for _, q := range []struct{ field, text string }{{"cpuRequest", c.CPURequest}, {"memoryRequest", c.MemoryRequest}, {"cpuLimit", c.CPULimit}} {
		if q.text != "" && !quantity.MatchString(q.text) {
			fs.add("kubernetes."+q.field, "%q is not a quantity such as 500m, 2 or 64Mi", q.text)
		}
	}
	for _, cpu := range c.CPUs {
		if cpu < 0 || cpu > 4095 {
			fs.add("kubernetes.cpus", "%d is no CPU", cpu)
		}
	}
	if c.Install && len(c.Contexts) > 1 {
		fs.add("kubernetes.install", "installing in turn is for one cluster, and %d contexts are given", len(c.Contexts))
	}
	if c.Install && slices.Contains(p.Profiles, Detected) {
		fs.add("profiles", "which profiles are to be installed in turn is not said")
	}
	if p.Lab.Policies+p.Lab.PoliciesUnselected > 0 {
		fs.add("lab.policies", "NetworkPolicies on a cluster are for its owner to put there")
	}
}

// quantity is the part of Kubernetes' quantities that requests are written in.
var quantity = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?(m|k|M|G|T|Ki|Mi|Gi|Ti)?$`)

// Toleration is one of a pod's.
type Toleration struct {
	Key, Value, Effect string
	// Exists tolerates the key with any value.
	Exists bool
}

// effects are those of taints.
var effects = []string{"NoSchedule", "PreferNoSchedule", "NoExecute"}

// ParseToleration reads key[=value][:effect]; "*" as the key tolerates everything.
func ParseToleration(s string) (Toleration, error) {
	rest, effect, has := strings.Cut(s, ":")
	if has && !slices.Contains(effects, effect) {
		return Toleration{}, fmt.Errorf("toleration %q: effect %q is not one of %s", s, effect, strings.Join(effects, ", "))
	}
	key, value, valued := strings.Cut(rest, "=")
	if key == "" || strings.ContainsAny(rest, " \t") {
		return Toleration{}, fmt.Errorf("toleration %q: want key[=value][:effect]", s)
	}
	if key == "*" {
		if valued {
			return Toleration{}, fmt.Errorf("toleration %q: every key has no one value", s)
		}
		key = ""
	}
	return Toleration{Key: key, Value: value, Effect: effect, Exists: !valued}, nil
}

// ParseLabels reads name=value,name=value.
func ParseLabels(s string) (map[string]string, error) {
	labels := map[string]string{}
	for part := range strings.SplitSeq(s, ",") {
		name, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("%q is not name=value", part)
		}
		labels[name] = value
	}
	return labels, nil
}

// ParseCPUs reads numbers of CPUs as the kernel writes them: "1", "0-3,6". The result rises.
func ParseCPUs(s string) ([]int, error) {
	var cpus []int
	for part := range strings.SplitSeq(s, ",") {
		low, high, ranged := strings.Cut(strings.TrimSpace(part), "-")
		first, err := strconv.ParseUint(low, 10, 12)
		last := first
		if err == nil && ranged {
			last, err = strconv.ParseUint(high, 10, 12)
		}
		if err != nil || last < first {
			return nil, fmt.Errorf("%q is not a list of CPUs such as 1 or 0-3,6", s)
		}
		for n := first; n <= last; n++ {
			cpus = append(cpus, int(n))
		}
	}
	slices.Sort(cpus)
	return slices.Compact(cpus), nil
}
