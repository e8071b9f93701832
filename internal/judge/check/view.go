package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/external/adapter"
	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/finding"
	"github.com/cnibench/cnibench/internal/vocab/metric"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// confidence is the confidence of the intervals that rules use.
const confidence = 0.95

// Key and Cell are the same types as in package compare. In a very large result, a cell has only some of its values.
type (
	Key  = compare.Key
	Cell = compare.Cell
)

// View is a result in the form that rules read. Records are added one by one and not kept.
type View struct {
	header result.Header
	facts  facts.Facts
	claims []Claim
	// broken has the errors of claims that could not be parsed, by the name of their fact.
	broken map[string]error

	trials, failed int
	// values gathers the numbers; buildCells makes cells from them.
	values compare.Collector
	// cells and cases are in the order of their first record; at and of have the same by key.
	cells []*Cell
	cases []*tally
	// judged are the cells that are compared with one another.
	judged []*Cell
	at     map[Key]*Cell
	of     map[plan.Case]*tally
}

// tally summarizes the trials of one case.
type tally struct {
	plan.Case
	trials, failed int
	// failure is the error of the first failed trial that has one.
	failure string
	// seen counts the trials in which a rule found something, by the index of the rule.
	seen map[int]*occurrences
	// warnings counts the trials with a warning, by the id of the warning.
	warnings map[string]*occurrences
}

// remark is the id of the warning that carries a source's remarks on an imported trial. Remarks raise no doubt, so rules
// ignore them.
const remark = "note"

// occurrences counts the trials in which something was found. first is the text of the first such trial.
type occurrences struct {
	times int
	first string
}

func addOccurrence[K comparable](m map[K]*occurrences, k K, what string) {
	if m[k] == nil {
		m[k] = &occurrences{first: what}
	}
	m[k].times++
}

// New returns an empty view of a result; Add adds its trials. New parses the claims among the facts.
func New(h result.Header) *View {
	v := &View{header: h, facts: h.Facts, of: map[plan.Case]*tally{}}
	v.claims, v.broken = claimsOf(h.Facts)
	return v
}

// Add adds a trial and ignores other records. It fails if the result has more cases than any plan can have.
func (v *View) Add(r result.Record) error {
	if r.Type != result.TypeTrial {
		return nil
	}
	r.Metrics = v.checkTrial(r)
	return v.values.Add(&r)
}

// workloadTraits returns the traits of the workload that a case ran, with the flows and the message size of its variant.
func (v *View) workloadTraits(c plan.Case) plan.Traits {
	return v.header.Plan.Loaded(c).Workload.Traits()
}

// checkTrial counts a trial and applies the rules about single trials to it. It returns the metrics of the trial, including
// derived ones; nil for a failed trial.
func (v *View) checkTrial(r result.Record) map[string]float64 {
	c := r.Case
	c.Workload = c.Workload.Normalize()
	t := v.of[c]
	if t == nil {
		t = &tally{Case: c, seen: map[int]*occurrences{}, warnings: map[string]*occurrences{}}
		v.of[c] = t
		v.cases = append(v.cases, t)
	}
	v.trials++
	t.trials++
	if r.Status != result.OK {
		v.failed++
		t.failed++
		if r.Error != nil && t.failure == "" {
			t.failure = cmp.Or(r.Error.Message, r.Error.Kind)
		}
		return nil
	}
	rang := map[string]bool{}
	for _, w := range r.Warnings {
		if w.ID != remark && !rang[w.ID] {
			addOccurrence(t.warnings, w.ID, w.Message)
		}
		rang[w.ID] = true
	}
	one := newTrial(v, c, r)
	for i, q := range rules {
		if q.trial == nil {
			continue
		}
		if what := q.trial(one); what != "" {
			addOccurrence(t.seen, i, what)
		}
	}
	return one.metrics
}

// buildCells sets cells, judged and at from the records so far. More records may be added afterwards.
func (v *View) buildCells() {
	v.cells, v.judged, v.at = nil, nil, map[Key]*Cell{}
	for _, cell := range v.values.Cells(confidence) {
		v.cells, v.at[cell.Key] = append(v.cells, &cell), &cell
	}
	for _, c := range v.cells {
		twice := c.Metric == metric.RTT+".mean" && v.cell(c.Case, metric.RTT+".p50") != nil
		if slices.Contains(judged, c.Metric) && !twice {
			v.judged = append(v.judged, c)
		}
	}
}

// addTrialFindings adds the findings of rule i in single trials. A finding in fewer than half of a case's trials does
// not affect its median: it is a note, unless the rule's severity is impossible.
func (v *View) addTrialFindings(i int, found *list) {
	for _, t := range v.cases {
		r := t.seen[i]
		if r == nil {
			continue
		}
		f := found.add(t.Case.Key(), "%s", r.first)
		if ok := t.trials - t.failed; ok > 1 {
			f.Saw += fmt.Sprintf(" (in %d of %d trials)", r.times, ok)
			if 2*r.times < ok && pageRules().Of(rules[i].id).Severity != finding.Impossible {
				f.Severity = finding.Note
			}
		}
	}
}

// cell returns the cell of a case and a metric, nil if there is no number.
func (v *View) cell(c plan.Case, name string) *Cell { return v.at[Key{Case: c, Metric: name}] }

// imported reports whether another tool measured the result. Some rules apply only to imported results: our own trials
// compare their two sides themselves and record a warning.
func (v *View) imported() bool { return v.header.Origin != "" }

// inLab reports whether the result is our own run in the lab, where both ends share one machine.
func (v *View) inLab() bool { return !v.imported() && v.header.Plan.Environment != "kubernetes" }

// lacksWire reports whether there is no wire between nodes: in a lab or on one machine, without a line rate.
func (v *View) lacksWire() bool {
	return v.lineRate() == 0 && (v.inLab() || v.facts["nodes.machines"] == "1")
}

func (v *View) sourceName() string {
	return number.Clean(cmp.Or(v.facts["source"], v.header.Plan.Name))
}

// factInUnit returns a quantity among the facts, such as "10Gbit/s", in the unit want; 0 if it is missing or unreadable.
func (v *View) factInUnit(name, want string) float64 {
	x, unit, err := adapter.Suffixed(strings.TrimSpace(v.facts[name]))
	x, wrong := number.Convert(x, cmp.Or(strings.TrimSpace(unit), "1"), want)
	if err != nil || wrong != nil {
		return 0
	}
	return x
}

// lineRate returns the rate of the wire between nodes in bit/s, 0 if unknown.
func (v *View) lineRate() float64 {
	if r := v.factInUnit("line_rate", "bit/s"); r > 0 {
		return r
	}
	return v.header.Plan.Lab.LineRate
}

// formatValue formats a value of a metric with its unit.
func formatValue(k Key, x float64) string {
	base := metric.UnitFor(k.Metric, k.Workload.Traits().Work)
	s := number.Common(base, x)
	text := s.Format(x)
	if s.Unit == "1" {
		return text
	}
	return text + " " + s.Unit
}

// medianText formats the median of a cell with its unit.
func medianText(c *Cell) string { return formatValue(c.Key, c.Median) }

// worseFactor returns the ratio of the medians (above 1) if a is worse than b beyond the margin (a share) and beyond both
// intervals; otherwise 0.
func worseFactor(a, b *Cell, margin float64) float64 {
	m, ok := metric.Lookup(a.Metric)
	if !ok || a.Median <= 0 || b.Median <= 0 {
		return 0
	}
	switch {
	case m.Better == metric.Higher && a.High*(1+margin) < b.Low:
		return b.Median / a.Median
	case m.Better == metric.Lower && a.Low > b.High*(1+margin):
		return a.Median / b.Median
	}
	return 0
}
