package main

import (
	"fmt"
	"strings"

	"github.com/cnibench/cnibench/internal/judge/compare"
)

// render writes what was found.
func render(rows []row, pairs int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d pairs of files for each row, each file with raw, its twin and %s on %s: %d windows of %s, every second on an instance of its own. Planted are rules that no packet matches, before all others of the forwarding nodes; what one costs is measured with %d.\n\n",
		pairs, subject, path, repetitions, window, probing)
	b.WriteString("| workload | rules | planted | shown, median of the pairs | called worse | better | the same | undecided |\n|---|---|---|---|---|---|---|---|\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "| `%s` | %d | %+.1f %% | %+.1f %% | %d | %d | %d | %d |\n", r.workload, r.rules, 100*r.share, 100*(median(r.seen)-1),
			r.verdicts[compare.Worse], r.verdicts[compare.Better], r.verdicts[compare.Same], r.verdicts[compare.Inconclusive])
	}
	return b.String()
}
