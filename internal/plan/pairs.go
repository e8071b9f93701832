package plan

import (
	"slices"

	"github.com/cnibench/cnibench/internal/plan/mesh"
)

// maxAtOnce is the largest number of pairs of nodes that may be measured at the same time.
const maxAtOnce = 500

// pairPaths are the default paths of a run over pairs of nodes. They show the network of the hosts and the network of
// the pods.
var pairPaths = []Path{{Host, Host, CrossNode}, {Pod, Pod, CrossNode}}

// pairProfile is the default profile of a run over pairs of nodes in the lab.
const pairProfile = "calico-vxlan"

// ForPairs returns p with the defaults of a run over pairs of nodes: all nodes of the lab, two repetitions (one in each
// direction), and stream and rr between hosts and between pods. It does not change a setting if given returns true for
// its key. Without pairs, it only gives the lab a node for each member of a job.
func (p Plan) ForPairs(given func(key string) bool) Plan {
	if !p.Pairs.Given() {
		return p.withJobNodes(given)
	}
	set := func(key string, do func()) {
		if !given(key) {
			do()
		}
	}
	if !p.OnCluster() {
		set("lab.nodes", func() { p.Lab.Nodes = MaxNodes })
		set("profiles", func() { p.Profiles = Variants(pairProfile) })
		set("baseline", func() { p.Baseline = p.Profiles[0] })
	} else { // the network of the hosts is measured too in any case
		set("baseline", func() { p.Baseline = VariantOf(Detected) })
	}
	set("paths", func() { p.Paths = slices.Clone(pairPaths) })
	set("workloads", func() {
		p.Workloads = []Workload{Workload{Spec: Stream{}}.Normalize(), Workload{Spec: RR{}}.Normalize()}
	})
	set("repetitions", func() { p.Repetitions = 2 })
	p.Twin = false
	return p
}

// Trials returns how many trials, one after the other, a repetition of this number of cases takes. Trials at the same
// time count as one. It returns cases if the plan has no pairs of nodes, and on a cluster, whose nodes are unknown.
func (p Plan) Trials(cases int) int {
	if !p.Pairs.Given() || p.OnCluster() || p.Pairs.Fits(mesh.LabNodes(p.Lab.Nodes)) != nil {
		return cases
	}
	return cases * p.Pairs.Schedule(mesh.LabNodes(p.Lab.Nodes), p.Seed).Turns(p.Pairs.AtOnce())
}

// checkPairs adds faults for pairs of nodes that contradict the rest of the plan.
func (fs *faults) checkPairs(p Plan) {
	if !p.Pairs.Given() {
		if p.Pairs.Concurrency > 1 {
			fs.Add("concurrency", "is for pairs of nodes: add pairs, or leave it out")
		}
		return
	}
	for _, path := range p.Paths {
		if path.Locality != CrossNode {
			fs.Add("paths", "%s is not measured between pairs of nodes: want paths that end in /%s and lead to a host or a pod", path, CrossNode)
		}
	}
	for _, w := range p.Workloads {
		if w.Spec == nil {
			continue
		}
		if is := w.Traits(); w.kindEntry().apart || is.Load > 0 || is.Job.Members > 0 {
			fs.Add("workloads", "%s is not measured between pairs of nodes", w)
		}
	}
	for _, c := range []struct {
		field string
		is    bool
	}{{"sweep", !p.Sweep.IsZero()}, {"precision", p.Precision > 0}, {"explain", p.Explain}, {"sequential", p.Sequential}, {"kubernetes.install", p.Cluster.Install},
		{"kubernetes.clientNode", p.Cluster.ClientNode != ""}, {"kubernetes.serverNode", p.Cluster.ServerNode != ""}} {
		if c.is {
			fs.Add(c.field, "has no meaning for pairs of nodes: leave it out, or measure one pair")
		}
	}
	if len(p.Cluster.Contexts) > 1 {
		fs.Add("kubernetes.contexts", "pairs of nodes are of one cluster: name one context")
	}
	if p.Environment == EnvKind {
		fs.Add("pairs", "a cluster that kind makes has few nodes: leave pairs out, or take --env kubernetes")
	}
	if p.OnCluster() || p.Lab.Nodes < 1 {
		return
	}
	for _, v := range p.Profiles {
		if v.setsCondition("nodes") {
			fs.Add("profiles", "%s: pairs of nodes need as many nodes of each profile: set nodes for all", v)
		}
	}
	fs.Faults = append(fs.Faults, p.Pairs.Fits(mesh.LabNodes(p.Lab.Nodes))...)
}
