// Package report selects and orders the content of a report: the answer in a few lines, one table per workload and
// metric, then the warnings, the conditions and the command that repeats the run.
//
// Build turns a result file's header and records into a Document. Package compare supplies every number and verdict,
// and the report never claims more than the verdicts do. Each package below this one writes a Document in one format
// and computes nothing. Document.Sections is for people: text, ready to print, without the control characters of an
// untrusted file. Document.Analysis and Document.Run have the same as values, in base units, for programs.
package report

import (
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/judge/explain"
	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/report/plot"
	"github.com/cnibench/cnibench/internal/vocab/finding"
)

// Document is a report before it is written in a format: a title, an answer, sections and data. Every command that
// reports something fills a Document, and every format writes one.
type Document struct {
	// Title is "" for a part of a page. (optional)
	Title string
	Answer
	// Sections are the body. Appendix follows the legend: profiles left out, paths not served, the run, the conditions.
	Sections, Appendix []Section
	// Legend explains how to read a table; Footnotes are numbered from 1, as in Entry.Notes.
	Legend, Footnotes []string
	// Pictures are files of pictures that a format with links can show. (optional)
	Pictures []Picture
	Result
	// Data is the data for the format JSON; nil means the result. (optional)
	Data any
}

// Result is the measurement, for formats that write its cells.
type Result struct {
	Run      Run
	Facts    facts.Facts
	Profiles []result.Profile
	// Analysis has the cells and comparisons of the result, including those without a table. It is nil for a document
	// that is not about one result.
	Analysis *compare.Analysis
	// Sides attribute the CPU time of each sampled case; nil unless trials were sampled. (optional)
	Sides []explain.Side
	// Citation names the run in one line. (optional)
	Citation string
	// subjects are the members that pages add to the JSON report.
	subjects []Subject
}

// Section is a heading with its contents. Formats write the contents in the order of the fields. Each field is optional.
type Section struct {
	Heading string
	// ID is the address of the section's figures in an HTML page.
	ID string
	// Asked means that the reader requested this section. It is then also shown after a summary.
	Asked bool
	// Lead means that an HTML page shows the figures before the tables of numbers.
	Lead bool
	// Drawn means that an HTML page omits the grids of this section, because figures show the same content.
	Drawn bool
	// Folded means that there are many grids or figures. An HTML page shows each of them only on request.
	Folded bool
	// Notes are paragraphs, for example the definition of a metric.
	Notes   []string
	Figures []Figure
	Tables  []Table
	Grids   []Grid
	// Findings are written in groups, by rule and severity.
	Findings []finding.Finding
	Items    []Item
}

// isEmpty reports whether a section has no content except notes.
func (s Section) isEmpty() bool {
	return len(s.Figures)+len(s.Tables)+len(s.Grids)+len(s.Findings)+len(s.Items) == 0
}

// Pictured reports whether a section has only figures, so that text omits it.
func (s Section) Pictured() bool {
	return len(s.Figures) > 0 && len(s.Tables)+len(s.Grids)+len(s.Findings)+len(s.Items) == 0
}

// Figure is one picture.
type Figure struct {
	// Kind is the kind of plot, which begins the name of the figure's file.
	Kind string
	// Heading distinguishes the figure from others of its section, usually by the path.
	Heading string
	// Metric is "" for a figure of several metrics; Path is the zero Path for a heat map, which has all paths.
	Metric   string
	Path     plan.Path
	Workload plan.Workload
	Drawing  plot.Drawing
	Numbers  Numbers
	// Wide means that the figure needs the whole width of a page. Search means that its texts are function names, which a
	// page lets its reader search.
	Wide, Search bool
}

// Numbers has the numbers of a figure as a table.
type Numbers struct {
	Columns []string
	Rows    []NumbersRow
}

// NumbersRow has the numbers of one series. Series counts from 1, as in the drawing.
type NumbersRow struct {
	Series int
	Name   string
	Cells  []string
}

// Series numbers the profiles of a document from 1, for colours and filters.
type Series map[plan.Variant]int

// Series returns the numbers of the profiles in report order.
func (r Result) Series() Series {
	s := Series{}
	if r.Analysis != nil {
		for i, p := range r.Analysis.Profiles {
			s[p] = i + 1
		}
	}
	return s
}

// Column returns the number of the profile in column j of a table; 0 if it is unknown. It takes the profile from a cell if
// there is one, because control characters were removed from the heading.
func (s Series) Column(t Table, j int) int {
	for _, r := range t.Rows {
		if c := r.Entries[j].Cell; c != nil {
			return s[c.Profile]
		}
	}
	return s[plan.VariantOf(t.Columns[j])]
}

// Grid is a table of texts that are ready to print.
type Grid struct {
	Title string
	// Label is the heading above Labels, the names of the rows. Columns are the headings above Cells.
	Label   string
	Columns []string
	Labels  []string
	// Cells has a row for each label. A row has a text for each column.
	Cells [][]string
	// Prose means that the last column has sentences, which may be broken into lines.
	Prose bool
	Notes []string
}

// Add adds a row.
func (g *Grid) Add(label string, cells ...string) {
	g.Labels, g.Cells = append(g.Labels, label), append(g.Cells, cells)
}

// Table has the values of one metric under one workload. All values share one unit. In the report of one result, a row is a
// path and a column is a profile.
type Table struct {
	Title string
	Unit  string
	// Metric and Workload identify the table in the analysis.
	Metric   string
	Workload plan.Workload
	Columns  []string
	Rows     []Row
	// Conclusions describe the rows that have values; nil for a metric without a better direction.
	Conclusions []Conclusion
	// Notes are about this table: its baseline, and how small a difference it could find.
	Notes []string
}

// Row has the entries of one row of a table. Label is the name of the row, Short a shorter name for narrow places.
type Row struct {
	Label, Short string
	Path         plan.Path
	Entries      []Entry
}

// Kind is the kind of an entry.
type Kind int

const (
	// Value means that the entry has a value.
	Value Kind = iota
	// NotServed means that the profile has no such path.
	NotServed
	// NotMeasured means that there is no trial, or that the trials have too few values for this number.
	NotMeasured
	// Failed means that no trial finished. In a summary it also means that too many trials or too much work failed.
	Failed
)

// Entry is one cell of a table, formatted.
type Entry struct {
	Kind Kind
	// Text is shown if there is no value; Short is the same for narrow columns.
	Text, Short string
	// Value is the median in the table's unit. Spread is the longer side of its interval: "±3%". It is "" if there is no
	// interval.
	Value, Spread string
	// Ratio is the ratio to the baseline: "1.52x"; "" if the verdict is inconclusive or there is no ratio. Verdict is
	// compare.None for a metric that is not judged.
	Ratio   string
	Verdict compare.Verdict
	// Notes are numbers of footnotes.
	Notes []int
	// Cell and Comparison are the sources of the entry; each may be nil.
	Cell       *compare.Cell
	Comparison *compare.Comparison
}

var marks = map[compare.Verdict]string{
	compare.Better: "▲", compare.Worse: "▼", compare.Same: "≈", compare.Inconclusive: "?",
}

// Mark returns the sign of the verdict; "" if there is no verdict.
func (e Entry) Mark() string { return marks[e.Verdict] }

// Claim returns the ratio and the verdict in words: "0.65x worse".
func (e Entry) Claim() string { return strings.TrimSpace(e.Ratio + " " + string(e.Verdict)) }

// Picture is a file with a picture. Name is the figure's name. File is the address of the file, relative to the report.
// Apart means that the picture belongs to no table.
type Picture struct {
	Name, File, Title string
	Apart             bool
}

// Item is an entry of a list; Name may be empty. Code means that Text is a command to type, Quote that it is text to
// paste.
type Item struct {
	Name, Text  string
	Code, Quote bool
}

// Run describes how the numbers were measured.
type Run struct {
	Plan plan.Plan
	// Origin is the tool that measured; "" means cnibench.
	Origin  string
	Created time.Time
	// Reason says why the run ended. It is one of the reasons of package result, or "unfinished" if the file has no end
	// record.
	Reason string
	// Trials is the number of trials. Failed is the number of those that failed.
	Trials, Failed int
	// Wall is the wall time of the run. Windows is the part of it in measurement windows. Without an end record both are
	// sums over the trials.
	Wall, Windows time.Duration
	// Command is a command line that repeats the run; "" for results of other tools.
	Command string
}

// Share returns the share of the wall time that was spent in measurement windows, from 0 to 1. It returns 0 if the wall
// time is unknown.
func (r Run) Share() float64 {
	if r.Wall <= 0 {
		return 0
	}
	return float64(r.Windows) / float64(r.Wall)
}
