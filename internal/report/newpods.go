package report

import (
	"fmt"
	"strings"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/metric"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

var newPodsNotes = []string{
	"A pod counts from its intended time, and from the start of its program. It dials every millisecond, later every 1 % of the time passed, until a request is answered.",
	"A pod without an answer has the timeout as its time. A value that begins with >= is the timeout: the true one is at least that.",
	"In the lab the namespace of a pod exists at its intended time. On a cluster the time includes the API server, the scheduler, kubelet and the container runtime.",
	"Each value is the median over trials. Within a trial the parts of the mean add up to the mean from the due time. A percentile needs 10 pods beyond it.",
}

// statistics are the statistics of the times to first response, in the order of columns.
var statistics = []string{"p50", "p90", "p99", "max", "mean"}

// podTimes are the metric families of times to first response, with the titles of their tables.
var podTimes = []struct{ family, title string }{
	{metric.FromDue, "Time to first response from the due time"},
	{metric.FromStart, "Time to first response from the start of the program"},
	{metric.OneDial, "Time to first response from the due time, by one dial (an earlier version; pods without an answer are left out)"},
}

// newPodsPage returns the section with the times of new pods.
func newPodsPage(b *builder) page {
	return page{sections: []Section{{Heading: "New pods", Notes: newPodsNotes, Grids: b.newPodGrids()}}}
}

// newPodGrids returns tables for each workload with new pods, on each path. They have the times to first response, and what
// the first request waited for.
func (b *builder) newPodGrids() []Grid {
	var grids []Grid
	for _, w := range b.analysis.Workloads {
		if !w.Traits().NewPods() {
			continue
		}
		for _, path := range b.analysis.Paths {
			about := ", " + w.String() + " " + path.String()
			c := plan.Case{Path: path, Workload: w}
			for _, of := range podTimes {
				if times := b.profileGrid(c, of.title+about, of.family, statistics, b.unansweredColumn(of.family), column{"attached", b.attachmentText}); len(times.Labels) > 0 {
					grids = append(grids, times)
				}
			}
			if waits := b.profileGrid(c, "What the first request waited for, mean"+about, metric.TTFRWait, metric.Waits); len(waits.Labels) > 0 {
				waits.Notes = b.attachmentNotes(c)
				grids = append(grids, waits)
			}
		}
	}
	return grids
}

// column is a column of text after the columns of times. text returns its cell for a case.
type column struct {
	name string
	text func(plan.Case) string
}

// unansweredColumn returns a column with the median over trials of the number of pods without an answer. For the family
// metric.OneDial, which has no such number, each cell is number.Absent.
func (b *builder) unansweredColumn(family string) column {
	return column{"unanswered", func(c plan.Case) string {
		if cell, ok := b.analysis.Cell(compare.Key{Case: c, Metric: metric.TTFRUnanswered}); ok && cell.N > 0 && family != metric.OneDial {
			return number.Number(cell.Median)
		}
		return number.Absent
	}}
}

// attachmentText returns how the pods of a case were attached; number.Absent if that is unknown.
func (b *builder) attachmentText(c plan.Case) string {
	for _, name := range []string{metric.FromDue + ".mean", metric.OneDial + ".mean"} {
		if cell, ok := b.analysis.Cell(compare.Key{Case: c, Metric: name}); ok && cell.N > 0 && cell.Attached != "" {
			return cell.Attached
		}
	}
	return number.Absent
}

// attachmentNotes returns a note that lists the ways in which pods were attached. It returns nil if there is only one way.
func (b *builder) attachmentNotes(c plan.Case) []string {
	var ways []string
	profiles := map[string][]string{}
	for _, p := range b.analysis.Profiles {
		c.Profile = p
		way := b.attachmentText(c)
		if way == number.Absent {
			continue
		}
		if profiles[way] == nil {
			ways = append(ways, way)
		}
		profiles[way] = append(profiles[way], number.Clean(p.String()))
	}
	if len(ways) < 2 {
		return nil
	}
	groups := each.Of(ways, func(way string) string { return fmt.Sprintf("%s: %s", way, strings.Join(profiles[way], ", ")) })
	return []string{"Pods were attached in different ways (" + strings.Join(groups, "; ") + "). Processes of plugins take time of their own, so no verdict compares one way with another."}
}

// profileGrid returns a table with a row for each profile that has values. The first columns are members of a family of
// times, all in one unit; members without values are omitted. The columns in texts follow.
func (b *builder) profileGrid(c plan.Case, title, family string, members []string, texts ...column) Grid {
	type row struct {
		profile plan.Variant
		cells   map[string]compare.Cell
	}
	var rows []row
	var all []float64
	has := map[string]bool{}
	for _, profile := range b.analysis.Profiles {
		c.Profile = profile
		r := row{profile, map[string]compare.Cell{}}
		for _, member := range members {
			if cell, ok := b.analysis.Cell(compare.Key{Case: c, Metric: family + "." + member}); ok && cell.N > 0 {
				r.cells[member], has[member] = cell, true
				all = append(all, cell.Median)
			}
		}
		if len(r.cells) > 0 {
			rows = append(rows, r)
		}
	}
	scale := number.Common("ns", all...)
	kept := each.Where(members, func(m string) bool { return has[m] })
	g := Grid{Title: title + " (" + scale.Unit + ")", Label: "profile", Columns: append(kept[:len(kept):len(kept)], each.Of(texts, func(t column) string { return t.name })...)}
	for _, r := range rows {
		c.Profile = r.profile
		g.Add(number.Clean(r.profile.String()), append(each.Of(kept, func(m string) string {
			cell, ok := r.cells[m]
			if !ok {
				return number.Absent
			}
			return cellValue(cell, scale)
		}), each.Of(texts, func(t column) string { return t.text(c) })...)...)
	}
	return g
}

// cellValue formats a cell's median, with ">=" before it if it is a lower bound.
func cellValue(c compare.Cell, scale number.Scale) string {
	if c.AtLeast {
		return ">= " + scale.Format(c.Median)
	}
	return scale.Format(c.Median)
}
