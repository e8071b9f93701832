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
	// Effect compares the new level with the one before it.
	Effect
	// Share is the chance that shuffling the values of the stretch that it was found in shows a border as sharp: the p
	// value of the change.
	Share float64
}

// Wander is how much neighbouring samples of a series differ, as the standard deviation of the logarithm of one
// sample's median from run to run: a robust estimate, so that the few steps that are real changes have no say. It is
// NaN for fewer than wanderFrom samples, and where a median is not positive.
func Wander(series [][]float64) float64 {
	var logs, steps []float64
	for _, xs := range series {
		if len(xs) == 0 {
			continue
		}
		m := median(slices.Sorted(slices.Values(xs)))
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
	// The difference of two normal values has a median size of 0.6745 times the root of two of their deviation.
	return median(steps) / (0.6745 * math.Sqrt2)
}

// ChangesFrom is the number of samples from which their wandering can be told from a change.
const ChangesFrom = 5

const (
	// wanderFrom is the number of samples from which Wander says something.
	wanderFrom = 4
	// beyondWander is how many standard errors of the wandering a change must be: with fewer, series that change
	// nowhere but wander would show one in more than one of twenty (TestChangesOfNothing).
	beyondWander = 4.5
	// levelOf is how many samples there are for each border at least.
	levelOf = 6
	// shuffles is how often a stretch is shuffled.
	shuffles = 999
)

// Changes returns the borders at which a series of samples changes its level, in order: sharper ones are sought first,
// and then again on either side of them. A border counts if
//   - the largest rank sum statistic of all borders of the stretch is beyond what shuffling its values shows, at alpha,
//   - the ratio of the levels on its two sides is beyond margin, a share: 0.02 is from 1/1.02 to 1.02, and
//   - it is beyond what the samples wander by around their levels, the more so as each resembles the one before it.
//
// A border lies between samples; empty ones are passed over. Fewer than ChangesFrom show none. Shuffling is seeded, so
// the same series has the same changes.
func Changes(series [][]float64, margin, alpha float64) []Change {
	f := finder{margin: math.Log1p(margin), alpha: alpha, rand: rand.New(rand.NewPCG(1, 1))}
	for i, xs := range series {
		if len(xs) > 0 {
			f.at = append(f.at, i)
			f.series = append(f.series, xs)
			f.logs = append(f.logs, math.Log(median(slices.Sorted(slices.Values(xs)))))
		}
	}
	if len(f.series) < ChangesFrom {
		return nil
	}
	f.split()
	f.prune()
	for i := range f.found {
		f.found[i].At = f.at[f.found[i].At]
	}
	return f.found
}

// finder looks for changes. at is where each sample stood before empty ones were passed over, logs are the logarithms
// of their medians.
type finder struct {
	margin, alpha float64
	rand          *rand.Rand
	at            []int
	series        [][]float64
	logs          []float64
	found         []Change
}

// stretch has the sharpest border within itself, and how sharp that is; 0 if there is not one.
type stretch struct {
	low, high int
	border    Change
	sharp     float64
}

// split cuts the series at its sharpest border, and again the sharpest of all stretches that this makes. The borders are
// few: samples that wander could be taken for so many levels that nothing is left to tell the wandering from.
func (f *finder) split() {
	all := []stretch{f.stretch(0, len(f.series))}
	for range max(1, len(f.series)/levelOf) {
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
		all = slices.Replace(all, at, at+1, f.stretch(s.low, s.border.At), f.stretch(s.border.At, s.high))
	}
	slices.SortFunc(f.found, func(a, b Change) int { return a.At - b.At })
}

// stretch looks for a border between low and high that is beyond the margin and that shuffling does not show.
func (f *finder) stretch(low, high int) stretch {
	s := stretch{low: low, high: high}
	if high-low < 2 {
		return s
	}
	ranks, _ := midranks(slices.Concat(f.series[low:high]...))
	ends := make([]int, 0, high-low)
	n := 0
	for _, xs := range f.series[low:high] {
		n += len(xs)
		ends = append(ends, n)
	}
	border, sharp := sharpest(ranks, ends)
	s.border = f.change(low, low+border, high)
	if sharp == 0 || !f.beyondMargin(s.border) {
		return s
	}
	if s.border.Share = f.share(ranks, ends, sharp); s.border.Share <= f.alpha {
		s.sharp = sharp
	}
	return s
}

// change compares the samples from at up to high with those from low up to at.
func (f *finder) change(low, at, high int) Change {
	before, after := slices.Concat(f.series[low:at]...), slices.Concat(f.series[at:high]...)
	return Change{At: at, Effect: Unpaired(after, before, 1-f.alpha)}
}

// beyondMargin says whether a change is beyond the margin. Samples without ratios, which hold zeros, have none.
func (f *finder) beyondMargin(c Change) bool {
	size := math.Abs(math.Log(c.Ratio))
	return math.IsNaN(size) || size > f.margin && (c.Low > 1 || c.High < 1)
}

// counts says whether a change between low and high is beyond the margin and the wandering.
func (f *finder) counts(c Change, low, high int) bool {
	size := math.Abs(math.Log(c.Ratio))
	return f.beyondMargin(c) && !(size <= f.wandering()*math.Sqrt(1/float64(c.At-low)+1/float64(high-c.At)))
}

// wandering is beyondWander times the deviation of a sample around its level, times the factor by which resemblance of
// neighbours makes the error of a level larger than if they were independent: an autoregressive series of the first
// order.
func (f *finder) wandering() float64 {
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
	// Levels that are estimated from so few samples take a part of the resemblance with them, and of the deviation.
	own := product / square
	own = min(max(own+(2+3*own)/n, 0), 0.95)
	return beyondWander * math.Sqrt((1+2/free)*square/free/(1-own)*(1+own)/(1-own))
}

// share is how often shuffled ranks show a border as sharp, the one that is seen counted in.
func (f *finder) share(ranks, ends []int, sharp float64) float64 {
	shuffled := slices.Clone(ranks)
	as := 1
	for range shuffles {
		f.rand.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		if _, s := sharpest(shuffled, ends); s >= sharp*(1-1e-12) {
			as++
		}
	}
	return float64(as) / (shuffles + 1)
}

// sharpest returns the border with the largest standardized rank sum: how many samples lie before it, and the statistic
// but for a factor that is the same for all orders of the ranks.
func sharpest(doubled, ends []int) (border int, statistic float64) {
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

// prune takes out, one after the other, the changes that do not count between the levels that are left.
func (f *finder) prune() {
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
			now := f.change(low, c.At, high)
			now.Share = c.Share
			f.found[i] = now
			if size := math.Abs(math.Log(now.Ratio)); !f.counts(now, low, high) && size < least {
				weakest, least = i, size
			}
		}
		if weakest < 0 {
			return
		}
		f.found = slices.Delete(f.found, weakest, weakest+1)
	}
}
