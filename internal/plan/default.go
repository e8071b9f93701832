package plan

import (
	"math"
	"slices"
	"time"

	"github.com/cnibench/cnibench/internal/plan/condition"
	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// Bounds of a plan's fields.
const (
	MaxRepetitionsLimit = 1000
	minWindow           = time.Millisecond
	maxWindow           = time.Hour
	MaxNodes            = 16
	MaxPodsPerNode      = 250
	MaxServices         = 100_000
	MaxServices6        = 60_000 // in IPv6
	maxEndpoints        = 100_000
	maxPolicies         = 10_000
	maxStanding         = 1_000_000
)

// Parameters of Fit, for a plan that leaves the window open.
const (
	// shortestFit and LongestFit bound the window that Fit chooses.
	shortestFit = 50 * time.Millisecond
	LongestFit  = time.Second
	// fitShare is the share of the budget for windows. The rest is for raising the lab, for warm-ups, for the time
	// between trials, and for other work of the machine. fitSharePrecision is this share for a plan that may add
	// repetitions.
	fitShare          = 0.7
	fitSharePrecision = 0.35
	// fullShare is the share of the budget that trials may take with all their overhead.
	fullShare = 0.98
	// betweenTrials is the time that a trial takes in addition to its warm-up and window.
	betweenTrials = 6 * time.Millisecond
	// samplingTime is the additional time of a sampled trial: for its events, its programs and the names of functions.
	samplingTime = 150 * time.Millisecond
	// sampledWindows is how many windows a sampled trial lasts. Samples are rare, to keep their cost low.
	sampledWindows = 2
	// raiseTime is the time to replace the instance of one profile in the lab: to remove it, raise it again and start
	// its agents.
	raiseTime = 400 * time.Millisecond
	// renewTime is the time to replace all pods of a run on a cluster.
	renewTime = 6 * time.Second
	// raiseShare is the share of a run for raising profiles again. minInstances is the least number of instances of each
	// profile, if the run has that many repetitions.
	raiseShare   = 0.08
	minInstances = 5
	// raiseMost is the largest share of a budget for raising profiles again. It holds even if fewer instances than
	// minInstances remain.
	raiseMost = 0.375
)

// Parameters of FitRepetitions. mostFit is the largest number of repetitions, and fitWindow is the shortest window.
// Many short trials, spread over the run, show more than few long trials, because disturbances of a machine last for
// hundreds of milliseconds.
const (
	mostFit   = 12
	fitWindow = 250 * time.Millisecond
)

// Default returns the plan with the default of every key that a plan file or a command line leaves out.
func Default() Plan {
	return Plan{
		Environment: EnvLab,
		Profiles:    Variants(profile.Usual()...),
		Paths:       append([]Path(nil), NinePaths...),
		Workloads: []Workload{
			Workload{Spec: Stream{}}.Normalize(),
			Workload{Spec: RR{}}.Normalize(),
			Workload{Spec: CRR{}}.Normalize(),
		},
		Baseline:    VariantOf(profile.Raw),
		Twin:        true,
		Repetitions: 5,
		Warmup:      20 * time.Millisecond,
		Lab: Lab{
			Nodes: 2, PodsPerNode: 2, NIC: NICIdeal, GRO: condition.GROOff, BigTCP: condition.BigTCPOff, CPU: condition.PlacementAuto, RPS: condition.RPSAuto, MTU: 1500, Iptables: condition.IptablesAuto, ServiceProxy: condition.ProxyIptables,
			Family: 4, TrafficPolicy: condition.TrafficCluster, tracking: tracking{Conntrack: condition.ConntrackOn}, BridgeNetfilter: condition.BridgeNetfilterOn, wires: wires{Encryption: condition.EncryptionOff}, Endpoints: 2, Position: condition.PositionMiddle,
		},
	}
}

// Presets are the names of the presets. A run without arguments uses the first.
var Presets = []string{"standard", "quick", "thorough"}

// standardPaths are enough to compare dataplanes. They show the node's own cost, pods within a node and between nodes,
// and a Service within a node and between nodes.
var standardPaths = []Path{
	{Host, Host, CrossNode}, {Pod, Pod, SameNode}, {Pod, Pod, CrossNode}, {Pod, Service, Local}, {Pod, Service, Remote},
}

// quickPaths and quickProfiles are for a first answer: paths on which dataplanes differ most, and the dataplanes that
// most clusters choose from, including one with encryption.
var (
	quickPaths    = []Path{{Pod, Pod, CrossNode}, {Pod, Service, Remote}}
	quickProfiles = Variants("flannel-vxlan", "flannel-host-gw", "flannel-wireguard", "canal", "calico-vxlan", "calico-underlay",
		"calico-nftables", "calico-ebpf", "cilium-vxlan", "cilium-native", "cilium-netkit")
)

// withoutOffload is the stream without NIC offload. Presets measure it in addition to the stream with the lab's NIC
// model.
var withoutOffload = Workload{Spec: Stream{NIC: NICWire}}.Normalize()

// withoutUselessStream returns the plan of a preset without the workload withoutOffload if that workload is useless. It is
// useless on a cluster, if no path has a NIC, and if the conditions of a measured variant exclude it or make it equal to the
// other stream. Loads and tools may have been added to the preset's workloads. A plan with other workloads is returned
// unchanged.
func (p Plan) withoutUselessStream() Plan {
	chosen := slices.Compact(each.Of(p.Workloads, func(w Workload) Workload { return w.Without("load", "arrival", "tool") }))
	if !slices.Equal(chosen, append(Default().Workloads, withoutOffload)) {
		return p
	}
	useless := func(v Variant) bool {
		l := v.Lab(p.Lab)
		cut := l.NIC == NICWire
		l.NIC = NICWire
		return cut || l.whyContradictory() != ""
	}
	if p.OnCluster() || !slices.ContainsFunc(p.Paths, Path.Crosses) || slices.ContainsFunc(p.Measured(), useless) {
		p.Workloads = slices.DeleteFunc(slices.Clone(p.Workloads), func(w Workload) bool { return w.Without("tool") == withoutOffload })
	}
	return p
}

// Preset returns the plan of one of Presets. "standard" measures the usual profiles (profile.Usual) on five paths within
// four minutes; with fewer profiles it measures more repetitions (FitRepetitions). "quick" measures the profiles that most
// clusters choose from on two paths within a minute, including the lab's start and the report. "thorough" measures the usual
// profiles on the nine paths for half an hour, or until the intervals are within 5 %.
func Preset(name string) Plan {
	p := Default()
	p.Name = name
	p.Workloads = append(p.Workloads, withoutOffload)
	switch name {
	case "standard":
		p.Paths = append([]Path(nil), standardPaths...)
		p.Budget = 4 * time.Minute
	case "quick":
		p.Profiles = append([]Variant(nil), quickProfiles...)
		p.Paths = append([]Path(nil), quickPaths...)
		p.Budget = 54 * time.Second
	case "thorough":
		p.Repetitions, p.MaxRepetitions, p.Precision = 10, 60, 0.05
		p.Budget = 30 * time.Minute
	}
	return p
}

// Settle returns p with values that follow from its other fields. A precision without a maximum of repetitions allows
// ten times p.Repetitions. For a load that is a share of the capacity, the workload that measures the capacity is
// added. Default profiles that do not support the sweep or the churn are removed. On a cluster, defaults of the lab are
// replaced.
func (p Plan) Settle() Plan {
	p = p.withClusterDefaults()
	if slices.Equal(p.Profiles, Default().Profiles) || slices.Equal(p.Profiles, quickProfiles) {
		// Profiles of a preset that do not support the swept condition or the churn are left out.
		p.Profiles = slices.DeleteFunc(slices.Clone(p.Profiles), func(v Variant) bool {
			return whyUseless(p.Sweep.Condition, v) != "" || v.Unchanged(p.Lab) != ""
		})
	}
	p.Lab = p.Lab.withLinkNIC()
	p = p.withoutUselessStream()
	p.Workloads = withCapacities(p.Workloads)
	if p.Precision > 0 && p.MaxRepetitions == 0 {
		p.MaxRepetitions = min(max(10*p.Repetitions, 1), MaxRepetitionsLimit)
	}
	return p
}

// Fit returns p with a window chosen, if p has none. The window is as long as the budget allows for this number of
// cases, between shortestFit and LongestFit. Churn, rolled backends, new pods and tools may require a longer window.
func (p Plan) Fit(cases int) Plan {
	if p.Duration != 0 {
		return p
	}
	p.Duration = LongestFit
	if p.Budget > 0 && cases*p.Repetitions > 0 {
		p.Duration = min(max(p.budgetedWindow(cases), p.leastWindow()), LongestFit).Round(time.Millisecond)
	}
	p.Duration = max(p.Duration, p.leastChurnWindow())
	for _, w := range p.Workloads {
		p.Duration = max(p.Duration, leastRollWindow(w.Traits(), p.OnCluster()), leastPodWindow(w.Traits()))
	}
	if len(p.wholeSecondTools()) > 0 {
		p.Duration = roundUpToSecond(p.Duration) // so that our engine has the same window as a tool
	}
	return p
}

func (p Plan) leastWindow() time.Duration {
	switch {
	case len(p.wholeSecondTools()) > 0:
		return time.Second
	case p.OnCluster():
		return shortestClusterFit
	}
	return shortestFit
}

// FitRepetitions returns p with more repetitions if the budget allows them: the largest number up to mostFit for which
// each trial has a window of at least fitWindow. It returns p unchanged if p has a window or no budget.
func (p Plan) FitRepetitions() Plan {
	if p.Duration > 0 || p.Budget == 0 {
		return p
	}
	cases := p.Trials(len(p.Cases()))
	for n := mostFit; n > p.Repetitions; n-- {
		more := p
		more.Repetitions = n
		if more.budgetedWindow(cases) >= max(fitWindow, p.leastWindow()) {
			return more
		}
	}
	return p
}

// budgetedWindow returns the window that the budget allows each trial for this number of cases.
func (p Plan) budgetedWindow(cases int) time.Duration {
	share := fitShare
	if p.MaxRepetitions > p.Repetitions {
		share = fitSharePrecision
	}
	trials := cases * p.Repetitions
	budget := p.Budget - p.totalRaiseTime(cases)
	if p.Explain {
		budget -= time.Duration(trials) * samplingTime
		trials += sampledWindows*trials + trials/countEvery
	}
	if own, ofOwn, others := p.countWindows(); ofOwn > 0 && others > 0 {
		all := float64(trials) / float64(ofOwn+others)
		return time.Duration(max(0, float64(budget)*share-all*float64(own)) / (all * float64(others)))
	}
	each := float64(budget) / float64(max(1, trials))
	// With many short trials, their overhead exceeds the rest of the budget.
	return time.Duration(min(each*share, each*fullShare-float64(p.Warmup+trialOverhead(p))))
}

// Expected returns an estimate of how long the measurement of this number of cases takes without additional
// repetitions. The plan must have its window.
func (p Plan) Expected(cases int) time.Duration {
	return time.Duration(cases*p.Repetitions)*p.TrialTime() + p.totalRaiseTime(cases)
}

// Block returns how many repetitions are measured on one instance of a profile, if profiles can be raised again. Blocks
// are so large that raising takes at most raiseShare of the run, but leave at least minInstances instances if possible.
// A small budget needs larger blocks (see raiseMost). With pairs of nodes, Block returns all repetitions.
func (p Plan) Block() int {
	if p.Pairs.Given() {
		return p.Repetitions
	}
	repetition := time.Duration(len(p.Cases())) * p.TrialTime()
	few := math.Ceil(float64(p.RaiseTime(p.Measured())) / (raiseShare * float64(max(repetition, 1))))
	block := int(max(1, min(few, float64(p.Repetitions/minInstances))))
	for p.Budget > 0 && block < p.Repetitions && time.Duration((p.Repetitions-1)/block)*p.RaiseTime(p.Measured()) > time.Duration(raiseMost*float64(p.Budget)) {
		block++
	}
	return block
}

// RaiseTime returns an estimate of how long it takes to raise variants again.
func (p Plan) RaiseTime(variants []Variant) time.Duration {
	if p.OnCluster() {
		return renewTime
	}
	all := time.Duration(len(variants)) * raiseTime
	for _, v := range variants {
		all += v.Lab(p.Lab).programmingTime(v)
	}
	return all
}

// totalRaiseTime returns an estimate of how long a run of this number of cases spends on raising profiles again,
// without additional repetitions. For the first instances it includes only the time to load their Services and
// policies.
func (p Plan) totalRaiseTime(cases int) time.Duration {
	variants := p.Measured()[:min(len(p.Measured()), cases)]
	first := p.RaiseTime(variants) - time.Duration(len(variants))*raiseTime // for all the Services of the first instances
	if p.OnCluster() {
		first = 0
	}
	return first + time.Duration(max(p.Instances()-1, 0))*p.RaiseTime(variants)
}

// Instances returns how many instances each profile has without additional repetitions, if profiles can be raised
// again.
func (p Plan) Instances() int { return (p.Repetitions + p.Block() - 1) / p.Block() }

// TrialTime returns an estimate of how long one trial takes, including its sampled trial if there is one. The plan must
// have its window.
func (p Plan) TrialTime() time.Duration {
	one := p.Warmup + p.meanWindow() + trialOverhead(p)
	if p.Explain {
		one += p.Warmup + p.SampledWindow() + betweenTrials + samplingTime
	}
	return one
}

// trialOverhead returns the time that a trial takes in addition to its warm-up and window.
func trialOverhead(p Plan) time.Duration {
	if p.OnCluster() {
		return betweenClusterTrials
	}
	return betweenTrials
}

// meanWindow returns the mean window of all workloads, weighted by the number of paths that each supports.
func (p Plan) meanWindow() time.Duration {
	own, ofOwn, others := p.countWindows()
	if ofOwn+others == 0 {
		return p.Duration
	}
	return (own + time.Duration(others)*p.Duration) / time.Duration(ofOwn+others)
}

// countWindows counts the windows of one repetition under one profile, over the paths that each workload supports. ofOwn is
// the number of windows whose length differs from the plan's, and own is the sum of their lengths. others is the number of
// windows with the plan's length.
func (p Plan) countWindows() (own time.Duration, ofOwn, others int) {
	for _, w := range p.Workloads {
		paths := max(len(p.Paths)-len(p.barredPaths(w)), 1) // a workload without a path costs nothing, and a plan without paths has no other estimate
		window, _ := w.Measured(p.Duration, 0)
		window += w.kindEntry().wait
		if window == p.Duration {
			others += paths
			continue
		}
		own, ofOwn = own+time.Duration(paths)*window, ofOwn+paths
	}
	return own, ofOwn, others
}

// countEvery is the distance, in repetitions, between two counts of the runs of BPF programs: the first repetition
// counts them, then the fifth and so on. They are counted in separate trials, for the cases that run BPF programs.
const countEvery = 4

// Counts reports whether the runs of BPF programs are counted in the repetition of t.
func (t Trial) Counts() bool { return t.Repetition%countEvery == 1 }

// SampledWindow returns the window of a sampled trial.
func (p Plan) SampledWindow() time.Duration { return sampledWindows * p.Duration }
