// Package check finds impossible and doubtful numbers in results: our own, imported and published ones.
//
//	header ──► New ──► View ◄── Add ◄── records
//	                     │
//	                     ▼
//	            rules ──► Report{Findings} ──► report.BuildCheck
//
// Rules use physics, arithmetic, Kubernetes and statistics, never the author's name. Every rule runs on every result
// and is silent where the facts that it needs are missing. Some rules read one trial (rate times time is not the amount
// moved), some compare cells (faster across the wire than the bare hosts), some read the recorded conditions (a CNI
// installed over the remains of another), and some judge the claims of the text (claim.go). docs/reference/check.md
// lists them.
//
// Rules compare intervals, so that noise is not a defect: the near ends of two intervals must be apart by the rule's
// margin. A single repetition has only its value, and the rule few-repetitions reports that.
//
// Read rule and View first. Values are in the base units of package metric; what was not measured is absent.
package check

import (
	"cmp"
	_ "embed" // the page
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/cnibench/cnibench/internal/external/adapter"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/advice"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/finding"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// rule has the checks behind one finding.Rule.
type rule struct {
	id string
	// trial returns what is wrong with a trial, or "". (optional)
	trial func(*trial) string
	// beside has comparisons between cells. (optional)
	beside []beside
	// find adds its findings about the whole result. (optional)
	find func(*View, *list)
}

// list collects the findings of a rule. A finding without a severity gets the severity of the rule.
type list []finding.Finding

func (l *list) add(where, format string, args ...any) *finding.Finding {
	*l = append(*l, finding.Finding{Where: where, Saw: fmt.Sprintf(format, args...)})
	return &(*l)[len(*l)-1]
}

// groups has a list of values for each key. Its method all yields each key with its list, in the order in which the keys
// were first added.
type groups[K comparable, V any] struct {
	keys []K
	of   map[K][]V
}

func (g *groups[K, V]) add(k K, v V) {
	if g.of == nil {
		g.of = map[K][]V{}
	}
	if g.of[k] == nil {
		g.keys = append(g.keys, k)
	}
	g.of[k] = append(g.of[k], v)
}

func (g *groups[K, V]) all() iter.Seq2[K, []V] {
	return func(yield func(K, []V) bool) {
		for _, k := range g.keys {
			if !yield(k, g.of[k]) {
				return
			}
		}
	}
}

// rules are all rules of this package, in the order of a report: about sums, about the wire, about the set-up, about the
// sample, about claims.
var rules = slices.Concat(sumRules, wireRules, setupRules, sampleRules, claimRules)

// page is docs/reference/check.md, which describes each rule in the order of rules.
//
//go:generate cp page.md ../../../docs/reference/check.md
//go:embed page.md
var page string

var pageRules = sync.OnceValue(func() finding.Rules { return finding.ParseRules(page) })

// Rules returns all rules in the order in which a report shows them.
func Rules() []finding.Rule { return pageRules() }

// Report is what was found in one result.
type Report struct {
	// Name is the name of the file. Source is the fact "source", or the name of the plan if that fact is missing.
	Name   string `json:"name"`
	Source string `json:"source,omitempty"`
	// Cells and Trials count what was checked; Trials includes the failed ones.
	// Failed counts the failed trials, Claims the claims that could be parsed.
	Cells  int `json:"cells"`
	Trials int `json:"trials"`
	Failed int `json:"failed"`
	Claims int `json:"claims"`
	// Findings are sorted by severity, worst first, and within it by the order of the rules.
	Findings []finding.Finding `json:"findings"`
}

// Alarm reports whether a finding is more than a note.
func (r Report) Alarm() bool { return finding.Alarm(r.Findings) }

// Report applies the rules named by only, all rules if it is empty. It fails if a rule is unknown. name is the file.
func (v *View) Report(name string, only []string) (Report, error) {
	if err := Known(only); err != nil {
		return Report{}, err
	}
	v.buildCells()
	r := Report{
		Name: name, Source: v.sourceName(), Cells: len(v.cells), Trials: v.trials, Failed: v.failed, Claims: len(v.claims),
		Findings: []finding.Finding{},
	}
	for i, q := range rules {
		if len(only) > 0 && !slices.Contains(only, q.id) {
			continue
		}
		var found list
		v.addTrialFindings(i, &found)
		for _, b := range q.beside {
			b.compareCells(v, &found)
		}
		if q.find != nil {
			q.find(v, &found)
		}
		for _, s := range found {
			f := pageRules().Of(q.id).Found(s.Where, s.Saw)
			f.Severity = cmp.Or(s.Severity, f.Severity)
			r.Findings = append(r.Findings, f)
		}
	}
	finding.Sort(r.Findings)
	return r, nil
}

// Known fails if an id is not the id of a rule. The error lists all such ids.
func Known(ids []string) error {
	var unknown []string
	for _, id := range ids {
		if !slices.ContainsFunc(rules, func(r rule) bool { return r.id == id }) {
			unknown = append(unknown, id+advice.DidYouMean(id, each.Of(rules, func(r rule) string { return r.id })))
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	return fmt.Errorf("there is no rule %s", strings.Join(unknown, ", "))
}

// trial is one successful trial in the form that rules read.
type trial struct {
	plan.Case
	view     *View
	metrics  map[string]float64
	warnings []sample.Warning
	// seconds is the length of its window, 0 if unknown.
	seconds float64
	// client is the client's time series, nil without one.
	client *sample.Observation
}

func newTrial(v *View, c plan.Case, r result.Record) *trial {
	t := &trial{Case: c, view: v, metrics: maps.Clone(r.Metrics), warnings: r.Warnings, seconds: float64(r.WindowNs) / 1e9, client: r.Client}
	if w := t.metrics[metric.Window]; w > 0 {
		t.seconds = w / 1e9
	}
	if t.has(metric.Datagrams, metric.DatagramsLost) && !t.has(metric.FrameLossRate) && t.metrics[metric.Datagrams] > 0 {
		t.metrics[metric.FrameLossRate] = t.metrics[metric.DatagramsLost] / t.metrics[metric.Datagrams]
	}
	return t
}

// has reports whether all these metrics were measured.
func (t *trial) has(names ...string) bool {
	return !slices.ContainsFunc(names, func(n string) bool { _, ok := t.metrics[n]; return !ok })
}

// twoMetrics returns the values of two metrics. ok is true if both were measured.
func (t *trial) twoMetrics(one, other string) (a, b float64, ok bool) {
	return t.metrics[one], t.metrics[other], t.has(one, other)
}

// formatMetric formats the value of a metric with its unit.
func (t *trial) formatMetric(name string, x float64) string {
	return formatValue(Key{Case: t.Case, Metric: name}, x)
}

// hasWarning reports whether the trial has the warning.
func (t *trial) hasWarning(id string) bool {
	return slices.ContainsFunc(t.warnings, func(w sample.Warning) bool { return w.ID == id })
}

// hasAssumption reports whether a property of the workload is missing from the tool's output and was assumed.
func (t *trial) hasAssumption(what string) bool {
	return slices.ContainsFunc(t.warnings, func(w sample.Warning) bool {
		return w.ID == adapter.Assumed && strings.Contains(w.Message, what)
	})
}
