package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// answer is what the run says in a few lines: which profile for which need, with the size of the difference and how sure
// that is, and how many comparisons came out how. Nothing in it goes beyond a verdict.
func (b *builder) answer(cut []compare.Table, needs []Need) []string {
	if len(b.analysis.Cells) == 0 {
		return []string{"No trial was measured."}
	}
	if _, ok := b.mainPath(cut); !ok {
		return []string{"No finished trial has a number to show."}
	}
	lines := each.Of(needs, func(n Need) string {
		line := fmt.Sprintf("%s (%s %s, %s): %s %s.", n.Name, n.Workload, n.Path, n.Metric.Title, n.Conclusion.Text, n.Certainty)
		return strings.Join(append([]string{line}, n.Functions()...), " ")
	})
	return append(lines, b.tally(cut)...)
}

// mainPath is the path that the answer speaks of: between pods on two nodes, or else the one with most numbers.
func (b *builder) mainPath(cut []compare.Table) (plan.Path, bool) {
	var best plan.Path
	most := 0
	for i, p := range b.analysis.Paths {
		n := 0
		for _, t := range cut {
			for _, e := range t.Rows[i] {
				if e.Cell != nil && e.Cell.N > 0 {
					n++
				}
			}
		}
		if n > 0 && p == plan.MainPath {
			return p, true
		}
		if n > most {
			best, most = p, n
		}
	}
	return best, most > 0
}

// tally counts the verdicts of the tables.
func (b *builder) tally(cut []compare.Table) []string {
	all := slices.DeleteFunc(comparisons(cut...), func(x compare.Comparison) bool { return x.Verdict == compare.None })
	base := number.Clean(b.analysis.Baseline)
	if len(all) == 0 {
		if base == "" || len(b.analysis.Profiles) < 2 || !b.header.Plan.Sweep.IsZero() {
			return nil
		}
		return []string{fmt.Sprintf("No cell can be compared with %s.", base)}
	}
	return []string{fmt.Sprintf("Against %s, %s: %s.", base, number.Counted(len(all), "comparison"), verdictCounts(all))}
}

// verdictCounts says how many comparisons came out how.
func verdictCounts(xs []compare.Comparison) string {
	n := compare.Counts(xs)
	var parts []string
	for _, v := range []compare.Verdict{compare.Worse, compare.Better, compare.Same, compare.Inconclusive} {
		if n[v] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n[v], v))
		}
	}
	return strings.Join(parts, ", ")
}
