package html

import (
	"fmt"
	"html/template"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/figure"
	"github.com/cnibench/cnibench/internal/report/plot"
	"github.com/cnibench/cnibench/internal/vocab/finding"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// view is the data for page.tmpl. In attributes, profiles, paths, workloads and metrics are numbers from 1; 0 means
// none.
type view struct {
	head
	answer
	Nav     []link
	Filters []filter
	// Lead has the figures before the tables, Pictures the figures after them.
	Lead, Pictures []pictures
	// Plain has the sections without tables of metrics, except those that figures replace.
	Plain []plain
	comparison
	claims
	reading
	Appendix []report.Section
	numbers
}

// head is the data for the head of the page. Browsers use it, and programs that show a preview of a link to the page.
type head struct {
	CSP, Title, Description string
	// Share is the title of a preview: the first answer, or else the page's title.
	Share  string
	Style  template.CSS
	Script template.JS
	Icon   template.URL
}

// answer is the content of the first screen.
type answer struct {
	Sub string
	// Ground describes the environment and the functions that the best profiles lack.
	Ground, Banners, Answer []string
	Needs                   []need
	// Glance is the answer as bars for a wide page, GlanceNarrow for a narrow page.
	Glance, GlanceNarrow    template.HTML
	GlanceTitle, GlanceNote string
	// Card is the image to share as a data URL.
	Card     template.URL
	CardName string
}

// comparison has the heat maps, and the legend of their shades.
type comparison struct {
	Scale    []shade
	Sections []section
}

// claims has the outcomes of published claims.
type claims struct {
	Tally  string
	Claims []report.Section
}

// reading explains how to read the tables.
type reading struct {
	Legend    []string
	Footnotes []footnote
}

// numbers has the data for the table of all numbers, which the script builds from Pack. Raw is the number of rows as
// text; "" means no table. Missing is the text for an unknown number.
type numbers struct {
	Raw, Missing string
	Pack         template.HTML
}

// plain is a section without tables of metrics. ID is its anchor in the page.
type plain struct {
	ID string
	report.Section
}

// findingGroups groups findings by rule and severity. It removes control characters from Where and Saw.
func findingGroups(fs []finding.Finding) [][]finding.Finding {
	fs = slices.Clone(fs)
	for i := range fs {
		fs[i].Where, fs[i].Saw = number.Clean(fs[i].Where), number.Clean(fs[i].Saw)
	}
	return finding.Groups(fs)
}

type link struct{ ID, Text string }

// filter is a row of buttons that show or hide values of one dimension: profiles, paths, workloads or metrics.
type filter struct {
	Name, Key string
	Options   []option
}

type option struct {
	Value int
	Text  string
}

type shade struct {
	Color plot.Color
	Text  string
}

type section struct {
	ID, Heading string
	Notes       []string
	Tables      []table
}

// table is a heat map with its dot plots. W and M are the numbers of its workload and metric.
type table struct {
	ID          string
	W, M        int
	Title, Unit string
	Columns     []column
	Rows        []tableRow
	Conclusions []conclusion
	Notes       []string
	Doubts      []footnote
	// Samples is the number of its dot plots in the pack; 0 for none.
	Samples int
}

// conclusion is the sentence about one path of a table. L is the number of the path.
type conclusion struct {
	L           int
	Label, Text string
}

// column is a path. L is its number, Text has its two ends, and Where has its locality.
type column struct {
	L           int
	Text, Where string
}

type tableRow struct {
	P     int
	Name  string
	Cells []cell
}

type cell struct {
	ID                   string
	L                    int
	Color                plot.Color
	Value, Spread, Claim string
	Notes                []footnote
}

type footnote struct {
	Number int
	Text   string
}

// pictures is a section of figures, with a part for each workload.
type pictures struct {
	ID, Heading string
	Notes       []string
	Parts       []part
}

type part struct {
	Heading string
	Figures []picture
	// Later is the number of the group of figures in the pack. Figures is then empty. Later is 0 if the figures are not in
	// the pack.
	Later int
}

type picture struct {
	W, L, M int
	Heading string
	Chart   template.HTML
	Columns []string
	Rows    []report.NumbersRow
	// Wide means that the figure needs the whole width, Search that it has a field to search for functions.
	Wide, Search bool
}

// builder builds the view of a document. err is the first error.
type builder struct {
	d      report.Document
	series report.Series
	path   map[plan.Path]int
	load   map[plan.Workload]int
	metric map[string]int
	// drawn counts the drawings, to give each its own identifier.
	drawn int
	// anchors counts how often each identifier of tables and cells was used, so that all are different.
	anchors map[string]int
	pack    pack
	err     error
}

func viewOf(d report.Document) (view, error) {
	b := &builder{d: d, series: d.Series(), path: map[plan.Path]int{}, load: map[plan.Workload]int{}, metric: map[string]int{}, anchors: map[string]int{}}
	v := view{Appendix: d.Appendix}
	v.Title, v.Sub, v.Banners, v.Answer, v.Legend, v.Missing = d.Title, subtitle(d), d.Banners, d.Lines, d.Legend, number.Absent
	for i, text := range d.Footnotes {
		v.Footnotes = append(v.Footnotes, footnote{i + 1, text})
	}
	if a := d.Analysis; a != nil {
		assignNumbers(b.path, a.Paths)
		assignNumbers(b.load, a.Workloads)
		assignNumbers(b.metric, a.Metrics)
		v.Filters = b.filters()
		b.pack.Heads, b.pack.Rows = b.allNumbers()
		if n := len(b.pack.Rows); n > 0 {
			v.Raw = number.Counted(n, "row")
		}
		v.Tally, v.Claims = report.Claims(a)
	}
	for i, s := range d.Sections {
		if len(s.Tables) == 0 && !s.Drawn && !s.Pictured() {
			v.Plain = append(v.Plain, plain{fmt.Sprintf("part-%d", i+1), s})
		}
	}
	v.Needs = b.needCards()
	b.addGlance(&v)
	v.Answer = v.Answer[min(len(d.Needs), len(v.Answer)):] // the cards of the needs have these lines
	v.Sections = b.tableSections(figure.Tables(d))
	if len(v.Sections) > 0 {
		v.Scale = shadeScale()
	}
	v.Lead, v.Pictures = b.figureSections(true), b.figureSections(false)
	v.Nav = navigationLinks(v)
	// The description is for programs that show a link to the page.
	v.Description, v.Icon, v.Share = append(slices.Clone(d.Lines), subtitle(d))[0], pageIcon(), d.Title
	if d.Summary != nil && d.Summary.Message != "" {
		v.Share = d.Summary.Message
	}
	v.Pack = b.encodePack()
	return v, b.err
}

// assignNumbers stores the number of each element of xs in at, counting from 1.
func assignNumbers[T comparable](at map[T]int, xs []T) {
	for i, x := range xs {
		at[x] = i + 1
	}
}

// svg returns a drawing as SVG with an identifier of its own. A failure is kept in b.err.
func (b *builder) svg(d plot.Drawing) template.HTML {
	b.drawn++
	s, err := plot.SVG(d, fmt.Sprintf("c%d", b.drawn))
	if err != nil && b.err == nil {
		b.err = err
	}
	return s
}

// subtitle returns the line below the title: the number of trials, the time and the baseline; "" if the document is not
// about a result.
func subtitle(d report.Document) string {
	if d.Analysis == nil {
		return ""
	}
	parts := []string{number.Counted(d.Run.Trials, "trial")}
	if d.Run.Wall > 0 {
		parts = append(parts, "in "+number.Duration(d.Run.Wall))
	}
	if !d.Analysis.Baseline.IsZero() {
		parts = append(parts, "compared with "+number.Clean(d.Analysis.Baseline.String()))
	}
	return strings.Join(parts, ", ") + "."
}

// Rule returns the text up to its first comma, which names the warning. The whole text is below the table.
func (f footnote) Rule() string {
	rule, _, _ := strings.Cut(f.Text, ",")
	return rule
}

// footnotesOf returns the footnotes with the numbers ns.
func (b *builder) footnotesOf(ns []int) []footnote {
	var out []footnote
	for _, n := range ns {
		if n >= 1 && n <= len(b.d.Footnotes) {
			out = append(out, footnote{n, b.d.Footnotes[n-1]})
		}
	}
	return out
}

// filters returns a filter for each dimension that has more than one value.
func (b *builder) filters() []filter {
	a := b.d.Analysis
	all := []filter{
		{"Profiles", "p", filterOptions(a.Profiles)}, {"Paths", "l", filterOptions(a.Paths)},
		{"Workloads", "w", filterOptions(a.Workloads)}, {"Metrics", "m", filterOptions(a.Metrics)},
	}
	return slices.DeleteFunc(all, func(f filter) bool { return len(f.Options) < 2 })
}

// filterOptions returns the values of a filter. They have the same numbers as assignNumbers gives them.
func filterOptions[T any](xs []T) []option {
	var out []option
	for i, x := range xs {
		out = append(out, option{i + 1, number.Clean(fmt.Sprint(x))})
	}
	return out
}

// shadeScale returns the legend of a heat map: the meaning of each shade.
func shadeScale() []shade {
	upTo := func(n int, word string) string {
		if n <= len(figure.Steps) {
			return fmt.Sprintf("%s, up to %gx", word, figure.Steps[n-1])
		}
		return fmt.Sprintf("%s, over %gx", word, figure.Steps[n-2])
	}
	var out []shade
	for n := plot.Levels; n >= 1; n-- {
		out = append(out, shade{plot.Level(n), upTo(n, "better")})
	}
	out = append(out, shade{plot.Same, "same"})
	for n := 1; n <= plot.Levels; n++ {
		out = append(out, shade{plot.Level(-n), upTo(n, "worse")})
	}
	return append(out, shade{plot.Neutral, "inconclusive"})
}

// navigationLinks returns links to the sections of the page.
func navigationLinks(v view) []link {
	out := []link{{"answer", "Answer"}}
	add := func(has bool, id, text string) {
		if has {
			out = append(out, link{id, text})
		}
	}
	for _, p := range v.Lead {
		add(true, p.ID, p.Heading)
	}
	for _, p := range v.Plain {
		add(true, p.ID, p.Heading)
	}
	add(len(v.Sections) > 0, "comparison", "Comparison")
	for _, p := range v.Pictures {
		add(true, p.ID, p.Heading)
	}
	add(len(v.Claims) > 0, "claims", "Published claims")
	add(len(v.Legend)+len(v.Footnotes) > 0, "reading", "How to read this")
	add(len(v.Appendix) > 0, "facts", "Conditions")
	add(v.Raw != "", "raw", "All numbers")
	return out
}

// need is a card of the first screen: the best profile for one need, with its value and the certainty. W and L are the
// numbers of its workload and path.
type need struct {
	W, L               int
	Kind, Pick, Number string
	Lines              []string
	Chart              template.HTML
}

func (b *builder) needCards() []need {
	var out []need
	for _, n := range b.d.Needs {
		card := need{W: b.load[n.Workload], L: b.path[n.Path], Chart: b.svg(figure.Standing(n, b.series))}
		card.Kind, card.Pick, card.Number, card.Lines = n.Card()
		out = append(out, card)
	}
	return out
}
