package compare

import (
	"cmp"
	"math"
	"slices"

	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// Verdict is the claim that may be made about a difference.
type Verdict string

const (
	// None is for metrics without a direction, and for cells that are not judged.
	None Verdict = ""
	// Better and Worse mean that the difference is significant, corrected for the family. The interval excludes 1, and the
	// verdict is not Same.
	Better Verdict = "better"
	Worse  Verdict = "worse"
	// Same means that two one-sided tests reject, at the wanted confidence, that the difference is beyond the margin
	// (TOST). A ratio within the margin is not enough.
	Same Verdict = "same"
	// Inconclusive means that none of these is proved.
	Inconclusive Verdict = "inconclusive"
)

// correctFamilies corrects the p values of each family with adjust, and passes each to set with the size of the family.
// Values that test excludes are in no family.
func correctFamilies[T any](
	all []T, adjust func([]float64) []float64, test func(T) (family Key, p float64, counted bool),
	set func(x T, adjusted float64, size int),
) {
	members := map[Key][]int{}
	values := map[Key][]float64{}
	for i, x := range all {
		if f, p, counted := test(x); counted {
			members[f], values[f] = append(members[f], i), append(values[f], p)
		}
	}
	for f, is := range members {
		for n, adjusted := range adjust(values[f]) {
			set(all[is[n]], adjusted, len(is))
		}
	}
}

// rules are the parameters of verdicts: a confidence, a margin, the family of a comparison, and how p values are
// corrected within it.
type rules struct {
	confidence, margin float64
	family             func(Key) Key
	adjust             func([]float64) []float64
}

// rulesFor returns the rules of comparisons within one run.
func (a *Analysis) rulesFor(family func(Key) Key) rules {
	return rules{a.Confidence, a.Margin, family, stat.Adjust}
}

// settleVerdicts corrects the p values of each family of comparisons and sets the verdicts.
func settleVerdicts(all []pending, r rules) {
	alpha := 1 - r.confidence
	for _, p := range all {
		p.x.Adjusted = p.x.P
		if !p.canBeJudged() {
			p.x.Adjusted = math.NaN()
		}
	}
	correctFamilies(all, r.adjust, func(p pending) (Key, float64, bool) {
		return r.family(p.x.Key), p.x.P, !math.IsNaN(p.x.Adjusted) && p.canReach(alpha)
	}, func(p pending, adjusted float64, size int) { p.x.Adjusted, p.x.Family = adjusted, size })
	for _, p := range all {
		p.x.Verdict = verdictOf(p, r)
		if p.x.Verdict == Inconclusive {
			p.setNeed(neededValues(*p.x, r, p.apart))
		}
	}
}

// canReach reports whether the test can have a p value of at most alpha with this number of repetitions. It does not depend
// on the values.
func (p pending) canReach(alpha float64) bool {
	if p.x.Test == stat.StudentT {
		return p.x.N > 1
	}
	return p.x.N > 1 && stat.LeastP(p.x.Test, p.c.N, p.base.N) <= alpha
}

// canBeJudged reports whether a verdict is possible: the metric has a direction, and the two sides are comparable.
func (p pending) canBeJudged() bool {
	return directionOf(p.x.Metric) != metric.Neither && !p.c.Unlike(p.base)
}

// oneFamily puts all comparisons into one family.
func oneFamily(Key) Key { return Key{} }

func directionOf(name string) metric.Better {
	m, _ := metric.Lookup(name)
	return m.Better
}

// verdictOf returns the verdict on a comparison whose effect and corrected p value are known. A failing side is never
// better, and a lower bound is never the same as another value.
func verdictOf(p pending, r rules) Verdict {
	x, better := p.x, directionOf(p.x.Metric)
	switch {
	case !p.canBeJudged():
		return None
	case p.c.AtLeast && p.base.AtLeast:
		return Inconclusive
	}
	v := Inconclusive
	rejects := x.Adjusted <= 1-r.confidence
	switch {
	case math.IsNaN(x.Ratio):
		v = judgeOrder(better, p.c, p.base, rejects)
	case x.Beyond <= 1-r.confidence:
		v = Same
	case rejects && (x.Low > 1 || x.High < 1):
		v = betterOrWorse(better, x.Ratio > 1)
	}
	if v == Same && (p.c.AtLeast || p.base.AtLeast) {
		return Inconclusive
	}
	if v == Better && p.c.Failing() || v == Worse && p.base.Failing() {
		return Inconclusive
	}
	return v
}

// judgeOrder judges cells with values <= 0, such as no loss, which have no ratio: only the test decides, and only
// identical samples are the same.
func judgeOrder(direction metric.Better, c, base *Cell, rejects bool) Verdict {
	switch {
	case rejects && c.Median != base.Median:
		return betterOrWorse(direction, c.Median > base.Median)
	case c.Min == c.Max && base.Min == base.Max && c.Min == base.Min && min(c.N, base.N) >= stat.MinRepetitions:
		return Same
	}
	return Inconclusive
}

// betterOrWorse returns Better or Worse for a difference, by the metric's direction.
func betterOrWorse(direction metric.Better, larger bool) Verdict {
	if larger == (direction == metric.Higher) {
		return Better
	}
	return Worse
}

// most bounds the result of neededValues: a ratio at the very edge of the margin would take any number of repetitions.
const most = 1_000_000

// neededValues estimates how many more values would decide a verdict. It returns the smaller of two numbers: for an
// interval that excludes 1, and for one within the margin. The interval within the margin has twice the level, because
// each side is tested separately. A corrected p value needs a longer interval, and enough values that the test can
// reach it. It returns 0 if no number of values would decide, because the widening is too large.
func neededValues(x Comparison, r rules, apart bool) int {
	alpha := 1 - r.confidence
	factor := 1.0
	if x.P > 0 && x.Adjusted > x.P {
		factor = x.Adjusted / x.P
	}
	wide := math.Log1p(x.Widened)
	half, off := math.Log(x.High/x.Low)/2-wide, math.Abs(math.Log(x.Ratio))
	switch {
	case math.IsNaN(x.Ratio), math.IsNaN(half):
		return max(0, stat.MinRepetitions-x.N)
	case off <= wide && off+wide >= math.Log1p(r.margin):
		return 0
	}
	differs := moreRepetitions(x.N, half*stat.Widen(alpha, factor), off-wide, stat.Enough(alpha/factor, !apart))
	return min(differs, moreRepetitions(x.N, half/stat.Widen(2*alpha, 2), math.Log1p(r.margin)-wide-off, stat.MinRepetitions))
}

// moreRepetitions returns how many repetitions beyond n would decide. There must be at least least in total. The
// interval has the half-width half after n repetitions, and must fit into room. The half-width shrinks with the root of
// the repetitions. Without room, the result is most.
func moreRepetitions(n int, half, room float64, least int) int {
	if !(room > 0) {
		return most
	}
	in := float64(n) * math.Pow(half/room, 2)
	return int(min(most, max(1, float64(least-n), math.Ceil(in*(1-1e-12))-float64(n))))
}

// Visible returns the smallest difference, as a share, that three of four comparisons would have found with a chance of
// 90 %. of is the number of comparisons that have a ratio. found is the number of those that would have found it.
func Visible(xs []Comparison, confidence float64) (share float64, found, of int) {
	var all []float64
	for _, x := range xs {
		if x.Verdict == None || math.IsNaN(x.Ratio) {
			continue
		}
		of++
		wide := math.Log1p(x.Widened)
		half := math.Log(x.High/x.Low)/2 - wide
		// In one of ten cases, the observed ratio is below the true one by more than 0.65 of the half-width.
		if d := math.Expm1(wide + half*(stat.Widen(1-confidence, float64(x.Family))+0.65)); x.Confidence >= confidence && !math.IsNaN(d) {
			all = append(all, d)
		}
	}
	if len(all) == 0 {
		return 0, 0, of
	}
	slices.Sort(all)
	found = min(len(all), (3*of+3)/4)
	return all[found-1], found, of
}

// Standing is a profile's place among the profiles of one row.
type Standing struct {
	Cell Cell
	// ToBest and ToLast compare the cell with the best and the last profile's; the zero value for itself.
	ToBest, ToLast Comparison
}

// Rank orders the profiles by their medians of metric name on one path, the best first, and compares each with the first
// and with the last. The test accounts for the selection of those two among all (see contest). It leaves out failing
// profiles, and profiles whose new pods were attached in another way than those of the first profile of the report. It
// returns nil for a metric without direction.
func (a *Analysis) Rank(path plan.Path, w plan.Workload, name string) []Standing {
	m, _ := metric.Lookup(name)
	if m.Better == metric.Neither {
		return nil
	}
	var out []Standing
	for _, p := range a.Profiles { // the baseline first
		c, ok := a.Cell(Key{plan.Case{Profile: p, Path: path, Workload: w}, name})
		if ok && c.N > 0 && !c.Failing() && (len(out) == 0 || !c.Unlike(&out[0].Cell)) {
			out = append(out, Standing{Cell: c})
		}
	}
	slices.SortStableFunc(out, func(x, y Standing) int {
		if m.Better == metric.Higher {
			x, y = y, x
		}
		return cmp.Compare(x.Cell.Median, y.Cell.Median)
	})
	all := a.newContest(out)
	last := len(out) - 1
	for i := range out {
		if i > 0 {
			out[i].ToBest = all.comparePair(i, 0)
		}
		if i < last {
			out[i].ToLast = all.comparePair(i, last)
		}
	}
	return out
}
