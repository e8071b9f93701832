package text

import (
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// screen is how many lines a summary has at most.
const screen = 60

// fewRows is how many rows of the table are worth lines of the answers.
const fewRows = 8

// summary writes s, and of the sections of a document those that the reader asked for. Where all would be more than a
// screen, the answers are written more briefly, then rows of the table give way, and at last what says how to read it.
func (p *printer) summary(d report.Document) {
	s := d.Summary
	tail := p.part(func(p *printer) { p.reading(s) })
	var next string
	if len(s.Next) > 0 {
		next = p.part(func(p *printer) { p.line(""); p.items(s.Next) })
	}
	var head string
	room := 0
	for brief := range briefest + 1 {
		head = p.part(func(p *printer) { p.answers(d, brief) })
		room = screen - lines(head+tail+next)
		if room >= min(len(s.Rows), fewRows)+tableLines {
			break
		}
	}
	p.WriteString(head)
	if len(s.Columns) > 0 {
		p.WriteString(p.part(func(p *printer) { p.summaryTable(s, max(room, tableLines+1)) }))
	}
	if over := lines(p.String()+tail+next) - screen; over > 0 {
		kept := strings.SplitAfter(tail, "\n")
		tail = strings.Join(kept[:max(0, len(kept)-2-over)], "") + "  More on how to read this: --all.\n"
	}
	p.WriteString(tail + next)
	for _, x := range d.Sections {
		if x.Asked {
			p.section(x)
		}
	}
}

// briefest is how brief answers can be: 1 leaves out what was measured how, 2 the worst, 3 all needs but the first few.
const briefest = 3

// answers writes the answer for each need, the more briefly the less room there is.
func (p *printer) answers(d report.Document, brief int) {
	p.heading(d.Title)
	p.bullets(d.Summary.Ground()...)
	p.bullets(d.Summary.Lead...)
	needs := d.Summary.Needs
	const few = 3
	if brief >= 3 {
		needs = needs[:min(few, len(needs))]
	}
	for _, n := range needs {
		heading := n.Heading
		if brief >= 1 {
			heading = n.Name
		}
		p.line("")
		p.heading(number.Clean(heading))
		p.items(slices.DeleteFunc(slices.Clone(n.Lines), func(i report.Item) bool { return brief >= 2 && i.Name == report.Worst }))
	}
	if more := len(d.Summary.Needs) - len(needs); more > 0 {
		p.bullets(number.Counted(more, "more answer") + ": --all.")
	}
	for _, g := range d.Summary.Grids {
		p.grid(g)
	}
}

// part is what write writes.
func (p *printer) part(write func(*printer)) string {
	q := *p
	q.Builder = strings.Builder{}
	write(&q)
	return q.String()
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

// tableLines are those of the table that are not rows: one above it, its title, up to three of headings.
const tableLines = 5

// summaryTable writes the table in at most so many lines, and as many of its columns as fit; a line names what is left out.
func (p *printer) summaryTable(s *report.Summary, most int) {
	name, letters, proof := 0, len("does"), len("proof")
	for _, r := range s.Rows {
		name = max(name, min(number.Width(r.Profile), 32))
		proof = max(proof, number.Width(r.Proof))
	}
	after := gap + number.Left("does", letters) + gap + "proof"
	all := make([]column, len(s.Columns))
	for j, c := range s.Columns {
		all[j] = p.summaryColumn(c, each.Of(s.Rows, func(r report.SummaryRow) report.Entry { return r.Entries[j] }))
	}
	used := name + len(gap) + letters + len(gap) + proof
	if s.Letters == "" || used+len(gap)+all[0].width > p.width {
		after, used = "", name
	}
	var columns []column
	for _, c := range all {
		if used += len(gap) + c.width; used > p.width && len(columns) > 0 {
			break
		}
		columns = append(columns, c)
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
	high := 0
	for _, c := range columns {
		high = max(high, len(c.heading))
	}
	for i := range high {
		heading := func(c column) string {
			return number.Left(strings.Join(c.heading[i:min(i+1, len(c.heading))], ""), c.width)
		}
		p.line(p.style(strings.TrimRight(row("", heading, []string{after, "", ""}[i]), " "), bold))
	}
	rows := s.Rows
	left := len(s.Columns) - len(columns)
	if room := most - tableLines - min(1, left); len(rows) > room {
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
		p.bullets(number.Counted(more, "more profile") + p.elsewhere())
	}
	if left > 0 {
		p.bullets(number.Counted(left, "column") + " did not fit" + p.elsewhere())
	}
}

// elsewhere ends a sentence about what has no room.
func (p *printer) elsewhere() string {
	if p.live {
		return "."
	}
	return ": --all."
}

// summaryColumn lines up the values of a need.
func (p *printer) summaryColumn(c report.SummaryColumn, entries []report.Entry) column {
	out := column{heading: append([]string{p.plain(c.Name)}, strings.Split(p.plain(c.Unit), ", ")...)}
	value, spread := 0, 0
	for _, e := range entries {
		value = max(value, number.Width(e.Value))
		if p.live {
			spread = max(spread, len(gap)-1+number.Width(p.plain(e.Spread)))
		}
	}
	for _, e := range entries {
		text := p.plain(e.Text)
		styled := p.style(text, dim)
		if e.Kind == report.Value {
			mark := p.toBest(e.Verdict)
			pad := number.Right(e.Value, value) + " "
			if spread > 0 {
				pad = number.Right(e.Value, value) + number.Right(p.plain(e.Spread), spread) + " "
			}
			text, styled = pad+mark, pad+p.style(mark, verdictStyle[e.Verdict])
		}
		out.entries = append(out.entries, cell{text, styled})
		out.width = max(out.width, number.Width(text))
	}
	for _, line := range out.heading {
		out.width = max(out.width, number.Width(line))
	}
	return out
}
