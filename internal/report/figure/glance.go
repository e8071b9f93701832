package figure

import (
	"cmp"
	"math"
	"strings"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/plot"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// Glance draws the table of the summary as bars. If stacked is true, the columns are below each other, not side by side.
// It returns false for a document without such a table.
func Glance(d report.Document, s report.Series, stacked bool) (out plot.Drawing, ok bool) {
	if d.Summary == nil || len(d.Summary.Columns) == 0 || len(d.Summary.Rows) == 0 {
		return out, false
	}
	return glanceBars(*d.Summary, s, stacked).Draw(), true
}

func glanceBars(sum report.Summary, s report.Series, stacked bool) plot.Bars {
	b := plot.Bars{Title: sum.Title, Stacked: stacked}
	var said []string
	for j, c := range sum.Columns {
		b.Columns = append(b.Columns, plot.BarColumn{Name: c.Name, Unit: c.Unit})
		values := each.Of(sum.Rows, func(r report.SummaryRow) string { return r.Profile + " " + r.Entries[j].Value + r.Entries[j].Text })
		said = append(said, c.Name+", "+c.Unit+": "+strings.Join(values, "; "))
	}
	for _, r := range sum.Rows {
		row := plot.BarRow{Name: r.Profile}
		for j, e := range r.Entries {
			if e.Cell != nil {
				row.Series = s[e.Cell.Profile]
			}
			row.Bars = append(row.Bars, entryBar(e, largestValue(sum, j), bestValue(sum, j)))
		}
		b.Rows = append(b.Rows, row)
	}
	b.Desc = "A row for each profile, a bar for each value with its interval. " + strings.Join(said, ". ") + "."
	return b
}

// glanceNumbers returns the table of the summary with values and verdicts as text.
func glanceNumbers(sum report.Summary, s report.Series) (out report.Numbers) {
	for _, c := range sum.Columns {
		out.Columns = append(out.Columns, c.Name+", "+c.Unit)
	}
	for _, r := range sum.Rows {
		row := report.NumbersRow{Name: r.Profile}
		for _, e := range r.Entries {
			if e.Cell != nil {
				row.Series = s[e.Cell.Profile]
			}
			row.Cells = append(row.Cells, strings.TrimSpace(e.Value+e.Text+" "+e.Claim()))
		}
		out.Rows = append(out.Rows, row)
	}
	return out
}

// largestValue returns the largest value of column j, including the upper ends of intervals.
func largestValue(sum report.Summary, j int) float64 {
	most := 0.0
	for _, r := range sum.Rows {
		if c := r.Entries[j].Cell; c != nil && r.Entries[j].Kind == report.Value {
			if most = math.Max(most, c.Median); number.Finite(c.High) {
				most = math.Max(most, c.High)
			}
		}
	}
	return most
}

// bestValue returns the value of the best dataplane of column j; NaN if no dataplane is better than another.
func bestValue(sum report.Summary, j int) float64 {
	for _, r := range sum.Rows {
		if e := r.Entries[j]; e.Cell != nil && e.Verdict == compare.Better && !r.Bare {
			return e.Cell.Median
		}
	}
	return math.NaN()
}

// entryBar returns the bar of an entry. most is the value of the longest bar. The colour depends on the verdict. The colour
// of a worse value also depends on its ratio to best.
func entryBar(e report.Entry, most, best float64) plot.Bar {
	out := plot.Bar{Text: e.Text, Share: math.NaN(), Low: math.NaN(), High: math.NaN(), Color: plot.BarOther}
	if e.Kind != report.Value || e.Cell == nil || !(most > 0) {
		out.Text += e.Value
		return out
	}
	out.Text, out.Share = e.Value, e.Cell.Median/most
	if e.Cell.N > 1 {
		out.Low, out.High = e.Cell.Low/most, e.Cell.High/most
	}
	switch e.Verdict {
	case compare.Better:
		out.Color, out.Strong = plot.BarBest, true
	case compare.Same:
		out.Color = plot.BarSame
	case compare.Worse:
		out.Color = plot.BarWorse(shadeStep(e.Cell.Median / best))
	}
	return out
}

// Card returns an image to share: the answer as bars, and what was measured. It shows at most 14 profiles. It returns false
// for a document without a table of the summary.
func Card(d report.Document) (out plot.Drawing, ok bool) {
	if _, ok = Glance(d, nil, false); !ok {
		return out, false
	}
	const most = 14
	sum := *d.Summary
	foot := []string{sum.Lacks, "Blue: best; orange: worse, the darker the more."}
	if more := len(sum.Rows) - most; more > 0 {
		sum.Rows = sum.Rows[:most]
		foot = append(foot, number.Counted(more, "more profile")+" in the report.")
	}
	certain := sum.Equal
	if sum.Certainty != "" {
		certain = sum.Certainty + ". " + certain
	}
	title, under := cmp.Or(sum.Message, d.Title), sum.Title
	if model, _, _ := strings.Cut(strings.TrimSuffix(sum.Model, "."), ";"); model != "" { // the text after the semicolon refers to columns
		under = model + ". " + under
	}
	return plot.Card(title, under, [3]string{strings.TrimSpace(strings.Join(foot, " ")), certain, d.Citation}, glanceBars(sum, nil, false)), true
}
