package plan

import (
	"math"
	"slices"
	"time"

	"github.com/cnibench/cnibench/internal/plan/condition"
	"github.com/cnibench/cnibench/internal/profile"
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

// What Fit does when a plan leaves the window open.
const (
	// shortestFit and LongestFit bound the window that is chosen.
	shortestFit = 50 * time.Millisecond
	LongestFit  = time.Second
	// fitShare is the part of the budget that windows shall take; the rest is for raising the lab, for warm-ups, for
	// the time between trials, and for a machine that has other things to do. A plan that may add repetitions keeps
	// half of it for them.
	fitShare          = 0.7
	fitSharePrecision = 0.35
	// fullShare is the part of the budget that trials may take with all that they cost.
	fullShare = 0.98
	// betweenTrials is what a trial costs besides its warm-up and window.
	betweenTrials = 6 * time.Millisecond
	// samplingTime is what a sampled trial costs besides: its events, its programs and the names of functions.
	samplingTime = 150 * time.Millisecond
	// sampledWindows is how many windows a sampled trial lasts. Samples are rare, so that they cost little.
	sampledWindows = 2
	// raiseTime is what it costs to remove a profile of the lab, to raise it anew, and to start its agents again.
	raiseTime = 400 * time.Millisecond
	// renewTime is what it costs to make all pods of a run on a cluster anew.
	renewTime = 6 * time.Second
	// raiseShare is the part of a run that may go into raising profiles anew, and minInstances how many instances of
	// each a run has all the same if it has as many repetitions.
	raiseShare   = 0.08
	minInstances = 5
	// raiseMost is the part of a budget that may go into raising profiles anew although there are fewer instances then.
	raiseMost = 0.375
)

// What FitRepetitions chooses from: more short trials, spread over the run, tell more than few long ones, because what
// a machine does to a trial lasts for hundreds of milliseconds.
const (
	mostFit   = 12
	fitWindow = 250 * time.Millisecond
)

// Default returns the plan that every other one starts from: each key that a plan file or a command line leaves out
// has the value given here.
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

// Presets are the names that Preset knows. The first is the plan of a run without arguments.
var Presets = []string{"standard", "quick", "thorough"}

// standardPaths are enough to tell dataplanes apart: the node's own price, pods within a node and between nodes, and a
// Service in front of each.
var standardPaths = []Path{
	{Host, Host, CrossNode}, {Pod, Pod, SameNode}, {Pod, Pod, CrossNode}, {Pod, Service, Local}, {Pod, Service, Remote},
}

// quickPaths and quickProfiles are those of a first answer: where dataplanes differ most, and the dataplanes that most
// clusters choose from, one with encryption among them.
var (
	quickPaths    = []Path{{Pod, Pod, CrossNode}, {Pod, Service, Remote}}
	quickProfiles = Variants("flannel-vxlan", "flannel-host-gw", "flannel-wireguard", "canal", "calico-vxlan", "calico-underlay",
		"calico-nftables", "calico-ebpf", "cilium-vxlan", "cilium-native", "cilium-netkit")
)

// withoutOffload is the stream that presets measure beside that of the lab's NIC model.
var withoutOffload = Workload{Spec: Stream{NIC: NICWire}}.Normalize()

// settleBulk leaves the stream without NIC offload out of a preset that runs where it cannot, or where all bulk is without.
func (p Plan) settleBulk() Plan {
	usual := Default().Workloads
	if !slices.Equal(p.Workloads, append(slices.Clone(usual), withoutOffload)) {
		return p
	}
	useless := func(v Variant) bool {
		l := v.Lab(p.Lab)
		cut := l.NIC == NICWire
		l.NIC = NICWire
		return cut || l.excluded() != ""
	}
	if p.OnCluster() || slices.ContainsFunc(p.Measured(), useless) {
		p.Workloads = usual
	}
	return p
}

// Preset returns the plan of one of Presets: "standard" measures every lab profile on five paths within four minutes, and
// fewer of them more often (FitRepetitions). "quick" measures the profiles that most clusters choose from on two paths
// within a minute, with the lab's start and the report. "thorough" measures every profile on the nine paths for half an
// hour, or until the intervals are within 5 %.
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

// Settle returns p with what follows from its other fields: a precision without a bound on the repetitions may take
// ten times as many, and what is loaded to a share of its capacity has the capacity measured.
func (p Plan) Settle() Plan {
	p = p.settleCluster()
	if slices.Equal(p.Profiles, Default().Profiles) || slices.Equal(p.Profiles, quickProfiles) {
		// Those of a preset that have no use for the swept condition or for the churn are left out.
		p.Profiles = slices.DeleteFunc(slices.Clone(p.Profiles), func(v Variant) bool {
			return useless(p.Sweep.Condition, v) != "" || v.Unchanged(p.Lab) != ""
		})
	}
	p.Lab = p.Lab.carried()
	p = p.settleBulk()
	p.Workloads = withCapacities(p.Workloads)
	if p.Precision > 0 && p.MaxRepetitions == 0 {
		p.MaxRepetitions = min(max(10*p.Repetitions, 1), MaxRepetitionsLimit)
	}
	return p
}

// Fit returns p with its window chosen, if p leaves it open: as long as the budget allows for this number of cases,
// between shortestFit and LongestFit.
func (p Plan) Fit(cases int) Plan {
	if p.Duration != 0 {
		return p
	}
	p.Duration = LongestFit
	if p.Budget > 0 && cases*p.Repetitions > 0 {
		p.Duration = min(max(p.windowFor(cases), p.shortestFit()), LongestFit).Round(time.Millisecond)
	}
	p.Duration = max(p.Duration, p.churnFit())
	for _, w := range p.Workloads {
		p.Duration = max(p.Duration, rollFit(w.Traits(), p.OnCluster()), podFit(w.Traits()))
	}
	if len(p.slowTools()) > 0 {
		p.Duration = wholeSeconds(p.Duration) // so that our engine beside a tool has the same window
	}
	return p
}

func (p Plan) shortestFit() time.Duration {
	switch {
	case len(p.slowTools()) > 0:
		return time.Second
	case p.OnCluster():
		return shortestClusterFit
	}
	return shortestFit
}

// FitRepetitions returns p with as many repetitions, up to mostFit, as leave windows of fitWindow within the budget; at
// least those that it has.
func (p Plan) FitRepetitions() Plan {
	if p.Duration > 0 || p.Budget == 0 {
		return p
	}
	cases := p.Trials(len(p.Cases()))
	for n := mostFit; n > p.Repetitions; n-- {
		more := p
		more.Repetitions = n
		if more.windowFor(cases) >= max(fitWindow, p.shortestFit()) {
			return more
		}
	}
	return p
}

// windowFor is the window that the budget has for each trial of so many cases.
func (p Plan) windowFor(cases int) time.Duration {
	share := fitShare
	if p.MaxRepetitions > p.Repetitions {
		share = fitSharePrecision
	}
	trials := cases * p.Repetitions
	budget := p.Budget - p.raising(cases)
	if p.Explain {
		budget -= time.Duration(trials) * samplingTime
		trials += sampledWindows*trials + trials/countEvery
	}
	if own, ofOwn, others := p.windows(); ofOwn > 0 && others > 0 {
		all := float64(trials) / float64(ofOwn+others)
		return time.Duration(max(0, float64(budget)*share-all*float64(own)) / (all * float64(others)))
	}
	each := float64(budget) / float64(max(1, trials))
	// With many short trials, what a trial costs besides its window is more than the rest of the budget.
	return time.Duration(min(each*share, each*fullShare-float64(p.Warmup+pause(p))))
}

// Expected is about how long the measurement of this number of cases takes with the least number of repetitions. The
// plan has its window.
func (p Plan) Expected(cases int) time.Duration {
	return time.Duration(cases*p.Repetitions)*p.TrialTime() + p.raising(cases)
}

// Block returns how many repetitions are measured on one instance of a profile, where profiles can be raised anew: as
// few as keep what raising costs below a share of the run, but a run of minInstances repetitions or more has as many
// instances. Whether one of many nodes is slow is asked of the same nodes in all repetitions.
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

// RaiseTime is about how long it takes to raise variants anew.
func (p Plan) RaiseTime(variants []Variant) time.Duration {
	if p.OnCluster() {
		return renewTime
	}
	all := time.Duration(len(variants)) * raiseTime
	for _, v := range variants {
		all += v.Lab(p.Lab).programming(v)
	}
	return all
}

// raising is about how long raising the profiles of so many cases anew takes with the least number of repetitions. The
// first instances stand when a run begins to measure, but it takes time to program many Services into them.
func (p Plan) raising(cases int) time.Duration {
	variants := p.Measured()[:min(len(p.Measured()), cases)]
	first := p.RaiseTime(variants) - time.Duration(len(variants))*raiseTime // what all the Services of the first take
	if p.OnCluster() {
		first = 0
	}
	return first + time.Duration(max(p.Instances()-1, 0))*p.RaiseTime(variants)
}

// Instances returns on how many instances of a profile the least number of repetitions is measured, where profiles can
// be raised anew.
func (p Plan) Instances() int { return (p.Repetitions + p.Block() - 1) / p.Block() }

// TrialTime is about how long one trial takes, with its sampled trial if there is one. The plan has its window.
func (p Plan) TrialTime() time.Duration {
	one := p.Warmup + p.meanWindow() + pause(p)
	if p.Explain {
		one += p.Warmup + p.SampledWindow() + betweenTrials + samplingTime
	}
	return one
}

// pause is what a trial costs besides its warm-up and window.
func pause(p Plan) time.Duration {
	if p.OnCluster() {
		return betweenClusterTrials
	}
	return betweenTrials
}

// meanWindow is the mean window of the workloads, each on the paths that it can go over.
func (p Plan) meanWindow() time.Duration {
	own, ofOwn, others := p.windows()
	if ofOwn+others == 0 {
		return p.Duration
	}
	return (own + time.Duration(others)*p.Duration) / time.Duration(ofOwn+others)
}

// windows sums up the windows that workloads have of their own, over the paths that each can go over: how long they are together, how
// many they are, and how many have the plan's.
func (p Plan) windows() (own time.Duration, ofOwn, others int) {
	for _, w := range p.Workloads {
		paths := max(len(p.Paths)-len(p.barred(w)), 1) // what goes over none costs nothing, and a plan without paths has no other estimate
		window, _ := w.Measured(p.Duration, 0)
		window += w.row().wait
		if window == p.Duration {
			others += paths
			continue
		}
		own, ofOwn = own+time.Duration(paths)*window, ofOwn+paths
	}
	return own, ofOwn, others
}

// countEvery is how many repetitions have one that also counts the runs of BPF programs, the first. It does so in a trial of
// its own, in the cases that run any.
const countEvery = 4

// Counts reports whether a trial is of a repetition that also counts the runs of BPF programs.
func (t Trial) Counts() bool { return t.Repetition%countEvery == 1 }

// SampledWindow is the window of a sampled trial.
func (p Plan) SampledWindow() time.Duration { return sampledWindows * p.Duration }
