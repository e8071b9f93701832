package text

import (
	"strings"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// screen is the number of lines that a summary should have at most. A summary may be longer if its needs take more room.
const screen = 60

// fewRows is the number of rows of the table that are written even if the summary is then longer than a screen.
const fewRows = 8

// writeSummary writes the summary of d, then the sections that the reader requested. If the summary is longer than a screen,
// rows of the table are dropped first, then lines that explain the table.
func (p *printer) writeSummary(d report.Document) {
	s := d.Summary
	p.letters = p.ascii && p.summaryWidth(s) > p.width
	head := p.capturedText(func(p *printer) { p.writeAnswers(d) })
	needs := p.capturedText(func(p *printer) { p.writeNeeds(s) })
	tail := p.capturedText(func(p *printer) { p.writeReadingLines(s) })
	var next string
	if len(s.Next) > 0 {
		next = p.capturedText(func(p *printer) { p.writeLine(""); p.writeItems(s.Next) })
	}
	p.WriteString(head)
	if len(s.Columns) > 0 {
		room := max(screen-lineCount(head+needs+tail+next), min(len(s.Rows), fewRows)+tableLines)
		p.WriteString(p.capturedText(func(p *printer) { p.writeSummaryTable(s, room) }))
	}
	if over := lineCount(p.String()+needs+tail+next) - screen; over > 0 {
		kept := strings.SplitAfter(tail, "\n")
		tail = strings.Join(kept[:max(0, len(kept)-2-over)], "") + "  More on how to read this: --all.\n"
	}
	p.WriteString(tail + needs + next)
	for _, x := range d.Sections {
		if x.Asked {
			p.writeSection(x)
		}
	}
}

// writeAnswers writes the title, the first lines and the grids of a summary. If the summary has no table of needs, it also
// writes the lists.
func (p *printer) writeAnswers(d report.Document) {
	p.writeHeading(d.Title)
	p.writeBullets(d.Summary.Ground()...)
	p.writeBullets(d.Summary.Lead...)
	if len(d.Summary.Columns) == 0 {
		for _, s := range d.Summary.Lists {
			p.writeLine("")
			p.writeHeading(number.Clean(s.Heading))
			p.writeItems(s.Items)
		}
	}
	for _, g := range d.Summary.Grids {
		p.writeGrid(g)
	}
}

// writeNeeds writes a line for each column of the table: the answer to its need. It omits the intervals of a line that would
// be too long.
func (p *printer) writeNeeds(s *report.Summary) {
	if len(s.Columns) == 0 {
		return
	}
	name, names := 0, each.Of(s.Columns, func(c report.SummaryColumn) string { return c.Name })
	for j, c := range s.Columns {
		if _, model, ok := strings.Cut(c.Unit, ", "); ok && repeatsNeed(s, j) {
			names[j] = model
		}
		name = max(name, number.Width(names[j]))
	}
	p.writeLine("")
	for j, c := range s.Columns {
		lead, text := "  "+number.Left(names[j], name)+"  ", c.Line
		if number.Width(p.toASCII(lead+text)) > p.width {
			text = c.Brief
		}
		p.writeHanging(lead, text)
	}
}

// capturedText returns what write writes, without adding it to p.
func (p *printer) capturedText(write func(*printer)) string {
	q := *p
	q.Builder = strings.Builder{}
	write(&q)
	return q.String()
}

func lineCount(s string) int { return strings.Count(s, "\n") }

// writeReadingLines writes the lines that explain the table of a summary, and the notes.
func (p *printer) writeReadingLines(s *report.Summary) {
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
			{compare.Better, "best"}, {compare.Worse, "worse than the best"},
			{compare.Same, "the same within " + s.Margin}, {compare.Inconclusive, "undecided"},
		} {
			if mark := p.summaryMark(m.verdict); seen[m.verdict] && mark != m.text {
				marks = append(marks, mark+": "+m.text)
			}
		}
		p.writeBullets(strings.Join(append(marks, s.Certainty), "; ") + ".")
	}
	if s.Loads != "" {
		p.writeBullets(s.Loads + ".")
	}
	if s.Letters != "" {
		p.writeBullets("does: "+s.Letters+".", "proof: "+s.Proofs+".")
	}
	p.writeBullets(s.Notes...)
}

// verdictLetters are the ASCII marks of verdicts if there is no room for words.
var verdictLetters = map[compare.Verdict]string{compare.Better: "*", compare.Worse: "w", compare.Same: "=", compare.Inconclusive: "?"}

// summaryMark returns the mark of a verdict in the table of a summary, where values are compared with the best one.
func (p *printer) summaryMark(v compare.Verdict) string {
	if p.letters {
		return verdictLetters[v]
	}
	if p.ascii && v == compare.Better {
		return "best"
	}
	return p.verdictMark(v)
}

// mostHeadings is the usual number of lines of the headings: name, unit and NIC model. Workload options in the name of a
// need take one more line. tableLines is the number of lines above the rows: an empty line, the title and the headings.
const (
	mostHeadings = 3
	tableLines   = 2 + mostHeadings
)

// summaryColumns returns the formatted columns of needs as all. name, letters and proof are the widths of the three other
// columns.
func (p *printer) summaryColumns(s *report.Summary) (name, letters, proof int, all []column) {
	letters, proof = len("does"), len("proof")
	for _, r := range s.Rows {
		name = max(name, min(number.Width(r.Profile), 32))
		proof = max(proof, number.Width(r.Proof))
	}
	for j, c := range s.Columns {
		all = append(all, p.summaryColumn(c, each.Of(s.Rows, func(r report.SummaryRow) report.Entry { return r.Entries[j] })))
	}
	return name, letters, proof, all
}

// summaryWidth returns the width of the whole table.
func (p *printer) summaryWidth(s *report.Summary) int {
	name, letters, proof, all := p.summaryColumns(s)
	width := name
	if s.Letters != "" {
		width += len(gap) + letters + len(gap) + proof
	}
	for _, c := range all {
		width += len(gap) + c.width
	}
	return width
}

// writeSummaryTable writes the table of a summary with as many columns as fit. most is the largest number of lines. It names
// omitted columns and counts omitted rows.
func (p *printer) writeSummaryTable(s *report.Summary, most int) {
	name, letters, proof, all := p.summaryColumns(s)
	after := gap + number.Left("does", letters) + gap + "proof"
	used := name + len(gap) + letters + len(gap) + proof
	if s.Letters == "" || used+len(gap)+all[0].width > p.width {
		after, used = "", name
	}
	columns, left := p.fitColumns(s, all, used)
	row := func(label string, text func(column) string, end string) string {
		line := number.Left(label, name)
		for _, c := range columns {
			line += gap + text(c)
		}
		return line + end
	}
	p.writeLine("")
	p.writeStyled(s.Title, bold)
	high := 0
	for _, c := range columns {
		high = max(high, len(c.heading))
	}
	for i := range high {
		heading := func(c column) string {
			if i >= len(c.heading) {
				return number.Left("", c.width)
			}
			return number.Left(c.heading[i], c.width)
		}
		end := ""
		if i == 0 {
			end = after
		}
		p.writeLine(p.applyStyle(strings.TrimRight(row("", heading, end), " "), bold))
	}
	rows := s.Rows
	if room := most - tableLines - max(0, high-mostHeadings) - min(1, len(left)); len(rows) > room {
		rows = rows[:max(1, room-1)]
	}
	for i, r := range rows {
		end := ""
		if after != "" {
			end = gap + number.Left(r.Letters, letters) + gap + r.Proof
		}
		p.writeLine(row(number.Truncate(p.toASCII(r.Profile), name), func(c column) string {
			return c.entries[i].styled + strings.Repeat(" ", max(0, c.width-number.Width(c.entries[i].plain)))
		}, end))
	}
	if more := len(s.Rows) - len(rows); more > 0 {
		hint := ": --all."
		if p.live {
			hint = "."
		}
		p.writeBullets(number.Counted(more, "more profile") + hint)
	}
	switch {
	case len(left) > 0 && p.live: // in one line
		p.writeBullets(number.Counted(len(left), "column") + " did not fit.")
	case len(left) > 0:
		p.writeBullets(strings.Join(left, "; ") + " did not fit: --all.")
	}
}

// repeatsNeed reports whether column j is for the same need as the column before it, with another NIC model.
func repeatsNeed(s *report.Summary, j int) bool {
	return j > 0 && s.Columns[j].Name == s.Columns[j-1].Name
}

// fitColumns returns the columns that fit as columns, and the names of the dropped ones as left. used is the width of the
// other parts of a line. It first drops columns of a second NIC model, then the last columns. It keeps the first column.
func (p *printer) fitColumns(s *report.Summary, all []column, used int) (columns []column, left []string) {
	for _, c := range all {
		used += len(gap) + c.width
	}
	gone := make([]bool, len(all))
	for _, repeated := range []bool{true, false} {
		for j := len(all) - 1; j > 0 && used > p.width; j-- {
			if repeatsNeed(s, j) == repeated {
				gone[j] = true
				used -= len(gap) + all[j].width
			}
		}
	}
	for j, c := range all {
		if gone[j] {
			left = append(left, p.toASCII(s.Columns[j].Name+" ("+s.Columns[j].Unit+")"))
			continue
		}
		columns = append(columns, c)
	}
	return columns, left
}

// summaryColumn formats the column of a need. It aligns values and marks.
func (p *printer) summaryColumn(c report.SummaryColumn, entries []report.Entry) column {
	out := column{heading: append([]string{p.toASCII(c.Name)}, strings.Split(p.toASCII(c.Unit), ", ")...)}
	value, spread := 0, 0
	for _, e := range entries {
		value = max(value, number.Width(e.Value))
		if p.live {
			spread = max(spread, len(gap)-1+number.Width(p.toASCII(e.Spread)))
		}
	}
	for _, e := range entries {
		text := p.toASCII(e.Text)
		styled := p.applyStyle(text, dim)
		if e.Kind == report.Value {
			mark := p.summaryMark(e.Verdict)
			pad := number.Right(e.Value, value) + " "
			if spread > 0 {
				pad = number.Right(e.Value, value) + number.Right(p.toASCII(e.Spread), spread) + " "
			}
			text, styled = pad+mark, pad+p.applyStyle(mark, verdictStyle[e.Verdict])
		}
		out.entries = append(out.entries, cell{text, styled})
		out.width = max(out.width, number.Width(text))
	}
	for _, line := range out.heading {
		out.width = max(out.width, number.Width(line))
	}
	return out
}
