package report

import (
	"cmp"
	"slices"

	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

var restNotes = []string{
	"Each value is the median over trials. 100 % is one core. Memory is the working set at the end of the window.",
	"A part is the mean over the two nodes of the path: a part that runs on one of them counts half. The parts of a node do not add up to it: the kernel's own work and services outside of pods have no part.",
	"The times are those of the kubelet's samples, in whole seconds: a window of 60 s is known to 2 %.",
}

// rest is what the nodes used in one trial.
type rest struct {
	profile plan.Variant
	nodes   []sample.NodeRest
}

// restRow is one row of the tables of nodes at rest.
type restRow struct {
	rank int
	name string
}

// parts returns what one trial says of each row: the nodes, the daemons of the network, and the rest of a node.
func (r rest) parts() map[restRow]sample.Usage {
	all := map[restRow]sample.Usage{}
	var lost []string // a mean without one of its nodes is not the mean
	for _, n := range r.nodes {
		lost = append(append(lost, n.Lost...), n.LostOthers...)
	}
	for _, n := range r.nodes {
		all[restRow{0, "node of the " + n.Side}] = n.Whole
		for _, p := range n.Parts {
			if slices.Contains(lost, p.Name) {
				continue
			}
			at := restRow{2, p.Name}
			if p.Network {
				at.rank = 1
			}
			sum := all[at]
			sum.Cores += p.Cores / float64(len(r.nodes))
			sum.MemoryBytes += p.MemoryBytes / uint64(len(r.nodes))
			all[at] = sum
		}
	}
	return all
}

// restPage has what nodes and daemons use while nothing is sent.
func restPage(b *builder) page {
	return page{sections: []Section{{Heading: "Nodes and daemons at rest", Notes: restNotes, Grids: b.atRest(b.from.rests)}}}
}

// atRest sets what nodes and daemons use at rest side by side, one profile a column.
func (b *builder) atRest(rests []rest) []Grid {
	values := map[restRow]map[plan.Variant][]sample.Usage{}
	var rows []restRow
	seen := map[plan.Variant]bool{}
	for _, r := range rests {
		seen[r.profile] = true
		for p, u := range r.parts() {
			if values[p] == nil {
				values[p] = map[plan.Variant][]sample.Usage{}
				rows = append(rows, p)
			}
			values[p][r.profile] = append(values[p][r.profile], u)
		}
	}
	slices.SortFunc(rows, func(p, q restRow) int { return cmp.Or(cmp.Compare(p.rank, q.rank), cmp.Compare(p.name, q.name)) })
	profiles := each.Where(b.analysis.Profiles, func(p plan.Variant) bool { return seen[p] })
	if len(profiles) == 0 {
		return nil
	}
	draw := func(title, unit string, of func(sample.Usage) float64) Grid {
		medians := map[restRow]map[plan.Variant]float64{}
		var all []float64
		for _, row := range rows {
			medians[row] = map[plan.Variant]float64{}
			for p, us := range values[row] {
				medians[row][p] = stat.Summarize(each.Of(us, of), 0.95).Median
				all = append(all, medians[row][p])
			}
		}
		scale := number.Common(unit, all...)
		g := Grid{Title: title + " (" + scale.Unit + ")", Label: "part", Columns: each.Of(plan.Texts(profiles), number.Clean)}
		for _, row := range rows {
			var cells []string
			for _, p := range profiles {
				text := number.Absent
				if v, ok := medians[row][p]; ok {
					text = scale.Format(v)
				}
				cells = append(cells, text)
			}
			g.Add(number.Clean(row.name), cells...)
		}
		return g
	}
	return []Grid{
		draw("CPU at rest", "ratio", func(u sample.Usage) float64 { return u.Cores }),
		draw("Memory at rest", "B", func(u sample.Usage) float64 { return float64(u.MemoryBytes) }),
	}
}
