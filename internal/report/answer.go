package report

import (
	"fmt"
	"math"
	"strings"

	"github.com/cnibench/cnibench/internal/compare"
	"github.com/cnibench/cnibench/internal/metric"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/unit"
)

// answer is what the run says in a few lines: for each workload the lowest and the highest on one path, in the first
// metric that has a direction, and how many comparisons came out how. Nothing in it goes beyond a verdict.
func (b *builder) answer(cut []compare.Table, metrics []metric.Metric) []string {
	if len(b.analysis.Cells) == 0 {
		return []string{"No trial was measured."}
	}
	path, ok := b.mainPath(cut)
	if !ok {
		return []string{"No trial finished with a number to show."}
	}
	var lines []string
	for _, w := range b.analysis.Workloads {
		for _, m := range metrics {
			ranks := b.analysis.Rank(path, w, m.Name)
			if len(ranks) > 0 {
				lines = append(lines, b.ranking(ranks, m))
				break
			}
		}
	}
	return append(lines, b.tally(cut)...)
}

// mainPath is the path that the answer speaks of: between pods on two nodes, or else the one with most numbers.
func (b *builder) mainPath(cut []compare.Table) (plan.Path, bool) {
	var best plan.Path
	most := 0
	preferred := plan.Path{From: plan.Pod, To: plan.Pod, Locality: plan.CrossNode}
	for i, p := range b.analysis.Paths {
		n := 0
		for _, t := range cut {
			for _, e := range t.Rows[i] {
				if e.Cell != nil && e.Cell.N > 0 {
					n++
				}
			}
		}
		if n > 0 && p == preferred {
			return p, true
		}
		if n > most {
			best, most = p, n
		}
	}
	return best, most > 0
}

// ranking is the line about one workload.
func (b *builder) ranking(ranks []compare.Standing, m metric.Metric) string {
	first, last := ranks[0], ranks[len(ranks)-1]
	scale := unit.Common(first.Cell.Unit, first.Cell.Median, last.Cell.Median)
	line := fmt.Sprintf("%s %s, %s: ", first.Cell.Workload, first.Cell.Path, m.Title)
	best, worst := "lowest", "highest"
	if m.Better == metric.Higher {
		best, worst = worst, best
	}
	line += number(first, scale)
	if len(ranks) == 1 {
		return line + "."
	}
	near := untold(ranks[1:], func(s compare.Standing) compare.Verdict { return s.ToBest.Verdict }, compare.Worse)
	if len(near) == len(ranks)-1 {
		return fmt.Sprintf("%s; nothing is told apart from it (%s).", line, strings.Join(near, ", "))
	}
	line += " " + best + notApart(near)
	if x := last.ToBest; x.Verdict == compare.Worse {
		near := untold(ranks[:len(ranks)-1], func(s compare.Standing) compare.Verdict { return s.ToLast.Verdict }, compare.Better)
		line += fmt.Sprintf("; %s %s%s", number(last, scale), worst, notApart(near))
		if !math.IsNaN(x.Ratio) {
			line += fmt.Sprintf("; ratio %s (%s to %s)", unit.Ratio(x.Ratio), unit.Ratio(x.Low), unit.Ratio(x.High))
		}
	}
	return line + "."
}

// untold names the profiles of ranks that did not get the verdict that would tell them apart.
func untold(ranks []compare.Standing, verdict func(compare.Standing) compare.Verdict, apart compare.Verdict) []string {
	var names []string
	for _, s := range ranks {
		if verdict(s) != apart {
			names = append(names, unit.Clean(s.Cell.Profile))
		}
	}
	return names
}

func notApart(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return " (not told apart: " + strings.Join(names, ", ") + ")"
}

// number names a profile and its median.
func number(s compare.Standing, scale unit.Scale) string {
	return fmt.Sprintf("%s %s %s", unit.Clean(s.Cell.Profile), scale.Format(s.Cell.Median), scale.Unit)
}

// tally counts the verdicts of the shown tables.
func (b *builder) tally(cut []compare.Table) []string {
	var all []compare.Comparison
	for _, t := range cut {
		for _, row := range t.Rows {
			for _, e := range row {
				if e.Comparison != nil && e.Comparison.Verdict != compare.None {
					all = append(all, *e.Comparison)
				}
			}
		}
	}
	base := unit.Clean(b.analysis.Baseline)
	if len(all) == 0 {
		if base == "" || len(b.analysis.Profiles) < 2 {
			return nil
		}
		return []string{fmt.Sprintf("Nothing could be compared with %s.", base)}
	}
	return []string{fmt.Sprintf("Against %s, %d comparisons: %s.", base, len(all), verdictCounts(all))}
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
