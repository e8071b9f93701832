package compare

import (
	"cmp"
	"iter"
	"math"

	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/profile"
)

// Comparison is a cell compared with the baseline's.
type Comparison struct {
	Key
	Baseline plan.Variant `json:"baseline"`
	// BaselinePath is the path of the baseline's cell if it differs from Path, otherwise the zero Path. A baseline
	// without pods has only host-to-host: between nodes it replaces the paths between nodes, within a node all others.
	BaselinePath plan.Path `json:"baseline_path"`
	// Effect has the ratio of the cell to the baseline, and the interval of the ratio, extended by Widened. Its P is the
	// uncorrected p value of a difference beyond Widened.
	stat.Effect
	// Adjusted is the p value corrected for the family, which a verdict of better or worse rests on; NaN for a metric
	// that is not judged. Family is the size of the family: 0 if the comparison has none, because its metric is not
	// judged or its repetitions are too few.
	Adjusted float64 `json:"p_adjusted"`
	Family   int     `json:"family"`
	// Widened is the share by which the interval is extended at either end, because a side has only one instance. It is
	// the difference between two instances of the baseline; 0 if both sides have several instances.
	Widened float64 `json:"widened"`
	// Beyond is the p value of the verdict same: the larger one of two one-sided tests whose null hypothesis is a
	// difference beyond the margin (TOST).
	Beyond float64 `json:"p_beyond"`
	// Verdict has the value None for metrics that describe and are not judged.
	Verdict Verdict `json:"verdict"`
	// Need estimates how many more repetitions would decide an inconclusive verdict. It is 0 for other verdicts or if
	// unknown.
	Need int `json:"need"`
	// Trials is the number of repetitions that Need is added to. The number in Effect counts instances if several trials share
	// one.
	Trials int `json:"-"`
}

// pending is a comparison without a verdict yet: its p value is corrected when all comparisons of its family are known. c is
// compared with base; x is the result.
type pending struct {
	x       *Comparison
	c, base *Cell
	// apart is true for two results that were measured at different times, so that their trials do not form pairs.
	apart bool
}

// setNeed sets Need and Trials. values is how many more values would decide the verdict.
func (p pending) setNeed(values int) {
	p.x.Need, p.x.Trials = repetitionsOf(values, p.x.N, min(p.c.N, p.base.N)), min(p.c.N, p.base.N)
}

// repetitionsOf converts a number of values into a number of repetitions, given that trials repetitions have n values.
// It returns at most the constant most.
func repetitionsOf(values, n, trials int) int {
	if n <= 0 || n >= trials {
		return values
	}
	return min(most, (values*trials+n-1)/n)
}

// compareWithBaseline compares c with the baseline's cell. It returns false if there is nothing to compare with.
func (a *Analysis) compareWithBaseline(c *Cell) (pending, bool) {
	if c.Profile == a.Baseline {
		return pending{}, false
	}
	base := a.baselineCell(c.Key, a.Baseline)
	if base == nil || base.N == 0 || c.N == 0 || c.Unlike(base) {
		return pending{}, false
	}
	return a.compareCells(c, base), true
}

// baselineCell returns the baseline's cell that the cell of key is compared with, or nil. Its path is the same. If the
// baseline is raw or host and does not serve that path, the path is host-to-host instead: between nodes if key's path
// is, otherwise within a node.
func (a *Analysis) baselineCell(key Key, baseline plan.Variant) *Cell {
	under := plan.Path{From: plan.Host, To: plan.Host, Locality: plan.SameNode}
	if key.Path.Crosses() {
		under = plan.ZeroPath
	}
	return a.standInCell(key, baseline, under)
}

// momentCell returns the baseline's cell that shows how the time of measurement affected the cell of key, or nil. It may
// have another path.
func (a *Analysis) momentCell(key Key, baseline plan.Variant) *Cell {
	return a.standInCell(key, baseline, plan.ZeroPath)
}

// standInCell returns the baseline's cell on key's path. If the baseline is raw or host and does not serve that path, it
// returns the cell on the path other: these profiles are the floor of every dataplane. It returns nil if there is no
// cell.
func (a *Analysis) standInCell(key Key, baseline plan.Variant, other plan.Path) *Cell {
	path := key.Path
	key.Profile = baseline
	base, ok := a.at[key]
	if floor := baseline == plan.VariantOf(profile.Raw) || baseline == plan.VariantOf(profile.Host); !ok && floor && !a.served[servedKey(baseline, path)] {
		key.Path = other
		base = a.at[key]
	}
	return base
}

// compareCells compares c with base.
func (a *Analysis) compareCells(c, base *Cell) pending {
	x := &Comparison{Key: c.Key, Baseline: base.Profile, Widened: a.intervalWidening(c, base)}
	x.setEffect(a.cellTest(c, base, a.Confidence), a.Margin)
	if base.Path != c.Path {
		x.BaselinePath = base.Path
	}
	return pending{x: x, c: c, base: base}
}

// Between compares c with base, two cells of one run, whatever the analysis' baseline is. Trials of the same repetition
// are pairs if there are enough of them. The interval is as in a Comparison; the p value is uncorrected.
func (a *Analysis) Between(c, base *Cell) stat.Effect { return a.compareCells(c, base).x.Effect }

// Apart compares c with base, two cells of one run whose trials are not pairs because they have different workloads.
func (a *Analysis) Apart(c, base *Cell) stat.Effect {
	mine, theirs := valuesOf(c.comparisonUnits()), valuesOf(base.comparisonUnits())
	return widenedEffect(a.intervalWidening(c, base), func(factor float64) stat.Effect {
		return stat.Unpaired(scaledValues(mine, factor), theirs, a.Confidence)
	})
}

// scaledTest compares two sides after it multiplied the first by factor.
type scaledTest func(factor float64) stat.Effect

// cellTest returns the test of two cells of one run: Welch's test for undisturbed values, otherwise a paired test if
// there are enough pairs, otherwise an unpaired test.
func (a *Analysis) cellTest(c, base *Cell, confidence float64) scaledTest {
	if allUndisturbed(c, base) {
		mine, theirs := a.contrastLevel(c), a.contrastLevel(base)
		return func(factor float64) stat.Effect { return stat.Welch(mine.Times(factor), theirs, confidence) }
	}
	mine, theirs := c.Recorded().comparisonUnits(), base.Recorded().comparisonUnits()
	var p, q []float64
	if (countInstances(mine) == len(mine)) == (countInstances(theirs) == len(theirs)) { // units of one kind
		p, q = pairedValues(mine, theirs)
	}
	return func(factor float64) stat.Effect {
		if stat.UsePaired(len(p)) {
			return stat.Paired(scaledValues(p, factor), q, confidence)
		}
		return stat.Unpaired(scaledValues(valuesOf(mine), factor), valuesOf(theirs), confidence)
	}
}

// intervalWidening returns the share by which the interval of a comparison of cells is widened: the floor if one of the
// cells has a single instance, otherwise 0.
func (a *Analysis) intervalWidening(cells ...*Cell) float64 {
	for _, c := range cells {
		if c.Instances < 2 {
			return a.floorOf(c.Workload, c.Metric).Share
		}
	}
	return 0
}

// widenedEffect returns the effect of a test with its interval extended by a share at either end, and with the p value
// of a difference beyond that share.
func widenedEffect(share float64, test scaledTest) stat.Effect {
	e := test(1)
	if share == 0 || math.IsNaN(e.Ratio) {
		return e
	}
	p := 1.0
	switch {
	case e.Ratio > 1+share:
		p = test(1 / (1 + share)).P
	case e.Ratio < 1/(1+share):
		p = test(1 + share).P
	}
	e.Low, e.High, e.P = e.Low/(1+share), e.High*(1+share), p
	return e
}

// setEffect sets Effect and Beyond by a test of both sides.
func (x *Comparison) setEffect(by scaledTest, margin float64) {
	x.Effect, x.Beyond = widenedEffect(x.Widened, by), beyondMarginP(margin, x.Widened, by)
}

// beyondMarginP returns the p value of the hypothesis that the difference exceeds the margin less the widening (share).
// It returns 1 if the observed ratio itself exceeds that.
func beyondMarginP(margin, share float64, test scaledTest) float64 {
	room := (1 + share) / (1 + margin)
	low, high := test(room), test(1/room)
	if !(low.Ratio < 1 && high.Ratio > 1) {
		return 1
	}
	return max(low.P, high.P) / 2
}

// pairedValues returns the values of the samples that pairsOf pairs: those of x in p, those of y in q.
func pairedValues(x, y []Sample) (p, q []float64) {
	for a, b := range pairsOf(x, y) {
		p, q = append(p, a.Value), append(q, b.Value)
	}
	return p, q
}

// pairsOf returns the pairs of samples with the same repetition and invocation; both are in the order of repetition.
func pairsOf(x, y []Sample) iter.Seq2[Sample, Sample] {
	return func(yield func(Sample, Sample) bool) {
		for i, j := 0, 0; i < len(x) && j < len(y); {
			switch order := cmp.Compare(x[i].Repetition, y[j].Repetition); {
			case order < 0:
				i++
			case order > 0:
				j++
			case x[i].session == y[j].session && !yield(x[i], y[j]):
				return
			default:
				i, j = i+1, j+1
			}
		}
	}
}
