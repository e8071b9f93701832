// Package figure decides which pictures a report has, and fills the plots of package chart with its numbers.
//
// All returns them in reading order: for each table of the document a heat map and, path by path, a dot plot; then the
// curves over load and the distributions. Nothing is computed here that is not in the document, except that values are
// scaled to one unit for all pictures of a table, so that readers can compare them by eye. Each figure carries its
// numbers as a table too, for those who cannot see it.
package figure

import (
	"strings"

	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/chart"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// Kind says which plot a figure is.
type Kind string

// The kinds, in reading order.
const (
	// Answer is the answer at a glance.
	Answer Kind = "answer"
	Heat   Kind = "heat"
	Dots   Kind = "dots"
	Loads  Kind = "load"
	// Growths is numbers over a swept condition.
	Growths Kind = "growth"
	Curves  Kind = "percentiles"
	// Waterfall, Flame and Parts are of explanations.
	Waterfall Kind = "waterfall"
	Flame     Kind = "flame"
	Parts     Kind = "parts"
	// Journey is of a document that has nothing else.
	Journey Kind = "journey"
)

// Figure is one picture.
type Figure struct {
	Kind Kind
	// Heading names it among its neighbours: a path, as a rule.
	Heading string
	// Metric is "" for those of several; Path is the zero Path for a heat map, which has all.
	Metric   string
	Path     plan.Path
	Workload plan.Workload
	Drawing  chart.Drawing
	Numbers  Numbers
	// Wide says that it needs the whole width of a page.
	Wide bool
}

// Numbers is a figure as a table.
type Numbers struct {
	Columns []string
	Rows    []NumbersRow
}

// NumbersRow is one series in numbers: Series counts from 1 as in the drawing.
type NumbersRow struct {
	Series int
	Name   string
	Cells  []string
}

// Name is a file name for the figure, without its extension: lower-case letters, digits and hyphens.
func (f Figure) Name() string {
	parts := []string{string(f.Kind), f.Metric, f.Workload.String()}
	if f.Path != (plan.Path{}) {
		parts = append(parts, f.Path.String())
	}
	return Slug(strings.Join(parts, " "))
}

// Slug keeps of s what is safe in any file name, 120 characters at most.
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

// All returns the figures of a document in reading order.
func All(d report.Document) []Figure {
	if d.Journeys != nil {
		return Journeys(*d.Journeys)
	}
	s := SeriesOf(d)
	out := explained(d, s)
	if answer, ok := Glance(d, s, false); ok {
		out = append([]Figure{{Kind: Answer, Heading: answer.Title, Drawing: answer, Numbers: glanced(*d.Summary, s), Wide: true}}, out...)
	}
	if d.Analysis == nil {
		return out
	}
	for _, sec := range d.Sections {
		for _, t := range sec.Tables {
			out = append(out, heat(t, s, report.Validated(d.Abilities)))
			out = append(out, dots(d.Analysis, t, s)...)
		}
	}
	out = append(out, loads(d.Loads, s)...)
	out = append(out, growths(d.Growths, s)...)
	if d.Details != nil {
		out = append(out, curves(d.Details.Curves, d.Analysis.Workloads, s)...)
	}
	return out
}

// Apart reports whether a figure belongs to no table.
func (f Figure) Apart() bool { return f.Kind != Answer && f.Kind != Heat && f.Kind != Dots }

// Series numbers the profiles of a document from 1, for colours and filters.
type Series map[plan.Variant]int

// SeriesOf numbers the profiles in report order.
func SeriesOf(d report.Document) Series {
	s := Series{}
	if d.Analysis != nil {
		for i, p := range d.Analysis.Profiles {
			s[p] = i + 1
		}
	}
	return s
}

// scaled writes v, in base units, with its unit.
func scaled(s number.Scale, v float64) string { return s.Format(v) + " " + s.Unit }
