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

// confidence is that of the intervals on which rules stand.
const confidence = 0.95

// Key and Cell are those of every judgement. Of a very large result a part of a cell's values stands for all.
type (
	Key  = compare.Key
	Cell = compare.Cell
)

// View is a result as the rules see it. Records are added one by one and not kept.
type View struct {
	header result.Header
	facts  facts.Facts
	claims []Claim
	// broken are claims that could not be read, by the name of their fact.
	broken map[string]error

	trials, failed int
	// values gathers the numbers; finish makes cells of them.
	values compare.Collector
	// cells and cases are in the order in which they came; at finds a cell.
	cells []*Cell
	cases []*tally
	// judged are the cells that are held against one another.
	judged []*Cell
	at     map[Key]*Cell
	of     map[plan.Case]*tally
}

// tally is what the trials of one case showed.
type tally struct {
	plan.Case
	trials, failed int
	// failure is why the first failed trial failed.
	failure string
	// seen says, by number of a rule, how many trials it rang at, and what it saw first.
	seen map[int]*rung
	// warnings are those that the trials carry, by id.
	warnings map[string]*rung
}

// remark is the id under which an imported trial carries its source's remarks, which are not doubts.
const remark = "note"

// rung is how often something was seen, and what at first.
type rung struct {
	times int
	first string
}

func ring[K comparable](m map[K]*rung, k K, what string) {
	if m[k] == nil {
		m[k] = &rung{first: what}
	}
	m[k].times++
}

// New begins the view of a result. The claims are read from the facts.
func New(h result.Header) *View {
	v := &View{header: h, facts: h.Facts, of: map[plan.Case]*tally{}}
	v.claims, v.broken = claimsOf(h.Facts)
	return v
}

// Add takes in a record and ignores all but trials. It fails if the result has more cases than any plan makes.
func (v *View) Add(r result.Record) error {
	if r.Type != result.TypeTrial {
		return nil
	}
	r.Metrics = v.trial(r)
	return v.values.Add(&r)
}

// sent is what was sent in a case: under the flows and the message size of its variant.
func (v *View) sent(c plan.Case) plan.Traits { return v.header.Plan.Loaded(c).Workload.Traits() }

// trial asks the rules about a trial and returns its numbers with those that follow from them.
func (v *View) trial(r result.Record) map[string]float64 {
	c := r.Case
	c.Workload = c.Workload.Normalize()
	t := v.of[c]
	if t == nil {
		t = &tally{Case: c, seen: map[int]*rung{}, warnings: map[string]*rung{}}
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
			ring(t.warnings, w.ID, w.Message)
		}
		rang[w.ID] = true
	}
	one := newTrial(v, c, r)
	for i, q := range rules {
		if q.trial == nil {
			continue
		}
		if what := q.trial(one); what != "" {
			ring(t.seen, i, what)
		}
	}
	return one.metrics
}

// finish summarizes what was collected; more may be added after it.
func (v *View) finish() {
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

// tallied adds what rule i saw in single trials. What only a minority of a case's trials shows is not what its median
// stands on: it is a note, unless it is impossible.
func (v *View) tallied(i int, found *list) {
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

// imported says that another tool measured. The two sides of our own trials are held against one another where the
// windows of both are known, and a disagreement is one of their warnings.
func (v *View) imported() bool { return v.header.Origin != "" }

// inLab says that it is a run of the embedded lab, in which both ends share one machine.
func (v *View) inLab() bool { return !v.imported() && v.header.Plan.Environment != "kubernetes" }

// withoutWire says that no wire stands between nodes: in a lab that is not shaped.
func (v *View) withoutWire() bool { return v.inLab() && v.lineRate() == 0 }

func (v *View) source() string {
	return number.Clean(cmp.Or(v.facts["source"], v.header.Plan.Name))
}

// fact returns a quantity that is recorded as a fact, such as "10Gbit/s", in the unit wanted; 0 if it is not there or
// cannot be read.
func (v *View) fact(name, want string) float64 {
	x, unit, err := adapter.Suffixed(strings.TrimSpace(v.facts[name]))
	x, wrong := number.Convert(x, cmp.Or(strings.TrimSpace(unit), "1"), want)
	if err != nil || wrong != nil {
		return 0
	}
	return x
}

// lineRate is that of the wire between nodes in bit/s, 0 if it is not known.
func (v *View) lineRate() float64 {
	if r := v.fact("line_rate", "bit/s"); r > 0 {
		return r
	}
	return v.header.Plan.Lab.LineRate
}

// show writes a value of a metric with its unit.
func show(k Key, x float64) string {
	base := metric.UnitFor(k.Metric, k.Workload.Traits().Work)
	s := number.Common(base, x)
	text := s.Format(x)
	if s.Unit == "1" {
		return text
	}
	return text + " " + s.Unit
}

// median writes the median of a cell with its unit.
func median(c *Cell) string { return show(c.Key, c.Median) }

// worse says that a is worse than b beyond the margin (a share) and beyond both intervals, and by what factor in the
// medians (above 1); 0 if it is not.
func worse(a, b *Cell, margin float64) float64 {
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
