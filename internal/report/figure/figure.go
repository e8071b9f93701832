// Package figure decides which pictures a report has, and fills the plots of package plot with its numbers.
//
// All returns them in reading order. They are the answer as bars, a heat map for each table, a dot plot for each path of a
// table, and the figures of sections. This package only scales values: all pictures of a table share one unit, so that
// readers can compare them by eye. Each figure also has its numbers as a table, for readers who cannot see it.
package figure

import (
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/report"
)

// The kinds of pictures of the answer and of tables. Figures of sections have other kinds.
const (
	// Answer is the table of the summary as bars.
	Answer = "answer"
	Heat   = "heat"
	Dots   = "dots"
)

// Name returns a file name for a figure, without its extension: lower-case letters, digits and hyphens.
func Name(f report.Figure) string {
	parts := []string{f.Kind, f.Metric, f.Workload.String()}
	if f.Path != (plan.Path{}) {
		parts = append(parts, f.Path.String())
	}
	return Slug(strings.Join(parts, " "))
}

// Slug converts s into a name of at most 120 characters that is safe for any file system. The name has only lower-case
// letters, digits and hyphens.
func Slug(s string) string {
	var b strings.Builder
	gap := false
	for _, r := range strings.ToLower(s) {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			if gap && b.Len() > 0 {
				b.WriteByte('-')
			}
			gap = false
			b.WriteRune(r)
			continue
		}
		gap = true
	}
	const most = 120
	return b.String()[:min(most, b.Len())]
}

// All returns the figures of a document in reading order. They are the answer as bars, the figures of sections with Lead,
// those of tables, and those of the other sections.
func All(d report.Document) []report.Figure {
	s := d.Series()
	var out, after []report.Figure
	if answer, ok := Glance(d, s, false); ok {
		out = append(out, report.Figure{Kind: Answer, Heading: answer.Title, Drawing: answer, Numbers: glanceNumbers(*d.Summary, s), Wide: true})
	}
	for _, x := range d.Sections {
		if x.Lead {
			out = append(out, x.Figures...)
		} else {
			after = append(after, x.Figures...)
		}
	}
	return slices.Concat(out, Tables(d), after)
}

// Tables returns the figures of the tables of a document: for each table a heat map, and a dot plot for each path. It
// returns nil if the document is not about a result.
func Tables(d report.Document) []report.Figure {
	var out []report.Figure
	if d.Analysis == nil {
		return nil
	}
	for _, sec := range d.Sections {
		for _, t := range sec.Tables {
			out = append(out, heatMap(t, d.Series(), d.Validated()))
			out = append(out, dotPlots(d.Analysis, t, d.Series())...)
		}
	}
	return out
}

// Apart reports whether a figure belongs neither to a table nor to the answer.
func Apart(f report.Figure) bool { return f.Kind != Answer && f.Kind != Heat && f.Kind != Dots }
