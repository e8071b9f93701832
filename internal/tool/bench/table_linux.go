package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/judge/stat"
)

// confidence of every interval.
const confidence = 0.95

// pairing is one comparison: our readings and a peer's, repetition by repetition.
type pairing struct {
	task, peer string
	unit, work string
	ours       []reading
	theirs     []reading
	// bar is the least acceptable ratio of rates; 0 means no limit.
	bar float64
}

// ratio is ours/theirs of one property. decided is false if there are too few repetitions for the confidence of the
// interval.
type ratio struct {
	median, low, high float64
	decided           bool
}

func (p *pairing) compare(property func(reading) float64) ratio {
	e := stat.Paired(column(p.ours, property), column(p.theirs, property), confidence)
	return ratio{median: e.Ratio, low: e.Low, high: e.High, decided: e.Confidence >= confidence}
}

func column(list []reading, property func(reading) float64) []float64 {
	values := make([]float64, len(list))
	for i, r := range list {
		values[i] = property(r)
	}
	return values
}

func rateOf(r reading) float64 { return r.rate }
func costOf(r reading) float64 { return r.cost }

// verdict returns in words whether a ratio of rates is above the limit bar.
func (r ratio) verdict(bar float64) string {
	switch {
	case bar == 0:
		return "none"
	case !r.decided:
	case r.low >= bar:
		return fmt.Sprintf(">= %.2f: held", bar)
	case r.high < bar:
		return fmt.Sprintf(">= %.2f: missed", bar)
	}
	return fmt.Sprintf(">= %.2f: not decided", bar)
}

func (r ratio) String() string { return fmt.Sprintf("%.3f [%.3f, %.3f]", r.median, r.low, r.high) }

// tracing is the counts of strace at one end of one tool.
type tracing struct {
	task, tool, side string
	transactions     float64
	calls            map[string]uint64
}

// perTransaction returns the names of the calls of each transaction, and their number per transaction.
func (t tracing) perTransaction() (names string, total float64) {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(t.calls)) {
		n := float64(t.calls[name]) / max(t.transactions, 1)
		// Calls that come less than once in two transactions belong to the process, not to the transaction; the Go
		// runtime's monitor sleeps by the clock.
		if n < 0.5 || name == "nanosleep" || name == "clock_nanosleep" {
			continue
		}
		total += n
		parts = append(parts, fmt.Sprintf("%s %.2f", name, n))
	}
	return strings.Join(parts, ", "), total
}

// page is the document. facts are name and value.
type page struct {
	facts       [][2]string
	repetitions int
	pairings    []*pairing
	tracings    []tracing
	missing     []string
}

// write renders the page as markdown.
func (p *page) write(w io.Writer) error {
	var b strings.Builder
	b.WriteString("# The load engine beside its peers\n\n")
	b.WriteString("Written by `make bench`; see the package comment of internal/tool/bench for what is compared and how.\n\n")
	b.WriteString("| Condition | |\n|---|---|\n")
	for _, f := range p.facts {
		fmt.Fprintf(&b, "| %s | %s |\n", f[0], f[1])
	}
	fmt.Fprintf(&b, "\n## Rates\n\nMedian of %d interleaved repetitions; ratio is ours/peer, with its %.0f%% interval; above 1 we are faster.\n\n",
		p.repetitions, confidence*100)
	b.WriteString("| Task | Peer | Unit | Ours | Peer's | Ratio | Bar |\n|---|---|---|---|---|---|---|\n")
	for _, c := range p.pairings {
		r := c.compare(rateOf)
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s |\n", c.task, c.peer, c.unit,
			short(median(c.ours, rateOf)), short(median(c.theirs, rateOf)), r, r.verdict(c.bar))
	}
	b.WriteString("\n## Cost\n\nCPU time of both ends per unit of work; below 1 we are cheaper.\n\n")
	b.WriteString("| Task | Peer | Unit | Ours | Peer's | Ratio |\n|---|---|---|---|---|---|\n")
	for _, c := range p.pairings {
		fmt.Fprintf(&b, "| %s | %s | ns/%s | %s | %s | %s |\n", c.task, c.peer, c.work,
			short(median(c.ours, costOf)), short(median(c.theirs, costOf)), c.compare(costOf))
	}
	if len(p.tracings) > 0 {
		b.WriteString("\n## System calls per transaction\n\n| Task | Tool | Side | Calls | Together |\n|---|---|---|---|---|\n")
		for _, t := range p.tracings {
			names, total := t.perTransaction()
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %.2f |\n", t.task, t.tool, t.side, names, total)
		}
	}
	if len(p.missing) > 0 {
		b.WriteString("\n## Not compared\n\n")
		for _, m := range p.missing {
			fmt.Fprintf(&b, "- %s\n", m)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func median(list []reading, property func(reading) float64) float64 {
	values := column(list, property)
	slices.Sort(values)
	n := len(values)
	if n == 0 {
		return 0
	}
	return (values[(n-1)/2] + values[n/2]) / 2
}

// short returns a number with four significant figures and an SI letter.
func short(v float64) string {
	for _, u := range []struct {
		size   float64
		letter string
	}{{1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if v >= u.size {
			return fmt.Sprintf("%.4g %s", v/u.size, u.letter)
		}
	}
	return fmt.Sprintf("%.4g", v)
}
