package compare

import (
	"cmp"
	"iter"

	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/profile"
)

// Comparison is a cell beside that of the baseline.
type Comparison struct {
	Key
	Baseline plan.Variant `json:"baseline"`
	// BaselinePath is the path of the baseline's cell where it is not Path: a profile without pods of its own has
	// host-to-host/cross-node only, which then stands in. The zero Path otherwise.
	BaselinePath plan.Path `json:"baseline_path"`
	// Effect has the ratio of the cell to the baseline with its interval, and the p value of this comparison alone.
	stat.Effect
	// Adjusted is the p value corrected for the family of the comparison, which a verdict of better or worse stands on;
	// NaN for a metric that is not judged. Family is how many comparisons it was corrected for: 0 if this one is in none,
	// because its metric is not judged or its repetitions are too few.
	Adjusted float64 `json:"p_adjusted"`
	Family   int     `json:"family"`
	// Floor is the noise floor as a share: 0.02 means that ratios from 1/1.02 to 1.02 are noise.
	Floor float64 `json:"floor"`
	// Verdict equals None for metrics that describe and are not judged.
	Verdict Verdict `json:"verdict"`
	// Need is about how many more repetitions would decide an inconclusive verdict; 0 for other verdicts and where the number is unknown.
	Need int `json:"need"`
}

// pending is a comparison that waits for its family.
type pending struct {
	x       *Comparison
	c, base *Cell
	// apart is true for two results that were measured at different times, so that their trials do not form pairs.
	apart bool
}

// againstBaseline compares c with the baseline's cell; false if there is nothing to compare.
func (a *Analysis) againstBaseline(c *Cell) (pending, bool) {
	if c.Profile == a.Baseline {
		return pending{}, false
	}
	key := c.Key
	key.Profile = a.Baseline
	base, ok := a.at[key]
	if !ok && standsIn(a.Baseline) && !a.Served(a.Baseline, c.Path) {
		key.Path = plan.ZeroPath
		base, ok = a.at[key]
	}
	if !ok || base.N == 0 || c.N == 0 {
		return pending{}, false
	}
	return a.compare(c, base), true
}

// standsIn says whether a profile's host-to-host cell may be the baseline of other paths. It may for the two that are
// the floor under every dataplane; between two dataplanes it would compare a path with none.
func standsIn(name plan.Variant) bool { return name == profile.Raw || name == profile.Host }

// compare sets c beside base.
func (a *Analysis) compare(c, base *Cell) pending {
	x := &Comparison{Key: c.Key, Baseline: base.Profile, Effect: Between(c, base, a.Confidence)}
	if base.Path != c.Path {
		x.BaselinePath = base.Path
	}
	x.Floor = a.Floor(c.Workload, c.Metric).Share
	return pending{x: x, c: c, base: base}
}

// Between sets c beside base, two cells of one run, whatever the baseline of the analysis is. Trials of the same
// repetition are pairs where there are enough of them. The p value is that of this comparison alone.
func Between(c, base *Cell, confidence float64) stat.Effect {
	var a, b []float64
	mine, theirs := alike(c, base)
	for x, y := range Pairs(mine.Samples, theirs.Samples) {
		a, b = append(a, x.Value), append(b, y.Value)
	}
	if stat.UsePaired(len(a)) {
		return stat.Paired(a, b, confidence)
	}
	return stat.Unpaired(mine.Values(), theirs.Values(), confidence)
}

// Pairs are the samples of the repetitions that both have; both are in the order of repetition.
func Pairs(x, y []Sample) iter.Seq2[Sample, Sample] {
	return func(yield func(Sample, Sample) bool) {
		for i, j := 0, 0; i < len(x) && j < len(y); {
			switch order := cmp.Compare(x[i].Repetition, y[j].Repetition); {
			case order < 0:
				i++
			case order > 0:
				j++
			case !yield(x[i], y[j]):
				return
			default:
				i, j = i+1, j+1
			}
		}
	}
}
