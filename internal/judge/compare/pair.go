package compare

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/advice"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// Side is one of the results that are set side by side.
type Side struct {
	// Name is what the reader calls it: as a rule its file.
	Name   string
	Header result.Header
	*Analysis
}

// Pair is two results side by side: what B shows against A.
type Pair struct {
	A, B       Side
	Confidence float64
	// Differences are the conditions in which the two differ: any of them may be the cause of what Matches show.
	Differences []Difference
	// Matches are the cells that both have, in the report order of A.
	Matches []Match
	// OnlyA and OnlyB are what the other has not tried. Metric is "" for a whole case.
	OnlyA, OnlyB []Key
}

// Match is a cell of B beside that of A. Comparison's Profile is that of B, its Baseline that of A, and its Effect is B
// over A, by the test for samples of different times. A cell without a number has N 0, and nothing is claimed then.
type Match struct {
	Comparison
	A, B *Cell
	// FloorMeasured is false if neither result has a twin to measure the noise floor by.
	FloorMeasured bool
	// Drift is how far the other profiles lie apart between two results that share every condition that they recorded, as a
	// share: what is the moment's and not a profile's. It is 0 where conditions differ, which may be the cause of it.
	Drift float64
}

// Band is the share up to which a difference is noise: that of the floor and the drift together.
func (m Match) Band() float64 { return (1+m.Floor)*(1+m.Drift) - 1 }

// Lost says whether A has a number and every trial of B failed.
func (m Match) Lost() bool { return m.A.N > 0 && m.B.N == 0 && m.B.Failed > 0 }

// Identical says whether the two are the very same trials, as in a result set beside itself. Nothing differs then,
// however wide the interval is.
func (m Match) Identical() bool { return m.A.N > 0 && slices.Equal(m.A.Samples, m.B.Samples) }

// Size orders matches by how large the difference is: the logarithm of the ratio without its sign, infinite where one
// side is zero and the verdict says that they differ.
func (m Match) Size() float64 {
	switch {
	case !math.IsNaN(m.Ratio):
		return math.Abs(math.Log(m.Ratio))
	case m.Verdict == Better || m.Verdict == Worse:
		return math.Inf(1)
	}
	return 0
}

// NewPair sets B beside A. names maps profiles of A to those of B that they are compared with; others are compared with
// their namesakes. The error, about a profile that is not there or two results that share nothing, carries a hint.
func NewPair(a, b Side, names map[plan.Variant]plan.Variant) (*Pair, error) {
	var errs []error
	for from, to := range names {
		for side, name := range map[*Side]plan.Variant{&a: from, &b: to} {
			if !slices.Contains(side.Profiles, name) {
				errs = append(errs, fmt.Errorf("profile %q is not in %s, which has %s", name, side.Name, plan.JoinVariants(side.Profiles, ", ")))
			}
		}
	}
	if len(errs) > 0 {
		slices.SortFunc(errs, func(x, y error) int { return strings.Compare(x.Error(), y.Error()) })
		return nil, errors.Join(errs...)
	}
	p := &Pair{A: a, B: b, Confidence: a.Confidence, Differences: Differ(a.Header, b.Header)}
	p.match(names)
	if len(p.Matches) == 0 {
		return nil, advice.With(fmt.Errorf("%s and %s have no cell in common", a.Name, b.Name),
			fmt.Sprintf("%s has %s; %s has %s; --map A=B compares profiles of different names", a.Name, inBrief(a), b.Name, inBrief(b)))
	}
	return p, nil
}

// inBrief names what a result is about.
func inBrief(s Side) string {
	var words []string
	for _, w := range s.Workloads {
		words = append(words, w.String())
	}
	if len(s.Cells) == 0 {
		return "no trial"
	}
	return plan.JoinVariants(s.Profiles, ", ") + " under " + strings.Join(words, ", ")
}

// match finds the cells that both have and judges them.
func (p *Pair) match(names map[plan.Variant]plan.Variant) {
	alias := func(k Key) Key {
		k.Profile = cmp.Or(names[k.Profile], k.Profile)
		return k
	}
	same := func(k Key) Key { return k }
	p.OnlyA, p.OnlyB = missing(p.A.Cells, alias, p.B.Cells, same), missing(p.B.Cells, same, p.A.Cells, alias)
	for i := range p.A.Cells {
		c := &p.A.Cells[i]
		k := alias(c.Key)
		other := p.B.at[k]
		if other == nil {
			continue
		}
		m := Match{A: c, B: other}
		after, before := alike(other, c)
		m.Comparison = Comparison{Key: k, Baseline: c.Profile, Effect: stat.Unpaired(after.Values(), before.Values(), p.Confidence)}
		f, g := p.A.Floor(k.Workload, k.Metric), p.B.Floor(k.Workload, k.Metric)
		m.Floor, m.FloorMeasured = max(f.Share, g.Share), f.Measured || g.Measured
		p.Matches = append(p.Matches, m)
	}
	var open []pending
	for i := range p.Matches {
		m := &p.Matches[i]
		open = append(open, pending{x: &m.Comparison, c: m.B, base: m.A, apart: true})
	}
	settle(open, p.Confidence, Key.column)
	p.measureDrift()
	for i := range p.Matches {
		m := &p.Matches[i]
		switch {
		case m.N == 0:
			m.Need = 0 // more of the same would not help
		case m.Identical() && m.Verdict != None:
			m.Verdict, m.Need = Same, 0
		case (m.Verdict == Better || m.Verdict == Worse) && m.drifted(m.Ratio):
			m.Verdict = Inconclusive // what would decide is another run, not more repetitions
		}
	}
}

// missing are the cells that the others lack, by the names that both are known by. A case that they lack as a whole is one
// key without a metric.
func missing(cells []Cell, name func(Key) Key, others []Cell, otherName func(Key) Key) []Key {
	there := map[Key]bool{}
	for _, c := range others {
		k := otherName(c.Key)
		there[k], there[k.whole()] = true, true
	}
	var out []Key
	for _, c := range cells {
		switch k := name(c.Key); {
		case !there[k.whole()]:
			out = append(out, c.whole())
		case !there[k]:
			out = append(out, c.Key)
		}
	}
	return distinct(out)
}

// Judged returns the matches whose metric has a direction.
func (p *Pair) Judged() []Match {
	return slices.DeleteFunc(slices.Clone(p.Matches), func(m Match) bool { return direction(m.Metric) == metric.Neither })
}

// Only returns p with the matches, and what is in one result alone, that keep wants.
func (p *Pair) Only(keep func(Key) bool) *Pair {
	q := *p
	q.Matches = slices.DeleteFunc(slices.Clone(p.Matches), func(m Match) bool { return !keep(m.A.Key) })
	drop := func(k Key) bool { return !keep(k) }
	q.OnlyA, q.OnlyB = slices.DeleteFunc(slices.Clone(p.OnlyA), drop), slices.DeleteFunc(slices.Clone(p.OnlyB), drop)
	return &q
}
