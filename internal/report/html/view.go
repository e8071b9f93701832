package html

import (
	"fmt"
	"html/template"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/chart"
	"github.com/cnibench/cnibench/internal/report/figure"
	"github.com/cnibench/cnibench/internal/vocab/finding"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// view is what page.tmpl shows. Profiles, paths, workloads and metrics go by number, from 1, in attributes; 0 means absent.
type view struct {
	CSP, Title, Sub string
	// Ground is where it was measured, and what the best profiles lack.
	Ground          []string
	Style           template.CSS
	Script          template.JS
	Nav             []link
	Filters         []filter
	Banners, Answer []string
	Needs           []need
	// Glance is the answer in bars, for a broad and for a narrow page.
	Glance, GlanceNarrow    template.HTML
	GlanceTitle, GlanceNote string
	// Card is the image to share as an address.
	Card     template.URL
	CardName string
	Plain    []plain
	Tally    string
	Claims   []report.Section
	Scale    []shade
	Sections []section
	// Lead is what comes before all tables.
	Lead, Pictures []pictures
	Legend         []string
	Footnotes      []footnote
	Appendix       []report.Section
	// Raw counts the rows of the table of all numbers, which the page builds of its pack.
	Raw, Missing string
	Pack         template.HTML
	// Description and Icon are for those who show a link to the page.
	Description string
	Icon        template.URL
}

// plain is a section without tables of numbers.
type plain struct {
	ID string
	report.Section
}

// groups are the findings by rule, safe to print.
func groups(fs []finding.Finding) [][]finding.Finding {
	fs = slices.Clone(fs)
	for i := range fs {
		fs[i].Where, fs[i].Saw = number.Clean(fs[i].Where), number.Clean(fs[i].Saw)
	}
	return finding.Groups(fs)
}

type link struct{ ID, Text string }

// filter is a row of buttons that switch one axis.
type filter struct {
	Name, Key string
	Options   []option
}

type option struct {
	Value int
	Text  string
}

type shade struct {
	Color chart.Color
	Text  string
}

type section struct {
	ID, Heading string
	Notes       []string
	Tables      []table
}

// table is a heat map with its dot plots.
type table struct {
	ID          string
	W, M        int
	Title, Unit string
	Columns     []column
	Rows        []tableRow
	Conclusions []conclusion
	Notes       []string
	Doubts      []footnote
	// Samples is the number of its dot plots in the pack, 0 for none.
	Samples int
}

// conclusion is a row of a table in words.
type conclusion struct {
	L           int
	Label, Text string
}

// column is a path, broken behind its ends.
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
	Color                chart.Color
	Value, Spread, Claim string
	Notes                []footnote
}

type footnote struct {
	Number int
	Text   string
}

// pictures is a chapter of figures, one part per workload.
type pictures struct {
	ID, Heading string
	Notes       []string
	Parts       []part
}

type part struct {
	Heading string
	Figures []picture
	// Later is the number of the figures in the pack; then Figures is empty.
	Later int
}

type picture struct {
	W, L, M int
	Heading string
	Chart   template.HTML
	Columns []string
	Rows    []figure.NumbersRow
	// Wide spans all columns of figures, Search has a field that finds functions.
	Wide, Search bool
}

// builder makes a view.
type builder struct {
	d      report.Document
	series figure.Series
	path   map[plan.Path]int
	load   map[plan.Workload]int
	metric map[string]int
	// drawn counts the drawings, for their identifiers.
	drawn int
	// anchors counts the identifiers of tables and cells, so that no two are the same.
	anchors map[string]int
	pack    pack
	err     error
}

func viewOf(d report.Document) (view, error) {
	b := &builder{d: d, series: figure.SeriesOf(d), path: map[plan.Path]int{}, load: map[plan.Workload]int{}, metric: map[string]int{}, anchors: map[string]int{}}
	v := view{
		Title: d.Title, Sub: sub(d), Banners: banners(d), Answer: d.Answer, Legend: d.Legend, Missing: number.Absent,
		Appendix: d.Appendix,
	}
	for i, text := range d.Footnotes {
		v.Footnotes = append(v.Footnotes, footnote{i + 1, text})
	}
	if a := d.Analysis; a != nil {
		enumerate(b.path, a.Paths)
		enumerate(b.load, a.Workloads)
		enumerate(b.metric, a.Metrics)
		v.Filters = b.filters()
		b.pack.Heads, b.pack.Rows = b.raw()
		if n := len(b.pack.Rows); n > 0 {
			v.Raw = number.Counted(n, "row")
		}
		v.Tally, v.Claims = report.Claims(a)
	}
	for i, s := range d.Sections {
		if len(s.Tables) == 0 && !s.Drawn {
			v.Plain = append(v.Plain, plain{fmt.Sprintf("part-%d", i+1), s})
		}
	}
	figures := figure.All(d)
	if len(d.Growths) == 0 { // the variants of a sweep are points of curves, and no choice
		v.Needs = b.needs()
		b.glance(&v)
		v.Answer = v.Answer[min(len(d.Needs), len(v.Answer)):] // the cards of the needs say those lines
	}
	v.Sections = b.sections(figures)
	if len(v.Sections) > 0 {
		v.Scale = scale()
	}
	v.Lead, v.Pictures = b.pictures(figures, leads), b.pictures(figures, chapters)
	v.Nav = nav(v)
	v.Description, v.Icon = description(d), icon()
	v.Pack = b.packed()
	return v, b.err
}

// enumerate counts xs from 1.
func enumerate[T comparable](at map[T]int, xs []T) {
	for i, x := range xs {
		at[x] = i + 1
	}
}

// svg draws for this page.
func (b *builder) svg(d chart.Drawing) template.HTML {
	b.drawn++
	s, err := chart.SVG(d, fmt.Sprintf("c%d", b.drawn))
	if err != nil && b.err == nil {
		b.err = err
	}
	return s
}

// sub is the line below the title.
func sub(d report.Document) string {
	if d.Analysis == nil {
		return ""
	}
	parts := []string{number.Counted(d.Run.Trials, "trial")}
	if d.Run.Wall > 0 {
		parts = append(parts, "in "+number.Duration(d.Run.Wall))
	}
	if d.Analysis.Baseline != "" {
		parts = append(parts, "compared with "+number.Clean(d.Analysis.Baseline))
	}
	return strings.Join(parts, ", ") + "."
}

// description is the page in a sentence or two, for those who show a link to it.
func description(d report.Document) string {
	if len(d.Answer) == 0 {
		return sub(d)
	}
	return d.Answer[0]
}

// banners warn of what touches the whole page.
func banners(d report.Document) []string {
	var out []string
	if d.Analysis == nil {
		return nil
	}
	if d.Run.Failed > 0 || !slices.Contains([]string{result.Complete, result.Precise}, d.Run.Reason) {
		for _, l := range d.Appendix {
			for _, i := range l.Items {
				if l.Heading == "Run" && i.Name == "trials" {
					out = append(out, "Trials: "+i.Text+".")
				}
			}
		}
	}
	if d.Details != nil && d.Details.Omitted > 0 {
		out = append(out, fmt.Sprintf("Distributions omit %s: one page cannot show so many. The tables have all.",
			number.Counted(d.Details.Omitted, "trial")))
	}
	return out
}

// notesOf are the footnotes of those numbers.
func (b *builder) notesOf(ns []int) []footnote {
	var out []footnote
	for _, n := range ns {
		if n >= 1 && n <= len(b.d.Footnotes) {
			out = append(out, footnote{n, b.d.Footnotes[n-1]})
		}
	}
	return out
}

// filters are the axes that have more than one value.
func (b *builder) filters() []filter {
	a := b.d.Analysis
	all := []filter{
		{"Profiles", "p", options(a.Profiles)}, {"Paths", "l", options(a.Paths)},
		{"Workloads", "w", options(a.Workloads)}, {"Metrics", "m", options(a.Metrics)},
	}
	return slices.DeleteFunc(all, func(f filter) bool { return len(f.Options) < 2 })
}

// options are the values of an axis, numbered as enumerate does.
func options[T any](xs []T) []option {
	var out []option
	for i, x := range xs {
		out = append(out, option{i + 1, number.Clean(fmt.Sprint(x))})
	}
	return out
}

// scale explains the shades of a heat map.
func scale() []shade {
	upTo := func(n int, word string) string {
		if n <= len(figure.Steps) {
			return fmt.Sprintf("%s, up to %gx", word, figure.Steps[n-1])
		}
		return fmt.Sprintf("%s, over %gx", word, figure.Steps[n-2])
	}
	var out []shade
	for n := chart.Levels; n >= 1; n-- {
		out = append(out, shade{chart.Level(n), upTo(n, "better")})
	}
	out = append(out, shade{chart.Same, "same"})
	for n := 1; n <= chart.Levels; n++ {
		out = append(out, shade{chart.Level(-n), upTo(n, "worse")})
	}
	return append(out, shade{chart.Neutral, "inconclusive"})
}

// nav names the sections that the page has.
func nav(v view) []link {
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

// need is a card of the first screen: who stands first under one workload, by how much, how sure.
type need struct {
	W, L               int
	Kind, Pick, Number string
	Lines              []string
	Chart              template.HTML
}

func (b *builder) needs() []need {
	var out []need
	for _, n := range b.d.Needs {
		pick := n.Standings[n.Pick]
		scale := n.Scale()
		card := need{
			W: b.load[n.Workload], L: b.path[n.Path],
			Kind: n.Name + ": " + number.Clean(n.Workload.String()) + ", " + n.Path.String(), Pick: choice(n),
			Number: fmt.Sprintf("%s %s %s", scale.Format(pick.Cell.Median), scale.Unit, n.Metric.Title),
			Chart:  b.svg(figure.Standing(n, b.series)),
		}
		if name := number.Clean(pick.Cell.Profile); card.Pick != name {
			card.Number = name + ": " + card.Number
		}
		for _, line := range slices.Concat([]string{n.Conclusion.Text}, n.Functions(), []string{n.Under, n.Certainty + "."}) {
			if line != "" {
				card.Lines = append(card.Lines, line)
			}
		}
		out = append(out, card)
	}
	return out
}

// choice is the heading of a card: the pick with those that do not differ from it.
func choice(n report.Need) string {
	pick, near := number.Clean(n.Standings[n.Pick].Cell.Profile), n.Near
	switch {
	case n.Bounds:
		return "lower bounds"
	case len(near) > 0 && len(n.Conclusion.Claims) == 0:
		return "no significant difference"
	case len(near) == 0:
		return pick
	case len(near) == 1:
		return pick + " or " + near[0]
	}
	return fmt.Sprintf("%s or %d more", pick, len(near))
}
