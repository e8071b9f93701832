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

// tableSections returns a section for each metric that has tables. Each element of cut becomes one table: about returns the
// name of its metric, and table formats it.
func tableSections[T any](metrics []metric.Metric, cut []T, about func(T) string, table func(metric.Metric, T) Table) []Section {
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

// groupByTable groups xs by metric and workload.
func groupByTable[T any](xs []T, key func(T) compare.Key) [][]T {
	return Grouped(xs, func(x T) compare.Key {
		k := key(x)
		return compare.Key{Case: plan.Case{Workload: k.Workload}, Metric: k.Metric}
	})
}

// tableEntries returns the entries of tables in reading order.
func tableEntries(cut ...compare.Table) []compare.Entry {
	return slices.Concat(each.Of(cut, func(t compare.Table) []compare.Entry { return slices.Concat(t.Rows...) })...)
}

// tableCells returns the cell of each entry of tables in reading order; nil for an entry without a cell.
func tableCells(cut ...compare.Table) []*compare.Cell {
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

// notMeasured is the entry for a cell without trials.
var notMeasured = Entry{Kind: NotMeasured, Text: "n/m", Short: "n/m"}

// cellEntry formats a cell with the numbers of its footnotes.
func (f *footnotes) cellEntry(c *compare.Cell, scale number.Scale) Entry {
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

// summaryEntry returns an entry with a median and its spread.
func summaryEntry(s stat.Summary, scale number.Scale) Entry {
	return Entry{Value: scale.Format(s.Median), Spread: spreadText(s)}
}

// spreadText formats the longer side of the interval relative to the median: "±3%". It returns "" if there is only one value
// or if the median is 0.
func spreadText(s stat.Summary) string {
	if h := s.HalfWidth(); !math.IsNaN(h) {
		return "±" + number.Percent(h)
	}
	return ""
}

// setVerdict sets the verdict and the ratio of an entry. It omits the ratio if the baseline is 0. It also omits the ratio if
// the verdict is inconclusive, because readers would mistake it for a claim.
func (e *Entry) setVerdict(v compare.Verdict, ratio float64) {
	e.Verdict = v
	if v != compare.Inconclusive && !math.IsNaN(ratio) {
		e.Ratio = number.Ratio(ratio)
	}
}

// datedName returns the name of a result with its date and time, if known.
func datedName(name string, created time.Time) string {
	if created.IsZero() {
		return name
	}
	return name + ", " + created.UTC().Format("2006-01-02 15:04 UTC")
}

// capitalized returns s with its first letter in upper case. s is not empty and begins with an ASCII character.
func capitalized(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// repetitionRangeText formats a number of repetitions: "5 repetitions", "2 to 5 repetitions".
func repetitionRangeText(least, most int) string {
	if least < most {
		return fmt.Sprintf("%d to %s", least, number.Counted(most, "repetition"))
	}
	return number.Counted(most, "repetition")
}
