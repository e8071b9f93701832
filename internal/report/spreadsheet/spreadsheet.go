// Package spreadsheet writes CSV: a report as a table for spreadsheets and data frames, and the trials of a result file in
// a format that cnibench import reads.
//
// Render writes one row per cell of the analysis, with its comparison, under the names of Columns. Samples writes one
// row per number of each trial in the format "cnibench-csv v1" (docs/reference/import.md). Both are RFC 4180 with line
// feeds and UTF-8. Numbers are in base units and have all their digits; what could not be computed is an empty field.
// Text of an untrusted file can neither break a row nor be read as a formula.
package spreadsheet

import (
	"cmp"
	"encoding/csv"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// Columns are the column names of Render. Later versions add columns only at the end.
var Columns = []string{
	"profile", "path", "workload", "metric", "unit", "n", "median", "low", "high", "confidence", "failed", "warnings",
	"baseline", "baseline_path", "ratio", "ratio_low", "ratio_high", "p", "p_adjusted", "verdict", "typical", "nic",
}

// Numbers are the names of the columns whose fields are numbers or empty.
var Numbers = []string{
	"n", "median", "low", "high", "confidence", "failed",
	"ratio", "ratio_low", "ratio_high", "p", "p_adjusted", "typical",
}

// Render writes the column names and a row for each cell of d. It fails if it cannot write to w.
func Render(w io.Writer, d report.Document) error {
	rows := Rows(cmp.Or(d.Analysis, &compare.Analysis{}))
	return csv.NewWriter(w).WriteAll(append([][]string{Columns}, rows...))
}

// Rows returns a row for each cell of a, with the fields of Columns.
func Rows(a *compare.Analysis) [][]string {
	at := make(map[compare.Key]*compare.Comparison, len(a.Comparisons))
	for i := range a.Comparisons {
		at[a.Comparisons[i].Key] = &a.Comparisons[i]
	}
	var rows [][]string
	for i := range a.Cells {
		c := &a.Cells[i]
		rows = append(rows, slices.Concat(cellFields(c), comparisonFields(at[c.Key]), []string{formatNumber(c.Recorded().Median), fieldText(string(a.NIC(c.Case)))}))
	}
	return rows
}

// cellFields returns the fields of a row about the cell.
func cellFields(c *compare.Cell) []string {
	low, high, confidence := formatNumber(c.Low), formatNumber(c.High), formatNumber(c.Confidence)
	if c.N < 2 { // one value has no interval
		low, high, confidence = "", "", ""
	}
	ids := each.Of(c.Warnings, func(w stat.Warning) string { return w.ID })
	return []string{
		fieldText(c.Profile.String()), fieldText(c.Path.String()), fieldText(c.Workload.String()), fieldText(c.Metric), fieldText(c.Unit),
		strconv.Itoa(c.N), formatNumber(c.Median), low, high, confidence, strconv.Itoa(c.Failed), fieldText(strings.Join(ids, " ")),
	}
}

// comparisonFields returns the fields of a row about the comparison. They are empty if x is nil.
func comparisonFields(x *compare.Comparison) []string {
	if x == nil {
		return make([]string, 8)
	}
	path := x.Path
	if x.BaselinePath != (plan.Path{}) {
		path = x.BaselinePath
	}
	return []string{
		fieldText(x.Baseline.String()), fieldText(path.String()), formatNumber(x.Ratio), formatNumber(x.Low), formatNumber(x.High),
		formatNumber(x.P), formatNumber(x.Adjusted), fieldText(string(x.Verdict)),
	}
}

// formatNumber formats v with all its digits; "" if it is not finite.
func formatNumber(v float64) string {
	if !number.Finite(v) {
		return ""
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// formula has the characters at which a spreadsheet may evaluate a cell, if the cell begins with one of them. It also has
// "#", which begins a comment for some readers of CSV.
const formula = "=+-@#＝＋－＠"

// fieldText returns s as one line of printable characters. If it could be read as a formula or a comment, an apostrophe
// precedes it, so that a spreadsheet shows it as text.
func fieldText(s string) string {
	s = number.Clean(s)
	if first := strings.TrimSpace(s); first != "" && strings.ContainsRune(formula, []rune(first)[0]) {
		return "'" + s
	}
	return s
}
