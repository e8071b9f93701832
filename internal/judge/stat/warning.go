package stat

import (
	"fmt"
	"math"
	"slices"
)

// Warning is a doubt about a sample.
type Warning struct {
	// ID is the id of a check below or of a trial's warning. Message describes the problem, in the first trial if
	// several had it, and what may help.
	ID      string `json:"id"`
	Message string `json:"message"`
	// Trials is the number of trials with the warning; 0 for a warning about the whole sample.
	Trials int `json:"trials"`
}

// The warnings of Examine.
const (
	// Few means that the sample is too small to be compared without an assumption about its distribution.
	Few = "few-repetitions"
	// Spread means that the interval is wide relative to the median.
	Spread = "spread"
	// Outlier means that single values are far from the others.
	Outlier = "outlier"
	// Trend means that the values drift with the repetitions.
	Trend = "trend"
)

const (
	// MinRepetitions is the smallest sample with which a comparison can reach 95 % confidence for any distribution.
	// Student's test of fewer values assumes that they are log-normal.
	MinRepetitions = 4
	// outlierFrom is the sample size from which a median absolute deviation is meaningful.
	outlierFrom = 6
	// farOff is the least distance of an outlier from the median in robust standard deviations: a normal sample of 10
	// has one in about 1 of 40 cases. farShare is the least distance as a share of the median, so that a nearly
	// constant sample has no outliers in its last digit.
	farOff   = 6
	farShare = 0.1
	// steady is the p value of Kendall's test below which drift is reported; 6 values in perfect order reach it.
	steady = 0.01
)

// Examine returns the warnings about xs, which are in the order of repetition and summarized as s.
func Examine(xs []float64, s Summary) []Warning {
	if len(xs) == 0 {
		return nil
	}
	if len(xs) < MinRepetitions {
		return []Warning{{ID: Few, Message: fmt.Sprintf("%d of %d repetitions: with fewer, a comparison assumes that values scatter log-normally", len(xs), MinRepetitions)}}
	}
	var w []Warning
	if s.Wide() {
		w = append(w, Warning{ID: Spread, Message: fmt.Sprintf("the interval of these values alone reaches %.0f%% from their median: more or longer repetitions, or a quieter machine", 100*s.HalfWidth())})
	}
	if n := countOutliers(xs, s.Median); n > 0 {
		w = append(w, Warning{ID: Outlier, Message: fmt.Sprintf("%d of %d values far off the rest: something else may have run", n, len(xs))})
	}
	if p, up := kendallTrend(xs); p < steady {
		way := "falls"
		if up {
			way = "rises"
		}
		w = append(w, Warning{ID: Trend, Message: fmt.Sprintf("it %s from repetition to repetition (p=%.3f): the machine was not in a steady state", way, p)})
	}
	return w
}

// countOutliers counts the values that are more than farOff robust standard deviations from the median.
func countOutliers(xs []float64, middle float64) int {
	if len(xs) < outlierFrom {
		return 0
	}
	off := make([]float64, len(xs))
	for i, x := range xs {
		off[i] = math.Abs(x - middle)
	}
	// 1.4826 converts a median absolute deviation into the standard deviation of a normal distribution.
	limit := max(farOff*1.4826*medianOfSorted(slices.Sorted(slices.Values(off))), farShare*math.Abs(middle))
	n := 0
	for _, o := range off {
		if o > limit {
			n++
		}
	}
	return n
}

// kendallTrend returns Kendall's test of xs against their order: the two-sided p value, and whether they rise.
func kendallTrend(xs []float64) (p float64, up bool) {
	n := len(xs)
	rises, falls := orderedPairs(xs)
	pairs := n * (n - 1) / 2
	// Ties count half to each side; rounding towards the middle makes the test conservative.
	s := rankSum{at: (pairs + max(rises-falls, falls-rises)) / 2, doubledMiddle: pairs}
	if n > exactTotal {
		f := float64(n)
		s.deviation, s.variance = float64(rises-falls)/2, f*(f-1)*(2*f+5)/72
	} else {
		s.counts = inversionShares(n)
	}
	return s.twoSidedP(), rises > falls
}

// orderedPairs counts the pairs of values whose later one is larger, and smaller; equal values count in neither.
func orderedPairs(xs []float64) (rises, falls int) {
	ranks, _ := doubledMidranks(xs)
	tree := make([]int, 2*len(xs)+1) // a Fenwick tree with the number of earlier values of each rank
	atMost := func(rank int) (n int) {
		for ; rank > 0; rank &= rank - 1 {
			n += tree[rank]
		}
		return n
	}
	for i, r := range ranks {
		rises += atMost(r - 1)
		falls += i - atMost(r)
		for ; r < len(tree); r += r & -r {
			tree[r]++
		}
	}
	return rises, falls
}

// inversionShares returns the share of the orders of n values with each number of inversions.
func inversionShares(n int) []float64 {
	c := make([]float64, n*(n-1)/2+1)
	c[0] = 1
	for i := 2; i <= n; i++ {
		// Divide in each step: n! would leave the range in which float64 is exact.
		next := make([]float64, len(c))
		for k := range c {
			for j := 0; j < i && j <= k; j++ {
				next[k] += c[k-j] / float64(i)
			}
		}
		c = next
	}
	return c
}
