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

// pack is what the page builds only on request: the table of all numbers, and figures as the page's own elements. The
// page has it once, as deflated JSON in base64.
type pack struct {
	Heads []rawHead `json:"heads"`
	Rows  []rawRow  `json:"rows"`
	// Parts are figures by number, from 1.
	Parts []string `json:"parts"`
}

// rawHead is a column of the table of all numbers; Numbers means that it has numbers.
type rawHead struct {
	Text    string `json:"text"`
	Numbers bool   `json:"numbers"`
}

// rawRow is a cell of the analysis: the indexes of its profile, path, workload and metric, and its fields as in the
// format csv.
type rawRow struct {
	Keys   [4]int   `json:"keys"`
	Fields []string `json:"fields"`
}

// digits are the digits of a number in the table: more than any measurement has; further digits do not compress.
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

// packFigures adds figures to the pack and returns their index, 0 for no figures.
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

// encodePack encodes the pack for the page, "" if it is empty. It is base64, so it is valid text anywhere.
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
