package report

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/judge/check"
	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/judge/explain"
	"github.com/cnibench/cnibench/internal/judge/impact"
	"github.com/cnibench/cnibench/internal/judge/matrix"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/advice"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/metric"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// Options choose what a report shows; the zero value shows the headline metrics against the plan's baseline.
type Options struct {
	// Metrics are the names of the metrics to show; nil shows the headline metrics. (optional)
	Metrics []string
	// File is the name of the result file in the suggested commands. (optional)
	File string
	// Baseline is the profile to compare with; "" means the plan's. (optional)
	Baseline plan.Variant
	// Confidence is the confidence of intervals and verdicts, in (0,1); 0 means 0.95. (optional)
	Confidence float64
	// Margin is the largest relative difference that does not matter; 0 means the plan's. (optional)
	Margin float64
	// Checked has what package check found in the result. (optional)
	Checked check.Report
	// Impact lists the work of the reader's own job. The report estimates how long it takes on each profile. (optional)
	Impact []impact.Work
}

// Build builds the report of the collected records; h is the header of their result. It fails, with a hint, for an
// option that the result does not support. The collector must not be used afterwards.
func (c *Collector) Build(h result.Header, o Options) (Document, error) {
	metrics, err := selectMetrics(o.Metrics)
	if err != nil {
		return Document{}, err
	}
	a, err := c.judged.Analyse(h, compare.Options{Baseline: o.Baseline, Confidence: o.Confidence, Margin: o.Margin})
	if err != nil {
		return Document{}, err
	}
	b := newBuilder(h, a, c, metrics)
	d := Document{Result: Result{Analysis: a, Run: c.run.runOf(h), Facts: h.Facts, Profiles: h.Profiles, Sides: c.explained.Sides(a)}}
	d.Title, b.sides = reportTitle(d.Run), d.Sides
	for _, e := range tableEntries(b.cut...) {
		if e.Cell != nil {
			b.notes.countCell(e.Cell)
		}
	}
	if d.Sections, err = b.impactSections(o.Impact); err != nil {
		return Document{}, err
	}
	b.answer.Needs, b.answer.Abilities = b.findNeeds(), b.profileAbilities()
	d.Answer = b.answer
	var pictured []Section
	for _, of := range pages {
		p := of(b)
		d.Lines, d.subjects = append(d.Lines, p.answer...), append(d.subjects, p.subjects...)
		for _, s := range p.sections {
			switch {
			case s.isEmpty():
			case s.Pictured():
				pictured = append(pictured, s)
			default:
				d.Sections = append(d.Sections, s)
			}
		}
	}
	d.Sections = append(d.Sections, tableSections(metrics, b.cut, func(t compare.Table) string { return t.Metric }, b.formatTable)...)
	d.Sections = append(d.Sections, pictured...)
	if d.Lines != nil { // the answer of pages replaces the needs: the profiles are points of curves
		d.Needs, d.Lines = nil, append(d.Lines, b.tallyLine()...)
	} else {
		d.Lines = b.answerLines()
	}
	d.Legend, d.Footnotes = b.legendLines(), b.notes.texts()
	d.Appendix = append(abilitySection(d.Abilities), b.appendixSections(d.Run)...)
	d.Summary = b.buildSummary(d, o.File)
	if line := implausibleText(o.Checked); line != "" {
		d.Lines, d.Summary.Notes = append(d.Lines, line), append(d.Summary.Notes, line)
	}
	d.Citation = citation(d)
	if len(a.Cells) > 0 {
		d.Appendix = append(d.Appendix, b.methodsSection(d))
	}
	d.Banners = warningBanners(d, c.curves.omitted)
	return d, nil
}

// selectMetrics returns the metrics with these names in report order; nil selects the headline metrics. It fails for an
// unknown name.
func selectMetrics(names []string) ([]metric.Metric, error) {
	var wrong []error
	for _, n := range names {
		if _, ok := metric.Lookup(n); !ok {
			wrong = append(wrong, fmt.Errorf("unknown metric %q%s", n, advice.DidYouMean(n, metric.Names())))
		}
	}
	if len(wrong) > 0 {
		return nil, advice.With(errors.Join(wrong...), "`cnibench list metrics` prints all metrics")
	}
	return each.Where(metric.All(), func(m metric.Metric) bool {
		return names == nil && m.Headline || slices.Contains(names, m.Name)
	}), nil
}

func reportTitle(r Run) string {
	what := "cnibench"
	if r.Origin != "" {
		what = number.Clean(r.Origin)
	}
	if r.Plan.Name != "" {
		what += " " + number.Clean(r.Plan.Name)
	}
	if r.Plan.Environment != "" {
		what += ", " + number.Clean(r.Plan.Environment)
	}
	return datedName(what, r.Created)
}

// builder has the data for the parts of a document.
type builder struct {
	header   result.Header
	analysis *compare.Analysis
	// from has the collected data that is not in the cells of the analysis.
	from *Collector
	// metrics are the metrics to show. cut has their tables, ordered by metric, then by workload.
	metrics []metric.Metric
	cut     []compare.Table
	sides   []explain.Side
	// answer has the needs and abilities for pages.
	answer Answer
	notes  footnotes
	// kinds has the kinds of the entries written so far; the legend explains them.
	kinds map[Kind]bool
}

func newBuilder(h result.Header, a *compare.Analysis, c *Collector, metrics []metric.Metric) *builder {
	b := &builder{header: h, analysis: a, from: c, metrics: metrics, kinds: map[Kind]bool{}}
	for _, m := range metrics {
		for _, w := range a.Workloads {
			if t, ok := a.Table(w, m.Name); ok {
				b.cut = append(b.cut, t)
			}
		}
	}
	return b
}

// series numbers the profiles from 1, in report order.
func (b *builder) series() Series { return Result{Analysis: b.analysis}.Series() }

// allCases yields every combination of a workload, a path and a profile of the result.
func (b *builder) allCases() iter.Seq[plan.Case] {
	return func(yield func(plan.Case) bool) {
		for _, w := range b.analysis.Workloads {
			for _, path := range b.analysis.Paths {
				for _, profile := range b.analysis.Profiles {
					if !yield(plan.Case{Profile: profile, Path: path, Workload: w}) {
						return
					}
				}
			}
		}
	}
}

// formatTable formats a table with its conclusions and notes. All its values have one unit. It records the kinds of the
// entries in b.kinds.
func (b *builder) formatTable(m metric.Metric, t compare.Table) Table {
	scale := number.Common(t.Unit, tableMedians(t)...)
	out := newTable(m, t.Workload, scale)
	out.Title = b.titleWithNIC(out.Title, t.Workload)
	columns := b.columnIndexes(t)
	for _, j := range columns {
		out.Columns = append(out.Columns, number.Clean(t.Profiles[j].String()))
	}
	for i, path := range t.Paths {
		row := Row{Label: path.String(), Short: shortPath(path), Path: path}
		for _, j := range columns {
			e := b.comparedEntry(t.Rows[i][j], plan.Case{Profile: t.Profiles[j], Path: path, Workload: t.Workload}, scale)
			b.kinds[e.Kind] = true
			row.Entries = append(row.Entries, e)
		}
		if len(columns) < len(t.Profiles) && !slices.ContainsFunc(row.Entries, func(e Entry) bool { return e.Kind != NotMeasured || len(e.Notes) > 0 }) {
			continue // only the baseline was measured there, as the note about it states
		}
		out.Rows = append(out.Rows, row)
	}
	out.Conclusions = b.tableConclusions(t, scale)
	out.Notes = b.tableNotes(t, columns, scale)
	return out
}

// columnIndexes returns the indexes of the profiles that get a column. It omits skipped profiles without a cell. It also
// omits a baseline with a single cell to which several paths are compared; a note below the table has that cell.
func (b *builder) columnIndexes(t compare.Table) []int {
	var out []int
	elsewhere := len(standInPaths(t)) > 0
	for j, p := range t.Profiles {
		if p == t.Baseline && len(t.Profiles) > 1 && len(t.Paths) > 1 && columnCellCount(t, j) == 1 && elsewhere {
			continue
		}
		if b.wasSkipped(p) && columnCellCount(t, j) == 0 {
			continue
		}
		out = append(out, j)
	}
	return out
}

// columnCellCount returns how many rows of t have a cell in column j.
func columnCellCount(t compare.Table, j int) int {
	return len(each.Where(t.Rows, func(row []compare.Entry) bool { return row[j].Cell != nil }))
}

func (b *builder) headerProfile(name plan.Variant) (result.Profile, bool) {
	return each.First(b.header.Profiles, func(p result.Profile) bool { return p.Name == name })
}

func (b *builder) wasSkipped(name plan.Variant) bool {
	p, ok := b.headerProfile(name)
	return ok && p.Skipped != ""
}

// comparedEntry formats one cell of a table with its comparison. Without a cell, the entry is NotServed if the profile lacks
// the path of c, or else NotMeasured.
func (b *builder) comparedEntry(from compare.Entry, c plan.Case, scale number.Scale) Entry {
	e := notMeasured
	if from.Cell != nil {
		e = b.notes.cellEntry(from.Cell, scale)
	} else if p, ok := b.headerProfile(c.Profile); ok && (p.NotServed[c.Path.String()] != "" || p.NotServed[c.Route().String()] != "") {
		e = Entry{Kind: NotServed, Text: number.Absent, Short: number.Absent}
	}
	e.Comparison = from.Comparison
	if x := from.Comparison; x != nil && e.Kind == Value {
		e.setVerdict(x.Verdict, x.Ratio)
	}
	return e
}

var shortRoles = map[plan.Role]string{plan.Service: "svc", plan.External: "ext", plan.LoadBalancer: "lb"}

// shortPath returns a short name of a path: "pod-svc remote".
func shortPath(p plan.Path) string {
	short := func(r plan.Role) string {
		if s, ok := shortRoles[r]; ok {
			return s
		}
		return string(r)
	}
	s := short(p.From) + "-" + short(p.To)
	if p.Locality != "" {
		s += " " + strings.TrimSuffix(string(p.Locality), "-node")
	}
	return s
}

// Collector collects the records of a result as they are read. It keeps what a report needs, in bounded memory except
// for two numbers per trial. The zero value is ready for use.
type Collector struct {
	// Stacks keeps the stacks of sampled trials, for pictures and profiles. (optional)
	Stacks bool
	// Detailed keeps distributions, for pictures. The records must have their observations. (optional)
	Detailed  bool
	judged    compare.Collector
	explained explain.Collector
	curves    curveCollector
	run       runTotals
	// states has the records about the state of instances: what rules, programs, Services and policies cost.
	states []result.Raised
	// pairs has the measurements between pairs of nodes.
	pairs matrix.Collector
	// added has the kept data of each Addition, by its index in additions.
	added map[int][]Kept
}

// Add adds a record. It fails if the result is larger than any plan can make.
func (c *Collector) Add(rec *result.Record) error {
	c.run.add(rec)
	if rec.Raised != nil && len(c.states) < maxStates {
		c.states = append(c.states, *rec.Raised)
	}
	c.keepAdditionData(rec)
	c.explained.Keep = c.Stacks
	if c.Detailed {
		c.curves.add(rec)
	}
	if !rec.Pair.IsZero() {
		c.pairs.Add(rec)
		// The cells have one value of each pair, so that it forms pairs with other profiles' values. If there are many
		// pairs, the first ones are used, since their order is random.
		if c.run.trials > mostPairTrials {
			return nil
		}
		one := *rec
		one.Repetition, one.Client, one.Server = c.pairs.Number(rec.Trial), nil, nil
		return c.judged.Add(&one)
	}
	return errors.Join(c.judged.Add(rec), c.explained.Add(rec))
}

// mostPairTrials is the number of trials of a run up to which trials between pairs of nodes count in cells.
const mostPairTrials = 20_000

// maxStates bounds the records kept about the states of instances, and those kept for each Addition.
const maxStates = 100_000

// runTotals adds up the trials of a run and their times. Each invocation of the run ends with a record of its wall time.
// A killed invocation writes no such record; the times of its trials are then added one by one.
type runTotals struct {
	trials, failed int
	reason         string
	// ended is the sum of the end records, and of the earlier trials that no end record covers. all is the sum of all
	// trials.
	ended, all span
	// open has the times of the trials since the last end record. There may be millions.
	open []brief
}

// brief is a span in microseconds. It takes half the memory of a span.
type brief struct{ wall, window float32 }

// span is a wall time, and the part of it in measurement windows.
type span struct{ wall, window time.Duration }

func (s *span) add(t span) {
	s.wall += t.wall
	s.window += t.window
}

func (a *runTotals) add(rec *result.Record) {
	switch {
	case rec.Type == result.TypeTrial:
		s := span{time.Duration(rec.WallNs), time.Duration(rec.WindowNs)}
		a.trials++
		if rec.Status != result.OK {
			a.failed++
		}
		a.all.add(s)
		a.open = append(a.open, brief{float32(s.wall.Microseconds()), float32(s.window.Microseconds())})
		a.reason = unfinished // a resumed run continues after an end
	case rec.Type == result.TypeEnd && rec.End != nil:
		a.reason = rec.End.Reason
		a.ended.add(span{time.Duration(rec.End.WallNs), time.Duration(rec.End.WindowNs)})
		a.ended.add(sumSpans(a.open[:min(len(a.open), max(0, len(a.open)-rec.End.Trials))]))
		a.open = nil
	}
}

// runOf returns the Run of the result with the header h. If the last trials have no end record, Wall and Windows are the
// sums over all trials.
func (a *runTotals) runOf(h result.Header) Run {
	r := Run{Plan: h.Plan, Origin: h.Origin, Created: h.Created, Reason: cmp.Or(a.reason, unfinished), Trials: a.trials, Failed: a.failed}
	r.Wall, r.Windows = a.ended.wall, a.ended.window
	if r.Wall <= 0 || r.Reason == unfinished {
		r.Wall, r.Windows = a.all.wall, a.all.window
	}
	if h.Origin == "" {
		r.Command = repeatCommand(h.Plan)
	}
	return r
}

// sumSpans returns the sum of spans.
func sumSpans(all []brief) span {
	var out span
	for _, s := range all {
		out.add(span{time.Duration(float64(s.wall) * 1e3), time.Duration(float64(s.window) * 1e3)})
	}
	return out
}
