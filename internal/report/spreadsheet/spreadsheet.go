// Package spreadsheet writes a report as a table for spreadsheets and data frames, and the trials of a result file as
// numbers that cnibench import reads back.
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

// Columns are the names of Render's fields in order. Later versions add columns at the end only.
var Columns = []string{
	"profile", "path", "workload", "metric", "unit", "n", "median", "low", "high", "confidence", "failed", "warnings",
	"baseline", "baseline_path", "ratio", "ratio_low", "ratio_high", "p", "p_adjusted", "verdict", "typical", "nic",
}

// Numbers are the columns that hold a number or nothing.
var Numbers = []string{
	"n", "median", "low", "high", "confidence", "failed",
	"ratio", "ratio_low", "ratio_high", "p", "p_adjusted", "typical",
}

// Render writes d, one row per cell.
func Render(w io.Writer, d report.Document) error {
	rows := Rows(cmp.Or(d.Analysis, &compare.Analysis{}))
	return csv.NewWriter(w).WriteAll(append([][]string{Columns}, rows...))
}

// Rows returns the fields of each cell of a.
func Rows(a *compare.Analysis) [][]string {
	at := make(map[compare.Key]*compare.Comparison, len(a.Comparisons))
	for i := range a.Comparisons {
		at[a.Comparisons[i].Key] = &a.Comparisons[i]
	}
	var rows [][]string
	for i := range a.Cells {
		c := &a.Cells[i]
		rows = append(rows, slices.Concat(cell(c), comparison(at[c.Key]), []string{formatNumber(c.Recorded().Median), text(string(a.NIC(c.Case)))}))
	}
	return rows
}

// cell returns the first part of a row.
func cell(c *compare.Cell) []string {
	low, high, confidence := formatNumber(c.Low), formatNumber(c.High), formatNumber(c.Confidence)
	if c.N < 2 { // one value has no interval
		low, high, confidence = "", "", ""
	}
	ids := each.Of(c.Warnings, func(w stat.Warning) string { return w.ID })
	return []string{
		text(c.Profile.String()), text(c.Path.String()), text(c.Workload.String()), text(c.Metric), text(c.Unit),
		strconv.Itoa(c.N), formatNumber(c.Median), low, high, confidence, strconv.Itoa(c.Failed), text(strings.Join(ids, " ")),
	}
}

// comparison returns the second part of a row; its fields are empty if there is no comparison.
func comparison(x *compare.Comparison) []string {
	if x == nil {
		return make([]string, 8)
	}
	path := x.Path
	if x.BaselinePath != (plan.Path{}) {
		path = x.BaselinePath
	}
	return []string{
		text(x.Baseline.String()), text(path.String()), formatNumber(x.Ratio), formatNumber(x.Low), formatNumber(x.High),
		formatNumber(x.P), formatNumber(x.Adjusted), text(string(x.Verdict)),
	}
}

// formatNumber returns v with all its digits, "" if it is not finite.
func formatNumber(v float64) string {
	if !number.Finite(v) {
		return ""
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// formula has the characters that make a spreadsheet evaluate a cell that begins with one of them, and #, which begins
// a comment for readers of tables.
const formula = "=+-@#＝＋－＠"

// text returns s as one line of printable characters. It adds an apostrophe before a text that would be read as a
// formula or a comment: spreadsheets then show the rest as text.
func text(s string) string {
	s = number.Clean(s)
	if first := strings.TrimSpace(s); first != "" && strings.ContainsRune(formula, []rune(first)[0]) {
		return "'" + s
	}
	return s
}
