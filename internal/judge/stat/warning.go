package stat

import (
	"fmt"
	"math"
	"slices"
)

// Warning is a doubt about a sample.
type Warning struct {
	// ID names the check, one of those below or that of a trial; Message says what was seen, in the first trial if several
	// raised it, and what may help.
	ID      string `json:"id"`
	Message string `json:"message"`
	// Trials is how many trials raised it; 0 for a doubt about the sample as a whole.
	Trials int `json:"trials"`
}

// The doubts that Examine can raise.
const (
	// Few means that the sample is too small to be compared with anything.
	Few = "few-repetitions"
	// Spread means that the interval is wide beside the median.
	Spread = "spread"
	// Outlier means that single values stand far off the rest.
	Outlier = "outlier"
	// Trend means that the values drift with the repetitions.
	Trend = "trend"
)

const (
	// MinRepetitions is the smallest sample with which a comparison can reach 95 % confidence whatever its values scatter
	// like. Student's test of fewer assumes that they are log-normal.
	MinRepetitions = 4
	// outlierFrom is the sample size from which a median absolute deviation means something.
	outlierFrom = 6
	// farOff is how many robust standard deviations from the median an outlier lies at least: so far that a normal
	// sample of 10 shows one in about 1 of 40 cases. farShare is how far in shares of the median, so that a nearly
	// constant sample is not blamed for its last digit.
	farOff   = 6
	farShare = 0.1
	// steady is the p value of Kendall's test below which drift is reported; 6 values in perfect order reach it.
	steady = 0.01
)

// Examine returns the doubts about xs, given in the order of repetition and summarized as s.
func Examine(xs []float64, s Summary) []Warning {
	if len(xs) == 0 {
		return nil
	}
	if len(xs) < MinRepetitions {
		return []Warning{{ID: Few, Message: fmt.Sprintf("%d of the %d repetitions that a comparison needs at least", len(xs), MinRepetitions)}}
	}
	var w []Warning
	if s.Wide() {
		w = append(w, Warning{ID: Spread, Message: fmt.Sprintf("the interval reaches %.0f%% from the median: more or longer repetitions, or a quieter machine", 100*s.HalfWidth())})
	}
	if n := outliers(xs, s.Median); n > 0 {
		w = append(w, Warning{ID: Outlier, Message: fmt.Sprintf("%d of %d values stand far off the rest: something else may have run", n, len(xs))})
	}
	if p, up := trend(xs); p < steady {
		way := "falls"
		if up {
			way = "rises"
		}
		w = append(w, Warning{ID: Trend, Message: fmt.Sprintf("it %s from repetition to repetition (p=%.3f): the machine was not in a steady state", way, p)})
	}
	return w
}

// outliers counts the values that lie more than farOff robust standard deviations from the median.
func outliers(xs []float64, middle float64) int {
	if len(xs) < outlierFrom {
		return 0
	}
	off := make([]float64, len(xs))
	for i, x := range xs {
		off[i] = math.Abs(x - middle)
	}
	// 1.4826 turns a median absolute deviation into the standard deviation of a normal distribution.
	limit := max(farOff*1.4826*median(slices.Sorted(slices.Values(off))), farShare*math.Abs(middle))
	n := 0
	for _, o := range off {
		if o > limit {
			n++
		}
	}
	return n
}

// trend is Kendall's test of xs against their order: the two-sided p value, and whether they rise.
func trend(xs []float64) (p float64, up bool) {
	n := len(xs)
	rises, falls := orderedPairs(xs)
	pairs := n * (n - 1) / 2
	// Ties count half to each side; the nearer whole number towards the middle keeps the test on the safe side.
	s := rankSum{at: (pairs + max(rises-falls, falls-rises)) / 2, doubledMiddle: pairs}
	if n > exactTotal {
		f := float64(n)
		s.deviation, s.variance = float64(rises-falls)/2, f*(f-1)*(2*f+5)/72
	} else {
		s.counts = inversionCounts(n)
	}
	return s.twoSided(), rises > falls
}

// orderedPairs counts the pairs of values of which the later one is larger, and smaller; equal ones are neither.
func orderedPairs(xs []float64) (rises, falls int) {
	ranks, _ := midranks(xs)
	tree := make([]int, 2*len(xs)+1) // a Fenwick tree of how many values of each rank have been seen
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

// inversionCounts returns how many of the orders of n values have each number of inversions, as shares.
func inversionCounts(n int) []float64 {
	c := make([]float64, n*(n-1)/2+1)
	c[0] = 1
	for i := 2; i <= n; i++ {
		// Divide as we go: n! would leave the range in which float64 is exact anyway, and shares add up all the same.
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
