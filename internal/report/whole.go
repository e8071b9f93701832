package report

import (
	"fmt"
	"math"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// alikeShare is the largest relative difference at which values of whole windows and undisturbed values count as equal.
const alikeShare = 0.005

// wholeWindowsNote returns a note on how much the values of whole windows differ from the undisturbed values. It has the
// range over all cells, the cell with the largest difference, and the baseline unless that is nil. It returns "" if no cell
// has an undisturbed value.
func wholeWindowsNote(cells []*compare.Cell, baseline *compare.Cell) string {
	least, most := math.Inf(1), math.Inf(-1)
	var farthest *compare.Cell
	for _, c := range cells {
		if c == nil || c.Typical == nil || !(c.Median > 0) {
			continue
		}
		off := c.Typical.Median/c.Median - 1
		if farthest == nil || math.Abs(off) > math.Abs(farthest.Typical.Median/farthest.Median-1) {
			farthest = c
		}
		least, most = min(least, off), max(most, off)
	}
	if farthest == nil {
		return ""
	}
	text := fmt.Sprintf("Typical values, of whole windows, differ from the undisturbed ones by %s to %s", Change(1+least), Change(1+most))
	if max(math.Abs(least), math.Abs(most)) <= alikeShare {
		text = fmt.Sprintf("Typical values, of whole windows, agree with the undisturbed ones within %s", number.Percent(alikeShare))
	} else {
		scale := number.Common(farthest.Unit, farthest.Median)
		text += fmt.Sprintf("; farthest off is %s %s: %s for %s %s", number.Clean(farthest.Profile.String()), shortPath(farthest.Path),
			scale.Format(farthest.Typical.Median), scale.Format(farthest.Median), scale.Unit)
	}
	if baseline != nil && baseline != farthest && baseline.Typical != nil && baseline.Median > 0 {
		text += fmt.Sprintf("; %s: %s", number.Clean(baseline.Profile.String()), Change(baseline.Typical.Median/baseline.Median))
	}
	return text + "."
}
