package html

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/figure"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// tableSections returns the document's sections that have tables. In these tables profiles are rows and paths are columns.
// figures has their dot plots.
func (b *builder) tableSections(figures []report.Figure) []section {
	var out []section
	for i, s := range b.d.Sections {
		if len(s.Tables) == 0 {
			continue
		}
		sec := section{ID: fmt.Sprintf("metric-%d", i+1), Heading: s.Heading, Notes: s.Notes,
			Tables: each.Of(s.Tables, func(t report.Table) table { return b.tableOf(t, figures) })}
		out = append(out, sec)
	}
	return out
}

func (b *builder) tableOf(t report.Table, figures []report.Figure) table {
	id := "t " + t.Metric + " " + t.Workload.String()
	out := table{ID: b.uniqueAnchor(id), W: b.load[t.Workload], M: b.metric[t.Metric], Title: t.Title, Unit: t.Unit, Notes: t.Notes}
	for _, r := range t.Rows {
		ends, where, _ := strings.Cut(r.Label, "/")
		out.Columns = append(out.Columns, column{b.path[r.Path], ends, where})
	}
	var doubts []int
	for j, name := range t.Columns {
		row := tableRow{P: b.series.Column(t, j), Name: name}
		for _, r := range t.Rows {
			e := r.Entries[j]
			doubts = append(doubts, e.Notes...)
			row.Cells = append(row.Cells, cell{
				ID: b.uniqueAnchor(id + " " + r.Label + " " + name), L: b.path[r.Path], Color: figure.Shade(e), Value: e.Value + e.Text, Spread: e.Spread,
				Claim: e.Claim(), Notes: b.footnotesOf(e.Notes),
			})
		}
		out.Rows = append(out.Rows, row)
	}
	for _, c := range t.Conclusions {
		out.Conclusions = append(out.Conclusions, conclusion{b.path[c.Path], c.Label, c.Text})
	}
	slices.Sort(doubts)
	out.Doubts = b.footnotesOf(slices.Compact(doubts))
	var samples []picture
	for _, f := range figures {
		if f.Kind == figure.Dots && f.Metric == t.Metric && f.Workload == t.Workload {
			samples = append(samples, b.pictureOf(f))
		}
	}
	out.Samples = b.packFigures(samples)
	return out
}

func (b *builder) pictureOf(f report.Figure) picture {
	return picture{
		W: b.load[f.Workload], L: b.path[f.Path], M: b.metric[f.Metric], Heading: f.Heading, Chart: b.svg(f.Drawing),
		Columns: f.Numbers.Columns, Rows: f.Numbers.Rows, Wide: f.Wide, Search: f.Search,
	}
}

// figureSections returns the figures of the sections whose Lead equals lead, with a part for each workload. Figures of folded
// sections are added to the pack.
func (b *builder) figureSections(lead bool) []pictures {
	var out []pictures
	for _, s := range b.d.Sections {
		if s.Lead != lead || len(s.Figures) == 0 {
			continue
		}
		p := pictures{ID: s.ID, Heading: s.Heading, Notes: s.Notes}
		var last plan.Workload
		for _, f := range s.Figures {
			if len(p.Parts) == 0 || f.Workload != last {
				heading := "What the state costs"
				if f.Workload.Spec != nil {
					heading = number.Clean(f.Workload.String())
				}
				p.Parts, last = append(p.Parts, part{Heading: heading}), f.Workload
			}
			at := &p.Parts[len(p.Parts)-1]
			at.Figures = append(at.Figures, b.pictureOf(f))
		}
		for i := range p.Parts {
			if s.Folded {
				p.Parts[i].Later, p.Parts[i].Figures = b.packFigures(p.Parts[i].Figures), nil
			}
		}
		out = append(out, p)
	}
	return out
}
