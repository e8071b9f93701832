package check

import (
	"fmt"
	"math"
	"slices"

	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

const (
	// oddFactor is by how much a value must exceed its row, and what its profile shows in other rows.
	oddFactor = 2.5
	// oddRow is how many other profiles a row needs.
	oddRow = 3
)

// table is one metric under one workload: profiles by paths.
type table struct {
	workload plan.Workload
	metric   string
}

// oddOneOut finds single values that neither their row (the other profiles on the path) nor their column (the profile on
// other paths) explains. Rows without a similar path say nothing: what is slow there alone may be so.
func oddOneOut(v *View) []seen {
	rows := map[table]map[plan.Path][]*Cell{}
	for _, c := range v.judged {
		if c.Metric == metric.RTT+".mean" && v.cell(c.Case, metric.RTT+".p50") != nil || v.imitated(string(c.Profile)) {
			continue
		}
		t := table{c.Workload, c.Metric}
		if rows[t] == nil {
			rows[t] = map[plan.Path][]*Cell{}
		}
		rows[t][c.Path] = append(rows[t][c.Path], c)
	}
	var list []seen
	for _, c := range v.judged {
		row := rows[table{c.Workload, c.Metric}]
		off, nearest := distance(c, row[c.Path])
		if nearest < oddFactor {
			continue
		}
		similar, most := "", 1.0
		for path, cells := range row {
			at := slices.IndexFunc(cells, func(o *Cell) bool { return o.Profile == c.Profile })
			if path == c.Path || at < 0 {
				continue
			}
			own, _ := distance(cells[at], cells)
			if math.IsNaN(own) {
				continue
			}
			most = max(most, own)
			if alike(path, c.Path) && (similar == "" || path.String() < similar) {
				similar = path.String()
			}
		}
		if similar != "" && off/most >= oddFactor {
			list = append(list, seen{where: c.Key.String(), saw: fmt.Sprintf("%s: %.1f times worse than the median of the other profiles, at most %.1f times on other paths such as %s",
				show(c.Key, c.Median), off, most, similar)})
		}
	}
	return list
}

// distance is how much worse c is than the median of the others in its row, and than the worst of them: factors, at least
// beyond both intervals. They are NaN where the row is too short.
func distance(c *Cell, row []*Cell) (toMedian, toWorst float64) {
	m, _ := metric.Lookup(c.Metric)
	var medians []float64
	toWorst = math.Inf(1)
	for _, o := range row {
		if o == c || o.Median <= 0 || c.Median <= 0 {
			continue
		}
		factor, apart := c.Median/o.Median, c.Low/o.High
		if m.Better == metric.Higher {
			factor, apart = o.Median/c.Median, o.Low/c.High
		}
		medians = append(medians, factor)
		toWorst = min(toWorst, apart)
	}
	if len(medians) < oddRow {
		return math.NaN(), math.NaN()
	}
	slices.Sort(medians)
	n := len(medians)
	return (medians[(n-1)/2] + medians[n/2]) / 2, toWorst
}

// alike reports whether two paths pass the same kinds of places: the wire or not, a translation or not.
func alike(p, q plan.Path) bool {
	translated := func(p plan.Path) bool {
		return p.To == plan.Service || p.To == plan.NodePort || p.To == plan.LoadBalancer
	}
	return crosses(p) == crosses(q) && translated(p) == translated(q)
}
