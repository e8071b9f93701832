package compare

import (
	"fmt"
	"math"
	"slices"

	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/vocab/metric"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// slowMoments means that the path itself is slow at times: its whole windows are slower than its undisturbed slices by
// more than those of other profiles in the same repetitions. The cell's value includes that.
const slowMoments = "slow-moments"

const (
	// surely is the two-sided confidence of the test of a cell's own loss: by chance, 1 of 1000 cells shows a loss.
	// leastOwn is the least loss that is added to the values, as a share. toldOwn is the least that causes a warning.
	surely            = 0.998
	leastOwn, toldOwn = 0.003, 0.01
	// fewestOwn is the number of repetitions from which a cell's own loss is estimated.
	fewestOwn = 4
)

// restoreOwnLoss corrects the cells whose whole windows are slower than their undisturbed slices by more than those of
// other profiles in the same repetitions. No disturbance from outside affects the same profile in every repetition, so
// this loss belongs to the path. All cells are of one table.
func restoreOwnLoss(cells []*Cell, confidence float64) {
	sign := 1.0
	if directionOf(cells[0].Metric) == metric.Higher {
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
			c.addLoss(stat.LevelOf(more, of).Around(stat.Summary{}, surely), sign, confidence)
		}
	}
}

// addLoss multiplies the undisturbed values of a cell by more, the cell's own loss as a ratio with its interval, if it
// is significant. With sign -1, it divides.
func (c *Cell) addLoss(more stat.Summary, sign, confidence float64) {
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
