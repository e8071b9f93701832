// Package matrix judges measurements between pairs of nodes: which node, which link or which direction differs from the
// others, with the evidence.
//
//	records ─► Collector ─► one Matrix for each case and metric ─► fit: typical + sender + receiver + rest ─► findings
//
// A fit is robust (median polish on logarithms): a node is judged by the median over its partners, so that one bad link
// does not make its nodes bad, and a link by what its nodes do not explain. A node, a link or a direction is named only
// beyond the spread of the others and the margin, in every repetition. A difference in only some repetitions is
// undecided. Read Collector, fit, judge.
package matrix

import (
	"cmp"
	"math"
	"slices"

	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/plan/mesh"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// Layer is one metric of one case, between all pairs.
type Layer struct {
	plan.Case
	Metric string
}

// Failed is the metric of the layers about failed trials.
const Failed = "failed"

// measure defines how values of a metric are compared.
type measure struct {
	// floor is added to values of a metric that is usually 0; 0 for others.
	floor float64
	// higher means that higher values are better.
	higher bool
}

// measures are the metrics that are judged. CPU metrics are not among them, since nodes share the CPUs in the lab.
var measures = map[string]measure{
	metric.Goodput: {higher: true}, metric.Throughput: {higher: true}, metric.TransactionRate: {higher: true}, metric.RequestRate: {higher: true},
	"rtt.p50": {}, "connect_time.p50": {}, "response_time.p50": {},
	metric.RetransmitsPerG: {floor: 1000}, metric.FrameLossRate: {floor: 0.002}, metric.ErrorRate: {floor: 0.002},
	Failed: {floor: 0.1},
}

// cost converts a value into a number that grows as the value gets worse; equal differences of costs are equal factors
// of values.
func (m measure) cost(v float64) float64 {
	switch {
	case m.higher:
		return -math.Log(max(v, math.SmallestNonzeroFloat64))
	case m.floor > 0:
		return math.Log(m.floor + v)
	}
	return math.Log(max(v, math.SmallestNonzeroFloat64))
}

// value returns the value with the given cost: the inverse of cost.
func (m measure) value(cost float64) float64 {
	if m.higher {
		return math.Exp(-cost)
	}
	if v := math.Exp(cost) - m.floor; v > m.floor*rounding {
		return v
	}
	return 0
}

// rounding is the share of floor up to which a value counts as 0, because costs are rounded.
const rounding = 1e-5

// point is one value between two nodes, which are identified by their numbers.
type point struct {
	from, to uint16
	cost     float32
}

// Collector collects the records of a result and keeps the values that are judged, with eight bytes for each. The zero
// value is ready for use.
type Collector struct {
	numbers map[string]uint16
	names   []string
	layers  map[Layer][]point
}

// Empty reports whether nothing was measured between pairs of nodes.
func (c *Collector) Empty() bool { return len(c.layers) == 0 }

// Add adds a record. It ignores records without a pair of nodes.
func (c *Collector) Add(rec *result.Record) {
	if rec.Type != result.TypeTrial || rec.Pair.IsZero() {
		return
	}
	if c.layers == nil {
		c.layers = map[Layer][]point{}
	}
	add := func(name string, v float64) {
		l := Layer{Case: rec.Case, Metric: name}
		c.layers[l] = append(c.layers[l], point{c.nodeNumber(rec.Pair.From), c.nodeNumber(rec.Pair.To), float32(measures[name].cost(v))})
	}
	if rec.Status != result.OK {
		add(Failed, 1)
		return
	}
	add(Failed, 0)
	for name, v := range rec.Metrics {
		if _, judged := measures[name]; judged && !math.IsNaN(v) && !math.IsInf(v, 0) {
			add(name, v)
		}
	}
}

// Number returns a number that is the same only for trials of the same pair in the same repetition.
func (c *Collector) Number(t plan.Trial) int {
	return (int(c.nodeNumber(t.Pair.From))<<16|int(c.nodeNumber(t.Pair.To)))<<16 | t.Repetition
}

func (c *Collector) nodeNumber(name string) uint16 {
	n, ok := c.numbers[name]
	if c.numbers == nil {
		c.numbers = map[string]uint16{}
	}
	if !ok {
		n = uint16(len(c.names))
		c.numbers[name] = n
		c.names = append(c.names, name)
	}
	return n
}

// Matrix is one layer, with the nodes in the order of the analysis.
type Matrix struct {
	Layer
	measure
	// Typical is the median cost of a pair. Spread is the standard deviation of costs from the fit.
	Typical, Spread float64
	// both is the effect of each node in either role. send and receive are its additional effects as a sender (client)
	// and as a receiver.
	both, send, receive []float64
	// group has the number of the group of each node.
	// groups has the additional cost between two groups; nil if groups explain nothing.
	// key is the label that defines the groups.
	group  []int
	groups map[[2]int]float64
	key    string
	values
	// partners are the nodes that each was measured with.
	partners [][]uint16
}

// values are the values of a layer.
type values struct {
	// points are sorted by the numbers of their nodes. They are shared with the collector, since a map would take ten
	// times the memory.
	// place maps the collector's number of a node to its index in the analysis; number is the reverse.
	points        []point
	place, number []uint16
}

// Worse returns the factor by which values from one node to another are worse than the typical value of their groups, at
// least 1. It returns 0 if there are no values.
func (m *Matrix) Worse(from, to int) float64 {
	costs := m.costs(from, to)
	if len(costs) == 0 {
		return 0
	}
	excess := stat.Median(costs) - m.baseCost(from, to)
	if excess < 2*m.Spread {
		return 1
	}
	return math.Exp(excess)
}

// Effects returns how many times worse values are if node i sends, and if it receives.
func (m *Matrix) Effects(i int) (send, receive float64) {
	return math.Exp(m.sendEffect(i)), math.Exp(m.receiveEffect(i))
}

// Over returns the median factor by which a direction of a pair is worse in m than in other. It returns NaN if no
// direction is in both.
func (m *Matrix) Over(other *Matrix) float64 {
	var quotients []float64
	for key, costs := range m.measuredDirections {
		if beside := other.costs(key[0], key[1]); len(beside) > 0 {
			quotients = append(quotients, stat.Median(costs)-stat.Median(beside))
		}
	}
	return math.Exp(stat.Median(quotients))
}

// TypicalValue returns the typical value in base units.
func (m *Matrix) TypicalValue() float64 { return m.value(m.Typical) }

// Rare reports whether the metric is usually 0, such as a loss.
func (m *Matrix) Rare() bool { return m.floor > 0 }

// Pairs returns the number of pairs with a value in either direction.
func (m *Matrix) Pairs() (n int) {
	for _, p := range m.partners {
		n += len(p)
	}
	return n / 2
}

// Analysis is the findings of a result.
type Analysis struct {
	// Nodes are in the order of the matrices: nodes with equal labels are together.
	Nodes []mesh.Node
	// Keys are the labels in which the nodes differ.
	Keys     []string
	Matrices []*Matrix
	// Findings are certain differences, Undecided are possible ones.
	Findings, Undecided []Finding
	// suspects are links that differ in some measurements: in fewer than half, or there are too few to tell.
	suspects []Finding
	margin   float64
}

// Analyse judges the collected values. nodes are the header's; measured nodes that are not among them are added.
// Differences up to margin do not count. A later analysis of more records replaces an earlier one.
func (c *Collector) Analyse(nodes []mesh.Node, margin float64) *Analysis {
	a := &Analysis{Nodes: slices.Clone(nodes), margin: cmp.Or(margin, plan.DefaultMargin)}
	for _, name := range c.names {
		if !slices.ContainsFunc(a.Nodes, func(n mesh.Node) bool { return n.Name == name }) {
			a.Nodes = append(a.Nodes, mesh.Node{Name: name})
		}
	}
	a.Keys = mesh.Varying(a.Nodes)
	mesh.Order(a.Nodes, a.Keys...)
	place, numbers := make([]uint16, len(c.names)), make([]uint16, len(a.Nodes))
	for i, n := range a.Nodes {
		numbers[i] = math.MaxUint16 // nothing was measured there
		if number, ok := c.numbers[n.Name]; ok {
			place[number], numbers[i] = uint16(i), number
		}
	}
	for l, points := range c.layers {
		if l.Metric == Failed && !slices.ContainsFunc(points, func(p point) bool { return measures[Failed].value(float64(p.cost)) > 0.5 }) {
			continue
		}
		slices.SortFunc(points, point.compare)
		m := &Matrix{Layer: l, measure: measures[l.Metric], values: values{points, place, numbers}}
		m.setPartners()
		a.Matrices = append(a.Matrices, m)
	}
	slices.SortFunc(a.Matrices, func(x, y *Matrix) int {
		return cmp.Or(cmp.Compare(x.Profile.String(), y.Profile.String()), cmp.Compare(x.Workload.String(), y.Workload.String()),
			cmp.Compare(x.Metric, y.Metric), cmp.Compare(x.Path.String(), y.Path.String()))
	})
	for _, m := range a.Matrices {
		m.fit(a)
	}
	a.findDifferences()
	return a
}

// setPartners sets the partners of each node.
func (m *Matrix) setPartners() {
	m.partners = make([][]uint16, len(m.number))
	for key := range m.measuredDirections {
		m.partners[key[0]] = append(m.partners[key[0]], uint16(key[1]))
		m.partners[key[1]] = append(m.partners[key[1]], uint16(key[0]))
	}
	for i, p := range m.partners {
		slices.Sort(p)
		m.partners[i] = slices.Clone(slices.Compact(p))
	}
}

func (p point) compare(q point) int {
	return cmp.Or(cmp.Compare(p.from, q.from), cmp.Compare(p.to, q.to))
}

// costs returns the costs from one node to another.
func (m *Matrix) costs(from, to int) (costs []float64) {
	key := point{from: m.number[from], to: m.number[to]}
	i, _ := slices.BinarySearchFunc(m.points, key, point.compare)
	for ; i < len(m.points) && m.points[i].compare(key) == 0; i++ {
		costs = append(costs, float64(m.points[i].cost))
	}
	return costs
}

// measuredDirections yields each measured direction of each pair with its costs. The slice costs is valid only until
// the next one.
func (m *Matrix) measuredDirections(yield func(key [2]int, costs []float64) bool) {
	var costs []float64
	for i := 0; i < len(m.points); {
		p := m.points[i]
		for costs = costs[:0]; i < len(m.points) && m.points[i].compare(p) == 0; i++ {
			costs = append(costs, float64(m.points[i].cost))
		}
		if !yield([2]int{int(m.place[p.from]), int(m.place[p.to])}, costs) {
			return
		}
	}
}
