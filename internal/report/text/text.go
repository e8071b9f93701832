// Package text writes a report for a terminal.
//
// A table that is wider than the terminal is cut into blocks of columns, each with the names of its rows. If fewer blocks
// result, the table has its short form: without the spread, and with short names of the paths. If a document has a summary,
// only the summary is written, on about one screen, and the sections that the reader requested; Options.All writes the
// whole document. This package computes no results.
package text

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/finding"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// Options describe the terminal and the amount of output.
type Options struct {
	// All writes the whole document in place of its summary.
	All bool
	// ASCII writes words instead of signs, for a terminal without UTF-8, a pipe or a file.
	ASCII bool
	// Width is the number of columns of the terminal; 0 means 80. Smaller values than 40 count as 40.
	Width int
	// Color allows escape sequences for colours.
	Color bool
}

// Render writes the summary of d, if it has one, or else the whole document.
func Render(w io.Writer, d report.Document, o Options) error {
	p := printer{width: max(40, cmp.Or(o.Width, 80)), color: o.Color, ascii: o.ASCII}
	if d.Summary != nil && !o.All {
		p.writeSummary(d)
		_, err := io.WriteString(w, p.String())
		return err
	}
	p.writeHeading(d.Title)
	p.writeBullets(d.Lines...)
	short := false
	for _, s := range d.Sections {
		short = p.writeSection(s) || short
	}
	p.writeLegend(d, short)
	for _, s := range d.Appendix {
		p.writeSection(s)
	}
	_, err := io.WriteString(w, p.String())
	return err
}

// printer collects the lines of a report.
type printer struct {
	strings.Builder
	width int
	color bool
	ascii bool
	// live is true for the live view of a run (see Frame). The table of a summary then shows intervals, and has no hints to
	// use --all.
	live bool
	// marked is true once an entry with a verdict was formatted. The legend then explains the marks.
	marked bool
	// letters means that verdicts in the table of a summary are letters, because there is no room for words.
	letters bool
}

func (p *printer) writeLine(s string) {
	p.WriteString(strings.TrimRight(s, " "))
	p.WriteByte('\n')
}

// Styles of a terminal.
const (
	bold  = "1"
	dim   = "2"
	red   = "31"
	green = "32"
)

// applyStyle returns s between the escape sequences of a style. It returns s itself if colours are not allowed.
func (p *printer) applyStyle(s, code string) string {
	if !p.color || s == "" || code == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (p *printer) writeHeading(s string) {
	if s != "" {
		p.writeStyled(s, bold)
	}
}

// writeStyled writes s in a style, wrapped to the width.
func (p *printer) writeStyled(s, code string) {
	for _, l := range number.Wrap(p.toASCII(s), p.width) {
		p.writeLine(p.applyStyle(l, code))
	}
}

// writeHanging writes text after lead. Further lines are indented by the width of lead.
func (p *printer) writeHanging(lead, text string) {
	lead = p.toASCII(lead)
	for _, l := range number.Hang(lead, strings.Repeat(" ", number.Width(lead)), p.toASCII(text), p.width) {
		p.writeLine(l)
	}
}

func (p *printer) writeBullets(texts ...string) {
	for _, s := range texts {
		p.writeHanging("  ", s)
	}
}

// writeBlankLine writes an empty line, except at the beginning.
func (p *printer) writeBlankLine() {
	if p.Len() > 0 {
		p.writeLine("")
	}
}

// writeSection writes a section. It returns true if a table had its short form. A section of only figures is omitted.
func (p *printer) writeSection(s report.Section) (short bool) {
	if s.Pictured() {
		return false
	}
	p.writeBlankLine()
	p.writeHeading(number.Clean(s.Heading))
	for _, n := range s.Notes {
		p.writeHanging("", number.Clean(n))
	}
	for _, t := range s.Tables {
		short = p.writeTable(t) || short
	}
	for _, g := range s.Grids {
		p.writeGrid(g)
	}
	for _, g := range finding.Groups(s.Findings) {
		p.writeFindings(g)
	}
	p.writeItems(s.Items)
	return short
}

// writeFindings writes findings of one rule and severity.
func (p *printer) writeFindings(group []finding.Finding) {
	f := group[0]
	style := bold
	if f.Severity.Alarm() {
		style = red
	}
	p.writeLine("")
	p.writeStyled(fmt.Sprintf("%s: %s (%s)", strings.ToUpper(string(f.Severity)), f.Title, f.ID), style)
	for _, f := range group {
		p.writeHanging("  - ", number.Clean(f.Text()))
	}
	for _, x := range []struct{ lead, text string }{{"  why: ", f.Why}, {"  do:  ", f.Do}, {"  see: ", f.Source}} {
		if x.text != "" {
			p.writeHanging(x.lead, number.Clean(x.text))
		}
	}
}

func (p *printer) writeLegend(d report.Document, short bool) {
	if len(d.Legend) > 0 || len(d.Footnotes) > 0 {
		p.writeBlankLine()
		p.writeHeading("How to read this")
	}
	p.writeBullets(d.Legend...)
	if p.marked && !p.ascii {
		p.writeBullets("▲ better, ▼ worse, ≈ same (within the margin), ? inconclusive.")
	}
	if short {
		p.writeBullets("The terminal is narrow: spreads are omitted and names of paths are short (pod-svc remote is pod-to-service/remote). A wider terminal shows all.")
	}
	for i, f := range d.Footnotes {
		p.writeHanging("  "+report.Superscript(i+1)+" ", f)
	}
}

func (p *printer) writeItems(items []report.Item) {
	name := 0
	for _, i := range items {
		name = max(name, min(number.Width(i.Name), 28))
	}
	for _, i := range items {
		lead := "  " + number.Left(i.Name, name) + "  "
		if i.Code {
			// Not wrapped, so that it can be copied.
			p.writeLine(lead + i.Text)
			continue
		}
		if i.Text == "" {
			p.writeLine(lead)
		}
		// A word that does not fit on the line of the name is written below it.
		if slices.ContainsFunc(strings.Fields(i.Text), func(word string) bool { return number.Width(lead+word) > p.width }) {
			p.writeLine("  " + i.Name)
			lead = "    "
		}
		p.writeHanging(lead, i.Text)
	}
}

// writeTable writes t. It uses the short form if that needs fewer blocks, and then returns true.
func (p *printer) writeTable(t report.Table) (short bool) {
	full, brief := p.layoutTable(t, false), p.layoutTable(t, true)
	l := full
	if len(brief.blocks) < len(full.blocks) {
		l = brief
	}
	p.writeLine("")
	p.writeHeading(fmt.Sprintf("%s (%s)", t.Title, t.Unit))
	p.writeBlocks(l)
	p.writeConclusions(t.Conclusions, l)
	p.writeBullets(t.Notes...)
	return l.short
}

// writeConclusions writes a short line for each row with a significant difference, and one line about all other rows. Here
// complete sentences, as in Markdown and HTML, would distract from the numbers.
func (p *printer) writeConclusions(all []report.Conclusion, l layout) {
	said, equal := 0, 0
	for _, c := range all {
		switch {
		case c.Alone:
			continue
		case c.Brief == "":
			equal++
			continue
		}
		said++
		label := c.Label
		if l.short {
			label = c.Short
		}
		for _, line := range number.Hang("  ", "    ", p.toASCII(label+": "+c.Brief), p.width-2) {
			p.writeLine(line)
		}
	}
	switch {
	case equal == 0:
	case said == 0:
		p.writeBullets("No two differ significantly in any row.")
	default:
		p.writeBullets("No two differ significantly in the other rows.")
	}
}

// layout is a formatted table, divided into blocks. label is the width of the labels.
type layout struct {
	short   bool
	labels  []string
	columns []column
	// blocks are ranges of columns that fit side by side; the end of a range is exclusive.
	blocks [][2]int
	label  int
}

// column is a formatted column: the lines of its heading and its entries.
type column struct {
	heading []string
	entries []cell
	width   int
}

// cell is the text of an entry, and the same with escape sequences.
type cell struct{ plain, styled string }

const gap = "  "

// layoutTable formats the entries of t and divides its columns into blocks.
func (p *printer) layoutTable(t report.Table, short bool) layout {
	l := layout{short: short}
	for _, r := range t.Rows {
		label := r.Label
		if short {
			label = r.Short
		}
		label = number.Truncate(p.toASCII(label), max(40, p.width-20)) // so that a long foreign name leaves room for a column
		l.labels = append(l.labels, label)
		l.label = max(l.label, number.Width(label))
	}
	for j, name := range t.Columns {
		entries := each.Of(t.Rows, func(r report.Row) report.Entry { return r.Entries[j] })
		l.columns = append(l.columns, p.formatColumn(name, entries, short))
	}
	p.cutBlocks(&l)
	return l
}

// cutBlocks divides the columns of l into l.blocks. A block has as many columns as fit side by side, at least one.
func (p *printer) cutBlocks(l *layout) {
	for from := 0; from < len(l.columns); {
		to, used := from, l.label
		for to < len(l.columns) && (to == from || used+len(gap)+l.columns[to].width <= p.width) {
			used += len(gap) + l.columns[to].width
			to++
		}
		l.blocks = append(l.blocks, [2]int{from, to})
		from = to
	}
}

// formatColumn formats the entries of a column. It aligns values, spreads, ratios and footnotes.
func (p *printer) formatColumn(name string, entries []report.Entry, short bool) column {
	var value, spread, ratio, note int
	for _, e := range entries {
		value, spread, ratio = max(value, number.Width(p.toASCII(e.Value))), max(spread, number.Width(p.toASCII(e.Spread))), max(ratio, number.Width(p.claimText(e)))
		note = max(note, number.Width(p.toASCII(e.Marker())))
	}
	c := column{}
	for _, e := range entries {
		out := p.formatEntry(e, short, [4]int{value, spread, ratio, note})
		c.entries = append(c.entries, out)
		c.width = max(c.width, number.Width(out.plain))
	}
	const narrowest = 8
	c.heading = wrapName(p.toASCII(name), max(c.width, narrowest))
	for _, h := range c.heading {
		c.width = max(c.width, number.Width(h))
	}
	return c
}

// formatEntry formats an entry. widths has the widths of the value, the spread, the ratio with its mark, and the footnotes.
func (p *printer) formatEntry(e report.Entry, short bool, widths [4]int) cell {
	if e.Kind != report.Value {
		s := e.Text
		if short {
			s = e.Short
		}
		s = p.toASCII(s + e.Marker())
		styled := p.applyStyle(s, dim)
		if e.Kind == report.Failed {
			styled = p.applyStyle(s, red)
		}
		// A dash is aligned with the end of the values.
		pad := strings.Repeat(" ", max(0, widths[0]-number.Width(s)))
		return cell{pad + s, pad + styled}
	}
	plain := number.Right(p.toASCII(e.Value), widths[0])
	if !short && widths[1] > 0 {
		plain += " " + number.Right(p.toASCII(e.Spread), widths[1])
	}
	styled := plain
	if widths[2] > 0 {
		claim := p.claimText(e)
		p.marked = p.marked || e.Mark() != ""
		pad := " " + strings.Repeat(" ", widths[2]-number.Width(claim))
		plain += pad + claim
		styled += pad + p.applyStyle(claim, verdictStyle[e.Verdict])
	}
	if widths[3] > 0 {
		note := number.Left(p.toASCII(e.Marker()), widths[3])
		plain, styled = plain+note, styled+note
	}
	return cell{plain, styled}
}

var verdictStyle = map[compare.Verdict]string{
	compare.Better: green, compare.Worse: red, compare.Same: dim, compare.Inconclusive: dim,
}

// wrapName breaks the name of a profile after hyphens into lines of at most width columns. A part without a hyphen may be
// longer.
func wrapName(name string, width int) []string {
	var lines []string
	line := ""
	for _, part := range strings.SplitAfter(name, "-") {
		if line != "" && number.Width(line+part) > width {
			lines, line = append(lines, line), ""
		}
		line += part
	}
	return append(lines, number.Truncate(line, 40))
}

// writeBlocks writes the blocks of a table, one below the other.
func (p *printer) writeBlocks(l layout) {
	for i, b := range l.blocks {
		if i > 0 {
			p.writeLine("")
		}
		p.writeBlock(l, b)
	}
}

// writeBlock writes the columns of the range b side by side.
func (p *printer) writeBlock(l layout, b [2]int) {
	columns := l.columns[b[0]:b[1]]
	lines, total := 0, l.label
	for _, c := range columns {
		lines = max(lines, len(c.heading))
		total += len(gap) + c.width
	}
	for i := range lines {
		line := strings.Repeat(" ", l.label)
		for _, c := range columns {
			// Headings are aligned at the bottom.
			text := ""
			if at := i - (lines - len(c.heading)); at >= 0 {
				text = c.heading[at]
			}
			line += gap + number.Left(text, c.width)
		}
		p.writeLine(p.applyStyle(strings.TrimRight(line, " "), bold))
	}
	p.writeLine(strings.Repeat(p.toASCII("─"), min(total, max(p.width, l.label))))
	for i, label := range l.labels {
		line := number.Left(label, l.label)
		for _, c := range columns {
			line += gap + c.entries[i].styled + strings.Repeat(" ", c.width-number.Width(c.entries[i].plain))
		}
		p.writeLine(line)
	}
}
