package main

import (
	"fmt"
	"strings"

	"github.com/cnibench/cnibench/internal/judge/compare"
)

// render writes what was found.
func (c campaign) render(rows []row) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d pairs of files for each row, each file with raw, its twin and %s on %s: %d windows of %s, every second on an instance of its own. Planted are rules that no packet matches, before all others of the forwarding nodes. BPF programs on the nodes' network devices are planted, too: they count, copy, or read a map that the caches do not keep; what a piece costs is measured with many, in a twin of the profile within one run. Both shown values are medians of the pairs. Verdicts: worse / better / the same / undecided.\n\n",
		c.pairs, subject, path, repetitions, window)
	b.WriteString("| workload | cost | planted | shown | by whole windows | p99 shown | by whole windows |")
	for _, m := range margins {
		fmt.Fprintf(&b, " margin %.0f %% |", 100*m)
	}
	b.WriteString("\n|---|---|---|---|---|---|---|---|---|\n")
	for _, r := range rows {
		what, least, half := fmt.Sprintf("%d %s %s", r.pieces, r.of.name, r.when), "", ""
		if r.half > 0 {
			half = fmt.Sprintf(" ± %.1f", 100*r.half)
		}
		if r.of.duty > 0 {
			what = fmt.Sprintf("%d %s", r.pieces, r.of.name)
		}
		switch r.when {
		case apart:
			what = string(r.when)
		case sliced:
			least = "at least " // their coming and going costs, too
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s%+.1f%s %% | %+.1f %% | %+.1f %% |", r.workload, what, least, 100*r.share, half, 100*(median(r.seen)-1), 100*(median(r.whole)-1))
		if len(r.tail) > 0 {
			fmt.Fprintf(&b, " %+.0f %% | %+.0f %% |", 100*(median(r.tail)-1), 100*(median(r.wholeTail)-1))
		} else {
			b.WriteString(" – | – |")
		}
		for _, m := range margins {
			v := r.verdicts[m]
			fmt.Fprintf(&b, " %d / %d / %d / %d |", v[compare.Worse], v[compare.Better], v[compare.Same], v[compare.Inconclusive])
		}
		b.WriteString("\n")
	}
	if c.equal > 0 {
		fmt.Fprintf(&b, "\nOf %d pairs of files without a cost, %d have anything called better or worse. Pairs beside another program are among them.\n", c.equal, c.alarms)
	}
	return b.String()
}
