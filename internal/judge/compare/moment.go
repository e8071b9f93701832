package compare

import (
	"math"

	"github.com/cnibench/cnibench/internal/judge/stat"
)

// All cells of a table are measured in turn in each repetition, so what the machine does for longer than a repetition moves them
// all. Comparisons within a run need not know of it. The logarithm of a value is that of its cell and that of its moment, fitted
// to all cells together, and what is left over is the error that a comparison has. With two cells this is the test of pairs.

// fewestTogether is how many cells of a repetition say what its moment did to all of them.
const fewestTogether = 4

// moment is a repetition, or an instance, of one invocation.
type moment struct{ session, at int }

func (s Sample) moment() moment { return moment{s.session, s.Repetition} }

// contrasts are the units of undisturbed values without what their moments did to all cells, by cell.
type contrasts map[Key][]Sample

// level is that of cells, which count as one.
func (m contrasts) level(cells ...*Cell) stat.Level {
	var all []Sample
	for _, c := range cells {
		all = append(all, m[c.Key]...)
	}
	return levelOf(all)
}

// momentless takes what the moments did from the units of the cells of a table.
func momentless(cells []*Cell) contrasts {
	out := contrasts{}
	count, weights := map[moment]int{}, map[moment]float64{}
	for _, c := range cells {
		out[c.Key] = append([]Sample(nil), c.units()...)
		for _, s := range out[c.Key] {
			count[s.moment()]++
			weights[s.moment()] += s.weight
		}
	}
	effects, own := fitted(out, count)
	for k, units := range out {
		for i := range units {
			s := &units[i]
			if count[s.moment()] < fewestTogether {
				continue
			}
			// A heavy value makes up most of its moment's effect, and leaves little over.
			left := 1 - min(s.weight/weights[s.moment()], heaviestShare)
			s.Value = math.Exp(own[k] + (math.Log(s.Value)-own[k]-effects[s.moment()])/math.Sqrt(left))
		}
	}
	return out
}

// heaviestShare bounds the share of a moment's effect that one value is taken for.
const heaviestShare = 0.75

// fitted are the logarithms of moments, whose mean is 0, and of cells. A moment of few cells has none.
func fitted(units contrasts, count map[moment]int) (effects map[moment]float64, own map[Key]float64) {
	effects, own = map[moment]float64{}, map[Key]float64{}
	for range 30 {
		sums, weights := map[moment]float64{}, map[moment]float64{}
		for k, of := range units {
			var sum, weight float64
			for _, s := range of {
				sum, weight = sum+s.weight*(math.Log(s.Value)-effects[s.moment()]), weight+s.weight
			}
			own[k] = sum / weight
			for _, s := range of {
				m := s.moment()
				sums[m], weights[m] = sums[m]+s.weight*(math.Log(s.Value)-own[k]), weights[m]+s.weight
			}
		}
		var mean, all float64
		for m, n := range count {
			if n >= fewestTogether {
				effects[m] = sums[m] / weights[m]
				mean, all = mean+sums[m], all+weights[m]
			}
		}
		for m := range effects {
			effects[m] -= mean / all
		}
	}
	return effects, own
}
