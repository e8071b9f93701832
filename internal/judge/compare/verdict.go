package compare

import (
	"cmp"
	"math"
	"slices"

	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// Verdict is what may be claimed about a difference.
type Verdict string

const (
	// None is for metrics without a direction.
	None Verdict = ""
	// Better and Worse: the test rejects, corrected for the family, and the ratio lies beyond the noise floor.
	Better Verdict = "better"
	Worse  Verdict = "worse"
	// Same: the interval, at the wanted confidence, lies within the noise floor. That the ratio alone does is not
	// enough: what the interval leaves open beyond the floor is not shown to be noise.
	Same Verdict = "same"
	// Inconclusive: none of these can be said.
	Inconclusive Verdict = "inconclusive"
)

// correct corrects the p values of each family for their number, and gives them to set with the size of the family. What
// test does not count is in no family.
func correct[T any](
	all []T, test func(T) (family Key, p float64, counted bool), set func(x T, adjusted float64, size int),
) {
	members := map[Key][]int{}
	values := map[Key][]float64{}
	for i, x := range all {
		if f, p, counted := test(x); counted {
			members[f], values[f] = append(members[f], i), append(values[f], p)
		}
	}
	for f, is := range members {
		for n, adjusted := range stat.Adjust(values[f]) {
			set(all[is[n]], adjusted, len(is))
		}
	}
}

// settle corrects the p values of each family of comparisons and gives the verdicts.
func settle(all []pending, confidence float64, family func(Key) Key) {
	alpha := 1 - confidence
	for _, p := range all {
		p.x.Adjusted = p.x.P
		if direction(p.x.Metric) == metric.Neither {
			p.x.Adjusted = math.NaN()
		}
	}
	correct(all, func(p pending) (Key, float64, bool) {
		return family(p.x.Key), p.x.P, !math.IsNaN(p.x.Adjusted) && stat.LeastP(p.x.Test, p.c.N, p.base.N) <= alpha
	}, func(p pending, adjusted float64, size int) { p.x.Adjusted, p.x.Family = adjusted, size })
	for _, p := range all {
		p.x.Verdict = judge(p, confidence)
		if p.x.Verdict == Inconclusive {
			p.x.Need = need(*p.x, alpha, p.apart)
		}
	}
}

// together is the family of comparisons that are all of one.
func together(Key) Key { return Key{} }

func direction(name string) metric.Better {
	m, _ := metric.Lookup(name)
	return m.Better
}

// judge gives the verdict on a comparison whose effect, floor and corrected p value are known.
func judge(p pending, confidence float64) Verdict {
	x, better := p.x, direction(p.x.Metric)
	if better == metric.Neither {
		return None
	}
	rejects := x.Adjusted <= 1-confidence
	if math.IsNaN(x.Ratio) {
		return judgeOrder(better, p.c, p.base, rejects)
	}
	size, band := math.Abs(math.Log(x.Ratio)), math.Log1p(x.Floor)
	within := math.Log(x.High) <= band && math.Log(x.Low) >= -band
	switch {
	case rejects && (x.Low > 1 || x.High < 1) && size > band:
		return side(better, x.Ratio > 1)
	case within && x.Confidence >= confidence:
		return Same
	}
	return Inconclusive
}

// judgeOrder judges cells with values <= 0, such as a loss of none, which have no ratio: the test decides alone, and
// only identical samples are the same.
func judgeOrder(direction metric.Better, c, base *Cell, rejects bool) Verdict {
	switch {
	case rejects && c.Median != base.Median:
		return side(direction, c.Median > base.Median)
	case c.Min == c.Max && base.Min == base.Max && c.Min == base.Min && min(c.N, base.N) >= stat.MinRepetitions:
		return Same
	}
	return Inconclusive
}

// side names a difference by the metric's direction.
func side(direction metric.Better, larger bool) Verdict {
	if larger == (direction == metric.Higher) {
		return Better
	}
	return Worse
}

// most bounds what need says: a ratio at the very edge of the floor would take any number of repetitions.
const most = 1_000_000

// need estimates how many more repetitions would decide. An interval shrinks with the root of the repetitions. Where
// the ratio lies beyond the floor it decides once it is narrower than the ratio's distance from 1, where it lies within,
// once the whole interval does. A corrected p value asks for a longer interval, and for enough repetitions that the test
// can have so small a value at all.
func need(x Comparison, alpha float64, apart bool) int {
	factor := 1.0
	if x.P > 0 && x.Adjusted > x.P {
		factor = x.Adjusted / x.P
	}
	missing := max(0, stat.MinRepetitions-x.N)
	half := math.Log(x.High/x.Low) / 2
	if math.IsNaN(half) {
		return missing
	}
	room := math.Abs(math.Log(x.Ratio))
	if band := math.Log1p(x.Floor); room <= band {
		room = band - room
	} else {
		half *= stat.Widen(alpha, factor)
		missing = max(missing, stat.Enough(alpha/factor, !apart)-x.N)
	}
	return max(1, missing, enough(x.N, half, room)-x.N)
}

// enough is how many repetitions make an interval as narrow as room on either side, if n make it half.
func enough(n int, half, room float64) int {
	switch x := math.Ceil(float64(n) * math.Pow(half/room, 2)); {
	case math.IsNaN(half) || math.IsNaN(room):
		return 0
	case x < most:
		return int(x)
	}
	return most
}

// Counts is how many comparisons got each verdict.
func Counts(xs []Comparison) map[Verdict]int {
	n := map[Verdict]int{}
	for _, x := range xs {
		n[x.Verdict]++
	}
	return n
}

// Standing is a profile's place among those of one row.
type Standing struct {
	Cell Cell
	// ToBest and ToLast compare the cell with that of the best and of the last profile; the zero value for itself.
	ToBest, ToLast Comparison
}

// Rank orders the profiles by their medians of metric name on one path, the best first, and compares each with the
// first and with the last; either row of comparisons is a family. Profiles without a finished trial are left out. It is nil for a metric without direction.
func (a *Analysis) Rank(path plan.Path, w plan.Workload, name string) []Standing {
	m, _ := metric.Lookup(name)
	if m.Better == metric.Neither {
		return nil
	}
	var out []Standing
	for _, p := range a.Profiles {
		if c, ok := a.Cell(Key{plan.Case{Profile: p, Path: path, Workload: w}, name}); ok && c.N > 0 {
			out = append(out, Standing{Cell: c})
		}
	}
	slices.SortStableFunc(out, func(x, y Standing) int {
		if m.Better == metric.Higher {
			x, y = y, x
		}
		return cmp.Compare(x.Cell.Median, y.Cell.Median)
	})
	var toBest, toLast []pending
	for i := range out {
		if i > 0 {
			toBest = append(toBest, a.compare(&out[i].Cell, &out[0].Cell))
		}
		if last := len(out) - 1; i < last {
			toLast = append(toLast, a.compare(&out[i].Cell, &out[last].Cell))
		}
	}
	settle(toBest, a.Confidence, together)
	settle(toLast, a.Confidence, together)
	for i := range toBest {
		out[i+1].ToBest, out[i].ToLast = *toBest[i].x, *toLast[i].x
	}
	return out
}
