package compare

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/advice"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// Side is one of the results that are compared.
type Side struct {
	// Name is the name for the reader, usually its file.
	Name   string
	Header result.Header
	*Analysis
}

// Pair is two results, of which B is compared with A.
type Pair struct {
	A, B               Side
	Confidence, Margin float64
	// Common is the baseline that both measured in turn with all other profiles, or "".
	Common plan.Variant
	// Differences are the conditions in which the two differ: any of them may cause the differences in Matches.
	Differences []Difference
	// Matches are the cells that both have, in the report order of A.
	Matches []Match
	// OnlyA and OnlyB are the cells that the other has not tried. Metric is "" for a whole case.
	OnlyA, OnlyB []Key
}

// Match is a cell of B compared with the cell of A. Comparison's Profile is B's, its Baseline is A's, and its Effect is
// B over A, by a test for samples of different times. A cell without a number has N 0, and then nothing is claimed.
type Match struct {
	Comparison
	A, B *Cell
	// Common is the baseline that both results measured in turn with the cell, on the same path, or "". The Effect then
	// compares quotients to it, which cancels a moment's effect on all cells.
	Common plan.Variant
	// Plain compares the values. Quotient compares only the quotients; it is the zero value if there are none.
	Plain, Quotient stat.Effect
	// Yardstick is true for the cells of the common baseline: they show how the moments differ, and are not judged.
	Yardstick bool

	// after and before are the units of B and of A, or their quotients. If levels is set, it is used instead: the levels of
	// B and of A, for undisturbed values.
	after, before []float64
	levels        *[2]stat.Level
	// values is the match by the values themselves, if this match compares quotients. Other work on a machine slows all
	// paths by a factor, or adds a time to each, which is a larger share of the baseline's short path. So quotients may
	// differ although values do not. Better and worse therefore require both. Same requires only the quotients, except
	// for tails, which have few events.
	values *Match
}

// Lost reports whether A has a number and every trial of B failed.
func (m Match) Lost() bool { return m.A.N > 0 && m.B.N == 0 && m.B.Failed > 0 }

// eitherCrowded reports whether A or B was never measured on an undisturbed machine.
func (m Match) eitherCrowded() bool { return m.A.Crowded || m.B.Crowded }

// Identical reports whether both are the same trials, as when a result is compared with itself. Nothing differs then,
// however wide the interval is.
func (m Match) Identical() bool { return m.A.N > 0 && slices.Equal(m.A.Samples, m.B.Samples) }

// Size returns the size of the difference, for sorting: the absolute logarithm of the ratio, infinite if one side is
// zero and the verdict is a difference, otherwise 0.
func (m Match) Size() float64 {
	switch {
	case !math.IsNaN(m.Ratio):
		return math.Abs(math.Log(m.Ratio))
	case m.Verdict == Better || m.Verdict == Worse:
		return math.Inf(1)
	}
	return 0
}

// NewPair compares B with A. names maps profiles of A to profiles of B; others are compared with their namesakes. It
// fails, with a hint, if a profile is missing or the results have nothing in common.
func NewPair(a, b Side, names map[plan.Variant]plan.Variant) (*Pair, error) {
	var errs []error
	for from, to := range names {
		for side, name := range map[*Side]plan.Variant{&a: from, &b: to} {
			if !slices.Contains(side.Profiles, name) {
				errs = append(errs, fmt.Errorf("profile %q is not in %s, which has %s", name, side.Name, strings.Join(plan.Texts(side.Profiles), ", ")))
			}
		}
	}
	if len(errs) > 0 {
		slices.SortFunc(errs, func(x, y error) int { return strings.Compare(x.Error(), y.Error()) })
		return nil, errors.Join(errs...)
	}
	p := &Pair{A: a, B: b, Confidence: a.Confidence, Margin: a.Margin, Differences: differingConditions(a.Header, b.Header)}
	p.matchCells(names)
	if len(p.Matches) == 0 {
		return nil, advice.With(fmt.Errorf("%s and %s have no cell in common", a.Name, b.Name),
			fmt.Sprintf("%s has %s; %s has %s; --map A=B compares profiles of different names", a.Name, describeContent(a), b.Name, describeContent(b)))
	}
	return p, nil
}

// describeContent describes the content of a result.
func describeContent(s Side) string {
	words := each.Of(s.Workloads, func(w plan.Workload) string { return w.String() })
	if len(s.Cells) == 0 {
		return "no trial"
	}
	return strings.Join(plan.Texts(s.Profiles), ", ") + " under " + strings.Join(words, ", ")
}

// matchCells sets Matches, OnlyA, OnlyB and Common, and judges the matches. names maps profiles of A to profiles of B.
func (p *Pair) matchCells(names map[plan.Variant]plan.Variant) {
	alias := func(k Key) Key {
		k.Profile = cmp.Or(names[k.Profile], k.Profile)
		return k
	}
	same := func(k Key) Key { return k }
	p.OnlyA, p.OnlyB = missingKeys(p.A.Cells, alias, p.B.Cells, same), missingKeys(p.B.Cells, same, p.A.Cells, alias)
	p.Common = p.commonBaseline()
	allowed := p.runAllowance()
	for i := range p.A.Cells {
		c := &p.A.Cells[i]
		k := alias(c.Key)
		other := p.B.at[k]
		if other == nil {
			continue
		}
		attached := Difference{"attachment of new pods of " + c.Profile.String(), c.Attached, other.Attached}
		if c.Unlike(other) && !slices.Contains(p.Differences, attached) { // no verdict compares them
			p.Differences = append(p.Differences, attached)
		}
		m := p.plainMatch(c, other)
		if common := p.Common; !common.IsZero() && (c.Profile != common || k.Profile != common) {
			p.useQuotients(&m, p.A.divisorCells(c.Key, common), p.B.divisorCells(k, common))
		}
		if m.Widened > 0 && !m.Common.IsZero() {
			before, after := p.A.floorOf(k.Workload, k.Metric).Share, p.B.floorOf(k.Workload, k.Metric).Share
			m.Widened = (1+before)*(1+after) - 1 // each quotient is of two instances
		}
		m.addAllowance(allowed)
		p.Matches = append(p.Matches, m)
	}
	p.judgeMatches()
}

// plainMatch compares a cell of B with one of A by their values, without quotients.
func (p *Pair) plainMatch(c, other *Cell) Match {
	both := comparableCells(c, other)
	c, other = both[0], both[1]
	m := Match{A: c, B: other, Comparison: Comparison{Key: other.Key, Baseline: c.Profile}}
	m.after, m.before = valuesOf(other.comparisonUnits()), valuesOf(c.comparisonUnits())
	m.Plain = stat.Unpaired(m.after, m.before, p.Confidence)
	if allUndisturbed(c, other) {
		m.levels = &[2]stat.Level{p.B.undisturbedLevel(other), p.A.undisturbedLevel(c)}
		m.Plain = m.scaledTestBy(stat.StudentT, p.Confidence)(1)
	}
	if min(c.Instances, other.Instances) < 2 {
		m.Widened = max(p.A.floorOf(c.Workload, c.Metric).Share, p.B.floorOf(c.Workload, c.Metric).Share)
	}
	return m
}

// addAllowance adds the usual difference between equal runs to the error of undisturbed values. It changes nothing if
// the match compares other values.
func (m *Match) addAllowance(of allowance) {
	if m.values != nil {
		m.values.addAllowance(of)
	}
	if share := of[string(m.Workload.Kind())+" "+m.Metric]; share > 0 && m.levels != nil {
		m.levels[0] = m.levels[0].Allowing(math.Log1p(share))
	}
}

// commonBaseline returns the baseline that both results measured in turn with all other profiles, or "".
func (p *Pair) commonBaseline() plan.Variant {
	if a := baselineInTurn(p.A.Header); a == baselineInTurn(p.B.Header) {
		return a
	}
	return plan.Variant{}
}

// baselineInTurn returns the baseline that a run measured in turn with all other profiles. It returns "" if the run did
// not do so, or if another program measured it.
func baselineInTurn(h result.Header) plan.Variant {
	if h.Origin != "" || h.Facts[facts.InTurn] != "" {
		return plan.Variant{}
	}
	return h.Plan.Baseline
}

// divisorCells returns the baseline's cells that the cell of k is divided by. They are the baseline's own, and the
// twin's if both are undisturbed. It returns nil if there is none.
func (a *Analysis) divisorCells(k Key, common plan.Variant) []*Cell {
	below := a.momentCell(k, common)
	if below == nil {
		return nil
	}
	k = below.Key
	k.Profile = common.Twin()
	if twin := a.at[k]; twin != nil && allUndisturbed(below, twin) {
		return []*Cell{below, twin}
	}
	return []*Cell{below}
}

// useQuotients makes a match compare quotients to the baseline, if both results have it on the same path. Undisturbed
// values are divided by the level of the baseline's cells; if that level changed from A to B, only the part of the
// change beyond its error is removed. Other values are divided by the baseline's value in the same repetition.
func (p *Pair) useQuotients(m *Match, below, under []*Cell) {
	if below == nil || under == nil || below[0].Path != under[0].Path {
		return
	}
	values := *m
	if m.levels != nil && allUndisturbed(below[0], under[0]) {
		after, before := p.B.contrastLevel(under...), p.A.contrastLevel(below...)
		unsure := after.Over(before).Unsure()
		m.levels = &[2]stat.Level{p.B.contrastLevel(m.B).Over(after).Times(unsure), p.A.contrastLevel(m.A).Over(before)}
		m.Common, m.values = p.Common, &values
		return
	}
	after, before := quotientsOf(m.B.Recorded(), under[0].Recorded()), quotientsOf(m.A.Recorded(), below[0].Recorded())
	if min(len(after), len(before)) < 2 {
		return
	}
	m.Common, m.values, m.after, m.before, m.levels = p.Common, &values, after, before, nil
}

// quotientsOf returns the units of c, each divided by the unit of base in the same repetition. It returns nil if fewer than
// half of the units have such a unit of base, or if a value is not positive.
func quotientsOf(c, base Estimate) []float64 {
	units := c.comparisonUnits()
	var out []float64
	for x, y := range pairsOf(units, base.comparisonUnits()) {
		if !(x.Value > 0) || !(y.Value > 0) {
			return nil
		}
		out = append(out, x.Value/y.Value)
	}
	if 2*len(out) < len(units) {
		return nil
	}
	return out
}

// judgeMatches compares the matches and sets the verdicts. All cells that can be worse are one family. So if nothing
// differs, the chance of any better or worse is at most 1 - Confidence. If there are too many matches for a rank test
// to reach the level with these repetitions, it uses Student's test.
func (p *Pair) judgeMatches() {
	alpha := 1 - p.Confidence
	family := 0
	beside := slices.ContainsFunc(p.Matches, func(m Match) bool { return !m.Common.IsZero() })
	for i := range p.Matches {
		m := &p.Matches[i]
		m.Yardstick = beside && m.Profile == p.Common && m.Baseline == p.Common
	}
	for _, m := range p.Judged() {
		if min(len(m.after), len(m.before)) > 1 {
			family++
		}
	}
	var open []pending
	for i := range p.Matches {
		m := &p.Matches[i]
		m.Need, m.Trials = 0, 0 // of the family in which it was judged before
		test := m.chooseTest(alpha / float64(max(1, family)))
		m.setEffect(m.scaledTestBy(test, p.Confidence), p.Margin)
		if m.values != nil {
			by := m.quotientMatch().scaledTestBy(test, p.Confidence)
			if m.Quotient = widenedEffect(m.Widened, by); !isTail(m.Metric) {
				m.Beyond = beyondMarginP(p.Margin, m.Widened, by)
			}
		}
		if m.Yardstick {
			m.Adjusted, m.Family, m.Need, m.Verdict = math.NaN(), 0, 0, None
			continue
		}
		open = append(open, pending{x: &m.Comparison, c: m.B, base: m.A, apart: true})
	}
	settleVerdicts(open, rules{p.Confidence, p.Margin, oneFamily, stat.Holm})
	for i := range p.Matches {
		m := &p.Matches[i]
		switch {
		case m.N == 0:
			m.Need = 0 // more repetitions would not help
		case m.eitherCrowded() && (m.Verdict == Better || m.Verdict == Worse):
			m.Verdict = Inconclusive // other work at that time may be the cause
		case m.Identical() && m.Verdict != None:
			m.Verdict, m.Need = Same, 0
		}
	}
}

// isTail reports whether a metric is about the slowest times. Other work does not multiply them: an interruption may
// create the tail of a short path and be hidden in a long one.
func isTail(name string) bool {
	return slices.ContainsFunc([]string{".p90", ".p95", ".p99", ".p99.9", ".max"}, func(end string) bool { return strings.HasSuffix(name, end) })
}

// coveringEffect returns an effect whose interval covers the intervals of both, so that a verdict holds for both. Its p
// value is the larger one, or 1 if the two ratios are on different sides of 1. An effect without a ratio is ignored.
func coveringEffect(a, b stat.Effect) stat.Effect {
	switch {
	case math.IsNaN(a.Ratio):
		return b
	case math.IsNaN(b.Ratio):
		return a
	}
	if a.P = max(a.P, b.P); (a.Ratio > 1) != (b.Ratio > 1) {
		a.P = 1
	}
	a.Low, a.High, a.Confidence = min(a.Low, b.Low), max(a.High, b.High), min(a.Confidence, b.Confidence)
	return a
}

// chooseTest returns the test for a match: ranks, or Student's test for undisturbed values and if ranks cannot reach level.
func (m *Match) chooseTest(level float64) stat.Test {
	if m.levels != nil || stat.LeastP(stat.MannWhitney, len(m.after), len(m.before)) > level {
		return stat.StudentT
	}
	return stat.MannWhitney
}

// quotientMatch returns a copy of the match that compares only the quotients.
func (m *Match) quotientMatch() *Match {
	q := *m
	q.values = nil
	return &q
}

// scaledTestBy returns the comparison of both sides by a test. A match with quotients is compared by its values and by its
// quotients. If Student's test is impossible, because values are not positive or do not scatter, it uses ranks.
func (m *Match) scaledTestBy(test stat.Test, confidence float64) scaledTest {
	if m.values != nil {
		one, other := m.values.scaledTestBy(test, confidence), m.quotientMatch().scaledTestBy(test, confidence)
		if !isTail(m.Metric) {
			one, other = other, one
		}
		return func(factor float64) stat.Effect { return coveringEffect(one(factor), other(factor)) }
	}
	return func(factor float64) stat.Effect {
		if m.levels != nil {
			return stat.Welch(m.levels[0].Times(factor), m.levels[1], confidence)
		}
		after := scaledValues(m.after, factor)
		if test == stat.StudentT {
			if e := stat.Student(after, m.before, confidence); e.P < 1 {
				return e
			}
		}
		return stat.Ranks(after, m.before, confidence)
	}
}

// missingKeys returns the keys of the cells that others does not have. name and otherName return the names by which keys are
// compared. If others has no cell of a case, it returns one key without a metric for the case.
func missingKeys(cells []Cell, name func(Key) Key, others []Cell, otherName func(Key) Key) []Key {
	there := map[Key]bool{}
	for _, c := range others {
		k := otherName(c.Key)
		there[k], there[k.caseKey()] = true, true
	}
	var out []Key
	for _, c := range cells {
		switch k := name(c.Key); {
		case !there[k.caseKey()]:
			out = append(out, c.caseKey())
		case !there[k]:
			out = append(out, c.Key)
		}
	}
	return each.Once(out)
}

// Judged returns the matches that can have a verdict. It omits metrics without a direction, the common baseline, and
// pods that were attached in different ways.
func (p *Pair) Judged() []Match {
	return slices.DeleteFunc(slices.Clone(p.Matches), func(m Match) bool {
		return m.Yardstick || directionOf(m.Metric) == metric.Neither || m.A.Unlike(m.B)
	})
}

// Only returns a copy of p with the matches and the unmatched cells that keep selects. The matches are judged again, as
// a family of their own.
func (p *Pair) Only(keep func(Key) bool) *Pair {
	q := *p
	q.Matches = each.Where(p.Matches, func(m Match) bool { return keep(m.A.Key) })
	q.OnlyA, q.OnlyB = each.Where(p.OnlyA, keep), each.Where(p.OnlyB, keep)
	q.judgeMatches()
	return &q
}
