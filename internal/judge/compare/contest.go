package compare

import (
	"math"
	"slices"

	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// Among equal profiles, the best is best by chance. A test of the others against it that treats it as chosen beforehand
// finds differences far too often. But any two cells that become the first and the last are a pair of the row. So all
// pairs of the row are one family, corrected by Holm's procedure. Then at most 5 of 100 rows of equals show any
// difference, and what a report says about the best, the next, the last and about groups is consistent. Holm counts
// only the remaining pairs, so the many clearly different pairs of a row cost a close pair nothing.

// contest is the cells of one row, with what is needed to compare any two of them.
type contest struct {
	*Analysis
	cells []*Cell
	// level is the significance level of Holm's first step: a test that cannot reach it with the number of values is not used.
	level float64
	// typical has the units of each cell's whole windows.
	// contrasts has the same without the effect of their moments on all cells, levels the level of each cell's
	// contrasts. Both are nil if there are too few cells, or if a value has no logarithm.
	typical, contrasts [][]Sample
	levels             []stat.Level
	// size is the number of pairs in the family.
	// adjusted has the corrected p value of each pair.
	// factors has the number by which Holm's procedure divides the significance level of each pair.
	size              int
	adjusted, factors map[two]float64
}

// fewestRanked is the least number of cells of a row for which the effects of moments are removed before ranking. With
// fewer cells, what remains of one cell depends too much on the others.
const fewestRanked = 4

// two has the indices of a pair of cells, the larger index first.
type two struct{ i, j int }

// newContest tests all pairs of a row, as one family.
func (a *Analysis) newContest(row []Standing) *contest {
	cells := each.Of(row, func(s Standing) *Cell { return &s.Cell })
	c := &contest{Analysis: a, cells: cells, adjusted: map[two]float64{}, factors: map[two]float64{}}
	var pairs []two
	for i := range cells {
		for j := range i {
			if min(cells[i].N, cells[j].N) > 1 {
				pairs = append(pairs, two{i, j})
			}
		}
	}
	c.size, c.level = len(pairs), (1-a.Confidence)/float64(max(1, len(pairs)))
	c.setLevels()
	ps := each.Of(pairs, func(p two) float64 {
		return widenedEffect(a.intervalWidening(cells[p.i], cells[p.j]), c.pairTest(p.i, p.j, a.Confidence)).P
	})
	adjusted, factors := stat.Holm(ps), stat.HolmFactors(ps, 1-a.Confidence)
	for n, p := range pairs {
		c.adjusted[p], c.factors[p] = adjusted[n], factors[n]
	}
	return c
}

// comparePair compares the i-th cell with the j-th. The interval has the level at which the pair is tested, so that it
// excludes 1 if the verdict is better or worse.
func (c *contest) comparePair(i, j int) Comparison {
	cell, base := c.cells[i], c.cells[j]
	x := Comparison{Key: cell.Key, Baseline: base.Profile, Widened: c.intervalWidening(cell, base)}
	x.setEffect(c.pairTest(i, j, c.Confidence), c.Margin)
	x.Adjusted = x.P
	single, at := x, two{max(i, j), min(i, j)}
	if factor, counted := c.factors[at]; counted {
		x.Adjusted, x.Family = c.adjusted[at], c.size
		single.Adjusted = x.Adjusted
		x.Effect = widenedEffect(x.Widened, c.pairTest(i, j, 1-(1-c.Confidence)/factor))
		x.Confidence = min(single.Confidence, x.Confidence)
	}
	rules := c.rulesFor(oneFamily)
	pair := pending{x: &x, c: cell, base: base}
	if x.Verdict = verdictOf(pair, rules); x.Verdict == Inconclusive {
		pair.setNeed(neededValues(single, rules, false))
	}
	return x
}

// pairTest returns the test of two cells. Undisturbed values are compared as usual. Others are compared by ranks, or as
// normal logarithms if ranks of two cells cannot reach the level of the row. If a value has no logarithm, ranks within
// the row are used instead.
func (c *contest) pairTest(i, j int, confidence float64) scaledTest {
	if allUndisturbed(c.cells[i], c.cells[j]) {
		return c.cellTest(c.cells[i], c.cells[j], confidence)
	}
	x, y := c.typical[i], c.typical[j]
	if c.levels != nil {
		x, y = c.contrasts[i], c.contrasts[j]
	}
	mine, theirs := valuesOf(x), valuesOf(y)
	ranks := func(factor float64) stat.Effect { return stat.Ranks(scaledValues(mine, factor), theirs, confidence) }
	enough := stat.LeastP(stat.MannWhitney, len(mine), len(theirs)) <= c.level
	if c.levels != nil {
		if enough {
			return ranks
		}
		return func(factor float64) stat.Effect {
			return stat.Welch(c.levels[i].Times(factor), c.levels[j], confidence)
		}
	}
	p, q := pairedValues(x, y)
	switch {
	case stat.UsePaired(len(p)) && stat.LeastP(stat.SignedRank, len(p), len(p)) <= c.level:
		return func(factor float64) stat.Effect { return stat.Paired(scaledValues(p, factor), q, confidence) }
	case enough:
		return ranks
	}
	return func(factor float64) stat.Effect {
		e := stat.Student(scaledValues(mine, factor), theirs, confidence)
		if math.IsNaN(e.Ratio) && len(c.cells) > 2 && min(len(mine), len(theirs)) >= stat.MinRepetitions {
			e.Test, e.P = stat.MannWhitney, stat.Conover(each.Of(c.typical, valuesOf), i, j) // ranks of the row
		} else if e.P == 1 {
			return ranks(factor)
		}
		return e
	}
}

// setLevels sets typical, contrasts and levels. It removes the effect of the moments on all cells as for undisturbed
// values, but with equal weights.
func (c *contest) setLevels() {
	alike := each.Of(c.cells, func(x *Cell) *Cell {
		y := &Cell{Key: x.Key, Estimate: Estimate{Samples: slices.Clone(x.Recorded().Samples)}}
		for k := range y.Samples {
			y.Samples[k].weight = 1
		}
		return y
	})
	c.typical = each.Of(c.cells, func(x *Cell) []Sample { return x.Recorded().comparisonUnits() })
	lacks := func(s Sample) bool { return !(s.Value > 0) }
	if len(c.cells) < fewestRanked || slices.ContainsFunc(c.typical, func(units []Sample) bool { return slices.ContainsFunc(units, lacks) }) {
		return
	}
	free := contrastsOf(alike)
	c.contrasts = each.Of(c.cells, func(x *Cell) []Sample { return free[x.Key].units })
	c.levels = each.Of(c.cells, func(x *Cell) stat.Level { return free.level(x) })
	scatter := stat.ScatterOf(c.levels)
	for i := range c.levels {
		c.levels[i] = c.levels[i].Among(scatter)
	}
}
