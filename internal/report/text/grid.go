package text

import (
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// impact writes what the numbers mean for the reader's own job.
func (p *printer) impact(i *report.Impact) {
	if i == nil {
		return
	}
	p.line("")
	p.heading("What it means for the job")
	for _, n := range i.Notes {
		p.hang("", n)
	}
	for _, g := range i.Grids {
		p.grid(g)
	}
}

// loads writes how times rise with the load.
func (p *printer) loads(curves []report.LoadCurve) {
	if len(curves) == 0 {
		return
	}
	p.line("")
	p.heading("Latency against load")
	for _, n := range report.LoadNotes {
		p.hang("", n)
	}
	for _, c := range curves {
		for _, g := range c.Grids {
			p.grid(g)
		}
	}
}

// grid writes g in blocks of columns that fit, as a table is.
func (p *printer) grid(g report.Grid) {
	p.line("")
	p.heading(g.Title)
	var l layout
	for _, label := range g.Labels {
		label = number.Truncate(label, 40)
		l.labels = append(l.labels, label)
		l.label = max(l.label, number.Width(label))
	}
	for j, name := range g.Columns {
		c := column{heading: []string{name}, width: number.Width(name)}
		for _, row := range g.Cells {
			c.entries = append(c.entries, cell{plain: row[j], styled: row[j]})
			c.width = max(c.width, number.Width(row[j]))
		}
		l.columns = append(l.columns, c)
	}
	p.cut(&l)
	if len(g.Labels) > 0 {
		for i, b := range l.blocks {
			if i > 0 {
				p.line("")
			}
			p.block(l, b)
		}
	}
	for _, n := range g.Notes {
		p.bullet(n)
	}
}
