package compare

import (
	"cmp"
	"math"
	"slices"

	"github.com/cnibench/cnibench/internal/metric"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/stat"
)

// Verdict is what may be claimed about a difference.
type Verdict string

const (
	// None is for metrics without a direction.
	None Verdict = ""
	// Better and Worse: the test rejects, and the ratio lies beyond the noise floor.
	Better Verdict = "better"
	Worse  Verdict = "worse"
	// Same: the interval, at the wanted confidence, lies within the noise floor. That the ratio alone does is not
	// enough: what the interval leaves open beyond the floor is not shown to be noise.
	Same Verdict = "same"
	// Inconclusive: none of these can be said.
	Inconclusive Verdict = "inconclusive"
)

// judge gives the verdict on c beside base, whose effect and floor x holds.
func (a *Analysis) judge(c, base *Cell, x Comparison) Verdict {
	m, _ := metric.Lookup(c.Metric)
	if m.Better == metric.Neither {
		return None
	}
	alpha := 1 - a.Confidence
	if math.IsNaN(x.Ratio) {
		return judgeOrder(m.Better, c, base, x.P <= alpha)
	}
	size, band := math.Abs(math.Log(x.Ratio)), math.Log1p(x.Floor)
	within := math.Log(x.High) <= band && math.Log(x.Low) >= -band
	rejects := x.P <= alpha && (x.Low > 1 || x.High < 1)
	switch {
	case rejects && size > band:
		return side(m.Better, x.Ratio > 1)
	case within && x.Confidence >= a.Confidence:
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
// once the whole interval does.
func need(e stat.Effect, floor float64) int {
	missing := max(0, stat.MinRepetitions-e.N)
	half := math.Log(e.High/e.Low) / 2
	if math.IsNaN(half) {
		return missing
	}
	room := math.Abs(math.Log(e.Ratio))
	if band := math.Log1p(floor); room <= band {
		room = band - room
	}
	enough := most
	if x := math.Ceil(float64(e.N) * math.Pow(half/room, 2)); x < most {
		enough = int(x)
	}
	return max(1, missing, enough-e.N)
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
// first and the last. Profiles without a finished trial are left out. It is nil for a metric without direction.
func (a *Analysis) Rank(path plan.Path, w plan.Workload, name string) []Standing {
	m, _ := metric.Lookup(name)
	if m.Better == metric.Neither {
		return nil
	}
	var out []Standing
	for _, p := range a.Profiles {
		if c, ok := a.Cell(Key{p, path, w, name}); ok && c.N > 0 {
			out = append(out, Standing{Cell: c})
		}
	}
	slices.SortStableFunc(out, func(x, y Standing) int {
		if m.Better == metric.Higher {
			x, y = y, x
		}
		return cmp.Compare(x.Cell.Median, y.Cell.Median)
	})
	for i := range out {
		if i > 0 {
			out[i].ToBest = a.compare(&out[i].Cell, &out[0].Cell)
		}
		if last := len(out) - 1; i < last {
			out[i].ToLast = a.compare(&out[i].Cell, &out[last].Cell)
		}
	}
	return out
}
