package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/metric"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

var directions = map[metric.Better]string{metric.Lower: " Lower is better.", metric.Higher: " Higher is better."}

// sections returns a section for each metric that has tables. Each part of cut becomes one table; about returns its
// metric.
func sections[T any](metrics []metric.Metric, cut []T, about func(T) string, table func(metric.Metric, T) Table) []Section {
	var out []Section
	for _, m := range metrics {
		s := Section{Heading: capitalized(m.Title), Notes: []string{m.Definition + directions[m.Better]}}
		for _, part := range cut {
			if about(part) == m.Name {
				s.Tables = append(s.Tables, table(m, part))
			}
		}
		if len(s.Tables) > 0 {
			out = append(out, s)
		}
	}
	return out
}

// Grouped groups xs by key, in the order in which the keys first occur.
func Grouped[T any, K comparable](xs []T, key func(T) K) [][]T {
	at := map[K]int{}
	var out [][]T
	for _, x := range xs {
		i, ok := at[key(x)]
		if !ok {
			i = len(out)
			at[key(x)] = i
			out = append(out, nil)
		}
		out[i] = append(out[i], x)
	}
	return out
}

// byTable cuts xs by metric and workload.
func byTable[T any](xs []T, key func(T) compare.Key) [][]T {
	return Grouped(xs, func(x T) compare.Key {
		k := key(x)
		return compare.Key{Case: plan.Case{Workload: k.Workload}, Metric: k.Metric}
	})
}

// tableEntries returns the places of tables in reading order.
func tableEntries(cut ...compare.Table) []compare.Entry {
	return slices.Concat(each.Of(cut, func(t compare.Table) []compare.Entry { return slices.Concat(t.Rows...) })...)
}

// cellsIn returns the cells of tables.
func cellsIn(cut ...compare.Table) []*compare.Cell {
	return each.Of(tableEntries(cut...), func(e compare.Entry) *compare.Cell { return e.Cell })
}

// tableComparisons returns the comparisons in tables.
func tableComparisons(cut ...compare.Table) []compare.Comparison {
	var out []compare.Comparison
	for _, e := range tableEntries(cut...) {
		if e.Comparison != nil {
			out = append(out, *e.Comparison)
		}
	}
	return out
}

// tableMedians returns the medians of all cells of a table.
func tableMedians(t compare.Table) []float64 {
	var out []float64
	for _, e := range tableEntries(t) {
		if e.Cell != nil {
			out = append(out, e.Cell.Median)
		}
	}
	return out
}

// newTable returns a table without rows.
func newTable(m metric.Metric, w plan.Workload, scale number.Scale) Table {
	return Table{Title: m.Title + ", " + w.String(), Unit: scale.Unit, Metric: m.Name, Workload: w}
}

// notMeasured is the entry of a place without trials.
var notMeasured = Entry{Kind: NotMeasured, Text: "n/m", Short: "n/m"}

// entry writes out a cell.
func (f *footnotes) entry(c *compare.Cell, scale number.Scale) Entry {
	e := notMeasured
	switch {
	case c.N > 0:
		e = summaryEntry(c.Summary, scale)
		e.Value = cellValue(*c, scale)
	case c.Failed > 0:
		e = Entry{Kind: Failed, Text: fmt.Sprintf("failed (%d of %[1]d)", c.Failed), Short: fmt.Sprintf("failed %d/%[1]d", c.Failed)}
	}
	e.Cell, e.Notes = c, f.numbersOf(c)
	return e
}

// summaryEntry returns a median with its interval as an entry.
func summaryEntry(s stat.Summary, scale number.Scale) Entry {
	return Entry{Value: scale.Format(s.Median), Spread: spreadText(s)}
}

// spreadText returns the longer arm of the interval, "" for a single value.
func spreadText(s stat.Summary) string {
	if h := s.HalfWidth(); !math.IsNaN(h) {
		return "±" + number.Percent(h)
	}
	return ""
}

// judge adds a verdict and its ratio. It omits the ratio of an inconclusive verdict, which readers would mistake for a
// claim, and a ratio to a baseline of zero.
func (e *Entry) judge(v compare.Verdict, ratio float64) {
	e.Verdict = v
	if v != compare.Inconclusive && !math.IsNaN(ratio) {
		e.Ratio = number.Ratio(ratio)
	}
}

// withDate adds the time of a result to its name.
func withDate(name string, created time.Time) string {
	if created.IsZero() {
		return name
	}
	return name + ", " + created.UTC().Format("2006-01-02 15:04 UTC")
}

// capitalized begins s with a capital letter.
func capitalized(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// repetitions returns the number of repetitions of cells, as "5 repetitions" or "2 to 5 repetitions".
func repetitions(least, most int) string {
	if least < most {
		return fmt.Sprintf("%d to %s", least, number.Counted(most, "repetition"))
	}
	return number.Counted(most, "repetition")
}
