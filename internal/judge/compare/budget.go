package compare

import (
	"fmt"
	"math"
	"slices"

	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// Budget is a limit on a metric of B, the second result of a pair. ParseBudget parses its text.
type Budget struct {
	// Text is the budget as the user wrote it.
	Text string
	// Filter and Metric choose the cells.
	Filter Filter
	Metric string
	// Above is true if values above the limit break it, false if values below do.
	Above bool
	// Relative is true if Limit is a factor of A's value, for example 1.05; false if it is a value in the base unit.
	Relative bool
	Limit    float64
}

// State is the judgement of a budget.
type State string

const (
	// Kept means that the one-sided interval at the requested confidence lies within the limit.
	Kept State = "kept"
	// Broken means that the one-sided test, corrected for the family, rejects that the limit is kept.
	Broken State = "broken"
	// Undecided means that neither is proved.
	Undecided State = "undecided"
)

// Holding is a budget applied to one cell.
type Holding struct {
	Match
	budget Budget
	State  State
	// Low and High are one-sided bounds of the ratio, or of the value if the budget is not relative, each at the
	// requested confidence. NaN if unknown.
	Low, High float64
	// P is the one-sided p value for a broken limit. Adjusted is the same, corrected for the family.
	P, Adjusted float64
	// More estimates how many more repetitions would decide an undecided budget. It is 0 if the budget is decided or the
	// number is unknown.
	More int
	// Why is the reason if repetitions can never decide an undecided budget; "" otherwise.
	Why string
}

// Hold applies budgets to the cells of p that keep selects. It returns the holdings of each budget in the order of
// p.Matches. All holdings are one family. A relative budget judges the common baseline only if its filter has a profile.
func (p *Pair) Hold(budgets []Budget, keep func(Key) bool) [][]Holding {
	out := make([][]Holding, len(budgets))
	var all []*Holding
	for i, b := range budgets {
		for _, m := range p.Matches {
			tried := m.A.N+m.A.Failed > 0 || !b.Relative
			if m.Metric == b.Metric && tried && b.Filter.Match(m.A.Key) && keep(m.A.Key) && (!m.Yardstick || !b.Relative || b.Filter.Profile != "") {
				h := Holding{Match: m, budget: b}
				h.P = b.brokenP(m)
				h.Adjusted = h.P
				out[i] = append(out[i], h)
			}
		}
		for j := range out[i] {
			all = append(all, &out[i][j])
		}
	}
	correctFamilies(all, stat.Holm, func(h *Holding) (Key, float64, bool) {
		return Key{}, h.P, h.budget.leastBrokenP(h.Match) <= 1-p.Confidence
	},
		func(h *Holding, adjusted float64, _ int) { h.Adjusted = adjusted })
	for _, h := range all {
		h.budget.judgeHolding(h, p.Confidence)
	}
	return out
}

// brokenP returns the one-sided p value for a broken limit. A relative limit must be exceeded by more than the widening
// of the interval.
func (b Budget) brokenP(m Match) float64 {
	if !b.Relative {
		if b.Above {
			return stat.Above(m.B.Values(), b.Limit)
		}
		return stat.Above(scaledValues(m.B.Values(), -1), -b.Limit)
	}
	limit := b.Limit * (1 + m.Widened)
	if !b.Above {
		limit = b.Limit / (1 + m.Widened)
	}
	if m.Test == stat.StudentT {
		e := m.scaledTestBy(m.Test, 0.5)(1 / limit)
		if e.Ratio > 1 == b.Above {
			return e.P / 2
		}
		return 1 - e.P/2
	}
	if b.Above {
		return stat.MoreThan(m.after, m.before, limit)
	}
	return stat.MoreThan(scaledValues(m.before, limit), m.after, 1)
}

// leastBrokenP returns the smallest p value that brokenP can return with the numbers of values of m.
func (b Budget) leastBrokenP(m Match) float64 {
	switch {
	case b.Relative && m.Test == stat.StudentT:
		return 0
	case b.Relative:
		return stat.LeastP(stat.MannWhitney, len(m.after), len(m.before)) / 2
	}
	return math.Exp2(-float64(m.B.N))
}

func scaledValues(xs []float64, by float64) []float64 {
	return each.Of(xs, func(x float64) float64 { return by * x })
}

// judgeHolding sets the state and the bounds of one holding. If the state is Undecided, it also sets Why or More.
func (b Budget) judgeHolding(h *Holding, confidence float64) {
	h.State = Undecided
	h.Low, h.High = math.NaN(), math.NaN()
	if h.B.N == 0 || b.Relative && h.A.N == 0 {
		h.Why = "no trial finished"
		return
	}
	switch {
	case b.Relative && h.A.Unlike(h.B):
		h.Why = "pods were attached in different ways"
		return
	case b.Relative && h.A.AtLeast && h.B.AtLeast:
		h.Why = "both are lower bounds"
		return
	}
	// A two-sided interval of 90 % is one-sided 95 % at each end.
	sided := 2*confidence - 1
	var point, covered float64
	if b.Relative {
		e := widenedEffect(h.Widened, h.scaledTestBy(h.Test, sided))
		h.Low, h.High, point, covered = e.Low, e.High, e.Ratio, e.Confidence
	} else {
		s := stat.Summarize(h.B.Values(), sided)
		h.Low, h.High, point, covered = s.Low, s.High, s.Median, s.Confidence
	}
	switch {
	case h.Adjusted <= 1-confidence && b.Relative && h.eitherCrowded():
		h.Why = "the machine was never quiet"
	case h.Adjusted <= 1-confidence:
		h.State = Broken
	case b.Above && h.B.AtLeast:
		h.Why = "it is a lower bound"
	case h.B.Failing() && (!b.Relative || !h.A.Failing()):
		h.Why = "too much of its work failed"
	case covered >= sided && b.keptByInterval(h.Low, h.High), b.Relative && h.Identical() && b.keptByInterval(1, 1), b.allWithin(h.Match):
		h.State = Kept
	default:
		b.explainUndecided(h, point, confidence)
	}
}

// keptByInterval reports whether the interval keeps the limit.
func (b Budget) keptByInterval(low, high float64) bool {
	if b.Above {
		return high <= b.Limit
	}
	return low >= b.Limit
}

// allWithin reports whether every value of B keeps the limit relative to every value of A. It is for matches without a
// ratio, such as those with zeros; it is false for other matches and for few values.
func (b Budget) allWithin(m Match) bool {
	if !b.Relative || !math.IsNaN(m.Ratio) || min(m.A.N, m.B.N) < stat.MinRepetitions {
		return false
	}
	if b.Above {
		return m.B.Max <= b.Limit*m.A.Min
	}
	return m.B.Min >= b.Limit*m.A.Max
}

// explainUndecided sets More, or Why if repetitions can never decide h.
func (b Budget) explainUndecided(h *Holding, point, confidence float64) {
	low, high, limit, wide := h.Low, h.High, b.Limit, 0.0
	if math.IsNaN(low) {
		h.More = max(0, stat.MinRepetitions-min(h.A.N, h.B.N))
		return
	}
	if b.Relative {
		low, high, point, limit = math.Log(low), math.Log(high), math.Log(point), math.Log(limit)
		wide = math.Log1p(h.Widened)
	}
	if room := math.Abs(point - limit); wide > 0 && room <= wide {
		h.Why = fmt.Sprintf("each was raised once, and two instances differ by %.2g%%: raise it anew in each repetition", 100*h.Widened)
		return
	}
	n, least := min(len(h.after), len(h.before)), stat.Enough(2*(1-confidence), false)
	if !b.Relative {
		n, least = h.B.N, int(math.Ceil(-math.Log2(1-confidence)))
		if b.keptByInterval(low, high) { // of too few values
			h.More = max(1, least-n)
			return
		}
	}
	h.More = repetitionsOf(moreRepetitions(n, (high-low)/2-wide, math.Abs(point-limit)-wide, least), n, h.B.N)
}

// Outcome returns the worst state among holdings: broken before undecided before kept.
func Outcome(hs []Holding) State {
	for _, worst := range []State{Broken, Undecided} {
		if slices.ContainsFunc(hs, func(h Holding) bool { return h.State == worst }) {
			return worst
		}
	}
	return Kept
}

// Judge returns the state of a pair without budgets. It is broken if any cell is worse. It is undecided if a cell of A
// has only failed trials in B, or if no judged cell could be decided. Otherwise it is kept.
func (p *Pair) Judge() State {
	judged := p.Judged()
	decided := slices.ContainsFunc(judged, func(m Match) bool { return m.Verdict == Better || m.Verdict == Same })
	switch {
	case slices.ContainsFunc(judged, func(m Match) bool { return m.Verdict == Worse }):
		return Broken
	case slices.ContainsFunc(p.Matches, Match.Lost), !decided && len(judged) > 0:
		return Undecided
	}
	return Kept
}
