package idle

import (
	"cmp"
	"slices"

	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

var notes = []string{
	"Each value is the median over trials. 100 % is one core. Memory is the working set at the end of the window.",
	"A part is the mean over the two nodes of the path: a part that runs on one of them counts half. The parts of a node do not add up to it: the kernel's own work and services outside of pods have no part.",
	"The times are those of the kubelet's samples, in whole seconds: a window of 60 s is known to 2 %.",
}

// title is the heading of the section.
const title = "Nodes and daemons at rest"

// row identifies a row of the tables of nodes at rest.
type row struct {
	// rank sorts the rows: 0 for nodes, 1 for daemons of the network, 2 for other parts of nodes.
	rank int
	name string
}

// usageByRow returns the usage in one trial by row. The row of a node has the usage of that node. The row of a daemon or of
// another part has the mean over all nodes. It omits a part whose counters were lost on any node.
func usageByRow(nodes []sample.NodeRest) map[row]sample.Usage {
	all := map[row]sample.Usage{}
	var lost []string // a mean without one of its nodes is wrong
	for _, n := range nodes {
		lost = append(append(lost, n.Lost...), n.LostOthers...)
	}
	for _, n := range nodes {
		all[row{0, "node of the " + n.Side}] = n.Whole
		for _, p := range n.Parts {
			if slices.Contains(lost, p.Name) {
				continue
			}
			at := row{2, p.Name}
			if p.Network {
				at.rank = 1
			}
			sum := all[at]
			sum.Cores += p.Cores / float64(len(nodes))
			sum.MemoryBytes += p.MemoryBytes / uint64(len(nodes))
			all[at] = sum
		}
	}
	return all
}

// usageOf returns the usage of the nodes in a trial of idle ([]sample.NodeRest), or nil for any other record.
func usageOf(rec *result.Record) any {
	if rec.Client == nil || len(rec.Client.Rest) == 0 {
		return nil
	}
	return rec.Client.Rest
}

// section returns the section of a report on what nodes and daemons use while nothing is sent.
func section(profiles []plan.Variant, trials []report.Kept) report.Section {
	return report.Section{Heading: title, Notes: notes, Grids: restGrids(profiles, trials)}
}

// restGrids returns a table of CPU time and one of memory, with medians over the trials and one column for each measured
// profile. It returns nil if no profile was measured.
func restGrids(among []plan.Variant, trials []report.Kept) []report.Grid {
	values := map[row]map[plan.Variant][]sample.Usage{}
	var rows []row
	seen := map[plan.Variant]bool{}
	for _, r := range trials {
		seen[r.Profile] = true
		for p, u := range usageByRow(r.Of.([]sample.NodeRest)) {
			if values[p] == nil {
				values[p] = map[plan.Variant][]sample.Usage{}
				rows = append(rows, p)
			}
			values[p][r.Profile] = append(values[p][r.Profile], u)
		}
	}
	slices.SortFunc(rows, func(p, q row) int { return cmp.Or(cmp.Compare(p.rank, q.rank), cmp.Compare(p.name, q.name)) })
	profiles := each.Where(among, func(p plan.Variant) bool { return seen[p] })
	if len(profiles) == 0 {
		return nil
	}
	draw := func(title, unit string, of func(sample.Usage) float64) report.Grid {
		medians := map[row]map[plan.Variant]float64{}
		var all []float64
		for _, row := range rows {
			medians[row] = map[plan.Variant]float64{}
			for p, us := range values[row] {
				medians[row][p] = stat.Summarize(each.Of(us, of), 0.95).Median
				all = append(all, medians[row][p])
			}
		}
		scale := number.Common(unit, all...)
		g := report.Grid{Title: title + " (" + scale.Unit + ")", Label: "part", Columns: each.Of(plan.Texts(profiles), number.Clean)}
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
	return []report.Grid{
		draw("CPU at rest", "ratio", func(u sample.Usage) float64 { return u.Cores }),
		draw("Memory at rest", "B", func(u sample.Usage) float64 { return float64(u.MemoryBytes) }),
	}
}
