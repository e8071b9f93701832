package matrix

import (
	"math"
	"slices"

	"github.com/cnibench/cnibench/internal/judge/stat"
)

const (
	// polishes bounds the rounds of the fit; it has converged long before.
	polishes = 12
	// settled is the largest change of an effect that ends it.
	settled = 1e-4
	// fewest is how many values an effect takes: of two, one bad link would make half of it.
	fewest = 3
	// fewestRole is how many values an effect of one role takes: below, there are more effects than values can tell.
	fewestRole = 6
	// explained is the part of the spread that must be left at most for groups to explain it.
	explained = 0.7
)

// entry is a direction of a pair with its median cost.
type entry struct {
	from, to uint16
	cost     float32
}

// fit explains costs by a typical one, by the groups of the nodes if that helps, and by effects of the nodes: in any role, as a
// sender, and as a receiver. It is a median polish.
func (m *Matrix) fit(a *Analysis) {
	n := len(m.partners)
	m.both, m.send, m.receive = make([]float64, n), make([]float64, n), make([]float64, n)
	all, rows, columns := make([][]entry, n), make([][]entry, n), make([][]entry, n)
	var entries []entry
	for key, costs := range m.ways {
		e := entry{uint16(key[0]), uint16(key[1]), float32(stat.Median(costs))}
		entries = append(entries, e)
		rows[e.from], columns[e.to] = append(rows[e.from], e), append(columns[e.to], e)
		all[e.from], all[e.to] = append(all[e.from], e), append(all[e.to], e)
	}
	m.Typical = stat.Median(costsOf(entries))
	m.regroup(a, entries)
	for range polishes {
		change := m.sweep(all, m.both, fewest)
		change = max(change, m.sweep(rows, m.send, fewestRole))
		if change = max(change, m.sweep(columns, m.receive, fewestRole)); change < settled {
			break
		}
	}
	m.Spread = spread(m.rests())
}

func costsOf(entries []entry) []float64 {
	costs := make([]float64, len(entries))
	for i, e := range entries {
		costs[i] = float64(e.cost)
	}
	return costs
}

// regroup finds the label whose groups explain most of the spread.
func (m *Matrix) regroup(a *Analysis, entries []entry) {
	least := explained * spread(costsOf(entries))
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
			b := block(group, int(e.from), int(e.to))
			blocks[b] = append(blocks[b], float64(e.cost)-m.Typical)
		}
		groups := map[[2]int]float64{}
		for b, costs := range blocks {
			if len(costs) >= fewest {
				groups[b] = stat.Median(costs)
			}
		}
		var rests []float64
		for _, e := range entries {
			rests = append(rests, float64(e.cost)-groups[block(group, int(e.from), int(e.to))])
		}
		if s := spread(rests); s < least {
			least, m.group, m.groups, m.key = s, group, groups, key
		}
	}
}

// block identifies the groups of two nodes.
func block(group []int, a, b int) [2]int {
	x, y := group[a], group[b]
	return [2]int{min(x, y), max(x, y)}
}

// sweep adds to each effect the median of what its line leaves, keeps the median effect at 0, and returns the largest change.
func (m *Matrix) sweep(lines [][]entry, effects []float64, least int) (change float64) {
	var rests []float64
	for i, line := range lines {
		if len(line) < least || len(m.partners[i]) < fewest {
			continue
		}
		rests = rests[:0]
		for _, e := range line {
			rests = append(rests, float64(e.cost)-m.expected(int(e.from), int(e.to)))
		}
		slices.Sort(rests)
		by := (rests[(len(rests)-1)/2] + rests[len(rests)/2]) / 2
		effects[i] += by
		change = max(change, math.Abs(by))
	}
	middle := stat.Median(effects)
	for i := range effects {
		effects[i] -= middle
	}
	m.Typical += middle
	return change
}

// expected is the cost that the fit says.
func (m *Matrix) expected(from, to int) float64 {
	return m.ground(from, to) + m.sends(from) + m.receives(to)
}

// ground is the cost of two nodes without effects.
func (m *Matrix) ground(from, to int) float64 {
	if m.groups == nil {
		return m.Typical
	}
	return m.Typical + m.groups[block(m.group, from, to)]
}

// sends and receives are the effects of a node in its roles.
func (m *Matrix) sends(i int) float64    { return m.both[i] + m.send[i] }
func (m *Matrix) receives(i int) float64 { return m.both[i] + m.receive[i] }

// restsOf returns what the fit leaves of the values from one node to another.
func (m *Matrix) restsOf(from, to int) []float64 {
	rests := m.costs(from, to)
	for i := range rests {
		rests[i] -= m.expected(from, to)
	}
	return rests
}

// enoughRests is how many of the rests tell their spread.
const enoughRests = 200_000

// rests returns what the fit leaves of the values, of very many those at even distances.
func (m *Matrix) rests() []float64 {
	var rests []float64
	stride, i := 1+len(m.points)/enoughRests, 0
	for key, costs := range m.ways {
		if i++; i%stride != 0 {
			continue
		}
		for _, c := range costs {
			rests = append(rests, c-m.expected(key[0], key[1]))
		}
	}
	return rests
}

// spread is a standard deviation by the values around the middle: what a third of outliers does not change. It is that of the
// wider side. Of few values it is uncertain, and then larger.
func spread(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	middle := stat.Median(values)
	var above, below []float64
	for _, v := range values {
		if v >= middle {
			above = append(above, v-middle)
		}
		if v <= middle {
			below = append(below, middle-v)
		}
	}
	slices.Sort(above)
	// A third of the upper half of a normal distribution lies within 0.4307 deviations, a half of the lower within 0.6745.
	return max(above[len(above)/3]/0.4307, stat.Median(below)/0.6745) * (1 + 10/float64(len(values)))
}
