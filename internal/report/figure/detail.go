package figure

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/chart"
	"github.com/cnibench/cnibench/internal/vocab/metric"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// byProfile puts what has a profile in report order.
func byProfile[T any](xs []T, s Series, name func(T) plan.Variant) {
	slices.SortStableFunc(xs, func(a, b T) int { return s[name(a)] - s[name(b)] })
}

// named are the shares that the table below percentile curves has.
var named = []struct {
	q    float64
	text string
}{{0.5, "50%"}, {0.9, "90%"}, {0.99, "99%"}, {0.999, "99.9%"}, {0.9999, "99.99%"}}

// curves are the distributions, one plot per workload and path; those of a workload share one scale.
func curves(all []report.Curve, workloads []plan.Workload, s Series) []Figure {
	order, groups := grouped(all, workloads, func(c report.Curve) plan.Case { return c.Case })
	scales := map[plan.Workload][]float64{}
	for _, c := range all {
		for _, p := range c.Points {
			scales[c.Workload] = append(scales[c.Workload], p.Ns)
		}
	}
	var out []Figure
	for _, g := range order {
		scale := number.Common("ns", scales[g.workload]...)
		low, high := slices.Min(scales[g.workload]), slices.Max(scales[g.workload])
		p := chart.Curves{
			Title: "round-trip times, " + g.workload.String() + ", " + g.path.String(), Unit: "round-trip time, " + scale.Unit + ", log scale",
			Low: low / scale.Size, High: high / scale.Size,
		}
		n := Numbers{Columns: []string{"exchanges"}}
		for _, q := range named {
			n.Columns = append(n.Columns, q.text+" ("+scale.Unit+")")
		}
		n.Columns = append(n.Columns, "longest ("+scale.Unit+")")
		lines := groups[g]
		byProfile(lines, s, func(c report.Curve) plan.Variant { return c.Profile })
		var said []string
		for _, c := range lines {
			p.Lines = append(p.Lines, curveLine(c, s, scale))
			row := curveNumbers(c, s, scale)
			n.Rows = append(n.Rows, row)
			said = append(said, fmt.Sprintf("%s half within %s", row.Name, scaled(scale, c.At(0.5))))
		}
		p.Desc = "Percentile curves of the pooled trials: " + strings.Join(said, "; ") + "."
		out = append(out, Figure{Kind: Curves, Heading: g.path.String(), Path: g.path, Workload: g.workload, Drawing: p.Draw(), Numbers: n})
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
	longest := math.NaN()
	if n := len(c.Points); n > 0 {
		longest = c.Points[n-1].Ns
	}
	row.Cells = append(row.Cells, scale.Format(longest))
	return row
}

// progress is the rates over time, one plot per workload and path; those of a workload share one scale.
func progress(all []report.Progress, workloads []plan.Workload, s Series) []Figure {
	order, groups := grouped(all, workloads, func(p report.Progress) plan.Case { return p.Case })
	rates := map[plan.Workload][]float64{}
	for _, p := range all {
		for _, r := range p.Rates {
			rates[p.Workload] = append(rates[p.Workload], r.Rate)
		}
	}
	var out []Figure
	for _, g := range order {
		scale := number.Common(groups[g][0].Unit, rates[g.workload]...)
		what := map[string]string{"bit/s": "goodput over time, ", "1/s": "operations over time, "}[groups[g][0].Unit]
		p := chart.Strips{Title: what + g.workload.String() + ", " + g.path.String(), Unit: scale.Unit, High: slices.Max(rates[g.workload]) / scale.Size}
		n := Numbers{Columns: []string{"trials", "lowest (" + scale.Unit + ")", "median (" + scale.Unit + ")", "highest (" + scale.Unit + ")"}}
		trials := groups[g]
		byProfile(trials, s, func(p report.Progress) plan.Variant { return p.Profile })
		var said []string
		for len(trials) > 0 {
			end := slices.IndexFunc(trials, func(p report.Progress) bool { return p.Profile != trials[0].Profile })
			if end < 0 {
				end = len(trials)
			}
			row, numbers := strip(trials[:end], s, scale)
			trials = trials[end:]
			p.Rows, n.Rows = append(p.Rows, row), append(n.Rows, numbers)
			said = append(said, fmt.Sprintf("%s %s to %s", numbers.Name, numbers.Cells[1], numbers.Cells[3]))
		}
		p.Desc = "Rate within the window, one line per trial, in " + scale.Unit + ": " + strings.Join(said, "; ") + "."
		out = append(out, Figure{Kind: Progress, Heading: g.path.String(), Path: g.path, Workload: g.workload, Drawing: p.Draw(), Numbers: n})
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

// speeds are the metrics that say how fast, the first of which a workload has is taken.
var speeds = []string{metric.Goodput, metric.TransactionRate, metric.PacketRate, "rtt.p50"}

// planes set service demand beside speed, one plot per workload and path.
func planes(d report.Document, s Series) []Figure {
	a := d.Analysis
	var out []Figure
	for _, w := range a.Workloads {
		cost, ok := a.Table(w, metric.ServiceDemand)
		if !ok {
			continue
		}
		for _, name := range speeds {
			if speed, ok := a.Table(w, name); ok {
				out = append(out, planesOf(cost, speed, s)...)
				break
			}
		}
	}
	return out
}

// planesOf are the planes of one workload, path by path.
func planesOf(cost, speed compare.Table, s Series) []Figure {
	x, y := number.Common(cost.Unit, report.Medians(cost)...), number.Common(speed.Unit, report.Medians(speed)...)
	m, _ := metric.Lookup(speed.Metric)
	better := "cheaper and faster"
	if m.Better == metric.Lower {
		better = "cheaper and sooner"
	}
	var out []Figure
	for i, path := range cost.Paths {
		p := chart.Plane{
			Title: "CPU per unit of work beside " + m.Title + ", " + cost.Workload.String() + ", " + path.String(),
			XName: "service demand, " + x.Unit, YName: m.Title + ", " + y.Unit, Better: better, GoodHigh: m.Better == metric.Higher,
		}
		n := Numbers{Columns: []string{"service demand (" + x.Unit + ")", m.Title + " (" + y.Unit + ")"}}
		var said []string
		for j, profile := range cost.Profiles {
			c, v := cost.Rows[i][j].Cell, speed.Rows[i][j].Cell
			if c == nil || v == nil || c.N == 0 || v.N == 0 {
				continue
			}
			q := chart.PlanePoint{Name: number.Clean(profile), Series: s[profile], Description: scaled(x, c.Median) + ", " + scaled(y, v.Median)}
			q.X, q.XLow, q.XHigh = c.Median/x.Size, c.Low/x.Size, c.High/x.Size
			q.Y, q.YLow, q.YHigh = v.Median/y.Size, v.Low/y.Size, v.High/y.Size
			p.Points = append(p.Points, q)
			n.Rows = append(n.Rows, NumbersRow{Series: q.Series, Name: q.Name, Cells: []string{x.Format(c.Median), y.Format(v.Median)}})
			said = append(said, q.Name+" "+q.Description)
		}
		if len(p.Points) == 0 {
			continue
		}
		p.Desc = "Service demand across, speed upwards: " + strings.Join(said, "; ") + "."
		out = append(out, Figure{Kind: Plane, Heading: path.String(), Path: path, Workload: cost.Workload, Drawing: p.Draw(), Numbers: n})
	}
	return out
}
