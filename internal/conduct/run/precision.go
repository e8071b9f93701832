package run

import (
	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// confidence is the confidence level of the intervals that a plan's precision bounds.
const confidence = 0.95

// undecidedCases returns the cases that need more repetitions, according to all trials of the file: a headline
// metric's comparison with the baseline is inconclusive, and the interval of the case's own value is wider than the
// plan's precision or not yet of full confidence. It omits cases without a finished trial. It includes the baseline
// and its twin only if no case is compared with them.
//
// A run that tests after each repetition and stops at the first difference would find too many differences. So a case is
// decided only at a confidence level that holds for all tests of the run together (Bonferroni).
func (c *conductor) undecidedCases() ([]plan.Case, error) {
	h := result.Header{Plan: c.plan, Profiles: c.survey.profiles}
	now, err := c.memory.trials.Analyse(h, compare.Options{Confidence: confidence})
	if err != nil {
		return nil, err
	}
	looks := float64(c.plan.MaxRepetitions - c.plan.Repetitions + 1)
	all, err := c.memory.trials.Analyse(h, compare.Options{Confidence: 1 - (1-confidence)/looks})
	if err != nil {
		return nil, err
	}
	decided := map[compare.Key]bool{}
	for _, x := range all.Comparisons {
		decided[x.Key] = x.Verdict != compare.Inconclusive
	}
	var wanted []plan.Case
	for _, k := range c.plan.Cases() {
		if own := k.Profile == c.plan.Baseline || k.Profile.IsTwin(); !c.survey.served[k] || own && len(decided) > 0 {
			continue
		}
		for _, m := range metric.All() {
			key := compare.Key{Case: k, Metric: m.Name}
			key.Workload = k.Workload.Normalize()
			cell, ok := now.Cell(key)
			if !ok || !m.Headline || cell.N == 0 || decided[key] {
				continue
			}
			// No relative width can be reached around a median of 0, which is usually no loss.
			if cell.Confidence < confidence || cell.Median != 0 && cell.HalfWidth() > c.plan.Precision {
				wanted = append(wanted, k)
				break
			}
		}
	}
	return wanted, nil
}

// casesWithBaseline returns the set of the given cases and of the cases that they are compared with: the baseline and its twin
// with the same workload, on the same path or, if that is not served, on plan.ZeroPath. A comparison is only as precise as
// the less precise of its two sides.
func (c *conductor) casesWithBaseline(cases []plan.Case) map[plan.Case]bool {
	selected := map[plan.Case]bool{}
	for _, k := range cases {
		selected[k] = true
		for _, name := range []plan.Variant{c.plan.Baseline, c.plan.Baseline.Twin()} {
			b := plan.Case{Profile: name, Path: k.Path, Workload: k.Workload}
			if !c.survey.served[b] {
				b.Path = plan.ZeroPath // the path that replaces a missing path of the baseline
			}
			if c.survey.served[b] {
				selected[b] = true
			}
		}
	}
	return selected
}
