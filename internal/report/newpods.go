package report

import (
	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/metric"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

var newPodsNotes = []string{
	"A pod counts from its intended time. In the lab its namespace exists by then, and the time ends with the response to its first request.",
	"On a cluster the time includes the API server, the scheduler, kubelet and the container runtime.",
	"Each value is the median over trials. Within a trial the parts of the mean add up to it. A percentile needs 10 pods beyond it.",
}

// statistics of the times to first response, in the order of their columns.
var statistics = []string{"p50", "p90", "p99", "max", "mean"}

// newPods returns two tables for each workload with new pods on each path: its times, and what they consist of.
func (b *builder) newPods() []Grid {
	var grids []Grid
	for _, w := range b.analysis.Workloads {
		if !w.Traits().NewPods {
			continue
		}
		for _, path := range b.analysis.Paths {
			about := ", " + w.String() + " " + path.String()
			times := b.byProfile(plan.Case{Path: path, Workload: w}, "Time to first response"+about, metric.TTFR, statistics)
			if len(times.Labels) == 0 {
				continue
			}
			waits := b.byProfile(plan.Case{Path: path, Workload: w}, "What the first request waited for, mean"+about, metric.TTFRWait, metric.Waits)
			grids = append(grids, times, waits)
		}
	}
	return grids
}

// byProfile sets members of a family of times side by side, one profile a row, all in one unit. A column without values is
// left out.
func (b *builder) byProfile(c plan.Case, title, family string, members []string) Grid {
	type row struct {
		profile plan.Variant
		cells   map[string]float64
	}
	var rows []row
	var all []float64
	has := map[string]bool{}
	for _, profile := range b.analysis.Profiles {
		c.Profile = profile
		r := row{profile, map[string]float64{}}
		for _, member := range members {
			if cell, ok := b.analysis.Cell(compare.Key{Case: c, Metric: family + "." + member}); ok && cell.N > 0 {
				r.cells[member], has[member] = cell.Median, true
				all = append(all, cell.Median)
			}
		}
		if len(r.cells) > 0 {
			rows = append(rows, r)
		}
	}
	scale := number.Common("ns", all...)
	columns := each.Of(members, func(m string) string { return m })
	kept := columns[:0]
	for _, m := range columns {
		if has[m] {
			kept = append(kept, m)
		}
	}
	g := Grid{Title: title + " (" + scale.Unit + ")", Label: "profile", Columns: kept}
	for _, r := range rows {
		g.Add(number.Clean(r.profile), each.Of(kept, func(m string) string {
			v, ok := r.cells[m]
			if !ok {
				return number.Absent
			}
			return scale.Format(v)
		})...)
	}
	return g
}
