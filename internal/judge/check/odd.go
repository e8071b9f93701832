package check

import (
	"math"
	"slices"

	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

const (
	// oddFactor is how many times worse a value must be than the nearest other value of its row. Its ratio to the median
	// of the row must also be oddFactor times the same ratio of its profile on any other path.
	// tooGood is the same for values that are better. It is larger because a dataplane may have one short cut.
	oddFactor = 2.5
	tooGood   = 5
	// oddRow is the least number of other profiles in a row that is judged.
	oddRow = 3
)

// findOddOneOut finds single values, too bad or too good, that are explained neither by their row (the other profiles on
// the path) nor by their column (the profile on other paths). A row without a similar path is not judged: its outlier
// may be genuine.
func findOddOneOut(v *View, found *list) {
	var t table
	for _, c := range v.judged {
		if !slices.Contains(t.paths, c.Path) {
			t.paths = append(t.paths, c.Path)
		}
		if !v.usesStandIn(c.Profile) {
			t.rows.add(rowKey(c), c)
		}
	}
	for _, c := range v.judged {
		for how, factor := range map[string]float64{"worse": oddFactor, "better": tooGood} {
			better := how == "better"
			off, nearest := rowFactors(c, t.rows.of[rowKey(c)], better)
			if v.usesStandIn(c.Profile) || !(nearest >= factor) {
				continue
			}
			if similar, most := t.factorElsewhere(v, c, better); similar != "" && off/most >= factor {
				found.add(c.String(), "%s: %.1f times %s than the median of the other profiles, "+
					"at most %.1f times on other paths such as %s", medianText(c), off, how, most, similar)
			}
		}
	}
}

// table has the judged cells by path, workload and metric, without profiles with a stand-in.
type table struct {
	rows  groups[Key, *Cell]
	paths []plan.Path
}

func rowKey(c *Cell) Key {
	return Key{Case: plan.Case{Path: c.Path, Workload: c.Workload}, Metric: c.Metric}
}

// factorElsewhere compares c's profile with the others on other paths. similar is a path of the same kind on which it
// has a number, or "". most is the largest factor by which c's profile is worse (or better) than the median of the
// other profiles of a path; at least 1.
func (t table) factorElsewhere(v *View, c *Cell, better bool) (similar string, most float64) {
	most = 1
	for _, other := range casesOnPaths(c.Case, t.paths...) {
		own := v.cell(other, c.Metric)
		if own == nil || own == c {
			continue
		}
		usual, _ := rowFactors(own, t.rows.of[rowKey(own)], better)
		if math.IsNaN(usual) {
			continue
		}
		most = max(most, usual)
		if own.Path.Crosses() == c.Path.Crosses() && own.Path.ByService() == c.Path.ByService() && (similar == "" || own.Path.String() < similar) {
			similar = own.Path.String()
		}
	}
	return similar, most
}

// rowFactors returns two factors by which c is worse (or better): than the median of the others in its row, and than the
// nearest other. The second is counted between the near ends of the intervals. Both are NaN if the row is too short.
func rowFactors(c *Cell, row []*Cell, better bool) (toMedian, toNearest float64) {
	m, _ := metric.Lookup(c.Metric)
	var medians []float64
	toNearest = math.Inf(1)
	for _, o := range row {
		if o == c || o.Median <= 0 || c.Median <= 0 {
			continue
		}
		large, small := c, o
		if better != (m.Better == metric.Higher) {
			large, small = o, c
		}
		medians = append(medians, large.Median/small.Median)
		toNearest = min(toNearest, large.Low/small.High)
	}
	if len(medians) < oddRow {
		return math.NaN(), math.NaN()
	}
	return stat.Summarize(medians, confidence).Median, toNearest
}
