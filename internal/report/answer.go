package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/metric"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// Answer is the first part of a report. Every field is optional.
type Answer struct {
	// Lines are the result in a few sentences.
	Lines []string
	// Needs are the needs that the result answers. Lines begins with a line for each, in the same order. Needs is
	// nil if Lines is about another subject.
	Needs []Need
	// Abilities has, for each profile, its functions and what is proven about its numbers.
	Abilities []Ability
	// Summary is the report on one screen.
	Summary *Summary
	// Gate is the outcome for a pull request; nil unless two results were compared or budgets were judged.
	Gate *Gate
	// Banners are warnings about the whole report.
	Banners []string
}

// needPage returns the needs and abilities as members of the JSON report. The page has no sections.
func needPage(b *builder) page {
	return page{subjects: []Subject{{"needs", each.Of(b.answer.Needs, needOf)}, {"abilities", b.answer.Abilities}}}
}

// warningBanners returns up to two warnings about the whole report. The first is about failed trials, or a run that did not
// end as planned. The second is about trials that the distributions omit; omitted counts these trials.
func warningBanners(d Document, omitted int) []string {
	var out []string
	if d.Run.Failed > 0 || slices.Contains([]string{result.Away, result.Interrupted, result.Killed, unfinished}, d.Run.Reason) {
		out = append(out, "Trials: "+trialsText(d.Run)+".")
	}
	if omitted > 0 {
		out = append(out, fmt.Sprintf("Distributions omit %s: one page cannot show so many. The tables have all.", number.Counted(omitted, "trial")))
	}
	return out
}

// answerLines returns a line for each need: the best profiles, the differences and their certainty. The last line counts
// the comparisons by verdict. If no trial has a value to show, the only line says so.
func (b *builder) answerLines() []string {
	if len(b.analysis.Cells) == 0 {
		return []string{"No trial was measured."}
	}
	if _, ok := b.mainPath(); !ok {
		if names := each.Of(b.metrics, func(m metric.Metric) string { return m.Name }); len(names) > 0 && len(names) < 4 {
			return []string{"No finished trial has a number of " + joinNames(names) + "."}
		}
		return []string{"No finished trial has a number to show."}
	}
	lines := each.Of(b.answer.Needs, func(n Need) string {
		line := fmt.Sprintf("%s (%s %s, %s): %s %s.", n.Name, n.Workload, n.Path, n.Metric.Title, n.Conclusion.Text, n.Certainty)
		return strings.Join(append([]string{line}, n.functionLines()...), " ")
	})
	return append(lines, b.tallyLine()...)
}

// mainPath returns the path that the answer is about: plan.MainPath if it has values, or else the path with most values.
// It returns false if no path has a value.
func (b *builder) mainPath() (plan.Path, bool) {
	var best plan.Path
	most := 0
	for i, p := range b.analysis.Paths {
		n := 0
		for _, t := range b.cut {
			n += len(each.Where(t.Rows[i], func(e compare.Entry) bool { return e.Cell != nil && e.Cell.N > 0 }))
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

// tallyLine returns a line that counts the comparisons in the tables by verdict, or says that no cell can be compared.
// It returns nil if nothing was to be compared: without a baseline, with a single profile, and for a sweep.
func (b *builder) tallyLine() []string {
	all := slices.DeleteFunc(tableComparisons(b.cut...), func(x compare.Comparison) bool { return x.Verdict == compare.None })
	base := number.Clean(b.analysis.Baseline.String())
	if len(all) == 0 {
		if base == "" || len(b.analysis.Profiles) < 2 || !b.header.Plan.Sweep.IsZero() {
			return nil
		}
		return []string{fmt.Sprintf("No cell can be compared with %s.", base)}
	}
	verdicts := verdictCountsText(each.Of(all, func(x compare.Comparison) compare.Verdict { return x.Verdict }))
	return []string{fmt.Sprintf("Against %s, %s: %s.", base, number.Counted(len(all), "comparison"), verdicts)}
}

// verdictCountsText describes how many comparisons have each verdict: "2 worse, 1 same".
func verdictCountsText(all []compare.Verdict) string {
	order := []compare.Verdict{compare.Worse, compare.Better, compare.Same, compare.Inconclusive}
	return countsText(all, order, func(v compare.Verdict) string { return string(v) })
}

// countsText describes how often each value of order occurs in all: "2 worse, 1 same". It omits values that do not
// occur.
func countsText[T comparable](all, order []T, word func(T) string) string {
	var parts []string
	for _, v := range order {
		if n := len(each.Where(all, func(x T) bool { return x == v })); n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, word(v)))
		}
	}
	return strings.Join(parts, ", ")
}
