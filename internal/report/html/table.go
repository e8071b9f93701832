package html

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/figure"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// sections are the tables of the document, each turned so that profiles are its rows.
func (b *builder) sections(figures []figure.Figure) []section {
	var out []section
	for i, s := range b.d.Sections {
		if len(s.Tables) == 0 {
			continue
		}
		sec := section{ID: fmt.Sprintf("metric-%d", i+1), Heading: s.Heading, Notes: s.Notes}
		for _, t := range s.Tables {
			sec.Tables = append(sec.Tables, b.table(t, figures))
		}
		out = append(out, sec)
	}
	return out
}

func (b *builder) table(t report.Table, figures []figure.Figure) table {
	id := "t " + t.Metric + " " + t.Workload.String()
	out := table{ID: b.unique(id), W: b.load[t.Workload], M: b.metric[t.Metric], Title: t.Title, Unit: t.Unit, Notes: t.Notes}
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
				ID: b.unique(id + " " + r.Label + " " + name), L: b.path[r.Path], Color: figure.Shade(e), Value: e.Value + e.Text, Spread: e.Spread,
				Claim: e.Claim(), Notes: b.notesOf(e.Notes),
			})
		}
		out.Rows = append(out.Rows, row)
	}
	for _, c := range t.Conclusions {
		out.Conclusions = append(out.Conclusions, conclusion{b.path[c.Path], c.Label, c.Text})
	}
	slices.Sort(doubts)
	out.Doubts = b.notesOf(slices.Compact(doubts))
	var samples []picture
	for _, f := range figures {
		if f.Kind == figure.Dots && f.Metric == t.Metric && f.Workload == t.Workload {
			samples = append(samples, b.picture(f))
		}
	}
	out.Samples = b.later(samples)
	return out
}

func (b *builder) picture(f figure.Figure) picture {
	return picture{
		W: b.load[f.Workload], L: b.path[f.Path], M: b.metric[f.Metric], Heading: f.Heading, Chart: b.svg(f.Drawing),
		Columns: f.Numbers.Columns, Rows: f.Numbers.Rows, Wide: f.Wide, Search: f.Kind == figure.Flame,
	}
}

// chapter is figures of one kind outside of tables.
type chapter struct {
	kind        figure.Kind
	id, heading string
	notes       []string
}

// leads come before all tables, chapters behind them.
var leads = []chapter{
	{figure.Journey, "journey", "The journeys", []string{report.JourneyNote, "A lane for each profile and a row for each host in it: the packet goes down from the client to the server and comes back up."}},
	{figure.Waterfall, "waterfall", "From one to the other", nil},
	{figure.Parts, "parts", "Parts of the service demand", nil},
}

var chapters = []chapter{
	{figure.Flame, "flame", "Functions", []string{
		"Functions below their callers, as wide as both profiles spend in them together. Blue: the second spends less. Orange: it spends more. Roots are network namespaces: one sampled trial in four follows packets, so that most stacks of the others have none.",
	}},
	{figure.Growths, "growth", "Growth", report.GrowthNotes},
	{figure.Loads, "load", "Latency against load", report.LoadNotes},
	{figure.Curves, "distributions", "Distributions", []string{
		"Percentile curves: how long the share of all exchanges took at most. Each further nine is as wide as the one before, and time is on a log axis, so the tail is as plain as the middle. The trials of a cell are pooled here; those of the tables are of each trial by itself.",
	}},
}

// headingOf is the heading of the figures with the workload of f.
func headingOf(f figure.Figure) string {
	if f.Workload.Spec == nil {
		return "What the state costs"
	}
	return number.Clean(f.Workload.String())
}

// pictures are those of chapters that have a figure, by workload.
func (b *builder) pictures(figures []figure.Figure, of []chapter) []pictures {
	var out []pictures
	for _, c := range of {
		p := pictures{ID: c.id, Heading: c.heading, Notes: c.notes}
		var last plan.Workload
		for _, f := range figures {
			if f.Kind != c.kind {
				continue
			}
			if len(p.Parts) == 0 || f.Workload != last {
				p.Parts = append(p.Parts, part{Heading: headingOf(f)})
				last = f.Workload
			}
			at := &p.Parts[len(p.Parts)-1]
			at.Figures = append(at.Figures, b.picture(f))
		}
		if c.kind == figure.Curves {
			for i := range p.Parts {
				p.Parts[i].Later, p.Parts[i].Figures = b.later(p.Parts[i].Figures), nil
			}
		}
		if len(p.Parts) > 0 {
			out = append(out, p)
		}
	}
	return out
}
