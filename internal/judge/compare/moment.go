package compare

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/plan"
)

// All cells of a table are measured in turn in each repetition, so a disturbance of the machine that lasts longer than
// a repetition affects them all. Comparisons within a run can remove it. The logarithm of a value is fitted as the sum
// of its cell's and its moment's effect, over all cells together. The remainder is the error of a comparison: this is
// the paired test, for many profiles at once.

// fewestTogether is the least number of profiles in a moment for which its effect is estimated. With two profiles, the
// result is the paired test.
const fewestTogether = 2

// moment is a repetition of one invocation, or a block of repetitions that share instances.
type moment struct {
	session, at int
	// block is the number of repetitions in the block, 0 if one instance has all.
	block int
}

func (m moment) compare(o moment) int {
	return cmp.Or(cmp.Compare(m.session, o.session), cmp.Compare(m.at, o.at), cmp.Compare(m.block, o.block))
}

// contrasts are the units of undisturbed values without the effect of their moments on all cells, by cell.
type contrasts map[Key]contrast

// contrast has the contrasts of one cell. left is the share of its degrees of freedom that remains, since the cell itself
// contributes to the effects of its moments. With one other profile, left is 0.5, as in the paired test.
type contrast struct {
	units []Sample
	left  float64
}

// level returns the level of cells, which count as one cell.
func (m contrasts) level(cells ...*Cell) stat.Level {
	var all []Sample
	left := 0.0
	for _, c := range cells {
		of := m[c.Key]
		all, left = append(all, of.units...), left+of.left*float64(len(of.units))
	}
	return levelOf(all).Left(left / float64(max(1, len(all))))
}

// row is a cell with the values to fit. logs and moments have the logarithm and the moment of each unit. own is the
// fitted logarithm of the cell.
type row struct {
	*Cell
	units   []Sample
	logs    []float64
	moments []moment
	own     float64
}

// shared has the estimated effect of a moment on all cells, as a logarithm. weight is the weight of the moment's units,
// profiles has it by profile. sum is the weighted sum of the units' logarithms, each less own of its row.
type shared struct {
	effect, weight, sum float64
	profiles            map[plan.Variant]float64
}

// hasEnoughProfiles reports whether there are enough profiles to estimate the effect: with few, it cannot be separated
// from differences between instances.
func (t *shared) hasEnoughProfiles() bool { return len(t.profiles) >= fewestTogether }

// contrastsOf returns the units of the cells of a table without the effects of their moments. A cell with a value
// that is not positive is not changed.
func contrastsOf(cells []*Cell) contrasts {
	out := contrasts{}
	var rows []row
	moments := map[moment]*shared{}
	length := blockLength(cells)
	for _, c := range cells {
		r := row{Cell: c, units: slices.Clone(c.comparisonUnits())}
		out[c.Key] = contrast{r.units, 1}
		if slices.ContainsFunc(r.units, func(s Sample) bool { return !(s.Value > 0) }) {
			continue // no logarithm
		}
		first := firstRepetitions(c)
		for _, s := range r.units {
			m := moment{s.session, s.Repetition, 0}
			if len(first) > 1 {
				m = moment{s.session, (first[s.Instance] - 1) / length, length}
			}
			if moments[m] == nil {
				moments[m] = &shared{profiles: map[plan.Variant]float64{}}
			}
			moments[m].weight += s.weight
			moments[m].profiles[c.Profile] += s.weight
			r.logs, r.moments = append(r.logs, math.Log(s.Value)), append(r.moments, m)
		}
		rows = append(rows, r)
	}
	fitEffects(rows, moments)
	for _, r := range rows {
		sum := 0.0
		for i := range r.units {
			s, at := &r.units[i], moments[r.moments[i]]
			if !at.hasEnoughProfiles() {
				sum++
				continue
			}
			// The cells of a profile share its instance, and together contribute a part of the effect.
			left := 1 - min(at.profiles[r.Profile]/at.weight, heaviestShare)
			s.Value = math.Exp(r.own + (r.logs[i]-r.own-at.effect)/math.Sqrt(left))
			sum += left
		}
		out[r.Key] = contrast{r.units, sum / float64(max(1, len(r.units)))}
	}
	return out
}

// heaviestShare bounds the share of a moment's effect that is attributed to one profile.
const heaviestShare = 0.75

// firstRepetitions returns the first repetition of each instance of a cell.
func firstRepetitions(c *Cell) map[int]int {
	first := map[int]int{}
	for _, s := range c.Samples {
		if at, ok := first[s.Instance]; !ok || s.Repetition < at {
			first[s.Instance] = s.Repetition
		}
	}
	return first
}

// blockLength returns the largest number of repetitions on one instance, among the cells with several instances. It
// returns 1 if no cell has several.
func blockLength(cells []*Cell) int {
	longest := 1
	for _, c := range cells {
		trials := map[int]int{}
		for _, s := range c.Samples {
			trials[s.Instance]++
		}
		for _, n := range trials {
			if len(trials) > 1 {
				longest = max(longest, n)
			}
		}
	}
	return longest
}

// fitEffects sets own of each row and effect of each known moment, so that their sum fits the logarithms best. The mean
// effect is 0.
func fitEffects(rows []row, moments map[moment]*shared) {
	var known []*shared
	for _, m := range slices.SortedFunc(maps.Keys(moments), moment.compare) {
		if moments[m].hasEnoughProfiles() {
			known = append(known, moments[m])
		}
	}
	if len(known) == 0 {
		return
	}
	for range 30 {
		for _, t := range moments {
			t.sum = 0
		}
		for n := range rows {
			r := &rows[n]
			var sum, weight float64
			for i, s := range r.units {
				sum, weight = sum+s.weight*(r.logs[i]-moments[r.moments[i]].effect), weight+s.weight
			}
			r.own = sum / weight
			for i, s := range r.units {
				moments[r.moments[i]].sum += s.weight * (r.logs[i] - r.own)
			}
		}
		var mean, all float64
		for _, t := range known {
			t.effect = t.sum / t.weight
			mean, all = mean+t.sum, all+t.weight
		}
		for _, t := range known {
			t.effect -= mean / all
		}
	}
}
