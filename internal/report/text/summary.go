package text

import (
	"strings"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// screen is how many lines a summary has at most.
const screen = 60

// summary writes s, and of the sections of a document those that the reader asked for. Rows of its table give way where
// all would be more than a screen.
func (p *printer) summary(d report.Document) {
	s := d.Summary
	head, tail := *p, *p
	head.Builder, tail.Builder = strings.Builder{}, strings.Builder{}
	head.heading(d.Title)
	head.bullets(s.Lead...)
	for _, n := range s.Needs {
		head.line("")
		head.heading(number.Clean(n.Heading))
		head.items(n.Lines)
	}
	tail.reading(s)
	if len(s.Next) > 0 {
		tail.line("")
		tail.items(s.Next)
	}
	p.WriteString(head.String())
	if len(s.Columns) > 0 {
		p.summaryTable(s, screen-lines(head.String())-lines(tail.String()))
	}
	p.WriteString(tail.String())
	for _, x := range d.Sections {
		if x.Asked {
			p.section(x)
		}
	}
}

func lines(s string) int { return strings.Count(s, "\n") }

// reading says how to read the table.
func (p *printer) reading(s *report.Summary) {
	if len(s.Columns) > 0 {
		seen := map[compare.Verdict]bool{}
		for _, r := range s.Rows {
			for _, e := range r.Entries {
				seen[e.Verdict] = true
			}
		}
		var marks []string
		for _, m := range []struct {
			verdict compare.Verdict
			text    string
		}{
			{compare.Better, "best"}, {compare.Worse, "worse than the best of the column"},
			{compare.Same, "the same within " + s.Margin}, {compare.Inconclusive, "undecided"},
		} {
			if mark := p.toBest(m.verdict); seen[m.verdict] && mark != m.text {
				marks = append(marks, mark+": "+m.text)
			}
		}
		p.bullets(strings.Join(append(marks, s.Certainty), "; ") + ".")
	}
	if s.Letters != "" {
		p.bullets("does: "+s.Letters+".", "proof: "+s.Proofs+".")
	}
	p.bullets(s.Notes...)
}

// toBest is the mark of a verdict on a value beside the best one.
func (p *printer) toBest(v compare.Verdict) string {
	if p.ascii && v == compare.Better {
		return "best"
	}
	return p.mark(v)
}

// summaryTable writes the table in at most so many lines, and as many of its columns as fit; a line names what is left out.
func (p *printer) summaryTable(s *report.Summary, most int) {
	name, letters, proof := 0, len("does"), len("proof")
	for _, r := range s.Rows {
		name = max(name, min(number.Width(r.Profile), 32))
		proof = max(proof, number.Width(r.Proof))
	}
	after := gap + number.Left("does", letters) + gap + "proof"
	if s.Letters == "" {
		after, letters, proof = "", 0, -len(gap)
	}
	var columns []column
	used := name + len(gap) + letters + len(gap) + proof
	for j, c := range s.Columns {
		next := p.summaryColumn(c, each.Of(s.Rows, func(r report.SummaryRow) report.Entry { return r.Entries[j] }))
		if used += len(gap) + next.width; used > p.width && len(columns) > 0 {
			break
		}
		columns = append(columns, next)
	}
	row := func(label string, text func(column) string, end string) string {
		line := number.Left(label, name)
		for _, c := range columns {
			line += gap + text(c)
		}
		return line + end
	}
	p.line("")
	p.styled(s.Title, bold)
	p.line(p.style(row("", func(c column) string { return number.Left(c.heading[0], c.width) }, after), bold))
	p.line(p.style(row("", func(c column) string { return number.Left(c.heading[1], c.width) }, ""), bold))
	rows := s.Rows
	left := len(s.Columns) - len(columns)
	if room := most - 4 - min(1, left); len(rows) > room {
		rows = rows[:max(1, room-1)]
	}
	for i, r := range rows {
		end := ""
		if after != "" {
			end = gap + number.Left(r.Letters, letters) + gap + r.Proof
		}
		p.line(row(number.Truncate(p.plain(r.Profile), name), func(c column) string {
			return c.entries[i].styled + strings.Repeat(" ", max(0, c.width-number.Width(c.entries[i].plain)))
		}, end))
	}
	if more := len(s.Rows) - len(rows); more > 0 {
		p.bullets(number.Counted(more, "more profile") + ": --all.")
	}
	if left > 0 {
		p.bullets(number.Counted(left, "column") + " did not fit: --all.")
	}
}

// summaryColumn lines up the values of a need.
func (p *printer) summaryColumn(c report.SummaryColumn, entries []report.Entry) column {
	out := column{heading: []string{p.plain(c.Name), p.plain(c.Unit)}}
	value := 0
	for _, e := range entries {
		value = max(value, number.Width(e.Value))
	}
	for _, e := range entries {
		text := p.plain(e.Text)
		styled := p.style(text, dim)
		if e.Kind == report.Value {
			mark := p.toBest(e.Verdict)
			pad := number.Right(e.Value, value) + " "
			text, styled = pad+mark, pad+p.style(mark, verdictStyle[e.Verdict])
		}
		out.entries = append(out.entries, cell{text, styled})
		out.width = max(out.width, number.Width(text))
	}
	out.width = max(out.width, number.Width(out.heading[0]), number.Width(out.heading[1]))
	return out
}
