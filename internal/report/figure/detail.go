package figure

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/chart"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// named are the shares that the table below percentile curves has.
var named = []struct {
	q    float64
	text string
}{{0.5, "50%"}, {0.9, "90%"}, {0.99, "99%"}, {0.999, "99.9%"}, {0.9999, "99.99%"}}

// curves are the distributions, one plot per workload and path; those of a workload share one scale.
func curves(all []report.Curve, workloads []plan.Workload, s Series) []Figure {
	scales := map[plan.Workload][]float64{}
	for _, c := range all {
		for _, p := range c.Points {
			if len(scales[c.Workload]) > 0 && !c.Known(p.Q) {
				break
			}
			scales[c.Workload] = append(scales[c.Workload], p.Ns)
		}
	}
	var out []Figure
	order := func(c report.Curve) []int {
		return []int{slices.Index(workloads, c.Workload), slices.Index(plan.Paths, c.Path), s[c.Profile]}
	}
	plot := func(c report.Curve) plan.Case { return plan.Case{Path: c.Path, Workload: c.Workload} }
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(x, y report.Curve) int { return slices.Compare(order(x), order(y)) })
	for _, lines := range report.Grouped(all, plot) {
		at := lines[0].Case
		scale := number.Common("ns", scales[at.Workload]...)
		low, high := slices.Min(scales[at.Workload]), slices.Max(scales[at.Workload])
		p := chart.Curves{
			Title: "round-trip times, " + at.Workload.String() + ", " + at.Path.String(), Unit: "round-trip time, " + scale.Unit + ", log scale",
			Low: low / scale.Size, High: high / scale.Size,
		}
		n := Numbers{Columns: []string{"exchanges"}}
		for _, q := range named {
			n.Columns = append(n.Columns, q.text+" ("+scale.Unit+")")
		}
		n.Columns = append(n.Columns, "longest ("+scale.Unit+")")
		var said []string
		for _, c := range lines {
			p.Lines = append(p.Lines, curveLine(c, s, scale))
			row := curveNumbers(c, s, scale)
			n.Rows = append(n.Rows, row)
			said = append(said, fmt.Sprintf("%s half within %s", row.Name, scaled(scale, c.At(0.5))))
		}
		p.Desc = "Percentile curves of the pooled trials: " + strings.Join(said, "; ") + "."
		out = append(out, Figure{Kind: Curves, Heading: at.Path.String(), Path: at.Path, Workload: at.Workload, Drawing: p.Draw(), Numbers: n})
	}
	return out
}

func curveLine(c report.Curve, s Series, scale number.Scale) chart.CurveLine {
	l := chart.CurveLine{Name: number.Clean(c.Profile), Series: s[c.Profile]}
	for _, p := range c.Points {
		if !c.Known(p.Q) {
			break // a line that ends at single events would say more than the table
		}
		l.Points = append(l.Points, chart.CurvePoint{Q: p.Q, Value: p.Ns / scale.Size})
	}
	return l
}

func curveNumbers(c report.Curve, s Series, scale number.Scale) NumbersRow {
	row := NumbersRow{Series: s[c.Profile], Name: number.Clean(c.Profile), Cells: []string{fmt.Sprint(c.Count)}}
	for _, q := range named {
		row.Cells = append(row.Cells, scale.Format(c.At(q.q)))
	}
	row.Cells = append(row.Cells, scale.Format(c.Points[len(c.Points)-1].Ns))
	return row
}
