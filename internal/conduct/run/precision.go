package run

import (
	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// confidence of the intervals that a plan's precision is about.
const confidence = 0.95

// imprecise returns the cases that have a headline metric whose interval is wider than the plan wants, judged by the
// repetitions before rep: then a run that was resumed decides as one that was not. A case of which no trial has
// finished is not measured on, since more of the same would not help it.
func (c *conductor) imprecise(rep int) []plan.Case {
	var wanted []plan.Case
	for _, k := range c.plan.Cases() {
		if c.survey.served[k] && !precise(c.memory.seen[k], rep, c.plan.Precision) {
			wanted = append(wanted, k)
		}
	}
	return wanted
}

// precise says whether all headline metrics of one case are known as well as wanted.
func precise(trials []measured, before int, want float64) bool {
	for _, m := range metric.All() {
		if !m.Headline {
			continue
		}
		var values []float64
		for _, t := range trials {
			if v, ok := t.metrics[m.Name]; ok && t.repetition < before {
				values = append(values, v)
			}
		}
		if len(values) == 0 {
			continue
		}
		s := stat.Summarize(values, confidence)
		// Around a median of 0 (no loss, as a rule) there is no relative width that could be reached.
		if s.Confidence < confidence || s.Median != 0 && s.HalfWidth() > want {
			return false
		}
	}
	return true
}

// withBaseline adds to the cases the baseline and its twin on the same path under the same workload, since a
// comparison is as sharp as the less sharp of its two sides.
func (c *conductor) withBaseline(cases []plan.Case) map[plan.Case]bool {
	selected := map[plan.Case]bool{}
	for _, k := range cases {
		selected[k] = true
		for _, name := range []plan.Variant{c.plan.Baseline, c.plan.Baseline.Twin()} {
			b := plan.Case{Profile: name, Path: k.Path, Workload: k.Workload}
			if c.survey.served[b] {
				selected[b] = true
			}
		}
	}
	return selected
}
