package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/measure/outcome"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/vocab/metric"
	"github.com/cnibench/cnibench/internal/vocab/number"
	"github.com/cnibench/cnibench/internal/vocab/pattern"
)

// Margins between cells beyond their intervals, as shares.
const (
	beyondHosts  = 0.15 // in goodput
	beyondTimes  = 0.25 // in times and rates of exchanges, of which the node's own rules cost hosts a part
	beyondFar    = 0.05
	beyondDirect = 0.05
	beyondBare   = 0.10
	atTheWire    = 0.03
	// twice is by what factor something is called impossible that a margin calls doubtful.
	twice = 1.5
)

// wireRules hold paths against the wire and against one another.
var wireRules = []rule{
	{Rule: Rule{ID: "line-rate", Title: "faster than the line between the nodes", Severity: Impossible,
		Why: "payload between two machines cannot arrive faster than their line carries it; where it does, it did not cross the line",
		Do:  "find out where the ends stood: virtual machines of one host reach each other through its memory, and that measures memory, not a network"},
		find: aboveLine},
	{Rule: Rule{ID: "faster-than-hosts", Title: "pods faster over the wire than bare hosts", Severity: Doubtful,
		Why: "between nodes pods use the same wire as the hosts: passing by the hosts' own rules saves a dataplane some microseconds, not a third of a round trip, and never outruns the wire",
		Do:  "measure the hosts in the same session as the pods, under the same CNI, interleaved; look for swapped or stale numbers"},
		find: beyondHost},
	{Rule: Rule{ID: "same-node-slower", Title: "slower within a node than between nodes", Severity: Doubtful,
		Why: "the path between nodes has all of the path within one, and the wire besides; only CPUs that both ends must share can turn that round",
		Do:  "look at the decimal point and at where the ends were placed; show the raw output of both"},
		find: nearSlower},
	{Rule: Rule{ID: "service-faster", Title: "faster through a Service than without", Severity: Doubtful,
		Why: "a Service adds a translation to the path of its endpoint, or at best (socket load balancing) nothing",
		Do:  "repeat both, interleaved: the difference is likely to be the noise of a single run"},
		find: serviceFaster},
	{Rule: Rule{ID: "encapsulation-free", Title: "faster with encapsulation than without", Severity: Doubtful,
		Why: "a mode that encapsulates does all that its sibling does, and adds headers",
		Do:  "check which mode was in force on the wire (capture), MTU and offloads of both, and repeat"},
		find: encapsulationFree},
	{Rule: Rule{ID: "tunnels-disagree", Title: "one encapsulation, rates far apart", Severity: Doubtful,
		Why: "two CNIs that put the same headers around the same packets cannot differ so much by their rules: an offload, a checksum or an MTU does",
		Do:  "compare ethtool -k of the tunnel devices and of the NIC, the MTUs, and what a capture shows of segment sizes and checksums"},
		find: tunnelsDisagree},
	{Rule: Rule{ID: "part-slower", Title: "part of a path slower than all of it", Severity: Doubtful,
		Why: "between nodes a pod's way to another pod has the way to that pod's node in it, and a hop more",
		Do:  "look for another route or encapsulation towards node addresses, and show the route and a capture of both"},
		find: partSlower},
	{Rule: Rule{ID: "modes-disagree", Title: "modes of one CNI differ where they are the same", Severity: Doubtful,
		Why: "encapsulation is between nodes: within a node modes of a CNI that differ in it alone send packets the same way",
		Do:  "repeat the odd one: it is likely to be a disturbed run"},
		find: modesDisagree},
	{Rule: Rule{ID: "odd-one-out", Title: "one value far from its row and its neighbours", Severity: Doubtful,
		Why: "a dataplane that costs several times what the others cost on one path costs more on similar paths, too",
		Do:  "repeat the case: look for a disturbed run, a misplaced digit or a value of another path"},
		find: oddOneOut},
	{Rule: Rule{ID: "wire-time", Title: "a round trip shorter than the wire allows", Severity: Impossible,
		Why: "a round trip takes at least the time that its bits need on the line and that light needs in the cable",
		Do:  "check what was timed, and between which ends"},
		find: wireTime},
	{Rule: Rule{ID: "wire-bound", Title: "the wire decides, not the dataplane", Severity: Note,
		Why: "where several dataplanes fill the line they look alike, and the order among them is noise",
		Do:  "compare them by CPU time per byte, by small messages, or over a faster line"},
		find: wireBound},
	{Rule: Rule{ID: "one-machine", Title: "nodes on one machine", Severity: Doubtful,
		Why: "between containers or virtual machines of one machine there is no wire: both ends share its CPUs, caches and memory",
		Do:  "use two machines, or speak of software cost and not of a network"},
		find: oneMachine},
	{Rule: Rule{ID: "token-bucket", Title: "a line with credits that run dry", Severity: Doubtful,
		Why: "such an instance gives its peak rate only while credits last, and what is measured later in a session meets an emptier bucket",
		Do:  "use an instance with a fixed rate, or wait for full credits before each trial and interleave the systems"},
		find: tokenBucket},
}

func aboveLine(v *View) []seen {
	line := v.lineRate()
	if line <= 0 {
		return nil
	}
	var list []seen
	for _, c := range v.cells {
		known := v.of[c.Case].warnings[outcome.AboveLineRate] != nil // said there, with the headers counted
		if c.Metric == metric.Goodput && crosses(c.Path) && !known && c.N > 0 && c.Low > line*(1+reached) {
			list = append(list, seen{where: c.Key.String(), saw: fmt.Sprintf("%s over a line of %s: %.2f times",
				show(c.Key, c.Median), show(c.Key, line), c.Median/line)})
		}
	}
	return list
}

// judged are the metrics that rules between cells look at; of a distribution one is enough.
var judged = []string{metric.Goodput, metric.TransactionRate, metric.RequestRate, metric.RTT + ".p50", metric.RTT + ".mean"}

// pairs calls with for every judged cell and what pick gives for its case in the same metric, if that has a number.
func (v *View) pairs(pick func(plan.Case) (plan.Case, bool), with func(c, other *Cell)) {
	for _, c := range v.judged {
		other, ok := pick(c.Case)
		if !ok || c.Metric == metric.RTT+".mean" && v.cell(c.Case, metric.RTT+".p50") != nil {
			continue
		}
		if o := v.cell(other, c.Metric); o != nil && o.N > 0 {
			with(c, o)
		}
	}
}

var hostsApart = plan.Path{From: plan.Host, To: plan.Host, Locality: plan.CrossNode}

func beyondHost(v *View) []seen {
	if v.inLab() && v.lineRate() == 0 {
		return nil // there is no wire, and a pod's path may pass by rules that the host's does not
	}
	var list []seen
	v.pairs(func(c plan.Case) (plan.Case, bool) {
		ok := crosses(c.Path) && c.Path != hostsApart
		c.Path = hostsApart
		return c, ok
	}, func(c, host *Cell) {
		margin := beyondTimes
		if c.Metric == metric.Goodput {
			margin = beyondHosts
		}
		factor := worse(host, c, margin)
		if factor == 0 {
			return
		}
		s := seen{where: c.Key.String(), saw: fmt.Sprintf("%s, and %s between the bare hosts: %.2f times better", show(c.Key, c.Median), show(c.Key, host.Median), factor)}
		if factor >= twice && c.Metric == metric.Goodput {
			s = s.as(Impossible)
		}
		list = append(list, s)
	})
	return list
}

// far returns the paths that are longer than p, which lies within a node.
func far(p plan.Path) []plan.Path {
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

func nearSlower(v *View) []seen {
	if v.inLab() && strings.HasPrefix(v.facts[facts.Placement], "split") {
		return nil // each node has CPUs of its own, so that both ends within one share what two have apart
	}
	var list []seen
	for i := range 2 {
		v.pairs(func(c plan.Case) (plan.Case, bool) {
			paths := far(c.Path)
			if i >= len(paths) {
				return c, false
			}
			c.Path = paths[i]
			return c, true
		}, func(c, other *Cell) {
			factor := worse(c, other, beyondFar)
			if factor == 0 {
				return
			}
			say := fmt.Sprintf("%s, and %s on %s: %.2f times worse", show(c.Key, c.Median), show(c.Key, other.Median), other.Path, factor)
			if factor > 3 && factor < 10 && strings.HasPrefix(c.Metric, metric.RTT) {
				say += fmt.Sprintf("; a tenth, %s, would fit: the decimal point?", show(c.Key, c.Median/10))
			}
			list = append(list, seen{where: c.Key.String(), saw: say})
		})
	}
	return list
}

func serviceFaster(v *View) []seen {
	var list []seen
	v.pairs(func(c plan.Case) (plan.Case, bool) {
		ok := c.Path.To == plan.Service
		c.Path.To = plan.Pod
		c.Path.Locality = map[plan.Locality]plan.Locality{plan.Local: plan.SameNode, plan.Remote: plan.CrossNode}[c.Path.Locality]
		return c, ok
	}, func(c, direct *Cell) {
		if factor := worse(direct, c, beyondDirect); factor > 0 {
			list = append(list, seen{where: c.Key.String(), saw: fmt.Sprintf("%s, and %s without the Service: %.2f times better", show(c.Key, c.Median), show(c.Key, direct.Median), factor)})
		}
	})
	return list
}

// family is the name of the CNI of a profile: the part of its name before the first dash.
func family(name string) string {
	head, _, _ := strings.Cut(name, "-")
	return head
}

// variants are what a profile's name ends with that changes more than encapsulation.
var variants = []string{"-legacy", "-dsr", "-netkit"}

func variant(name string) bool {
	return slices.ContainsFunc(variants, func(v string) bool { return strings.HasSuffix(name, v) })
}

// siblings returns the profiles of the catalogue that differ from p in encapsulation alone, as far as it knows.
func siblings(name string) (p profile.Profile, others []profile.Profile) {
	p, ok := profile.Lookup(name)
	if !ok || variant(name) {
		return p, nil
	}
	for _, q := range profile.All() {
		if q.Name != p.Name && !variant(q.Name) && family(q.Name) == family(p.Name) && q.Services == p.Services && q.Policy == p.Policy && q.Encapsulation != p.Encapsulation {
			others = append(others, q)
		}
	}
	return p, others
}

// imitated says that a profile of the run stands on a stand-in, whose cost is its own.
func (v *View) imitated(name string) bool {
	for _, p := range v.header.Profiles {
		if string(p.Name) == name {
			return len(p.StandIn) > 0
		}
	}
	return false
}

func encapsulationFree(v *View) []seen {
	var list []seen
	for _, bare := range profile.All() {
		if bare.Encapsulation != "none" || v.imitated(bare.Name) {
			continue
		}
		_, others := siblings(bare.Name)
		for _, p := range others {
			if v.imitated(p.Name) {
				continue
			}
			v.pairs(func(c plan.Case) (plan.Case, bool) {
				ok := c.Profile == plan.Variant(p.Name) && crosses(c.Path) && c.Path.From == plan.Pod && c.Path.To != plan.Host // nodes are not behind the tunnel
				c.Profile = plan.Variant(bare.Name)
				return c, ok
			}, func(c, without *Cell) {
				if factor := worse(without, c, beyondBare); factor > 0 {
					list = append(list, seen{where: c.Key.String(), saw: fmt.Sprintf("%s, and %s by %s, which does not encapsulate: %.2f times better",
						show(c.Key, c.Median), show(c.Key, without.Median), bare.Name, factor)})
				}
			})
		}
	}
	return list
}

// farApart is by what factor goodput may differ under one encapsulation.
const farApart = 3

func tunnelsDisagree(v *View) []seen {
	var list []seen
	for _, p := range profile.All() {
		for _, q := range profile.All() {
			if p.Name == q.Name || p.Encapsulation == "none" || p.Encapsulation != q.Encapsulation || v.imitated(p.Name) || v.imitated(q.Name) {
				continue
			}
			v.pairs(func(c plan.Case) (plan.Case, bool) {
				ok := c.Profile == plan.Variant(p.Name) && crosses(c.Path) && c.Path.From == plan.Pod && c.Path.To != plan.Host
				c.Profile = plan.Variant(q.Name)
				return c, ok
			}, func(c, other *Cell) {
				if factor := worse(c, other, farApart-1); factor > 0 && c.Metric == metric.Goodput {
					list = append(list, seen{where: c.Key.String(), saw: fmt.Sprintf("%s, and %s by %s, which uses %s too: %.2f times worse",
						show(c.Key, c.Median), show(c.Key, other.Median), q.Name, q.Encapsulation, factor)})
				}
			})
		}
	}
	return list
}

func partSlower(v *View) []seen {
	var list []seen
	v.pairs(func(c plan.Case) (plan.Case, bool) {
		ok := c.Path == plan.Path{From: plan.Pod, To: plan.Host, Locality: plan.CrossNode}
		c.Path.To = plan.Pod
		return c, ok
	}, func(c, whole *Cell) {
		if factor := worse(c, whole, twice-1); factor > 0 {
			list = append(list, seen{where: c.Key.String(), saw: fmt.Sprintf("%s, and %s on %s: %.2f times worse", show(c.Key, c.Median), show(c.Key, whole.Median), whole.Path, factor)})
		}
	})
	return list
}

func modesDisagree(v *View) []seen {
	var list []seen
	for _, c := range v.judged {
		if crosses(c.Path) {
			continue
		}
		_, others := siblings(string(c.Profile))
		worst, beside, known := 0.0, []string{}, 0
		for _, p := range others {
			other := v.cell(plan.Case{Profile: plan.Variant(p.Name), Path: c.Path, Workload: c.Workload}, c.Metric)
			if other == nil || v.imitated(p.Name) || v.imitated(string(c.Profile)) {
				continue
			}
			known++
			if factor := worse(c, other, twice-1); factor > 0 {
				worst = max(worst, factor)
				beside = append(beside, show(c.Key, other.Median)+" of "+p.Name)
			}
		}
		if known > 0 && len(beside) == known {
			list = append(list, seen{where: c.Key.String(), saw: fmt.Sprintf("%s beside %s: up to %.2f times worse", show(c.Key, c.Median), strings.Join(beside, ", "), worst)})
		}
	}
	return list
}

// Bytes around the payload of a small TCP packet on Ethernet with its gaps, and the speed of light in fibre in m/s.
const (
	framing    = 90
	fibreLight = 2e8
)

func wireTime(v *View) []seen {
	rate, distance := v.fact("line_rate", "bit/s"), v.fact("wire.metres", "1")
	var list []seen
	for _, c := range v.cells {
		small := c.Workload.Work() == plan.Transaction
		if !strings.HasPrefix(c.Metric, metric.RTT+".") || c.Metric == metric.RTT+".stddev" || !crosses(c.Path) || !small || c.N == 0 {
			continue
		}
		least := 2 * distance / fibreLight * 1e9
		if rate > 0 {
			bytes := max(c.Workload.Traits().Request, c.Workload.Traits().Message) + max(c.Workload.Traits().Response, c.Workload.Traits().Message) + 2*framing
			least += 8 * float64(bytes) / rate * 1e9
		}
		if least > 0 && c.High < least {
			list = append(list, seen{where: c.Key.String(), saw: fmt.Sprintf("%s, and the wire alone takes %s", show(c.Key, c.Median), show(c.Key, least))})
		}
	}
	return list
}

func wireBound(v *View) []seen {
	if v.inLab() && v.lineRate() == 0 {
		return nil
	}
	var list []seen
	type row struct {
		path plan.Path
		w    plan.Workload
	}
	full := map[row][]string{}
	var order []row
	for _, c := range v.cells {
		limit := v.lineRate()
		if host := v.cell(plan.Case{Profile: c.Profile, Path: hostsApart, Workload: c.Workload}, c.Metric); limit == 0 && host != nil {
			limit = host.Median
		}
		paced := c.Workload.Traits().Rate > 0
		if c.Metric != metric.Goodput || paced || !crosses(c.Path) || c.Path == hostsApart || limit == 0 || !near(c.Median, limit, atTheWire) {
			continue
		}
		at := row{c.Path, c.Workload}
		if full[at] == nil {
			order = append(order, at)
		}
		full[at] = append(full[at], string(c.Profile))
	}
	for _, at := range order {
		if len(full[at]) > 1 {
			list = append(list, seen{where: at.path.String() + " " + at.w.String(), saw: strings.Join(full[at], ", ") + " are within 3% of what the wire gives"})
		}
	}
	return list
}

func oneMachine(v *View) []seen {
	if v.facts["nodes.machines"] != "1" {
		return nil
	}
	var paths []string
	for _, c := range v.cases {
		if p := c.Path.String(); crosses(c.Path) && !slices.Contains(paths, p) {
			paths = append(paths, p)
		}
	}
	if len(paths) == 0 {
		return nil
	}
	return []seen{{where: number.Few(paths), saw: "all nodes are on one machine: " + cmp.Or(v.facts["nodes"], "nodes.machines is 1")}}
}

// burstable are instance types whose network or CPU runs on credits.
var burstable = pattern.New(`\b(t2|t3|t3a|t4g)\.[a-z0-9]+\b`)

func tokenBucket(v *View) []seen {
	peak, kept := v.fact("line_rate", "bit/s"), v.fact("line_rate.sustained", "bit/s")
	of := Key{Metric: metric.Goodput}
	switch instance := burstable.FindString(v.facts["instance"]); {
	case kept > 0 && peak > kept:
		return []seen{{where: v.facts["instance"], saw: fmt.Sprintf("%s while credits last, %s for good", show(of, peak), show(of, kept))}}
	case instance != "":
		return []seen{{where: v.facts["instance"], saw: "the CPU and the network of " + instance + " run on credits"}}
	}
	return nil
}
