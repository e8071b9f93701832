package compare

import (
	"fmt"
	"math"
	"slices"

	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/vocab/metric"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// slowMoments means that a cell's whole windows are slower than its undisturbed slices by more than other profiles' in
// the same repetitions: the path itself has slow moments, which its value includes.
const slowMoments = "slow-moments"

const (
	// surely is the two-sided confidence that a cell's loss is its own: 1 of 1000 cells without a difference shows one.
	// leastOwn is the least share that is given back, and toldOwn the least that causes a warning.
	surely            = 0.998
	leastOwn, toldOwn = 0.003, 0.01
	// fewestOwn is the number of repetitions from which a cell's own loss is estimated.
	fewestOwn = 4
)

// keepOwn corrects the cells of a table whose undisturbed values lost more against whole windows than other profiles' in the
// same repetitions. No disturbance from outside affects the same profile in every repetition.
func keepOwn(cells []*Cell, confidence float64) {
	sign := 1.0
	if direction(cells[0].Metric) == metric.Higher {
		sign = -1
	}
	lost := func(s Sample) float64 { return sign * math.Log(s.whole/s.Value) }
	type loss struct {
		of  *Cell
		log float64
	}
	moments := map[moment][]loss{}
	for _, c := range cells {
		for _, s := range c.Samples {
			if x := lost(s); !math.IsNaN(x) && !math.IsInf(x, 0) {
				moments[s.moment()] = append(moments[s.moment()], loss{c, x})
			}
		}
	}
	for _, c := range cells {
		var more, of []float64
		for _, s := range c.Samples {
			var others []float64
			for _, x := range moments[s.moment()] {
				if x.of.Profile.Original() != c.Profile.Original() {
					others = append(others, x.log)
				}
			}
			if x := lost(s); len(others) > 0 && !math.IsNaN(x) && !math.IsInf(x, 0) {
				more, of = append(more, math.Exp(x-stat.Median(others))), append(of, 1)
			}
		}
		if len(more) >= fewestOwn {
			c.giveBack(stat.LevelOf(more, of).Around(stat.Summary{}, surely), sign, confidence)
		}
	}
}

// giveBack multiplies the undisturbed values of a cell by its additional loss, a ratio with its interval, if that is
// significant. With sign -1, it divides.
func (c *Cell) giveBack(more stat.Summary, sign, confidence float64) {
	if !(more.Low > 1 && more.Median > 1+leastOwn) {
		return
	}
	samples := slices.Clone(c.Samples)
	for i := range samples {
		samples[i].Value *= math.Pow(more.Median, sign)
	}
	c.Estimate = estimateOf(samples, confidence)
	if more.Median > 1+toldOwn {
		c.Warnings = append(c.Warnings, stat.Warning{ID: slowMoments, Message: fmt.Sprintf(
			"whole windows differ from their undisturbed slices by %s more than those of other profiles in the same repetitions: the path has slow moments of its own, and the value holds them",
			number.Percent(more.Median-1))})
	}
}
