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
			scales[c.Workload] = append(scales[c.Workload], p.Ns)
		}
	}
	var out []Figure
	for _, lines := range ordered(all, workloads, s, func(c report.Curve) plan.Case { return c.Case }) {
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

// progress is the rates over time, one plot per workload and path; those of a workload share one scale.
func progress(all []report.Progress, workloads []plan.Workload, s Series) []Figure {
	rates := map[plan.Workload][]float64{}
	for _, p := range all {
		for _, r := range p.Rates {
			rates[p.Workload] = append(rates[p.Workload], r.Rate)
		}
	}
	var out []Figure
	for _, trials := range ordered(all, workloads, s, func(p report.Progress) plan.Case { return p.Case }) {
		at := trials[0]
		scale := number.Common(at.Unit, rates[at.Workload]...)
		what := map[string]string{"bit/s": "goodput over time, ", "1/s": "operations over time, "}[at.Unit]
		p := chart.Strips{
			Title: what + at.Workload.String() + ", " + at.Path.String(), Unit: scale.Unit, High: slices.Max(rates[at.Workload]) / scale.Size,
		}
		n := Numbers{Columns: []string{"trials", "lowest (" + scale.Unit + ")", "median (" + scale.Unit + ")", "highest (" + scale.Unit + ")"}}
		var said []string
		for _, own := range report.Grouped(trials, func(p report.Progress) plan.Variant { return p.Profile }) {
			row, numbers := strip(own, s, scale)
			p.Rows, n.Rows = append(p.Rows, row), append(n.Rows, numbers)
			said = append(said, fmt.Sprintf("%s %s to %s", numbers.Name, numbers.Cells[1], numbers.Cells[3]))
		}
		p.Desc = "Rate within the window, one line per trial, in " + scale.Unit + ": " + strings.Join(said, "; ") + "."
		out = append(out, Figure{Kind: Progress, Heading: at.Path.String(), Path: at.Path, Workload: at.Workload, Drawing: p.Draw(), Numbers: n})
	}
	return out
}

// strip is the trials of one profile; there is at least one, with at least one row.
func strip(trials []report.Progress, s Series, scale number.Scale) (chart.Strip, NumbersRow) {
	name := number.Clean(trials[0].Profile)
	row := chart.Strip{Name: name, Series: s[trials[0].Profile]}
	var all []float64
	for _, t := range trials {
		var steps []chart.Step
		for _, r := range t.Rates {
			steps = append(steps, chart.Step{From: float64(r.FromNs) / 1e9, To: float64(r.ToNs) / 1e9, Rate: r.Rate / scale.Size})
			all = append(all, r.Rate)
		}
		row.Trials = append(row.Trials, steps)
	}
	slices.Sort(all)
	middle := all[len(all)/2]
	row.Value = scale.Format(middle)
	return row, NumbersRow{Series: row.Series, Name: name, Cells: []string{
		fmt.Sprint(len(trials)), scale.Format(all[0]), scale.Format(middle), scale.Format(all[len(all)-1]),
	}}
}
