package check

import (
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/vocab/finding"
	"github.com/cnibench/cnibench/internal/vocab/metric"
	"github.com/cnibench/cnibench/internal/vocab/number"
	"github.com/cnibench/cnibench/internal/vocab/pattern"
)

// beside compares each judged cell with the cells of other cases. A cell that is worse by more than margin is a finding.
type beside struct {
	// metrics are the metrics to compare; nil means all judged ones.
	metrics []string
	// better reverses the question: a cell that is better by more than margin is a finding.
	better bool
	// margin is the share by which the near ends of the two intervals must be apart.
	margin float64
	// impossible is the factor at which the finding becomes impossible; 0 means never.
	impossible float64
	// silent returns true if the question does not apply to a result. (optional)
	silent func(*View) bool
	// others returns the cases to compare a case with; cases without a number are skipped.
	others func(*View, plan.Case) []plan.Case
	// name describes the other cell, after its value: "without the Service".
	name func(other *Cell) string
}

// judged are the metrics that rules compare between cells. The mean round trip is compared only if the median is missing.
var judged = []string{
	metric.Goodput, metric.TransactionRate, metric.RequestRate, metric.RTT + ".p50", metric.RTT + ".mean",
}

// compareCells compares all judged cells and adds the findings to found. It does nothing if silent returns true.
func (b beside) compareCells(v *View, found *list) {
	if b.silent != nil && b.silent(v) {
		return
	}
	for _, c := range v.judged {
		if b.metrics != nil && !slices.Contains(b.metrics, c.Metric) {
			continue
		}
		for _, other := range b.others(v, c.Case) {
			if o := v.cell(other, c.Metric); o != nil {
				b.comparePair(c, o, found)
			}
		}
	}
}

func (b beside) comparePair(c, other *Cell, found *list) {
	how, factor := "worse", worseFactor(c, other, b.margin)
	if b.better {
		how, factor = "better", worseFactor(other, c, b.margin)
	}
	if factor == 0 {
		return
	}
	f := found.add(c.String(), "%s, and %s %s: %s times %s", medianText(c), medianText(other), b.name(other), number.Number(factor), how)
	if factor > 3 && factor < 10 && !b.better && strings.HasPrefix(c.Metric, metric.RTT) {
		f.Saw += "; a tenth, " + formatValue(c.Key, c.Median/10) + ", would fit: the decimal point?"
	}
	if b.impossible > 0 && factor >= b.impossible {
		f.Severity = finding.Impossible
	}
}

// casesOnPaths returns the cases of c's profile and workload on other paths.
func casesOnPaths(c plan.Case, paths ...plan.Path) []plan.Case {
	var cases []plan.Case
	for _, p := range paths {
		c.Path = p
		cases = append(cases, c)
	}
	return cases
}

func pathPhrase(other *Cell) string { return "on " + other.Path.String() }

// fasterThanHosts finds paths that are faster than the path between the bare hosts. It does not apply without a wire:
// there a pod's path may avoid rules that the host's path passes.
var fasterThanHosts = []beside{
	{metrics: judged[:1], better: true, margin: beyondHosts, impossible: 1.5,
		silent: (*View).lacksWire, others: bareHostCases, name: hostsPhrase},
	{metrics: judged[1:], better: true, margin: beyondTimes,
		silent: (*View).lacksWire, others: bareHostCases, name: hostsPhrase},
}

func hostsPhrase(*Cell) string { return "between the bare hosts" }

func bareHostCases(_ *View, c plan.Case) []plan.Case {
	if !c.Path.Crosses() || c.Path == plan.ZeroPath {
		return nil
	}
	return casesOnPaths(c, plan.ZeroPath)
}

// podsBelowHosts finds paths that are far slower than the path between the bare hosts. It does not apply to the lab,
// whose profiles are correct by construction, to encrypted pods, to clients outside, or to datagrams.
var podsBelowHosts = []beside{{margin: belowHosts, silent: (*View).inLab, name: hostsPhrase,
	others: func(v *View, c plan.Case) []plan.Case {
		if isEncrypted(c.Profile.String()) || c.Path.From == plan.External || c.Path.To == plan.External || c.Workload.Traits().Datagrams() {
			return nil
		}
		return v.hostCases(c)
	}}}

// encryption matches the names of profiles that encrypt, also outside the catalogue.
var encryption = pattern.New(`(?i)wireguard|ipsec|encrypt`)

func isEncrypted(name string) bool {
	p, known := profile.Lookup(name)
	return known && profile.Encryption.By(p) != "" || encryption.MatchString(name)
}

// hostCases returns the host-to-host case between nodes that c is compared with: of c's profile, or of the first
// profile that has one. It returns nil if there is none, if c's path is within a node, or if c is itself such a case.
func (v *View) hostCases(c plan.Case) []plan.Case {
	own := bareHostCases(v, c)
	if len(own) == 0 || v.of[own[0]] != nil {
		return own
	}
	for _, t := range v.cases {
		if t.Path == own[0].Path && t.Workload == own[0].Workload && !t.Profile.IsTwin() {
			return []plan.Case{t.Case}
		}
	}
	return nil
}

// directionsApart compares a case with its opposites: the same path with the other end as the sender, and the path with
// both ends exchanged.
var directionsApart = []beside{{margin: apartWays,
	others: func(_ *View, c plan.Case) []plan.Case {
		var cases []plan.Case
		if is := c.Workload.Traits(); is.Bulk() || is.Datagrams() {
			other := c
			if other.Workload = c.Workload.Without("reverse"); !is.Reverse {
				other.Workload, _ = c.Workload.With("reverse", "true")
			}
			other.Workload = other.Workload.Normalize()
			cases = append(cases, other)
		}
		if c.Path.Crosses() && c.Path.From != c.Path.To && !c.Path.ByService() && c.Path.From != plan.External && c.Path.To != plan.External {
			cases = append(cases, casesOnPaths(c, plan.Path{From: c.Path.To, To: c.Path.From, Locality: c.Path.Locality})...)
		}
		return cases
	},
	name: func(o *Cell) string { return "the other way, by " + o.Path.String() + " " + o.Workload.String() }}}

// findWaysApart compares the two directions of bidirectional streams.
func findWaysApart(v *View, found *list) {
	for _, c := range v.cells {
		if c.Metric != metric.Goodput+".forward" {
			continue
		}
		back := v.cell(c.Case, metric.Goodput+".reverse")
		if back == nil {
			continue
		}
		for _, pair := range [][2]*Cell{{c, back}, {back, c}} {
			low, high := pair[0], pair[1]
			if low.High*(1+apartWays) < high.Low && low.Median > 0 {
				found.add(low.String(), "%s, and %s the other way at the same time: %s times worse", medianText(low), medianText(high), number.Number(high.Median/low.Median))
			}
		}
	}
}

// nearSlower finds paths within a node that are slower than paths between nodes. It does not apply in a lab in which
// each node has its own CPUs: both ends on one node then share the CPUs of that node.
var nearSlower = []beside{{margin: beyondFar, name: pathPhrase,
	silent: func(v *View) bool { return v.inLab() && strings.HasPrefix(v.facts[facts.Placement], "split") },
	others: func(_ *View, c plan.Case) []plan.Case { return casesOnPaths(c, crossNodePaths(c.Path)...) }}}

// nearQuicker finds paths within a node that are better than paths between nodes by a factor that no network explains.
// Probably a unit is wrong.
var nearQuicker = []beside{{better: true, margin: unitApart, name: pathPhrase,
	others: func(_ *View, c plan.Case) []plan.Case { return casesOnPaths(c, crossNodePaths(c.Path)...) }}}

// crossNodePaths returns the paths across nodes that correspond to p, which lies within a node.
func crossNodePaths(p plan.Path) []plan.Path {
	switch p.Locality {
	case plan.SameNode:
		paths := []plan.Path{{From: p.From, To: p.To, Locality: plan.CrossNode}}
		if p.From == plan.Pod && p.To == plan.Pod {
			paths = append(paths, plan.Path{From: plan.Pod, To: plan.Host, Locality: plan.CrossNode})
		}
		return paths
	case plan.Local:
		return []plan.Path{{From: p.From, To: p.To, Locality: plan.Remote}}
	}
	return nil
}

var serviceFaster = []beside{{better: true, margin: beyondDirect,
	others: func(_ *View, c plan.Case) []plan.Case {
		direct := map[plan.Locality]plan.Locality{plan.Local: plan.SameNode, plan.Remote: plan.CrossNode}
		if c.Path.To != plan.Service {
			return nil
		}
		return casesOnPaths(c, plan.Path{From: c.Path.From, To: plan.Pod, Locality: direct[c.Path.Locality]})
	},
	name: func(*Cell) string { return "without the Service" }}}

var partSlower = []beside{{margin: beyondModes, name: pathPhrase,
	others: func(_ *View, c plan.Case) []plan.Case {
		if c.Path != (plan.Path{From: plan.Pod, To: plan.Host, Locality: plan.CrossNode}) {
			return nil
		}
		return casesOnPaths(c, plan.Path{From: plan.Pod, To: plan.Pod, Locality: plan.CrossNode})
	}}}

// flowsSlower finds workloads of several flows that are slower than one flow. It does not apply to the lab, where flows
// share a CPU.
var flowsSlower = []beside{{margin: slowerFlows, silent: (*View).inLab,
	others: func(_ *View, c plan.Case) []plan.Case {
		if c.Workload.Traits().Flows <= 1 || !c.Workload.Traits().Bulk() && !c.Workload.Traits().Datagrams() {
			return nil
		}
		c.Workload = c.Workload.Without("flows")
		return []plan.Case{c}
	},
	name: func(*Cell) string { return "by one flow" }}}

var encapsulationFree = []beside{{better: true, margin: beyondBare,
	others: func(v *View, c plan.Case) []plan.Case {
		return v.tunnelCases(c, siblingProfiles(c.Profile), "none")
	},
	name: func(o *Cell) string { return "by " + o.Profile.String() + ", which does not encapsulate" }}}

var tunnelsDisagree = []beside{{metrics: judged[:1], margin: beyondTunnel,
	others: func(v *View, c plan.Case) []plan.Case {
		p, _ := profile.Lookup(c.Profile.String())
		if p.Encapsulation == "none" {
			return nil
		}
		return v.tunnelCases(c, profile.All(), p.Encapsulation)
	},
	name: func(o *Cell) string {
		p, _ := profile.Lookup(o.Profile.String())
		return "by " + p.Name + ", which uses " + p.Encapsulation + " too"
	}}}

// tunnelCases returns the cases with c's path and workload, under the other profiles that use the encapsulation. It leaves
// out profiles with a stand-in, which has a cost of its own. It returns nil if c's profile has a stand-in, or if c's path
// is not encapsulated, such as a path to a node.
func (v *View) tunnelCases(c plan.Case, profiles []profile.Profile, encapsulation string) []plan.Case {
	if !c.Path.Crosses() || c.Path.From != plan.Pod || c.Path.To == plan.Host || v.usesStandIn(c.Profile) {
		return nil
	}
	var cases []plan.Case
	for _, p := range profiles {
		if p.Encapsulation == encapsulation && p.Name != c.Profile.String() && !v.usesStandIn(plan.VariantOf(p.Name)) {
			cases = append(cases, plan.Case{Profile: plan.VariantOf(p.Name), Path: c.Path, Workload: c.Workload})
		}
	}
	return cases
}

// variants are suffixes of a profile's name for changes other than encapsulation.
var variants = []string{"-legacy", "-dsr", "-netkit"}

func hasVariantSuffix(name string) bool {
	return slices.ContainsFunc(variants, func(v string) bool { return strings.HasSuffix(name, v) })
}

// siblingProfiles returns the profiles of the catalogue that differ from the profile called name only in encapsulation.
func siblingProfiles(name plan.Variant) (others []profile.Profile) {
	p, ok := profile.Lookup(name.String())
	if !ok || hasVariantSuffix(p.Name) {
		return nil
	}
	for _, q := range profile.All() {
		alike := q.Family == p.Family && !hasVariantSuffix(q.Name) && q.Services == p.Services && q.Policy == p.Policy
		if alike && q.Encapsulation != p.Encapsulation {
			others = append(others, q)
		}
	}
	return others
}

// usesStandIn reports whether a profile of the run uses a stand-in, which has a cost of its own.
func (v *View) usesStandIn(name plan.Variant) bool {
	return slices.ContainsFunc(v.header.Profiles, func(p result.Profile) bool {
		return p.Name == name && len(p.StandIn) > 0
	})
}

// findModesDisagree finds cells within a node, where nothing is encapsulated, that are worse than the cells of all
// siblings.
func findModesDisagree(v *View, found *list) {
	for _, c := range v.judged {
		if c.Path.Crosses() || v.usesStandIn(c.Profile) {
			continue
		}
		worst, better, known := 0.0, []string{}, 0
		for _, p := range siblingProfiles(c.Profile) {
			other := v.cell(plan.Case{Profile: plan.VariantOf(p.Name), Path: c.Path, Workload: c.Workload}, c.Metric)
			if other == nil || v.usesStandIn(plan.VariantOf(p.Name)) {
				continue
			}
			known++
			if factor := worseFactor(c, other, beyondModes); factor > 0 {
				worst = max(worst, factor)
				better = append(better, medianText(other)+" of "+p.Name)
			}
		}
		if known > 0 && len(better) == known {
			found.add(c.String(), "%s beside %s: up to %s times worse", medianText(c), strings.Join(better, ", "), number.Number(worst))
		}
	}
}
