package matrix

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/plan/mesh"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// Kind is what a finding names.
type Kind string

// Kinds of findings.
const (
	// Node is a node that differs with most of its partners, Link two nodes in both directions, Direction two nodes in
	// one direction.
	Node      Kind = "node"
	Link      Kind = "link"
	Direction Kind = "direction"
	// Group is a difference between groups of nodes, such as zones.
	Group Kind = "group"
)

// Scope tells whether the network of the hosts shows a finding, too.
type Scope string

// Scopes. The zero value is unknown: the hosts were not measured.
const (
	// Hosts means that the hosts differ, too: the cause is below the CNI. Pods means that the hosts do not differ: the cause
	// is the CNI.
	Hosts Scope = "hosts"
	Pods  Scope = "pods"
)

// Evidence is the data of one layer for a finding. Values are in base units.
type Evidence struct {
	Layer
	// Value is the median of the finding, Typical the fitted value without it, Factor how many times worse it is.
	Value, Typical, Factor float64
	// Hits counts the partners of a node, or the measurements of a link, that exceed Limit, out of Of. Limit is a factor.
	Hits, Of int
	Limit    float64
	// Role is "sends" or "receives" for a node that differs in only one role.
	Role string
}

// Finding is a node, a link or a direction that differs from the others.
type Finding struct {
	Kind    Kind
	Profile plan.Variant
	// Nodes are one node, or two in the direction. For a group they are the values of the label.
	Nodes []string
	Scope Scope
	// Evidence is by layer, the worst first. Layers of metrics that are usually 0 come last.
	Evidence []Evidence
	// Doubt is why a finding is undecided. Decide are pairs that would decide it.
	Doubt  Doubt
	Decide []mesh.Pair
}

// Doubt is why something is undecided.
type Doubt string

// Doubts.
const (
	// FewPartners: the node has so few partners that its links may be the cause. SomePartners: it differs with some of
	// them.
	FewPartners  Doubt = "few partners"
	SomePartners Doubt = "some partners"
	// Sometimes: not all measurements of the link differ.
	Sometimes Doubt = "sometimes"
)

const (
	// nodeLimit is the number of deviations of the other nodes beyond which a node's effect is not chance; valueLimit
	// is the same for a single value and the residuals. A run has hundreds of values with heavy tails, so a node must
	// differ with most of its partners, and a link in all its values: with three of four, equal links were named in the
	// lab.
	nodeLimit, valueLimit = 4.0, 6.0
	// most is the share of its partners that a node must differ with to be named.
	most = 2.0 / 3
	// sureTimes is how many measurements of a direction must differ.
	sureTimes = 3
	// mostDecide bounds the pairs in Decide.
	mostDecide = 4
)

// findDifferences finds differences: nodes first, then the links that nodes do not explain.
func (a *Analysis) findDifferences() {
	found := map[string]*Finding{}
	named := map[plan.Variant]map[int]bool{}
	add := func(f Finding, at []int, e Evidence) {
		for _, i := range at {
			f.Nodes = append(f.Nodes, a.Nodes[i].Name)
		}
		key := keyOf(f.Profile, f.Kind, f.Nodes...)
		switch was := found[key]; {
		case was == nil || was.Doubt != "" && f.Doubt == "": // a certain result in one layer outweighs another layer's doubt
			f.Evidence = []Evidence{e}
			found[key] = &f
		case was.Doubt == f.Doubt || was.Doubt != "":
			was.Evidence = append(was.Evidence, e)
		}
	}
	for _, m := range a.Matrices {
		apart := m.nodeSpread()
		for i := range a.Nodes {
			e, doubt, differs := m.judgeNode(i, a.margin, apart)
			if !differs {
				continue
			}
			if doubt == "" {
				if named[m.Profile] == nil {
					named[m.Profile] = map[int]bool{}
				}
				named[m.Profile][i] = true
			}
			add(Finding{Kind: Node, Profile: m.Profile, Doubt: doubt}, []int{i}, e)
		}
	}
	for _, m := range a.Matrices {
		doubtful := func(i int) bool {
			f := found[keyOf(m.Profile, Node, a.Nodes[i].Name)]
			return f != nil && f.Doubt == FewPartners && len(m.partners[i]) < fewest
		}
		for i, partners := range m.partners {
			for _, other := range partners {
				j := int(other)
				if i > j || named[m.Profile][i] || named[m.Profile][j] || doubtful(i) || doubtful(j) {
					continue
				}
				if f, at, e, ok := m.judgeLink(i, j, a.margin); ok {
					f.Profile = m.Profile
					add(f, at, e)
				}
			}
		}
	}
	a.collectFindings(found)
}

// judgeNode judges a node in one layer. apart is the spread of the effects of all nodes. doubt is the reason if the
// result is not certain.
func (m *Matrix) judgeNode(i int, margin, apart float64) (e Evidence, doubt Doubt, differs bool) {
	partners := m.partners[i]
	if len(partners) == 0 {
		return e, "", false
	}
	limit := math.Log1p(margin) + max(nodeLimit*apart, valueLimit*m.Spread/math.Sqrt(float64(len(partners))))
	sides := m.nodeSides(i)
	for k := range sides {
		sides[k].hits = countAbove(sides[k].excess, limit)
	}
	bad := func(s side) bool {
		return len(s.excess) > 0 && stat.Median(s.excess) > limit && float64(s.hits) >= most*float64(len(s.excess))
	}
	whole := side{excess: slices.Concat(sides[0].excess, sides[1].excess), costs: slices.Concat(sides[0].costs, sides[1].costs), hits: sides[0].hits + sides[1].hits}
	switch {
	case bad(whole):
	case bad(sides[0]) && len(sides[0].excess) >= 2:
		whole = sides[0]
	case bad(sides[1]) && len(sides[1].excess) >= 2:
		whole = sides[1]
	case len(partners) > fewest && m.differsWithSomePartners(whole, margin):
		doubt = SomePartners
	default:
		return e, "", false
	}
	if len(partners) < fewest {
		doubt = FewPartners
	}
	excess := stat.Median(whole.excess)
	e = Evidence{Layer: m.Layer, Hits: whole.hits, Of: len(whole.excess), Limit: math.Exp(limit), Role: whole.role,
		Value: m.value(stat.Median(whole.costs)), Typical: m.value(stat.Median(whole.costs) - excess), Factor: math.Exp(excess)}
	return e, doubt, true
}

// side has the measurements of a node in one role, one for each partner. excess is by how much the cost exceeds the cost
// without the node's own effect; hits counts the values of excess above the limit.
type side struct {
	role          string
	excess, costs []float64
	hits          int
}

func (m *Matrix) nodeSides(i int) [2]side {
	out := [2]side{{role: "sends"}, {role: "receives"}}
	for _, other := range m.partners[i] {
		j := int(other)
		for k, key := range [][2]int{{i, j}, {j, i}} {
			costs := m.costs(key[0], key[1])
			if len(costs) == 0 {
				continue
			}
			other := m.receiveEffect(j)
			if k == 1 {
				other = m.sendEffect(j)
			}
			cost := stat.Median(costs)
			out[k].costs = append(out[k].costs, cost)
			out[k].excess = append(out[k].excess, cost-m.baseCost(key[0], key[1])-other)
		}
	}
	return out
}

// differsWithSomePartners reports whether a node differs with more than fewest of its partners, and with at least a third of
// them. The limit for each partner is that of a link.
func (m *Matrix) differsWithSomePartners(s side, margin float64) bool {
	far := countAbove(s.excess, math.Log1p(margin)+valueLimit*m.Spread)
	return far > fewest && 3*far >= len(s.excess)
}

// countAbove counts the values above a limit.
func countAbove(values []float64, limit float64) int {
	return len(each.Where(values, func(v float64) bool { return v > limit }))
}

// nodeSpread returns the spread of the nodes' effects.
func (m *Matrix) nodeSpread() float64 {
	effects := make([]float64, 0, 2*len(m.both))
	for i := range m.both {
		effects = append(effects, m.sendEffect(i), m.receiveEffect(i))
	}
	return robustSpread(effects)
}

// judgeLink judges the residuals of a pair of nodes. at are the two nodes, the sender first if the finding is a
// direction. ok is false if no residual exceeds the limit.
func (m *Matrix) judgeLink(i, j int, margin float64) (f Finding, at []int, e Evidence, ok bool) {
	limit := math.Log1p(margin) + valueLimit*m.Spread
	var hits, of [2]int
	var rests, costs [2][]float64
	for k, way := range [][2]int{{i, j}, {j, i}} {
		costs[k] = m.costs(way[0], way[1])
		rests[k] = m.restsOf(way[0], way[1])
		of[k], hits[k] = len(rests[k]), countAbove(rests[k], limit)
	}
	f, at = Finding{Kind: Link}, []int{i, j}
	sum := hits[0] + hits[1]
	all, allCosts := slices.Concat(rests[0], rests[1]), slices.Concat(costs[0], costs[1])
	one := func(k int) bool {
		return hits[k] == of[k] && of[k] >= sureTimes && stat.Median(rests[k]) > 1.5*limit && hits[1-k] == 0 && of[1-k] > 0
	}
	switch {
	case sum == 0:
		return f, at, e, false
	case sum >= 2 && sum == len(all):
	case one(0):
		f.Kind, all, allCosts, hits[1] = Direction, rests[0], costs[0], 0
	case one(1):
		f.Kind, at, all, allCosts, hits[0] = Direction, []int{j, i}, rests[1], costs[1], 0
	default:
		f.Doubt = Sometimes
	}
	worst := stat.Median(all)
	if f.Doubt != "" {
		worst = slices.Max(all)
	}
	middle := stat.Median(allCosts)
	e = Evidence{Layer: m.Layer, Hits: hits[0] + hits[1], Of: len(all), Limit: math.Exp(limit),
		Value: m.value(middle), Typical: m.value(middle - stat.Median(all)), Factor: math.Exp(worst)}
	return f, at, e, true
}

// collectFindings sorts found into Findings, Undecided and suspects, and adds the findings about groups. It drops
// directions and doubts about a pair that has a certain finding.
func (a *Analysis) collectFindings(found map[string]*Finding) {
	sure := map[string]bool{} // pairs with a decided finding
	for _, f := range found {
		slices.SortFunc(f.Evidence, func(x, y Evidence) int {
			return cmp.Or(cmp.Compare(measures[x.Metric].floor, measures[y.Metric].floor), cmp.Compare(y.Factor, x.Factor))
		})
		f.Scope = a.scope(f)
		if f.Doubt == "" && len(f.Nodes) == 2 {
			sure[pairKey(f)] = true
		}
	}
	for _, key := range slices.Sorted(maps.Keys(found)) {
		f := found[key]
		switch {
		case f.Doubt == "" && f.Kind == Direction && a.hasCertainLink(found, f):
			continue // the link covers it
		case f.Doubt == "":
			a.Findings = append(a.Findings, *f)
		case len(f.Nodes) == 2 && sure[pairKey(f)]:
		case f.Doubt == Sometimes && !f.differsOften():
			a.suspects = append(a.suspects, *f)
		default:
			f.Decide = a.decidingPairs(f)
			a.Undecided = append(a.Undecided, *f)
		}
	}
	a.Findings = append(a.Findings, a.groupFindings()...)
	for _, list := range [][]Finding{a.Findings, a.Undecided, a.suspects} {
		slices.SortStableFunc(list, func(x, y Finding) int {
			return cmp.Or(cmp.Compare(rank[x.Kind], rank[y.Kind]), cmp.Compare(y.Evidence[0].Factor, x.Evidence[0].Factor))
		})
	}
}

// differsOften reports whether at least half of the measurements of a link differ in a layer. Layers with fewer than four
// measurements do not count: only a link that was measured again has four.
func (f *Finding) differsOften() bool {
	return slices.ContainsFunc(f.Evidence, func(e Evidence) bool { return e.Of >= 4 && 2*e.Hits >= e.Of })
}

var rank = map[Kind]int{Node: 0, Link: 1, Direction: 2, Group: 3}

// pairKey identifies the pair of a finding.
func pairKey(f *Finding) string {
	return f.Profile.String() + " " + min(f.Nodes[0], f.Nodes[1]) + " " + max(f.Nodes[0], f.Nodes[1])
}

// hasCertainLink reports whether the link of a direction is a certain finding.
func (a *Analysis) hasCertainLink(found map[string]*Finding, f *Finding) bool {
	x, y := a.nodeIndex(f.Nodes[0]), a.nodeIndex(f.Nodes[1])
	link := found[keyOf(f.Profile, Link, a.Nodes[min(x, y)].Name, a.Nodes[max(x, y)].Name)]
	return link != nil && link.Doubt == ""
}

// keyOf returns the key of a finding. The nodes of a link must be in the order of the analysis, those of a direction
// in its order.
func keyOf(v plan.Variant, kind Kind, nodes ...string) string {
	return v.String() + " " + string(kind) + " " + strings.Join(nodes, " ")
}

func (a *Analysis) nodeIndex(name string) int {
	return slices.IndexFunc(a.Nodes, func(n mesh.Node) bool { return n.Name == name })
}

// scope returns Hosts if the hosts show the finding, too, Pods if they were measured and do not, "" if they were not
// measured.
func (a *Analysis) scope(f *Finding) Scope {
	hosts := false
	for _, e := range f.Evidence {
		if e.Path == plan.ZeroPath {
			return Hosts
		}
		for _, m := range a.Matrices {
			if m.Path != plan.ZeroPath || m.Profile != f.Profile || m.Workload != e.Workload || m.Metric != e.Metric {
				continue
			}
			excess, measured := m.excessOf(a, f)
			if measured && excess > math.Log(e.Factor)/2 {
				return Hosts
			}
			hosts = hosts || measured
		}
	}
	if hosts {
		return Pods
	}
	return ""
}

// excessOf returns how much worse the nodes of a finding are in a layer, as a logarithm. measured is false if the
// layer has no value for them.
func (m *Matrix) excessOf(a *Analysis, f *Finding) (excess float64, measured bool) {
	i := a.nodeIndex(f.Nodes[0])
	if len(f.Nodes) == 2 {
		j := a.nodeIndex(f.Nodes[1])
		rests := slices.Concat(m.restsOf(i, j), m.restsOf(j, i))
		if len(rests) == 0 {
			return 0, false
		}
		return stat.Median(rests), true
	}
	for _, s := range m.nodeSides(i) {
		if len(s.excess) == 0 {
			continue
		}
		if worse := stat.Median(s.excess); !measured || worse > excess {
			excess, measured = worse, true
		}
	}
	return excess, measured
}

// decidingPairs returns pairs whose measurement would decide an undecided finding: the link again, or the node with
// new partners.
func (a *Analysis) decidingPairs(f *Finding) []mesh.Pair {
	if len(f.Nodes) == 2 {
		return []mesh.Pair{{From: f.Nodes[0], To: f.Nodes[1]}}
	}
	i := a.nodeIndex(f.Nodes[0])
	met := map[int]bool{i: true}
	for _, m := range a.Matrices {
		for _, j := range m.partners[i] {
			met[int(j)] = true
		}
	}
	var pairs []mesh.Pair
	for j, n := range a.Nodes {
		if !met[j] && len(pairs) < mostDecide {
			pairs = append(pairs, mesh.Pair{From: f.Nodes[0], To: n.Name})
		}
	}
	return pairs
}

// groupFindings returns the findings about groups of nodes between which a layer is worse than between other groups.
func (a *Analysis) groupFindings() []Finding {
	var out []Finding
	for _, m := range a.Matrices {
		if m.groups == nil {
			continue
		}
		blocks := slices.SortedFunc(maps.Keys(m.groups), func(x, y [2]int) int {
			return cmp.Or(cmp.Compare(m.groups[y], m.groups[x]), cmp.Compare(x[0], y[0]), cmp.Compare(x[1], y[1]))
		})
		worst, best := blocks[0], blocks[len(blocks)-1]
		excess := m.groups[worst] - m.groups[best]
		limit := math.Log1p(a.margin) + m.Spread
		if excess <= limit {
			continue
		}
		of := 0
		for key := range m.measuredDirections {
			if groupPair(m.group, key[0], key[1]) == worst {
				of++
			}
		}
		f := Finding{Kind: Group, Profile: m.Profile, Nodes: []string{m.key + " " + a.groupName(m, worst[0]), m.key + " " + a.groupName(m, worst[1])}}
		f.Evidence = []Evidence{{Layer: m.Layer, Value: m.value(m.Typical + m.groups[worst]), Typical: m.value(m.Typical + m.groups[best]),
			Factor: math.Exp(excess), Hits: of, Of: of, Limit: math.Exp(limit)}}
		i := slices.IndexFunc(out, func(g Finding) bool { return g.Profile == f.Profile && slices.Equal(g.Nodes, f.Nodes) })
		if i >= 0 {
			out[i].Evidence = append(out[i].Evidence, f.Evidence...)
			continue
		}
		out = append(out, f)
	}
	return out
}

// groupName returns the value that the nodes of a group have for the label m.key.
func (a *Analysis) groupName(m *Matrix, group int) string {
	return a.Nodes[slices.Index(m.group, group)].Labels[m.key]
}

// Suspects returns at most most pairs that should be measured again: links that differ, then links that may differ.
func (a *Analysis) Suspects(most int) []mesh.Pair {
	var pairs []mesh.Pair
	for _, f := range slices.Concat(a.Findings, a.Undecided, a.suspects) {
		if len(f.Nodes) == 2 && f.Kind != Group && len(pairs) < most {
			if p := (mesh.Pair{From: f.Nodes[0], To: f.Nodes[1]}); !slices.Contains(pairs, p) && !slices.Contains(pairs, p.Swapped()) {
				pairs = append(pairs, p)
			}
		}
	}
	return pairs
}
