package html

import (
	"encoding/csv"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// rawHead is a column of the table of all numbers; Numbers says that it holds numbers.
type rawHead struct {
	Text    string
	Numbers bool
}

// rawRow is a cell of the analysis.
type rawRow struct {
	P, L, W, M int
	Cells      []rawCell
}

// rawCell is a text, and its value if it has one.
type rawCell struct {
	Text              string
	Value             float64
	HasValue, Numbers bool
}

var rawHeads = []rawHead{
	{"profile", false}, {"path", false}, {"workload", false}, {"metric", false}, {"unit", false}, {"n", true}, {"median", true},
	{"low", true}, {"high", true}, {"ratio", true}, {"ratio low", true}, {"ratio high", true}, {"p", true}, {"p, corrected", true},
	{"verdict", false}, {"failed", true}, {"doubts", false},
}

func label(s string) rawCell { return rawCell{Text: number.Clean(s)} }

// numeral is a number, absent if it is not finite.
func numeral(v float64) rawCell {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return rawCell{Text: number.Absent, Numbers: true}
	}
	return rawCell{Text: strconv.FormatFloat(v, 'g', 5, 64), Value: v, HasValue: true, Numbers: true}
}

func count(n int) rawCell {
	return rawCell{Text: strconv.Itoa(n), Value: float64(n), HasValue: true, Numbers: true}
}

// raw is every cell of the analysis as a row, and the same as CSV.
func (b *builder) raw() ([]rawHead, []rawRow, string) {
	a := b.d.Analysis
	at := map[compare.Key]compare.Comparison{}
	for _, x := range a.Comparisons {
		at[x.Key] = x
	}
	var text strings.Builder
	w := csv.NewWriter(&text)
	var names []string
	for _, h := range rawHeads {
		names = append(names, h.Text)
	}
	_ = w.Write(names) // to memory
	var rows []rawRow
	for _, c := range a.Cells {
		row := rawRow{P: b.series[c.Profile], L: b.path[c.Path], W: b.load[c.Workload], M: b.metric[c.Metric], Cells: rawCells(c, at)}
		rows = append(rows, row)
		_ = w.Write(record(row.Cells))
	}
	w.Flush()
	return rawHeads, rows, text.String()
}

func rawCells(c compare.Cell, at map[compare.Key]compare.Comparison) []rawCell {
	low, high := c.Low, c.High
	if c.N < 2 {
		low, high = math.NaN(), math.NaN()
	}
	x, compared := at[c.Key]
	if !compared {
		x.Ratio, x.Low, x.High, x.P, x.Adjusted = math.NaN(), math.NaN(), math.NaN(), math.NaN(), math.NaN()
	}
	var doubts []string
	for _, w := range c.Warnings {
		doubts = append(doubts, w.ID)
	}
	return []rawCell{
		label(string(c.Profile)), label(c.Path.String()), label(c.Workload.String()), label(c.Metric), label(c.Unit),
		count(c.N), numeral(c.Median), numeral(low), numeral(high),
		numeral(x.Ratio), numeral(x.Low), numeral(x.High), numeral(x.P), numeral(x.Adjusted),
		label(string(x.Verdict)), count(c.Failed), label(strings.Join(doubts, " ")),
	}
}

// record writes a row for a spreadsheet: numbers in full, empty fields for absent ones, and no text that a
// spreadsheet would run as a formula.
func record(cells []rawCell) []string {
	out := make([]string, len(cells))
	for i, c := range cells {
		switch {
		case c.HasValue:
			out[i] = fmt.Sprint(c.Value)
		case c.Numbers:
		case c.Text != "" && strings.ContainsAny(c.Text[:1], "=+-@"):
			out[i] = "'" + c.Text
		default:
			out[i] = c.Text
		}
	}
	return out
}
