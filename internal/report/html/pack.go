package html

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"slices"
	"strconv"

	"github.com/cnibench/cnibench/internal/report/spreadsheet"
)

// pack has the data from which the page's script builds, on request, the table of all numbers and the figures. The page
// contains it once, as deflated JSON in base64.
type pack struct {
	Heads []rawHead `json:"heads"`
	Rows  []rawRow  `json:"rows"`
	// Parts are groups of figures as HTML. The page refers to a group by its number, from 1.
	Parts []string `json:"parts"`
}

// rawHead is the heading of a column in the table of all numbers. Numbers means that the column has numbers.
type rawHead struct {
	Text    string `json:"text"`
	Numbers bool   `json:"numbers"`
}

// rawRow is a cell of the analysis. Keys are the numbers of its profile, path, workload and metric, as in view. Fields are
// those of the format csv.
type rawRow struct {
	Keys   [4]int   `json:"keys"`
	Fields []string `json:"fields"`
}

// digits is the number of significant digits in the table of all numbers. More digits would make the page much larger.
const digits = 6

// allNumbers returns every cell of the analysis as a row, with the columns of the format csv.
func (b *builder) allNumbers() (heads []rawHead, rows []rawRow) {
	for _, c := range spreadsheet.Columns {
		heads = append(heads, rawHead{c, slices.Contains(spreadsheet.Numbers, c)})
	}
	for i, fields := range spreadsheet.Rows(b.d.Analysis) {
		for j, head := range heads {
			if v, err := strconv.ParseFloat(fields[j], 64); head.Numbers && err == nil {
				fields[j] = strconv.FormatFloat(v, 'g', digits, 64)
			}
		}
		c := &b.d.Analysis.Cells[i]
		rows = append(rows, rawRow{[4]int{b.series[c.Profile], b.path[c.Path], b.load[c.Workload], b.metric[c.Metric]}, fields})
	}
	return heads, rows
}

// packFigures adds a group of figures to the pack. It returns the number of the group; 0 if there are no figures. A failure
// is kept in b.err.
func (b *builder) packFigures(figures []picture) int {
	if len(figures) == 0 {
		return 0
	}
	var out bytes.Buffer
	if err := page().ExecuteTemplate(&out, "figures", figures); err != nil && b.err == nil {
		b.err = fmt.Errorf("report as HTML: %w", err)
	}
	b.pack.Parts = append(b.pack.Parts, out.String())
	return len(b.pack.Parts)
}

// encodePack returns the pack, deflated and in base64; "" if it is empty. Base64 needs no escaping in a page. A failure is
// kept in b.err.
func (b *builder) encodePack() template.HTML {
	if len(b.pack.Rows) == 0 && len(b.pack.Parts) == 0 {
		return ""
	}
	var out bytes.Buffer
	text := base64.NewEncoder(base64.StdEncoding, &out)
	w, err := flate.NewWriter(text, flate.BestCompression)
	if err == nil {
		err = json.NewEncoder(w).Encode(b.pack)
	}
	if err == nil {
		err = w.Close()
	}
	if err == nil {
		err = text.Close()
	}
	if err != nil && b.err == nil {
		b.err = fmt.Errorf("report as HTML: %w", err)
	}
	return template.HTML(out.String())
}
