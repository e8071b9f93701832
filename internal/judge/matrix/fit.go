package matrix

import (
	"math"
	"slices"

	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

const (
	// polishes bounds the rounds of the fit, which usually converges much earlier.
	polishes = 12
	// settled is the change of effects below which the fit ends.
	settled = 1e-4
	// fewest is the number of values that an effect needs: with two, one bad link would contribute half of it.
	fewest = 3
	// fewestRole is the number of values that an effect of one role needs: with fewer, there are more effects than
	// values can determine.
	fewestRole = 6
	// explained is the largest share of the spread that may remain after groups are taken into account. If more remains,
	// groups explain nothing.
	explained = 0.7
)

// entry is a direction of a pair with its median cost.
type entry struct {
	from, to uint16
	cost     float32
}

// fit explains costs as the sum of a typical cost, a group's cost if that helps, and effects of the nodes: in any role,
// as a sender, and as a receiver. It is a median polish.
func (m *Matrix) fit(a *Analysis) {
	n := len(m.partners)
	m.both, m.send, m.receive = make([]float64, n), make([]float64, n), make([]float64, n)
	ways := 0
	for range m.measuredDirections {
		ways++
	}
	entries := make([]entry, 0, ways)
	for key, costs := range m.measuredDirections {
		entries = append(entries, entry{uint16(key[0]), uint16(key[1]), float32(stat.Median(costs))})
	}
	rows := entriesByNode(entries, n, func(e entry) uint16 { return e.from })
	columns := entriesByNode(entries, n, func(e entry) uint16 { return e.to })
	costs := costsOf(entries)
	slices.Sort(costs)
	m.Typical = sortedMedian(costs)
	m.chooseGroups(a, entries)
	for range polishes {
		change := m.sweepEffects(entries, m.both, fewest, rows, columns)
		change = max(change, m.sweepEffects(entries, m.send, fewestRole, rows))
		if change = max(change, m.sweepEffects(entries, m.receive, fewestRole, columns)); change < settled {
			break
		}
	}
	m.Spread = robustSpread(m.sampledRests())
}

// entriesByNode returns the entries of each node in one role, as indices into entries. of returns the node of an
// entry in that role.
func entriesByNode(entries []entry, nodes int, of func(entry) uint16) [][]uint32 {
	counts := make([]int, nodes)
	for _, e := range entries {
		counts[of(e)]++
	}
	all := make([][]uint32, nodes)
	for i, e := range entries {
		if all[of(e)] == nil {
			all[of(e)] = make([]uint32, 0, counts[of(e)])
		}
		all[of(e)] = append(all[of(e)], uint32(i))
	}
	return all
}

func costsOf(entries []entry) []float64 {
	return each.Of(entries, func(e entry) float64 { return float64(e.cost) })
}

// chooseGroups sets the groups by the label that explains most of the spread, if any explains enough.
func (m *Matrix) chooseGroups(a *Analysis, entries []entry) {
	least := explained * robustSpread(costsOf(entries))
	for _, key := range a.Keys {
		numbers := map[string]int{}
		group := make([]int, len(a.Nodes))
		for i, n := range a.Nodes {
			value := n.Labels[key]
			if _, known := numbers[value]; !known {
				numbers[value] = len(numbers)
			}
			group[i] = numbers[value]
		}
		blocks := map[[2]int][]float64{}
		for _, e := range entries {
			b := groupPair(group, int(e.from), int(e.to))
			blocks[b] = append(blocks[b], float64(e.cost)-m.Typical)
		}
		groups := map[[2]int]float64{}
		for b, costs := range blocks {
			if len(costs) >= fewest {
				groups[b] = stat.Median(costs)
			}
		}
		rests := each.Of(entries, func(e entry) float64 { return float64(e.cost) - groups[groupPair(group, int(e.from), int(e.to))] })
		if s := robustSpread(rests); s < least {
			least, m.group, m.groups, m.key = s, group, groups, key
		}
	}
}

// groupPair identifies the groups of two nodes.
func groupPair(group []int, a, b int) [2]int {
	x, y := group[a], group[b]
	return [2]int{min(x, y), max(x, y)}
}

// sweepEffects adds the median residual of a node's entries in the given roles to the node's effect. It skips nodes
// with fewer than least entries or too few partners. Then it moves the median of the effects into m.Typical, so that
// it is 0. It returns the largest change of an effect.
func (m *Matrix) sweepEffects(entries []entry, effects []float64, least int, roles ...[][]uint32) (change float64) {
	var rests []float64
	for i := range effects {
		rests = rests[:0]
		for _, lines := range roles {
			for _, at := range lines[i] {
				e := entries[at]
				rests = append(rests, float64(e.cost)-m.expectedCost(int(e.from), int(e.to)))
			}
		}
		if len(rests) < least || len(m.partners[i]) < fewest {
			continue
		}
		slices.Sort(rests)
		by := sortedMedian(rests)
		effects[i] += by
		change = max(change, math.Abs(by))
	}
	usual := stat.Median(effects)
	for i := range effects {
		effects[i] -= usual
	}
	m.Typical += usual
	return change
}

// expectedCost returns the cost from one node to another by the fit.
func (m *Matrix) expectedCost(from, to int) float64 {
	return m.baseCost(from, to) + m.sendEffect(from) + m.receiveEffect(to)
}

// baseCost returns the cost between two nodes without their effects.
func (m *Matrix) baseCost(from, to int) float64 {
	if m.groups == nil {
		return m.Typical
	}
	return m.Typical + m.groups[groupPair(m.group, from, to)]
}

// sendEffect and receiveEffect return the effect of a node on a cost if it sends, and if it receives.
func (m *Matrix) sendEffect(i int) float64    { return m.both[i] + m.send[i] }
func (m *Matrix) receiveEffect(i int) float64 { return m.both[i] + m.receive[i] }

// restsOf returns the residuals of the values from one node to another.
func (m *Matrix) restsOf(from, to int) []float64 {
	rests := m.costs(from, to)
	for i := range rests {
		rests[i] -= m.expectedCost(from, to)
	}
	return rests
}

// enoughRests is the approximate number of residuals from which their spread is estimated.
const enoughRests = 200_000

// sampledRests returns the residuals of the values. If there are very many values, it samples the directions at even
// distances.
func (m *Matrix) sampledRests() []float64 {
	var rests []float64
	stride, i := 1+len(m.points)/enoughRests, 0
	for key, costs := range m.measuredDirections {
		if i++; i%stride != 0 {
			continue
		}
		for _, c := range costs {
			rests = append(rests, c-m.expectedCost(key[0], key[1]))
		}
	}
	return rests
}

// robustSpread estimates the standard deviation from the values around the middle, so that a third of outliers does
// not change it. It uses the wider side. With few values it returns more, because the estimate is uncertain. It sorts
// values in place: a copy of a million takes memory.
func robustSpread(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	at := sortedMedian(values)
	first, found := slices.BinarySearch(values, at)
	last := first // after the lower half, which includes the middle itself
	for ; found && last < len(values) && values[last] == at; last++ {
	}
	above, below := values[first:], values[:last]
	// Within 0.4307 deviations of the middle is a third of the upper half of a normal distribution; within 0.6745 a
	// half of the lower.
	return max((above[len(above)/3]-at)/0.4307, (at-sortedMedian(below))/0.6745) * (1 + 10/float64(len(values)))
}

// sortedMedian returns the median of sorted values.
func sortedMedian(sorted []float64) float64 {
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}
