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

// Render writes the whole document as Markdown.
func Render(w io.Writer, d report.Document) error {
	var p page
	if d.Title != "" {
		p.line("# %s\n", number.Markdown(d.Title))
	}
	p.bullets(d.Lines)
	p.pictures = d.Pictures
	p.picture(figure.Name(report.Figure{Kind: figure.Answer}))
	for _, s := range d.Sections {
		p.section(s)
	}
	p.otherPictures()
	p.legend(d)
	for _, s := range d.Appendix {
		p.section(s)
	}
	_, err := io.WriteString(w, p.String())
	return err
}

// page collects the lines of a document.
type page struct {
	strings.Builder
	pictures []report.Picture
}

// picture writes the picture of that name, if there is one.
func (p *page) picture(name string) {
	for _, x := range p.pictures {
		if x.Name == name {
			p.line("\n![%s](<%s>)", number.Markdown(x.Title), x.File)
		}
	}
}

// otherPictures shows the pictures that belong to no table.
func (p *page) otherPictures() {
	if !slices.ContainsFunc(p.pictures, func(x report.Picture) bool { return x.Apart }) {
		return
	}
	p.line("\n## Pictures")
	for _, x := range p.pictures {
		if x.Apart {
			p.picture(x.Name)
		}
	}
}

func (p *page) line(format string, args ...any) {
	fmt.Fprintf(p, format, args...)
	p.WriteByte('\n')
}

func (p *page) bullets(texts []string) {
	for _, s := range texts {
		p.line("- %s", number.Markdown(s))
	}
}

// head writes the heading of a table. align is the alignment of all columns except the first.
func (p *page) head(label string, columns []string, align string) {
	p.row(append([]string{label}, columns...), number.Markdown)
	p.line("|---|%s", strings.Repeat(align, len(columns)))
}

// row writes a row of a table; escape is applied to each cell.
func (p *page) row(cells []string, escape func(string) string) {
	for _, c := range cells {
		p.WriteString("| " + escape(c) + " ")
	}
	p.line("|")
}

func (p *page) grid(g report.Grid) {
	if g.Title != "" {
		p.line("\n### %s", number.Markdown(g.Title))
	}
	p.line("")
	if len(g.Labels) > 0 {
		align := "---:|"
		if g.Prose {
			align = "---|"
		}
		p.head(g.Label, g.Columns, align)
		for i, label := range g.Labels {
			p.row(append([]string{label}, g.Cells[i]...), number.Markdown)
		}
		p.line("")
	}
	p.bullets(g.Notes)
}

// Table writes g as a table; nothing if it has no rows.
func Table(w *strings.Builder, g report.Grid) {
	var p page
	if len(g.Labels) > 0 {
		p.grid(g)
	}
	w.WriteString(p.String())
}

func (p *page) section(s report.Section) {
	if s.Pictured() {
		return
	}
	if s.Heading != "" {
		p.line("\n## %s", number.Markdown(s.Heading))
	}
	for _, n := range s.Notes {
		p.line("\n%s", number.Markdown(n))
	}
	for _, t := range s.Tables {
		p.table(t)
	}
	for _, g := range s.Grids {
		p.grid(g)
	}
	for _, g := range finding.Groups(s.Findings) {
		p.findings(g)
	}
	p.items(s.Items)
}

// findings writes findings of one rule and severity.
func (p *page) findings(group []finding.Finding) {
	f := group[0]
	p.line("\n### %s: %s (`%s`)\n", f.Severity, number.Markdown(f.Title), f.ID)
	for _, f := range group {
		where := ""
		if f.Where != "" {
			where = "**" + number.Markdown(f.Where) + "**: "
		}
		p.line("- %s%s", where, number.Markdown(f.Saw))
	}
	for _, x := range []struct{ lead, text string }{{"Why", f.Why}, {"Do", f.Do}, {"See", f.Source}} {
		if x.text != "" {
			p.line("\n%s: %s.", x.lead, number.Markdown(x.text))
		}
	}
}

func (p *page) table(t report.Table) {
	p.line("\n### %s (%s)\n", number.Markdown(t.Title), number.Markdown(t.Unit))
	p.head("path", t.Columns, "---:|")
	for _, r := range t.Rows {
		cells := []string{number.Markdown(r.Label)}
		cells = append(cells, each.Of(r.Entries, entry)...)
		p.row(cells, strings.Clone)
	}
	p.picture(figure.Name(report.Figure{Kind: figure.Heat, Metric: t.Metric, Workload: t.Workload}))
	p.conclusions(t.Conclusions)
	if len(t.Notes) > 0 {
		p.line("")
	}
	p.bullets(t.Notes)
}

// conclusions writes a table with the conclusion of each row.
func (p *page) conclusions(all []report.Conclusion) {
	if len(all) == 0 {
		return
	}
	p.line("")
	p.head("path", []string{"conclusion"}, "---|")
	for _, c := range all {
		p.row([]string{c.Label, c.Text}, number.Markdown)
	}
}

// entry formats an entry: value, spread, ratio and verdict, as far as it has them, with its footnotes.
func entry(e report.Entry) string {
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

func (p *page) legend(d report.Document) {
	if len(d.Legend) > 0 || len(d.Footnotes) > 0 {
		p.line("\n## How to read this\n")
	}
	p.bullets(d.Legend)
	for i, f := range d.Footnotes {
		p.line("- %s %s", report.Superscript(i+1), number.Markdown(f))
	}
}

func (p *page) items(items []report.Item) {
	if len(items) > 0 {
		p.line("")
	}
	for _, i := range items {
		if !i.Code {
			p.line("- %s%s", boldName(i, ": "), number.Markdown(i.Text))
			continue
		}
		fence := "```"
		for strings.Contains(i.Text, fence) {
			fence += "`"
		}
		p.line("- **%s**:\n\n  %s\n  %s\n  %s\n", number.Markdown(i.Name), fence, i.Text, fence)
	}
}

// boldName returns the name of an item in bold, followed by after, or "" for an item without a name.
func boldName(i report.Item, after string) string {
	if i.Name == "" {
		return ""
	}
	return "**" + number.Markdown(i.Name) + "**" + after
}
