package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/metric"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// BuildHistory builds the report of many results in chronological order. It has the changes of level, then every cell in
// all results. h has at least one run.
func BuildHistory(h *compare.History) Document {
	d := Document{Title: fmt.Sprintf("History of %d results, %s to %s", len(h.Runs), dateOf(h.Runs[0]), dateOf(h.Runs[len(h.Runs)-1]))}
	d.Lines = historyAnswer(h)
	cut := groupByTable(h.Tracks, func(t compare.Track) compare.Key { return t.Key })
	d.Sections = tableSections(metric.All(), cut, func(ts []compare.Track) string { return ts[0].Metric },
		func(m metric.Metric, ts []compare.Track) Table { return trackTable(m, ts, len(h.Runs)) })
	d.Legend = historyLegend(h)
	d.Appendix = []Section{historyRunsSection(h)}
	d.Data = historyData{historySchema, each.Of(h.Runs, historyRunOf), each.Of(h.Tracks, trackOf)}
	return d
}

func dateOf(r compare.HistoryRun) string {
	if r.Created.IsZero() {
		return "undated"
	}
	return r.Created.UTC().Format("2006-01-02")
}

// mostEvents is how many changes of each result the answer lists; it only counts the rest.
const mostEvents = 10

// historyAnswer returns the number of changes, then a line for each result at which levels change, each followed by lines
// for its changes. If nothing changes, or if there are too few results, the only line says so.
func historyAnswer(h *compare.History) []string {
	events := h.Events()
	changed := len(each.Where(h.Tracks, func(t compare.Track) bool { return len(t.Changes) > 0 }))
	switch {
	case len(h.Runs) < stat.ChangesFrom:
		return []string{fmt.Sprintf("A change of level cannot be told from what any two runs differ by: %s, %d needed.",
			number.Counted(len(h.Runs), "result"), stat.ChangesFrom)}
	case len(events) == 0:
		return []string{fmt.Sprintf("No cell changes its level (%s).", number.Counted(len(h.Tracks), "cell"))}
	}
	verb := "change their level"
	if changed == 1 {
		verb = "changes its level"
	}
	lines := []string{fmt.Sprintf("%d of %d cells %s, %s in all.", changed, len(h.Tracks), verb, number.Counted(len(events), "time"))}
	for _, here := range Grouped(events, func(e compare.Event) int { return e.Run }) {
		lines = append(lines, sinceText(h.Runs[here[0].Run], len(here)))
		lines = append(lines, each.Of(here[:min(len(here), mostEvents)], eventText)...)
		if more := len(here) - mostEvents; more > 0 {
			lines = append(lines, fmt.Sprintf("%d more in the tables.", more))
		}
	}
	return lines
}

// sinceText returns the line above the changes at one result: the name of the result, the number of cells that change,
// and the changed conditions.
func sinceText(run compare.HistoryRun, cells int) string {
	line := fmt.Sprintf("Since %s (%s), %s; ", number.Clean(run.Name), dateOf(run), number.Counted(cells, "cell"))
	if len(run.Changed) == 0 {
		return line + "no recorded condition changed:"
	}
	what := each.Of(run.Changed, func(d compare.Difference) string {
		return fmt.Sprintf("%s (%s to %s)", number.Clean(d.Name), factText(d.A), factText(d.B))
	})
	return line + "changed conditions: " + number.Few(what) + ":"
}

// eventText returns the line about one change.
func eventText(e compare.Event) string {
	line := fmt.Sprintf("%s %s %s %s: ", e.Metric, number.Clean(e.Profile.String()), e.Path, e.Workload)
	if math.IsNaN(e.Ratio) {
		return line + string(e.Verdict) + "."
	}
	return line + fmt.Sprintf("%s (%s to %s), %s.", Change(e.Ratio), Change(e.Low), Change(e.High), e.Verdict)
}

// trackTable returns a table of one metric and workload: a row for each cell, a column for each result.
func trackTable(m metric.Metric, ts []compare.Track, runs int) Table {
	var medians []float64
	for _, t := range ts {
		for _, p := range t.Points {
			medians = append(medians, p.Median)
		}
	}
	scale := number.Common(ts[0].Unit, medians...)
	out := newTable(m, ts[0].Workload, scale)
	for i := range runs {
		out.Columns = append(out.Columns, fmt.Sprint(i+1))
	}
	for _, t := range ts {
		name := number.Clean(t.Profile.String()) + " "
		row := Row{Label: name + t.Path.String(), Short: name + shortPath(t.Path), Path: t.Path}
		for i, p := range t.Points {
			if p.N == 0 {
				row.Entries = append(row.Entries, notMeasured)
				continue
			}
			e := summaryEntry(p, scale)
			if at := slices.IndexFunc(t.Changes, func(c compare.Shift) bool { return c.Run == i }); at >= 0 {
				e.setVerdict(t.Changes[at].Verdict, t.Changes[at].Ratio)
			}
			row.Entries = append(row.Entries, e)
		}
		out.Rows = append(out.Rows, row)
	}
	return out
}

func historyLegend(h *compare.History) []string {
	lines := []string{
		fmt.Sprintf("Each value is a median of trials, or a weighted mean of undisturbed values where its result has them; ± is the longer arm of its %s interval. Columns are the results below, the oldest first.", number.Percent(h.Confidence)),
		fmt.Sprintf("A ratio marks the start of a level and is to the level before it. A change needs p <= %.2g by shuffling, corrected for all paths of its profile, workload and metric (Benjamini-Hochberg). Its ratio must exceed the margin of %s and what the results wander by around their levels, the more so as each resembles the one before it.",
			1-h.Confidence, number.Percent(h.Margin)),
	}
	if at := slices.IndexFunc(h.Tracks, func(t compare.Track) bool { return !t.Common.IsZero() }); at >= 0 {
		lines = append(lines, fmt.Sprintf("Changes are those of the quotients to %s, which every result measured in turn with the others: what a moment does to all cancels out.",
			number.Clean(h.Tracks[at].Common.String())))
	}
	return lines
}

// historyRunsSection returns a section that lists the results, each with the conditions that changed before it.
func historyRunsSection(h *compare.History) Section {
	results := Section{Heading: "Results"}
	for i, r := range h.Runs {
		text := datedName(number.Clean(r.Name), r.Created)
		what := each.Of(r.Changed, func(d compare.Difference) string {
			return fmt.Sprintf("%s %s to %s", number.Clean(d.Name), factText(d.A), factText(d.B))
		})
		if len(what) > 0 {
			text += "; changed: " + strings.Join(what, ", ")
		}
		results.Items = append(results.Items, Item{Name: fmt.Sprint(i + 1), Text: text})
	}
	return results
}
