package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/metric"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// Held is a budget with its outcome in each cell.
type Held struct {
	compare.Budget
	Holdings []compare.Holding
}

// State returns the outcome of the budget over all its cells.
func (h Held) State() compare.State { return compare.Outcome(h.Holdings) }

// Lined returns the JSON of the comparison.
func (r PairResult) Lined() any { return pairOf(r) }

// mostNamed is how many changes the answer lists; it only counts the rest.
const mostNamed = 5

// PairResult is a comparison of two results, with the outcomes of budgets.
type PairResult struct {
	*compare.Pair
	Held []Held
	// State is the outcome that determines the exit code.
	State compare.State
}

// BuildPair builds the report that compares two results. It has the conditions that differ, the verdicts and the budgets,
// then every cell, the largest difference first.
func BuildPair(r PairResult) Document {
	p, held := r.Pair, r.Held
	b := &pairBuilder{pair: p}
	d := Document{Data: r, Title: fmt.Sprintf("B %s against A %s", number.Clean(p.B.Name), number.Clean(p.A.Name))}
	cut := b.groupMatches()
	for _, t := range cut {
		for _, m := range t {
			b.notes.countCell(m.A)
			b.notes.countCell(m.B)
		}
	}
	d.Sections = tableSections(metric.All(), cut, func(ms []compare.Match) string { return ms[0].Metric }, b.formatTable)
	d.Lines = b.answerLines(held)
	d.Legend = b.legendLines(len(held) > 0)
	d.Footnotes = b.notes.texts()
	d.Appendix = b.appendixSections(held)
	d.Gate = gateOf(r)
	return d
}

// pairBuilder has the data for the parts of the report on two results.
type pairBuilder struct {
	pair  *compare.Pair
	notes footnotes
}

// groupMatches groups the matches by metric and workload. In each group the largest difference is first.
func (b *pairBuilder) groupMatches() [][]compare.Match {
	out := groupByTable(b.pair.Matches, func(m compare.Match) compare.Key { return m.Key })
	for _, ms := range out {
		slices.SortStableFunc(ms, compareBySize)
	}
	return out
}

// compareBySize orders matches that are better or worse first, the largest difference first. Others keep their order.
func compareBySize(x, y compare.Match) int {
	switch {
	case isDecided(x) && isDecided(y):
		return cmp.Compare(y.Size(), x.Size())
	case isDecided(x):
		return -1
	case isDecided(y):
		return 1
	}
	return 0
}

func isDecided(m compare.Match) bool {
	return m.Verdict == compare.Better || m.Verdict == compare.Worse
}

// formatTable formats the matches of one metric and workload as a table with the columns A and B.
func (b *pairBuilder) formatTable(m metric.Metric, ms []compare.Match) Table {
	var medians []float64
	for _, x := range ms {
		medians = append(medians, x.A.Median, x.B.Median)
	}
	scale := number.Common(ms[0].A.Unit, medians...)
	t := newTable(m, ms[0].Workload, scale)
	t.Columns = []string{"A", "B"}
	for _, x := range ms {
		row := Row{Label: pairLabel(x, x.Path.String()), Short: pairLabel(x, shortPath(x.Path)), Path: x.Path}
		row.Entries = []Entry{b.notes.cellEntry(x.A, scale), b.notes.cellEntry(x.B, scale)}
		if e := &row.Entries[1]; e.Kind == Value && x.A.N > 0 {
			e.setVerdict(x.Verdict, x.Ratio)
		}
		t.Rows = append(t.Rows, row)
	}
	open := each.Of(ms, func(x compare.Match) compare.Comparison { return x.Comparison })
	if m.Better != metric.Neither {
		t.Notes = append(append(baselineNotes(ms), detectableNotes(open, b.pair.Confidence)...), widenedNotes(open)...)
	}
	t.Notes = append(t.Notes, repetitionsNotes(open)...)
	return t
}

// baselineNotes returns notes about the baseline that both results measured: its name, and how much its own values
// changed. A last note names the rows without a common baseline.
func baselineNotes(ms []compare.Match) []string {
	var plain []string
	var moved []float64
	common := ""
	for _, m := range ms {
		switch {
		case m.Yardstick:
			moved = append(moved, m.Ratio)
		case !m.Common.IsZero():
			common = number.Clean(m.Common.String())
		default:
			plain = append(plain, pairLabel(m, shortPath(m.Path)))
		}
	}
	var notes []string
	if common != "" {
		text := fmt.Sprintf("Ratios are of quotients to %s, measured in turn in both", common)
		if moved = each.Where(moved, number.Finite); len(moved) > 0 {
			text += fmt.Sprintf("; %s itself: %s", common, Change(slices.Min(moved)))
			if len(moved) > 1 {
				text += " to " + Change(slices.Max(moved))
			}
		}
		notes = append(notes, text+".")
	}
	if len(plain) > 0 {
		notes = append(notes, "Plain ratios, without a common baseline, hold what any two runs differ by: "+number.Few(plain)+".")
	}
	return notes
}

// widenedNotes returns a note on the largest amount by which an interval is widened; nil if none is widened.
func widenedNotes(xs []compare.Comparison) []string {
	most := slices.MaxFunc(xs, func(x, y compare.Comparison) int { return cmp.Compare(x.Widened, y.Widened) })
	if most.Widened == 0 {
		return nil
	}
	return []string{fmt.Sprintf("Profiles were raised once: intervals are widened by %s, what two instances differ by.", number.Percent(most.Widened))}
}

// pairLabel returns the label of a row: the profile and path. If A and B have different profiles, it has both: "a→b".
func pairLabel(m compare.Match, path string) string {
	name := number.Clean(m.Baseline.String())
	if m.Profile != m.Baseline {
		name += "→" + number.Clean(m.Profile.String())
	}
	return name + " " + path
}

// answerLines summarizes the comparison in a few lines: conditions, verdicts, the largest differences, budgets.
func (b *pairBuilder) answerLines(held []Held) []string {
	p := b.pair
	lines := []string{"All recorded conditions are the same."}
	if len(p.Differences) > 0 {
		names := each.Of(p.Differences, func(d compare.Difference) string { return number.Clean(d.Name) })
		lines[0] = "Different conditions: " + number.Few(names) + ". Each may be the cause of a difference."
	}
	for name, side := range map[string]compare.Side{"A": p.A, "B": p.B} {
		if side.Cold() && !(p.A.Cold() && p.B.Cold()) {
			lines = append(lines, name+" was made when the yardstick was read with the caches that a path had left: whole windows are compared.")
		}
	}
	if !slices.ContainsFunc(p.Matches, func(m compare.Match) bool { return !m.Identical() }) && len(p.Matches) > 0 {
		lines = append(lines, "Both files hold the same trials.")
	}
	judged := p.Judged()
	verdicts := each.Of(judged, func(m compare.Match) compare.Verdict { return m.Verdict })
	if len(judged) == 0 {
		lines = append(lines, "No common cell can be judged.")
	} else {
		lines = append(lines, fmt.Sprintf("B against A, %s: %s.", number.Counted(len(judged), "cell"), verdictCountsText(verdicts)))
	}
	lines = append(lines, b.largestDifferenceLines(judged)...)
	lost := each.Of(each.Where(p.Matches, compare.Match.Lost), func(m compare.Match) string {
		return number.Clean(m.Profile.String()) + " " + m.Path.String() + " " + m.Workload.String()
	})
	if lost = slices.Compact(slices.Sorted(slices.Values(lost))); len(lost) > 0 {
		lines = append(lines, "Measured in A, but all trials failed in B: "+number.Few(lost)+".")
	}
	lines = append(lines, each.Of(held, heldText)...)
	return lines
}

// largestDifferenceLines describes the largest significant differences, up to mostNamed.
func (b *pairBuilder) largestDifferenceLines(judged []compare.Match) []string {
	ms := each.Where(judged, isDecided)
	slices.SortStableFunc(ms, compareBySize)
	var lines []string
	for _, m := range ms[:min(len(ms), mostNamed)] {
		scale := number.Common(m.A.Unit, m.A.Median, m.B.Median)
		line := fmt.Sprintf("%s: %s %s %s, %s to %s %s", capitalized(string(m.Verdict)),
			m.Metric, pairLabel(m, m.Path.String()), m.Workload, scale.Format(m.A.Median), scale.Format(m.B.Median), scale.Unit)
		if !math.IsNaN(m.Ratio) {
			line += fmt.Sprintf(", %s (%s to %s)", Change(m.Ratio), Change(m.Low), Change(m.High))
		}
		lines = append(lines, line+".")
	}
	if more := len(ms) - mostNamed; more > 0 {
		lines = append(lines, fmt.Sprintf("%d more in the tables.", more))
	}
	return lines
}

// heldText returns the line about one budget.
func heldText(h Held) string {
	var at []string
	more, why := 0, ""
	for _, x := range h.Holdings {
		if x.State != h.State() {
			continue
		}
		at = append(at, holdingText(h.Budget, x))
		more, why = max(more, x.More), max(why, x.Why)
	}
	line := fmt.Sprintf("Budget %s: %s in ", number.Clean(h.Text), h.State())
	if h.State() == compare.Kept {
		return line + fmt.Sprintf("all of %s.", number.Counted(len(h.Holdings), "cell"))
	}
	line += fmt.Sprintf("%d of %s: %s.", len(at), number.Counted(len(h.Holdings), "cell"), number.Few(at))
	if h.State() == compare.Undecided && more > 0 {
		line += " " + moreRepetitionsText(more) + " in each result would decide."
	}
	return line
}

// holdingText returns the name of a cell of a budget. It adds the bound of the value or ratio, or the reason why the cell is
// undecided.
func holdingText(b compare.Budget, h compare.Holding) string {
	where := pairLabel(h.Match, h.Path.String()) + " " + h.Workload.String()
	if h.Why != "" {
		return where + " (" + h.Why + ")"
	}
	if math.IsNaN(h.Low) {
		return where
	}
	say := Change
	if !b.Relative {
		scale := number.Common(h.B.Unit, h.B.Median)
		say = func(v float64) string { return scale.Format(v) + " " + scale.Unit }
	}
	switch {
	case h.State == compare.Undecided:
		return fmt.Sprintf("%s (%s to %s)", where, say(h.Low), say(h.High))
	case b.Above:
		return fmt.Sprintf("%s (at least %s, one-sided)", where, say(h.Low))
	}
	return fmt.Sprintf("%s (at most %s, one-sided)", where, say(h.High))
}

func (b *pairBuilder) legendLines(budgets bool) []string {
	p := b.pair
	alpha := 1 - p.Confidence
	weighted, medians := statisticsOf(slices.Concat(each.Of(p.Matches, func(m compare.Match) []*compare.Cell { return []*compare.Cell{m.A, m.B} })...))
	free := ", which assumes no distribution"
	if len(weighted) > 0 {
		free = ""
	}
	lines := []string{
		fmt.Sprintf("%s; ± is the longer arm of its %s interval%s.", statisticSentence(weighted, medians, ""), number.Percent(p.Confidence), free),
		fmt.Sprintf("Ratios are B to A, each as a quotient to the baseline that both measured in turn with it, where there is one: what the moment does to all cancels out. Above the median a ratio is of the values. The interval holds quotients and values: better and worse are what both say. Same: quotients (above the median both) are within %s of equal (--margin). Better or worse: it excludes equal, with p <= %.2g, corrected for all that is shown (Holm): the chance of any wrong call in it is at most that. ?: neither.", number.Percent(p.Margin), alpha),
		"Test: Mann-Whitney and the median of all pairwise ratios; Student's t on logarithms, which assumes that they scatter log-normally, for undisturbed values and where the repetitions are too few for ranks. compare --history follows many runs.",
	}
	if budgets {
		lines = append(lines, fmt.Sprintf("A budget is broken if a one-sided test at p <= %.2g, corrected likewise, rejects it; kept if the one-sided bound is within it; otherwise undecided.", alpha))
	}
	return lines
}

// appendixSections returns the sections after the tables.
func (b *pairBuilder) appendixSections(held []Held) []Section {
	p := b.pair
	var vary, budgets []Item
	for _, d := range p.Differences {
		vary = append(vary, Item{Name: number.Clean(d.Name), Text: fmt.Sprintf("A %s; B %s", factText(d.A), factText(d.B))})
	}
	for _, h := range held {
		for _, x := range h.Holdings {
			if x.State != compare.Kept {
				budgets = append(budgets, Item{Name: string(x.State), Text: number.Clean(h.Text) + ": " + holdingText(h.Budget, x)})
			}
		}
	}
	return sectionsWithItems(
		Section{Heading: "Different conditions", Items: vary},
		Section{Heading: "Budgets not kept", Items: budgets},
		Section{Heading: "Only in A", Items: unmatchedItems(p.OnlyA)},
		Section{Heading: "Only in B", Items: unmatchedItems(p.OnlyB)},
		Section{Heading: "Results", Items: []Item{{Name: "A", Text: sideText(p.A)}, {Name: "B", Text: sideText(p.B)}}},
	)
}

func factText(v string) string {
	if v == "" {
		return "not recorded"
	}
	return number.Clean(v)
}

// unmatchedItems returns a list of the cells that only one result has. A key without a metric means all cells of a case.
func unmatchedItems(keys []compare.Key) []Item {
	name := func(k compare.Key) string {
		s := number.Clean(k.Profile.String()) + " " + k.Workload.String()
		if k.Metric != "" {
			s += ", " + k.Metric
		}
		return s
	}
	var items []Item
	for _, group := range Grouped(keys, name) {
		paths := each.Of(group, func(k compare.Key) string { return k.Path.String() })
		items = append(items, Item{Text: name(group[0]) + ": " + strings.Join(paths, ", ")})
	}
	return items
}

func sideText(s compare.Side) string { return datedName(number.Clean(s.Name), s.Header.Created) }

// Change formats a ratio as a change in percent: "+12%", "-5.0%". From +1000 % it formats a factor instead. It returns
// number.Absent for a ratio that is not finite.
func Change(ratio float64) string {
	p := 100 * (ratio - 1)
	switch {
	case math.IsNaN(p) || math.IsInf(p, 0):
		return number.Absent
	case math.Abs(p) >= 1000:
		return number.Ratio(ratio)
	case math.Abs(p) < 0.05:
		return "0%"
	case math.Abs(p) < 9.95:
		return fmt.Sprintf("%+.1f%%", p)
	}
	return fmt.Sprintf("%+.0f%%", p)
}
