package html

import (
	"slices"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/report/csv"
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

// rawCell is a text; Value is the number that it rounds, "" for none.
type rawCell struct {
	Text, Value string
	Numbers     bool
}

// raw returns every cell of the analysis as a row, with the columns of the format csv, and the same as CSV.
func (b *builder) raw() (heads []rawHead, rows []rawRow, text string) {
	for _, c := range csv.Columns {
		heads = append(heads, rawHead{c, slices.Contains(csv.Numbers, c)})
	}
	for i, fields := range csv.Rows(b.d.Analysis) {
		c := &b.d.Analysis.Cells[i]
		row := rawRow{P: b.series[c.Profile], L: b.path[c.Path], W: b.load[c.Workload], M: b.metric[c.Metric]}
		for j, field := range fields {
			cell := rawCell{Text: field, Numbers: heads[j].Numbers}
			if cell.Numbers {
				cell.Text, cell.Value = rounded(field), field
			}
			row.Cells = append(row.Cells, cell)
		}
		rows = append(rows, row)
	}
	var all strings.Builder
	_ = csv.Render(&all, b.d) // to memory
	return heads, rows, all.String()
}

// rounded writes a field of numbers with five digits.
func rounded(field string) string {
	v, err := strconv.ParseFloat(field, 64)
	if err != nil {
		return number.Absent
	}
	return strconv.FormatFloat(v, 'g', 5, 64)
}
