package figure

import (
	"fmt"
	"math"
	"strings"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/plot"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// scaleOf returns a scale that fits all values of a table.
func scaleOf(t report.Table) number.Scale {
	var medians []float64
	base := ""
	for _, r := range t.Rows {
		for _, e := range r.Entries {
			if e.Cell != nil {
				medians, base = append(medians, e.Cell.Median), e.Cell.Unit
			}
		}
	}
	return number.Common(base, medians...)
}

// heatMap returns the heat map of a table: profiles down, paths across. note is written below it.
func heatMap(t report.Table, s report.Series, note string) report.Figure {
	p := plot.Heat{Note: note, Title: t.Title, Desc: "Heat map: profiles down, paths across. " + strings.Join(t.Notes, " "), Unit: t.Unit}
	n := report.Numbers{}
	for _, r := range t.Rows {
		p.Columns = append(p.Columns, r.Short)
		n.Columns = append(n.Columns, r.Label)
	}
	for j, name := range t.Columns {
		row := plot.HeatRow{Name: name, Series: s.Column(t, j)}
		numbers := report.NumbersRow{Series: row.Series, Name: name}
		for _, r := range t.Rows {
			e := r.Entries[j]
			row.Cells = append(row.Cells, plot.HeatCell{Value: e.Value + e.Short, Claim: e.Claim(), Color: Shade(e)})
			numbers.Cells = append(numbers.Cells, strings.TrimSpace(e.Value+e.Text+" "+e.Claim()))
		}
		p.Rows = append(p.Rows, row)
		n.Rows = append(n.Rows, numbers)
	}
	return report.Figure{Kind: Heat, Heading: t.Title, Metric: t.Metric, Workload: t.Workload, Drawing: p.Draw(), Numbers: n}
}

// Shade returns the colour of an entry, which depends on the verdict and the ratio.
func Shade(e report.Entry) plot.Color {
	switch e.Verdict {
	case compare.Same:
		return plot.Same
	case compare.Better:
		return plot.Level(ratioShade(e.Comparison))
	case compare.Worse:
		return plot.Level(-ratioShade(e.Comparison))
	}
	return plot.Neutral
}

// Steps are the ratios above which a cell or a bar has the next shade. The last shade is for all larger ratios.
var Steps = [plot.Levels - 1]float64{1.1, 1.5, 2.5}

// ratioShade returns the shade of the ratio of a comparison, from 1 to plot.Levels. It returns 1 if x is nil.
func ratioShade(x *compare.Comparison) int {
	if x == nil {
		return 1
	}
	return shadeStep(x.Ratio)
}

func shadeStep(ratio float64) int {
	n := 1
	for _, above := range Steps {
		if ratio > 0 && math.Exp(math.Abs(math.Log(ratio))) > above {
			n++
		}
	}
	return n
}

// dotPlots returns a dot plot for each path of a table, all on one scale.
func dotPlots(a *compare.Analysis, t report.Table, s report.Series) []report.Figure {
	scale := scaleOf(t)
	low, high := math.Inf(1), math.Inf(-1)
	for _, r := range t.Rows {
		for _, e := range r.Entries {
			if e.Cell != nil && e.Cell.N > 0 {
				low, high = math.Min(low, e.Cell.Min/scale.Size), math.Max(high, e.Cell.Max/scale.Size)
			}
		}
	}
	var out []report.Figure
	for _, r := range t.Rows {
		p := plot.Dots{Title: t.Title + ", " + r.Label, Unit: scale.Unit, Low: low, High: high, Reference: math.NaN()}
		n := report.Numbers{Columns: []string{"value", "interval", "n", "every sample (" + scale.Unit + ")"}}
		var said []string
		for j, e := range r.Entries {
			row := dotRow(t.Columns[j], s.Column(t, j), e, scale)
			p.Rows = append(p.Rows, row)
			n.Rows = append(n.Rows, dotNumbers(row, e, scale))
			said = append(said, row.Name+" "+row.Value)
			if x := e.Comparison; x != nil && x.Ratio > 0 && e.Cell != nil && p.ReferenceName == "" {
				p.Reference, p.ReferenceName = baselineValue(a, x, scale)
			}
		}
		p.Desc = "Every sample, the value and its interval in " + scale.Unit + ": " + strings.Join(said, "; ") + "."
		out = append(out, report.Figure{
			Kind: Dots, Heading: r.Label, Metric: t.Metric, Path: r.Path, Workload: t.Workload, Drawing: p.Draw(), Numbers: n,
		})
	}
	return out
}

// baselineValue returns the median and the name of the baseline in x. It returns NaN and "" if the baseline has no value.
func baselineValue(a *compare.Analysis, x *compare.Comparison, scale number.Scale) (float64, string) {
	key := x.Key
	key.Profile = x.Baseline
	if x.BaselinePath != (plan.Path{}) {
		key.Path = x.BaselinePath
	}
	if c, ok := a.Cell(key); ok && c.N > 0 {
		return c.Median / scale.Size, number.Clean(x.Baseline.String())
	}
	return math.NaN(), ""
}

func dotRow(name string, series int, e report.Entry, scale number.Scale) plot.DotRow {
	row := plot.DotRow{Name: name, Series: series, Median: math.NaN(), Low: math.NaN(), High: math.NaN(), Value: e.Value}
	if e.Kind != report.Value {
		row.Value = e.Short
		return row
	}
	c := e.Cell
	row.Median = c.Median / scale.Size
	if c.N > 1 {
		row.Low, row.High = c.Low/scale.Size, c.High/scale.Size
	}
	for _, x := range c.Samples {
		row.Samples = append(row.Samples, x.Value/scale.Size)
	}
	return row
}

func dotNumbers(row plot.DotRow, e report.Entry, scale number.Scale) report.NumbersRow {
	out := report.NumbersRow{Series: row.Series, Name: row.Name}
	if e.Kind != report.Value {
		out.Cells = []string{e.Text, "", "", ""}
		return out
	}
	interval := number.Absent
	if e.Cell.N > 1 {
		interval = scale.Format(e.Cell.Low) + " to " + scale.Format(e.Cell.High)
	}
	samples := each.Of(e.Cell.Samples, func(x compare.Sample) string { return scale.Format(x.Value) })
	out.Cells = []string{e.Value, interval, fmt.Sprint(e.Cell.N), strings.Join(samples, " ")}
	return out
}

// Standing draws the profiles of a need as a dot plot, best first.
func Standing(n report.Need, s report.Series) plot.Drawing {
	scale := n.Scale()
	p := plot.Dots{Unit: scale.Unit, Reference: math.NaN(), Low: math.NaN(), High: math.NaN()}
	p.Title = n.Metric.Title + ", " + n.Workload.String() + ", " + n.Path.String()
	var said []string
	for _, x := range n.Standings {
		e := report.Entry{Value: scale.Format(x.Cell.Median), Cell: &x.Cell}
		row := dotRow(number.Clean(x.Cell.Profile.String()), s[x.Cell.Profile], e, scale)
		p.Rows = append(p.Rows, row)
		said = append(said, row.Name+" "+row.Value)
	}
	p.Desc = "In order, best first, in " + scale.Unit + ": " + strings.Join(said, "; ") + "."
	return p.Draw()
}
