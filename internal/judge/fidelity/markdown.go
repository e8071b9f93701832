package fidelity

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/vocab/metric"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// Write puts the page down as Markdown: what was compared and where, what came of it, and every row.
func (p *Page) Write(w io.Writer) error {
	var b strings.Builder
	p.intro(&b)
	p.summary(&b)
	p.table(&b, "CPU time per unit of work", p.Demand)
	p.table(&b, "Rates", p.Rates)
	p.conditions(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

func (p *Page) intro(b *strings.Builder) {
	h := p.Header
	fmt.Fprintf(b, "Measured on %s by `make fidelity`: %d repetitions of %s (`scripts/fidelity.sh`), seed %d, lab and\nclusters interleaved in one run.\n\n",
		h.Created.UTC().Format(time.DateOnly), p.Repetitions, number.Duration(h.Plan.Duration), h.Plan.Seed)
	b.WriteString("Ratios are to the bare node (`host`) of the same place, on the same path where it has one. The last ratio is the\n")
	b.WriteString("cluster's over the lab's, with its 95 % interval: 1 is a lab that is true. `differs`: beyond the noise floor of both\n")
	b.WriteString("places, and significant after correction for all rows of the table; `within 5 %`: not so, and all of the interval is.\n")
	if !math.IsNaN(p.Kernel) {
		fmt.Fprintf(b, "ksoftirqd cannot be seen in a pod, so its time is left out on both sides; in the lab it was %s at most.\n", number.Percent(p.Kernel))
	}
	b.WriteString("\n")
}

func (p *Page) summary(b *strings.Builder) {
	b.WriteString("| | rows | within 5 % | differ | undecided | median of the distance | largest |\n|---|---|---|---|---|---|---|\n")
	line := func(name string, rows []Row, bare bool) {
		var off []float64
		count := map[Verdict]int{}
		for _, r := range rows {
			if r.Bare() == bare {
				count[r.Verdict]++
				off = append(off, math.Expm1(math.Abs(math.Log(r.Quotient.Ratio))))
			}
		}
		if len(off) == 0 {
			return
		}
		s := stat.Summarize(off, confidence)
		fmt.Fprintf(b, "| %s | %d | %d | %d | %d | %s | %s |\n", name, len(off), count[Near], count[Differs], count[Undecided],
			number.Percent(s.Median), number.Percent(s.Max))
	}
	line("CPU time, dataplanes to the bare node", p.Demand, false)
	line("CPU time, the bare node itself", p.Demand, true)
	line("rates, dataplanes to the bare node", p.Rates, false)
	line("rates, the bare node itself", p.Rates, true)
	for _, f := range p.Failed {
		fmt.Fprintf(b, "\n%d of %d trials of %s failed: %s.\n", f.Failed, f.Tried, number.Markdown(f.Case), number.Markdown(f.Kind))
	}
	b.WriteString("\n")
}

func (p *Page) table(b *strings.Builder, title string, rows []Row) {
	if len(rows) == 0 {
		return
	}
	fmt.Fprintf(b, "### %s\n\n", title)
	b.WriteString("| Profile | Path | Workload | Lab | to host | Cluster | to host | cluster's to the lab's | floor | |\n|---|---|---|---|---|---|---|---|---|---|\n")
	for _, r := range rows {
		m := number.Common(metric.UnitFor(r.Metric, r.Workload.Work()), r.Lab.Median, r.Cluster.Median)
		name := r.Profile
		if r.Bare() {
			name += " (" + r.Context + ")"
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s %s | %s | %s | %s | %s | %s | %s |\n", number.Markdown(name), r.Path, number.Markdown(r.Workload.String()),
			m.Format(r.Lab.Median), m.Unit, interval(r.Lab.Ratio), m.Format(r.Cluster.Median), interval(r.Cluster.Ratio),
			interval(r.Quotient), number.Percent(r.Floor), r.Verdict)
	}
	b.WriteString("\n")
}

// interval writes a ratio with three decimals: that of a lab is near one, where a glance is not enough.
func interval(e stat.Effect) string {
	if math.IsNaN(e.Ratio) {
		return number.Absent
	}
	return fmt.Sprintf("%.3f [%.3f, %.3f]", e.Ratio, e.Low, e.High)
}

// longest is how much of a fact is shown, in columns: some hold whole error messages.
const longest = 120

// conditions are the facts of both places.
func (p *Page) conditions(b *strings.Builder) {
	b.WriteString("### Conditions\n\n| Fact | |\n|---|---|\n")
	for _, name := range p.Header.Facts.Names() {
		fmt.Fprintf(b, "| %s | %s |\n", number.Markdown(name), number.Markdown(number.Truncate(p.Header.Facts[name], longest)))
	}
}
