// Package markdown writes a report for GitHub: one table per metric and workload, all columns side by side.
//
// The text of a result file is not trusted. Everything with a meaning in Markdown or HTML is escaped, so a profile's
// name can neither end a table cell nor insert a tag, a link or an image. Nothing is computed here.
package markdown

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/figure"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/finding"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// Render writes the whole document as Markdown. It fails if it cannot write to w.
func Render(w io.Writer, d report.Document) error {
	var p page
	if d.Title != "" {
		p.writeLine("# %s\n", number.Markdown(d.Title))
	}
	p.writeBullets(d.Lines)
	p.pictures = d.Pictures
	p.writePicture(figure.Name(report.Figure{Kind: figure.Answer}))
	for _, s := range d.Sections {
		p.writeSection(s)
	}
	p.writeOtherPictures()
	p.writeLegend(d)
	for _, s := range d.Appendix {
		p.writeSection(s)
	}
	_, err := io.WriteString(w, p.String())
	return err
}

// page collects the lines of a document.
type page struct {
	strings.Builder
	pictures []report.Picture
}

// writePicture writes the picture of that name, if there is one.
func (p *page) writePicture(name string) {
	for _, x := range p.pictures {
		if x.Name == name {
			p.writeLine("\n![%s](<%s>)", number.Markdown(x.Title), x.File)
		}
	}
}

// writeOtherPictures writes the pictures that belong to no table, below a heading of their own.
func (p *page) writeOtherPictures() {
	if !slices.ContainsFunc(p.pictures, func(x report.Picture) bool { return x.Apart }) {
		return
	}
	p.writeLine("\n## Pictures")
	for _, x := range p.pictures {
		if x.Apart {
			p.writePicture(x.Name)
		}
	}
}

func (p *page) writeLine(format string, args ...any) {
	fmt.Fprintf(p, format, args...)
	p.WriteByte('\n')
}

func (p *page) writeBullets(texts []string) {
	for _, s := range texts {
		p.writeLine("- %s", number.Markdown(s))
	}
}

// writeTableHead writes the heading of a table. align is the alignment of all columns except the first.
func (p *page) writeTableHead(label string, columns []string, align string) {
	p.writeRow(append([]string{label}, columns...), number.Markdown)
	p.writeLine("|---|%s", strings.Repeat(align, len(columns)))
}

// writeRow writes a row of a table; escape is applied to each cell.
func (p *page) writeRow(cells []string, escape func(string) string) {
	for _, c := range cells {
		p.WriteString("| " + escape(c) + " ")
	}
	p.writeLine("|")
}

func (p *page) writeGrid(g report.Grid) {
	if g.Title != "" {
		p.writeLine("\n### %s", number.Markdown(g.Title))
	}
	p.writeLine("")
	if len(g.Labels) > 0 {
		align := "---:|"
		if g.Prose {
			align = "---|"
		}
		p.writeTableHead(g.Label, g.Columns, align)
		for i, label := range g.Labels {
			p.writeRow(append([]string{label}, g.Cells[i]...), number.Markdown)
		}
		p.writeLine("")
	}
	p.writeBullets(g.Notes)
}

// Table writes g as a table. It writes nothing if g has no rows.
func Table(w *strings.Builder, g report.Grid) {
	var p page
	if len(g.Labels) > 0 {
		p.writeGrid(g)
	}
	w.WriteString(p.String())
}

func (p *page) writeSection(s report.Section) {
	if s.Pictured() {
		return
	}
	if s.Heading != "" {
		p.writeLine("\n## %s", number.Markdown(s.Heading))
	}
	for _, n := range s.Notes {
		p.writeLine("\n%s", number.Markdown(n))
	}
	for _, t := range s.Tables {
		p.writeTable(t)
	}
	for _, g := range s.Grids {
		p.writeGrid(g)
	}
	for _, g := range finding.Groups(s.Findings) {
		p.writeFindings(g)
	}
	p.writeItems(s.Items)
}

// writeFindings writes findings of one rule and severity.
func (p *page) writeFindings(group []finding.Finding) {
	f := group[0]
	p.writeLine("\n### %s: %s (`%s`)\n", f.Severity, number.Markdown(f.Title), f.ID)
	for _, f := range group {
		where := ""
		if f.Where != "" {
			where = "**" + number.Markdown(f.Where) + "**: "
		}
		p.writeLine("- %s%s", where, number.Markdown(f.Saw))
	}
	for _, x := range []struct{ lead, text string }{{"Why", f.Why}, {"Do", f.Do}, {"See", f.Source}} {
		if x.text != "" {
			p.writeLine("\n%s: %s.", x.lead, number.Markdown(x.text))
		}
	}
}

func (p *page) writeTable(t report.Table) {
	p.writeLine("\n### %s (%s)\n", number.Markdown(t.Title), number.Markdown(t.Unit))
	p.writeTableHead("path", t.Columns, "---:|")
	for _, r := range t.Rows {
		cells := []string{number.Markdown(r.Label)}
		cells = append(cells, each.Of(r.Entries, entryText)...)
		p.writeRow(cells, strings.Clone)
	}
	p.writePicture(figure.Name(report.Figure{Kind: figure.Heat, Metric: t.Metric, Workload: t.Workload}))
	p.writeConclusions(t.Conclusions)
	if len(t.Notes) > 0 {
		p.writeLine("")
	}
	p.writeBullets(t.Notes)
}

// writeConclusions writes a table with the conclusion of each row.
func (p *page) writeConclusions(all []report.Conclusion) {
	if len(all) == 0 {
		return
	}
	p.writeLine("")
	p.writeTableHead("path", []string{"conclusion"}, "---|")
	for _, c := range all {
		p.writeRow([]string{c.Label, c.Text}, number.Markdown)
	}
}

// entryText formats an entry with its footnotes. It omits the spread, the ratio or the verdict if the entry has none.
func entryText(e report.Entry) string {
	if e.Kind != report.Value {
		return number.Markdown(e.Text) + e.Marker()
	}
	var parts []string
	for _, s := range []string{e.Value, e.Spread, e.Claim()} {
		if s != "" {
			parts = append(parts, number.Markdown(s))
		}
	}
	return strings.Join(parts, " ") + e.Marker()
}

func (p *page) writeLegend(d report.Document) {
	if len(d.Legend) > 0 || len(d.Footnotes) > 0 {
		p.writeLine("\n## How to read this\n")
	}
	p.writeBullets(d.Legend)
	for i, f := range d.Footnotes {
		p.writeLine("- %s %s", report.Superscript(i+1), number.Markdown(f))
	}
}

func (p *page) writeItems(items []report.Item) {
	if len(items) > 0 {
		p.writeLine("")
	}
	for _, i := range items {
		if !i.Code {
			p.writeLine("- %s%s", boldName(i, ": "), number.Markdown(i.Text))
			continue
		}
		fence := "```"
		for strings.Contains(i.Text, fence) {
			fence += "`"
		}
		p.writeLine("- **%s**:\n\n  %s\n  %s\n  %s\n", number.Markdown(i.Name), fence, i.Text, fence)
	}
}

// boldName returns the name of an item in bold, followed by after. It returns "" for an item without a name.
func boldName(i report.Item, after string) string {
	if i.Name == "" {
		return ""
	}
	return "**" + number.Markdown(i.Name) + "**" + after
}
