package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// tableNotes returns the notes below a table. They state the value of a baseline without a column, and how undisturbed
// values differ from those of whole windows. They also state the smallest detectable difference, why intervals are widened,
// and how many repetitions would decide more.
func (b *builder) tableNotes(t compare.Table, columns []int, scale number.Scale) []string {
	var notes []string
	at := slices.Index(t.Profiles, t.Baseline)
	if at >= 0 && !slices.Contains(columns, at) {
		for i, row := range t.Rows {
			if c := row[at].Cell; c != nil && c.N > 0 {
				line := fmt.Sprintf("Baseline of all rows: %s %s, %s %s %s", number.Clean(t.Baseline.String()), t.Paths[i], scale.Format(c.Median), scale.Unit, spreadText(c.Summary))
				notes = append(notes, strings.TrimSpace(line)+superscripts(b.notes.numbersOf(c))+".")
			}
		}
	}
	var baseline *compare.Cell
	if c, ok := b.analysis.Cell(compare.Key{Case: plan.Case{Profile: t.Baseline, Path: plan.ZeroPath, Workload: t.Workload}, Metric: t.Metric}); ok {
		baseline = &c
	}
	if note := wholeWindowsNote(tableCells(t), baseline); note != "" {
		notes = append(notes, note)
	}
	all := tableComparisons(t)
	notes = append(notes, detectableNotes(all, b.analysis.Confidence)...)
	if slices.ContainsFunc(all, func(x compare.Comparison) bool { return x.Verdict != compare.None && x.Widened > 0 }) {
		notes = append(notes, widenedText(t.Floor))
	}
	return append(notes, repetitionsNotes(all)...)
}

// detectableNotes returns a note on the smallest difference that the comparisons would have found. It returns nil if no
// comparison could have found a difference.
func detectableNotes(xs []compare.Comparison, confidence float64) []string {
	share, found, of := compare.Visible(xs, confidence)
	if found == 0 {
		return nil
	}
	return []string{fmt.Sprintf("Differences of %s or more would have been found in %d of %s (chance 90%%).",
		number.Percent(share), found, number.Counted(of, "comparison"))}
}

// widenedText returns a sentence that says by how much intervals are widened, and why by this amount. They are widened
// because each profile had only one instance.
func widenedText(f compare.Floor) string {
	if !f.Measured {
		return fmt.Sprintf("Intervals of what was raised once are widened by %s, an assumption, for there was no twin with two repetitions.", number.Percent(f.Share))
	}
	x := slices.MaxFunc(f.Twins, func(x, y compare.Twin) int {
		return cmp.Compare(math.Abs(math.Log(x.Ratio)), math.Abs(math.Log(y.Ratio)))
	})
	most := ""
	if len(f.Twins) > 1 {
		most = "at most "
	}
	return fmt.Sprintf("Intervals of what was raised once are widened by %s, as two instances of the baseline differ by %s%s (%s to %s, %s).",
		number.Percent(f.Share), most, number.Ratio(x.Ratio), number.Ratio(x.Low), number.Ratio(x.High), x.Path)
}

// repetitionsNotes returns a note on the number of repetitions that would decide the inconclusive comparisons. It returns nil
// if none is inconclusive.
func repetitionsNotes(xs []compare.Comparison) []string {
	text, run := decidingRepetitions(xs)
	if text == "" {
		return nil
	}
	if run > 0 {
		text += fmt.Sprintf(": --repetitions %d", run)
	}
	return []string{"Inconclusive: " + text + "."}
}

// footnotes numbers the warnings about shown cells, one footnote for each kind of warning.
type footnotes struct {
	doubts []doubt
	// all is the number of shown cells.
	all int
}

// doubt is one kind of warning. cells counts the cells that have it. first names the first of these cells and
// has the text of the warning.
type doubt struct {
	id    string
	cells int
	first string
}

// indexOf returns the index of a kind of warning, -1 if no cell has it.
func (f *footnotes) indexOf(id string) int {
	return slices.IndexFunc(f.doubts, func(d doubt) bool { return d.id == id })
}

// countCell counts a shown cell and its warnings. Footnotes are numbered in the order of the calls. Callers should use the
// reading order.
func (f *footnotes) countCell(c *compare.Cell) {
	f.all++
	for _, w := range c.Warnings {
		i := f.indexOf(w.ID)
		if i < 0 {
			i = len(f.doubts)
			f.doubts = append(f.doubts, doubt{id: w.ID, first: fmt.Sprintf("%s %s %s: %s", c.Profile, c.Path, c.Workload, w.Message)})
		}
		f.doubts[i].cells++
	}
}

// onEveryCell reports whether all shown cells have the warning with index i. It returns false if only one cell is shown. The
// number of such a footnote is not shown at the cells.
func (f *footnotes) onEveryCell(i int) bool { return f.doubts[i].cells == f.all && f.all > 1 }

// numbersOf returns the numbers of the footnotes that are shown at c, in ascending order.
func (f *footnotes) numbersOf(c *compare.Cell) []int {
	var ns []int
	for _, w := range c.Warnings {
		if i := f.indexOf(w.ID); i >= 0 && !f.onEveryCell(i) {
			ns = append(ns, i+1)
		}
	}
	slices.Sort(ns)
	return slices.Compact(ns)
}

func (f *footnotes) texts() []string {
	var out []string
	for i, d := range f.doubts {
		where := fmt.Sprintf("%d of %d cells, first", d.cells, f.all)
		switch {
		case f.onEveryCell(i):
			where = "every cell, first"
		case d.cells == 1:
			where = "one cell,"
		}
		out = append(out, number.Clean(fmt.Sprintf("%s, %s %s", d.id, where, d.first)))
	}
	return out
}

// superscripts formats footnote numbers as superscripts: "¹,²".
func superscripts(notes []int) string {
	const digits = "⁰¹²³⁴⁵⁶⁷⁸⁹"
	parts := each.Of(notes, func(n int) string {
		return strings.Map(func(r rune) rune { return []rune(digits)[r-'0'] }, fmt.Sprint(n))
	})
	return strings.Join(parts, ",")
}

// Marker returns the numbers of an entry's footnotes as superscripts, "¹,²"; "" if there are none.
func (e Entry) Marker() string { return superscripts(e.Notes) }

// Superscript formats the number of a footnote as a superscript.
func Superscript(n int) string { return superscripts([]int{n}) }

// legendLines describes how to read the tables of this report; nil if no cell has a value.
func (b *builder) legendLines() []string {
	n, tests, coverage := b.samplingTexts()
	if n == "" {
		return nil
	}
	base := number.Clean(b.analysis.Baseline.String())
	wanted := number.Percent(b.analysis.Confidence)
	weighted, medians := statisticsOf(tableCells(b.cut...))
	free := ", which assumes no distribution" + coverage
	switch {
	case !medians:
		free = ""
	case len(weighted) > 0:
		free = "; that of a median assumes no distribution" + coverage
	}
	out := []string{fmt.Sprintf("%s; ± is the longer arm of its %s interval%s.", statisticSentence(weighted, medians, " of "+n), wanted, free)}
	switch share, measured, enough := b.analysis.Undisturbed(); {
	case len(weighted) > 0:
		out = append(out, fmt.Sprintf("A weighted mean is of undisturbed values: what was measured counts by how near the machine was to its full speed (%s of the slices were). Its interval is Student's over instances, and Welch's test compares it.", number.Percent(share)))
		if b.analysis.Alone() {
			out = append(out, "No bare path (raw) ran beside the profiles: what the machine did is known from the profiles alone.")
		}
	case measured && !enough:
		out = append(out, fmt.Sprintf("The machine was never quiet: it ran at full speed in %s of the slices, and in half of them it was more than twice as slow. No value is undisturbed.", number.Percent(share)))
	case b.analysis.Cold():
		out = append(out, "This result was made when the yardstick was read with the caches that a path had left, so that its readings moved with the path. Values are of whole windows, and hold what others did meanwhile.")
	case !measured:
		out = append(out, "No trial has slices that tell how fast the machine was: values are of whole windows, and hold what others did meanwhile.")
	}
	if len(tests) > 0 {
		out = append(out,
			fmt.Sprintf("Ratios are to %s. Same: the whole interval is within %s of equal (--margin). Better or worse: it excludes equal, with p <= %.2g, corrected for all comparisons of its column (Benjamini-Hochberg). ?: neither.", base, number.Percent(b.analysis.Margin), 1-b.analysis.Confidence),
			"Test: "+strings.Join(tests, "; ")+".")
	}
	if aa := b.twinVerdictsText(); aa != "" {
		out = append(out, aa)
	}
	if paths := standInPaths(b.cut...); len(paths) > 0 {
		out = append(out, fmt.Sprintf("%s has no pods: its %s is the baseline of the paths that it lacks between nodes. Those ratios include the whole cost of the path. A path within a node has no ratio to it.", base, joinNames(plan.Texts(paths))))
	}
	if b.kinds[NotServed] {
		out = append(out, number.Absent+": the profile does not serve this path; see the reasons below.")
	}
	if b.kinds[NotMeasured] {
		out = append(out, "n/m: not measured, or too little for this number.")
	}
	return out
}

// twinVerdictsText counts the verdicts on the baseline against its own twin. Better and worse are false alarms. It returns
// "" without verdicts.
func (b *builder) twinVerdictsText() string {
	twins := slices.Concat(each.Of(b.analysis.Floors, func(f compare.Floor) []compare.Twin { return f.Twins })...)
	counts := verdictCountsText(each.Of(twins, func(t compare.Twin) compare.Verdict { return t.Verdict }))
	if counts == "" {
		return ""
	}
	return "A/A, the baseline against its twin, all metrics: " + counts + "."
}

// standInPaths returns the paths of the baseline with which other profiles are compared on paths that the baseline lacks.
func standInPaths(cut ...compare.Table) []plan.Path {
	paths := each.Of(tableComparisons(cut...), func(x compare.Comparison) plan.Path { return x.BaselinePath })
	return slices.DeleteFunc(each.Once(paths), func(p plan.Path) bool { return p == plan.Path{} })
}

// samplingTexts returns three texts for the legend: how many repetitions the shown cells have, the statistical tests that
// were used, and the coverage of intervals that do not reach the requested confidence. n is "" if no cell has a value.
func (b *builder) samplingTexts() (n string, tests []string, coverage string) {
	low, high, least := math.MaxInt, 0, 1.0
	used := map[stat.Test]bool{}
	for _, e := range tableEntries(b.cut...) {
		if e.Cell != nil && e.Cell.N > 0 {
			low, high, least = min(low, e.Cell.N), max(high, e.Cell.N), min(least, e.Cell.Confidence)
		}
		if e.Comparison != nil && e.Comparison.Verdict != compare.None {
			used[e.Comparison.Test] = true
		}
	}
	if high == 0 {
		return "", nil, ""
	}
	n = repetitionRangeText(low, high)
	if used[stat.MannWhitney] {
		tests = append(tests, "Mann-Whitney and the median of all pairwise ratios, below 7 common repetitions")
	}
	if used[stat.SignedRank] {
		tests = append(tests, "Wilcoxon signed-rank on the trials of each repetition and its Hodges-Lehmann ratio, from 7 common repetitions")
	}
	if used[stat.StudentT] {
		tests = append(tests, "Student's t on logarithms for undisturbed values and for 2 or 3 repetitions, which assumes that they scatter log-normally")
	}
	switch {
	case least == 0:
		coverage = " (the range, where repetitions are too few; a single value has none)"
	case least < b.analysis.Confidence:
		coverage = fmt.Sprintf(" (the range, where repetitions are too few; it covers at least %.4g%%)", 100*least)
	}
	return n, tests, coverage
}

// doubtNotes returns notes that name the values with failed trials, and the warnings that at least half of a value's trials
// have.
func doubtNotes(needs []Need) []string {
	var notes, kinds []string
	counts := map[string]int{}
	shown := 0
	for _, n := range needs {
		for _, s := range n.Standings {
			if s.Cell.Failed > 0 {
				notes = append(notes, fmt.Sprintf("%s, %s: %s.", number.Clean(s.Cell.Profile.String()), n.shortName(), failureText(s.Cell)))
			}
		}
		for _, s := range n.Choice {
			shown++
			for _, w := range s.Cell.Warnings {
				if id := number.Clean(w.ID); w.Trials > 0 && 2*w.Trials >= s.Cell.N {
					if counts[id]++; counts[id] == 1 {
						kinds = append(kinds, id)
					}
				}
			}
		}
	}
	const most = 3
	if len(notes) > most {
		notes = append(notes[:most], fmt.Sprintf("Trials of %d more values failed.", len(notes)-most))
	}
	if len(kinds) > 0 {
		texts := each.Of(kinds, func(id string) string { return fmt.Sprintf("%s in %d", id, counts[id]) })
		notes = append(notes, fmt.Sprintf("Doubts in most trials, of %s of dataplanes: %s (--all says why).", number.Counted(shown, "value"), number.Few(texts)))
	}
	return notes
}
