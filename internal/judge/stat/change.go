package stat

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Change is a border between two levels of a series of samples.
type Change struct {
	// At is the index of the first sample of the new level.
	At int
	// Effect compares the new level with the previous one.
	Effect
	// Share is the p value of the change: the chance that the values around it have a border that is at least as sharp
	// after they are shuffled.
	Share float64
}

// Wander returns how much neighbouring samples of a series differ, as the standard deviation of the logarithm of one
// sample's median from run to run. The estimate is robust, so that the few real changes do not affect it. It is NaN for
// fewer than wanderFrom samples, and if a median is not positive.
func Wander(series [][]float64) float64 {
	var logs, steps []float64
	for _, xs := range series {
		if len(xs) == 0 {
			continue
		}
		m := medianOfSorted(slices.Sorted(slices.Values(xs)))
		if !(m > 0) {
			return math.NaN()
		}
		logs = append(logs, math.Log(m))
	}
	if len(logs) < wanderFrom {
		return math.NaN()
	}
	for i := 1; i < len(logs); i++ {
		steps = append(steps, math.Abs(logs[i]-logs[i-1]))
	}
	slices.Sort(steps)
	// The median absolute difference of two normal values is 0.6745 times the root of two of their deviation.
	return medianOfSorted(steps) / (0.6745 * math.Sqrt2)
}

// ChangesFrom is the number of samples from which a change can be distinguished from wandering.
const ChangesFrom = 5

const (
	// wanderFrom is the least number of samples for Wander.
	wanderFrom = 4
	// beyondWander is the least change in standard errors of the wandering: with a lower limit, series that only wander
	// would show a change in more than one of twenty (TestChangesOfNothing).
	beyondWander = 4.5
	// samplesPerBorder bounds the number of borders: a series may have one for each so many samples.
	samplesPerBorder = 6
	// shuffles is how often a stretch is shuffled.
	shuffles = 999
)

// Changes returns the borders at which a series of samples changes its level, in order. It finds the sharpest border
// first, and then searches again on either side of it. A border counts if
//   - the largest rank sum statistic of all borders of the stretch is significant at alpha by shuffling its values,
//   - the ratio of the levels on its two sides is beyond margin, a share: 0.02 is from 1/1.02 to 1.02, and
//   - it exceeds the wandering of the samples around their levels, by more if neighbouring samples resemble each other.
//
// Empty samples are skipped. A series with fewer than ChangesFrom samples has no border. Shuffling is seeded, so the same
// series has the same changes.
func Changes(series [][]float64, margin, alpha float64) []Change {
	f := finder{margin: math.Log1p(margin), alpha: alpha, rand: rand.New(rand.NewPCG(1, 1))}
	for i, xs := range series {
		if len(xs) > 0 {
			f.at = append(f.at, i)
			f.series = append(f.series, xs)
			f.logs = append(f.logs, math.Log(medianOfSorted(slices.Sorted(slices.Values(xs)))))
		}
	}
	if len(f.series) < ChangesFrom {
		return nil
	}
	f.splitSeries()
	f.pruneChanges()
	for i := range f.found {
		f.found[i].At = f.at[f.found[i].At]
	}
	return f.found
}

// finder looks for changes. at is the index of each sample before empty ones were removed; logs are the logarithms of
// their medians.
type finder struct {
	margin, alpha float64
	rand          *rand.Rand
	at            []int
	series        [][]float64
	logs          []float64
	found         []Change
}

// stretch is a part of the series, from low up to high, with its sharpest border. sharp is how sharp that border is; 0
// if no border counts.
type stretch struct {
	low, high int
	border    Change
	sharp     float64
}

// splitSeries splits the series at its sharpest border, then repeatedly at the sharpest border of all resulting stretches.
// The number of borders is bounded: samples that wander could otherwise be split into so many levels that the wandering
// cannot be estimated.
func (f *finder) splitSeries() {
	all := []stretch{f.stretchBetween(0, len(f.series))}
	for range max(1, len(f.series)/samplesPerBorder) {
		at := 0
		for i, s := range all {
			if s.sharp > all[at].sharp {
				at = i
			}
		}
		s := all[at]
		if s.sharp == 0 {
			break
		}
		f.found = append(f.found, s.border)
		all = slices.Replace(all, at, at+1, f.stretchBetween(s.low, s.border.At), f.stretchBetween(s.border.At, s.high))
	}
	slices.SortFunc(f.found, func(a, b Change) int { return a.At - b.At })
}

// stretchBetween returns the part of the series from low up to high, with its sharpest border if that is significant
// and exceeds the margin.
func (f *finder) stretchBetween(low, high int) stretch {
	s := stretch{low: low, high: high}
	if high-low < 2 {
		return s
	}
	ranks, _ := doubledMidranks(slices.Concat(f.series[low:high]...))
	ends := make([]int, 0, high-low)
	n := 0
	for _, xs := range f.series[low:high] {
		n += len(xs)
		ends = append(ends, n)
	}
	border, sharp := sharpestBorder(ranks, ends)
	s.border = f.changeAt(low, low+border, high)
	if sharp == 0 || !f.exceedsMargin(s.border) {
		return s
	}
	if s.border.Share = f.shuffleShare(ranks, ends, sharp); s.border.Share <= f.alpha {
		s.sharp = sharp
	}
	return s
}

// changeAt compares the samples from at up to high with those from low up to at.
func (f *finder) changeAt(low, at, high int) Change {
	before, after := slices.Concat(f.series[low:at]...), slices.Concat(f.series[at:high]...)
	return Change{At: at, Effect: Unpaired(after, before, 1-f.alpha)}
}

// exceedsMargin reports whether a change exceeds the margin. It is true for samples with zeros, which have no ratio.
func (f *finder) exceedsMargin(c Change) bool {
	size := math.Abs(math.Log(c.Ratio))
	return math.IsNaN(size) || size > f.margin && (c.Low > 1 || c.High < 1)
}

// countsAsChange reports whether a change between low and high exceeds the margin, and the wandering if there is a ratio.
func (f *finder) countsAsChange(c Change, low, high int) bool {
	size := math.Abs(math.Log(c.Ratio))
	return f.exceedsMargin(c) && !(size <= f.wanderingLimit()*math.Sqrt(1/float64(c.At-low)+1/float64(high-c.At)))
}

// wanderingLimit returns beyondWander times the standard deviation of a sample around its level. If neighbouring samples
// resemble each other, the error of a level is larger; the result includes that factor, as in a first-order
// autoregressive series.
func (f *finder) wanderingLimit() float64 {
	n, from := float64(len(f.logs)), 0
	free := n - 1 - float64(len(f.found))
	square, product, last := 0.0, 0.0, 0.0
	for i := range len(f.found) + 1 {
		to := len(f.logs)
		if i < len(f.found) {
			to = f.found[i].At
		}
		level := 0.0
		for _, x := range f.logs[from:to] {
			level += x / float64(to-from)
		}
		for _, x := range f.logs[from:to] {
			square += (x - level) * (x - level)
			product += (x - level) * last
			last = x - level
		}
		from = to
	}
	if square == 0 || free < 1 {
		return 0
	}
	// Levels that are estimated from few samples absorb a part of the resemblance and of the deviation.
	own := product / square
	own = min(max(own+(2+3*own)/n, 0), 0.95)
	return beyondWander * math.Sqrt((1+2/free)*square/free/(1-own)*(1+own)/(1-own))
}

// shuffleShare returns the share of shuffles of the ranks with a border at least as sharp; the observed order counts as one.
func (f *finder) shuffleShare(ranks, ends []int, sharp float64) float64 {
	shuffled := slices.Clone(ranks)
	as := 1
	for range shuffles {
		f.rand.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		if _, s := sharpestBorder(shuffled, ends); s >= sharp*(1-1e-12) {
			as++
		}
	}
	return float64(as) / (shuffles + 1)
}

// sharpestBorder returns the border with the largest standardized rank sum: the number of samples before it, and the
// statistic without a factor that is the same for all orders of the ranks.
func sharpestBorder(doubled, ends []int) (border int, statistic float64) {
	n, sum, from := len(doubled), 0, 0
	for i, end := range ends[:len(ends)-1] {
		for _, r := range doubled[from:end] {
			sum += r
		}
		from = end
		s := math.Abs(float64(sum-end*(n+1))) / math.Sqrt(float64(end)*float64(n-end))
		if s > statistic {
			border, statistic = i+1, s
		}
	}
	return border, statistic
}

// pruneChanges removes, one after the other, changes that no longer count between the remaining levels.
func (f *finder) pruneChanges() {
	for {
		weakest, least := -1, math.Inf(1)
		for i, c := range f.found {
			low, high := 0, len(f.series)
			if i > 0 {
				low = f.found[i-1].At
			}
			if i+1 < len(f.found) {
				high = f.found[i+1].At
			}
			now := f.changeAt(low, c.At, high)
			now.Share = c.Share
			f.found[i] = now
			if size := math.Abs(math.Log(now.Ratio)); !f.countsAsChange(now, low, high) && size < least {
				weakest, least = i, size
			}
		}
		if weakest < 0 {
			return
		}
		f.found = slices.Delete(f.found, weakest, weakest+1)
	}
}
