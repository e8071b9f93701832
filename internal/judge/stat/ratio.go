package stat

import (
	"math"
	"slices"
)

// Test names the test behind an Effect.
type Test string

const (
	// MannWhitney compares two samples and ignores which trials share a repetition.
	MannWhitney Test = "mann-whitney"
	// SignedRank compares the two trials of each repetition with one another.
	SignedRank Test = "signed-rank"
	// StudentT compares the means of logarithms, assuming that they are normal: for samples too small for ranks.
	StudentT Test = "student"
)

// Effect is the comparison of sample a with sample b.
type Effect struct {
	// Ratio estimates a/b: the median of the pairwise ratios. NaN if a sample is empty or has a value <= 0, which has
	// no logarithm.
	Ratio float64 `json:"ratio"`
	// Low and High bound the true ratio with probability Confidence.
	Low  float64 `json:"low"`
	High float64 `json:"high"`
	// Confidence is the coverage that the interval really has; see Summary.Confidence.
	Confidence float64 `json:"confidence"`
	// P is the two-sided p value of the null hypothesis of no difference; 1 if there is nothing to test. It needs only
	// the order of values, so it exists for values <= 0 too.
	P float64 `json:"p"`
	// N is the number of values a side (the smaller side), or of pairs.
	N int `json:"n"`
	// Test is the test that was used.
	Test Test `json:"test"`
}

// pairedFrom is the number of pairs from which the signed-rank test is used. It cannot reach p < 0.05 with fewer than 6
// pairs, and with 6 only if every pair agrees, while Mann-Whitney can from 4 values a side. From 7 pairs it loses
// little power without drift and gains much with drift. The chance of finding a 10 % shift under 5 % of noise a trial,
// without drift | with drift of 5 % from one repetition to the next (TestPower repeats the rows from 7 on):
//
//	pairs          4          5          6          7          8         10
//	mann-whitney   .44 | .22  .62 | .34  .80 | .49  .86 | .60  .93 | .73  .97 | .84
//	signed-rank    0   | 0    0   | 0    .59 | .57  .83 | .81  .86 | .85  .95 | .96
const pairedFrom = 7

// UsePaired reports whether two samples with a number of pairs from the same repetitions should be compared by Paired.
// The choice depends only on the number, never on the values, so it does not affect the significance.
//
// Both tests hold their level with trials shuffled inside each repetition. The signed-rank test is exact then, drift or
// not. Mann-Whitney is exact without drift. Drift that the two trials of a repetition share makes it reject less often
// than its level, never more often.
func UsePaired(pairs int) bool { return pairs >= pairedFrom }

// Unpaired compares two samples of finite values by the Mann-Whitney test. Positive samples of two or three values,
// with which it cannot reach the confidence, are compared by Student.
func Unpaired(a, b []float64, confidence float64) Effect {
	n, m := len(a), len(b)
	if min(n, m) > 1 && LeastP(MannWhitney, n, m) > 1-confidence && allPositive(a) && allPositive(b) {
		return Student(a, b, confidence)
	}
	return Ranks(a, b, confidence)
}

// Ranks compares two samples of finite values by the Mann-Whitney test, whatever their size.
func Ranks(a, b []float64, confidence float64) Effect {
	n, m := len(a), len(b)
	e := undecidedEffect(min(n, m), MannWhitney)
	if n == 0 || m == 0 {
		return e
	}
	e.P = mannWhitney(a, b).twoSidedP()
	if !allPositive(a) || !allPositive(b) {
		return e
	}
	k, coverage := uRank(n, m, confidence)
	return e.withEstimate(pairwiseDifferences(sortedLogs(a), sortedLogs(b)), k, coverage)
}

// Paired compares a[i] with b[i] by the Wilcoxon signed-rank test. It leaves out values of the longer sample without a
// partner.
func Paired(a, b []float64, confidence float64) Effect {
	n := min(len(a), len(b))
	e := undecidedEffect(n, SignedRank)
	if n == 0 {
		return e
	}
	a, b = a[:n], b[:n]
	d := make([]float64, n)
	if !allPositive(a) || !allPositive(b) {
		for i := range d {
			d[i] = a[i] - b[i]
		}
		e.P = signedRank(d).twoSidedP()
		return e
	}
	for i := range d {
		d[i] = math.Log(a[i]) - math.Log(b[i])
	}
	e.P = signedRank(d).twoSidedP()
	slices.Sort(d)
	k, coverage := wRank(n, confidence)
	return e.withEstimate(walshAverages(d), k, coverage)
}

// withEstimate returns e with the ratio that follows from the log ratios. The k-th from either end bound the
// interval.
func (e Effect) withEstimate(logs order, k int, coverage float64) Effect {
	e.Ratio = math.Exp(logs.median())
	e.Low, e.High = math.Exp(logs.kth(k)), math.Exp(logs.kth(logs.size+1-k))
	e.Confidence = coverage
	return e
}

// sortedLogs returns the logarithms of xs in order.
func sortedLogs(xs []float64) []float64 {
	out := make([]float64, len(xs))
	for i, x := range xs {
		out[i] = math.Log(x)
	}
	slices.Sort(out)
	return out
}

// undecidedEffect returns an effect that claims nothing: its ratio is NaN and its p value 1.
func undecidedEffect(n int, t Test) Effect {
	nan := math.NaN()
	return Effect{Ratio: nan, Low: nan, High: nan, P: 1, N: n, Test: t}
}

// allPositive reports whether every value has a finite logarithm.
func allPositive(xs []float64) bool {
	for _, x := range xs {
		if !(x > 0) || math.IsInf(x, 1) {
			return false
		}
	}
	return true
}
