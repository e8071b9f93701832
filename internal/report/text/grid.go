package text

import (
	"slices"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// writeGrid writes g in blocks of columns that fit side by side. If its last column has sentences and there is
// room, it wraps that column instead.
func (p *printer) writeGrid(g report.Grid) {
	if g.Title != "" {
		p.writeBlankLine()
		p.writeHeading(g.Title)
	}
	var l layout
	for _, label := range g.Labels {
		label = number.Truncate(p.toASCII(number.Clean(label)), 40)
		l.labels = append(l.labels, label)
		l.label = max(l.label, number.Width(label))
	}
	for j, name := range g.Columns {
		name = p.toASCII(name)
		c := column{heading: []string{name}, width: number.Width(name)}
		for _, row := range g.Cells {
			text := p.toASCII(number.Clean(row[j]))
			c.entries = append(c.entries, cell{plain: text, styled: text})
			c.width = max(c.width, number.Width(text))
		}
		l.columns = append(l.columns, c)
	}
	if !g.Prose || !p.writeProse(l) {
		p.cutBlocks(&l)
		if len(g.Labels) > 0 {
			p.writeBlocks(l)
		}
	}
	p.writeBullets(g.Notes...)
}

// writeProse writes a grid whose last column is wrapped. It writes nothing and returns false if the last column would be too
// narrow.
func (p *printer) writeProse(l layout) bool {
	const narrowest = 30
	last := len(l.columns) - 1
	used := l.label + len(gap)
	for _, c := range l.columns[:last] {
		used += c.width + len(gap)
	}
	if p.width-used < narrowest {
		return false
	}
	row := func(label string, text func(column) string) {
		lead := number.Left(label, l.label) + gap
		for _, c := range l.columns[:last] {
			lead += number.Left(text(c), c.width) + gap
		}
		p.writeHanging(lead, text(l.columns[last]))
	}
	if slices.ContainsFunc(l.columns, func(c column) bool { return c.heading[0] != "" }) {
		row("", func(c column) string { return c.heading[0] })
	}
	for i, label := range l.labels {
		row(label, func(c column) string { return c.entries[i].plain })
	}
	return true
}
