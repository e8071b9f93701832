// Package stat turns repeated measurements into what can be claimed about them: a median with an interval, a ratio of
// two samples with an interval and a p value, and doubts as values.
//
// Only Student and Welch assume a shape of the noise: that logarithms are normal. They are for
// samples too small for ranks, and for values that count by weights (Level). Summarize gives the median of one sample
// with the interval between two of its order statistics. Unpaired and Paired compare two samples: the first by the
// Mann-Whitney test and the median of all pairwise ratios (Hodges-Lehmann), the second, for pairs of trials close
// together in time, by the Wilcoxon signed-rank test and the median of the pairs' Walsh averages. Both p values are
// exact for the sizes that occur here, and both intervals are the inversion of the test, so that (ties apart) the
// interval excludes 1 exactly when the test rejects. UsePaired chooses between the two by the number of repetitions
// alone. Examine returns what is odd about a sample.
//
// Read Summary and Effect first. Confidence is in [0,1), for example 0.95; ratios are dimensionless, 1 for equal
// samples; whatever cannot be computed is NaN, never 0. All functions are pure and leave their arguments as they are.
// The package knows nothing of metrics, of what is better, or of how numbers are shown.
package stat

import (
	"math"
	"slices"
)

// Summary describes one sample. Every number but N and Confidence is in the unit of the sample; all are NaN if N is 0.
type Summary struct {
	// N is the number of values.
	N int `json:"n"`
	// Median is the middle value, or the mean of the two middle ones.
	Median float64 `json:"median"`
	// Low and High are order statistics that bound the true median with probability Confidence.
	Low  float64 `json:"low"`
	High float64 `json:"high"`
	// Confidence is the actual coverage of the interval: at least the requested one or, if N is too small for that, the
	// coverage of the whole range (0.9375 for N = 5). 0 if N is 0 or 1.
	Confidence float64 `json:"confidence"`
	Min        float64 `json:"-"`
	Max        float64 `json:"-"`
}

// Summarize describes xs, which must be finite, with the narrowest interval of equal tails that covers the median with
// at least the given confidence.
//
// Whatever the distribution, the number of values below the true median is binomial with p = 1/2, so the chance that
// the median lies outside the k-th smallest and k-th largest of n values is twice the chance of fewer than k heads in
// n tosses. With n = 6 the range covers 96.9 %; below that no interval reaches 95 %, and the range is given with the
// coverage that it has.
func Summarize(xs []float64, confidence float64) Summary {
	n := len(xs)
	nan := math.NaN()
	if n == 0 {
		return Summary{Median: nan, Low: nan, High: nan, Min: nan, Max: nan}
	}
	s := slices.Sorted(slices.Values(xs))
	k, coverage := medianRank(n, confidence)
	return Summary{
		N: n, Median: medianOfSorted(s),
		Low: s[k-1], High: s[n-k], Confidence: coverage,
		Min: s[0], Max: s[n-1],
	}
}

// HalfWidth returns the longer arm of the interval relative to the median, for example 0.05; NaN if N < 2 or the
// median is 0.
func (s Summary) HalfWidth() float64 {
	if s.N < 2 || s.Median == 0 {
		return math.NaN()
	}
	return max(s.High-s.Median, s.Median-s.Low) / math.Abs(s.Median)
}

// wideSpread is the half-width of an interval, relative to the median, above which it is wide.
const wideSpread = 0.25

// Wide reports whether the interval is so wide that the median is imprecise.
func (s Summary) Wide() bool { return s.HalfWidth() > wideSpread }

// exactTosses bounds the tosses for the exact distribution: 2^-1075 is 0 in float64. Beyond it the normal approximation
// is exact to one rank.
const exactTosses = 1000

// medianRank returns the largest k, at least 1, whose interval [x(k), x(n+1-k)] has the requested confidence, and the
// coverage of that interval.
func medianRank(n int, confidence float64) (k int, coverage float64) {
	if n > exactTosses {
		half, deviation := float64(n)/2, math.Sqrt(float64(n))/2
		k = int(half + 0.5 - deviation*math.Sqrt2*math.Erfinv(confidence))
		return k, math.Erf((half + 0.5 - float64(k)) / (deviation * math.Sqrt2))
	}
	// below is P(B < k) and term P(B = k) for B binomial(n, 1/2).
	term := math.Exp2(-float64(n))
	below := term
	k = 1
	for k < (n+1)/2 {
		term *= float64(n-k+1) / float64(k)
		if 1-2*(below+term) < confidence {
			break
		}
		below += term
		k++
	}
	return k, max(0, 1-2*below)
}

// Median returns the median of values in any order, NaN for no values.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	return medianOfSorted(slices.Sorted(slices.Values(values)))
}

// medianOfSorted returns the median of sorted s; NaN if it is empty.
func medianOfSorted(s []float64) float64 {
	n := len(s)
	if n == 0 {
		return math.NaN()
	}
	return midpoint(s[(n-1)/2], s[n/2])
}

// KneeFactor is the ratio to the lowest time of a curve above which a time is beyond the knee.
const KneeFactor = 2

// Knee finds the knee of a curve of times over rising loads: the last load whose time is at most KneeFactor times the
// lowest of the curve. It searches from the high end, so that a disturbed trial at a low load does not count as a knee.
//
// It returns indices. low is the knee by the medians. high is the knee by the intervals: a time is above only if its
// lower end is above KneeFactor times the upper end of the lowest time. If both are equal, the knee is decided; if both
// are the last index, the curve has none. ok is false for a curve of fewer than three times, or with a NaN.
func Knee(times []Summary) (low, high int, ok bool) {
	if len(times) < 3 {
		return 0, 0, false
	}
	ground := times[0]
	for _, t := range times {
		if math.IsNaN(t.Median) || math.IsNaN(t.Low) || math.IsNaN(t.High) {
			return 0, 0, false
		}
		if t.Median < ground.Median {
			ground = t
		}
	}
	low, high = len(times)-1, len(times)-1
	for low > 0 && times[low].Median > KneeFactor*ground.Median {
		low--
	}
	for high > low && times[high].Low > KneeFactor*ground.High {
		high--
	}
	return low, high, true
}
