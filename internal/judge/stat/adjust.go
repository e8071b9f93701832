package stat

import (
	"cmp"
	"math"
	"slices"
)

// Adjust returns the p values of a family of tests, corrected for their number by the procedure of Benjamini and
// Hochberg (1995). If every test with a corrected value of at most q is called different, the expected share of wrong
// calls among all calls is at most q. The tests must be independent or positively dependent, as are tests with a common
// baseline. If nothing differs at all, the chance of any call is at most q. The result is in the order of ps.
func Adjust(ps []float64) []float64 {
	order := ascendingIndices(ps)
	out := make([]float64, len(ps))
	least := 1.0
	for rank := len(order); rank >= 1; rank-- {
		i := order[rank-1]
		least = min(least, ps[i]*(float64(len(ps))/float64(rank)))
		out[i] = least
	}
	return out
}

// Holm returns the p values of a family of tests, corrected for their number by the procedure of Holm (1979): the
// chance of any wrong call among tests with a corrected value of at most q is at most q, however the tests depend on
// one another. The result is in the order of ps.
func Holm(ps []float64) []float64 {
	out := make([]float64, len(ps))
	most := 0.0
	for rank, i := range ascendingIndices(ps) {
		most = max(most, min(1, ps[i]*float64(len(ps)-rank)))
		out[i] = most
	}
	return out
}

// HolmFactors returns by what the level alpha is divided for each test of a family in Holm's procedure: the number of tests
// that are left at its step, or at the step that ends the procedure. An interval at the divided level excludes equality
// exactly if the corrected p value is at most alpha.
func HolmFactors(ps []float64, alpha float64) []float64 {
	out := make([]float64, len(ps))
	left := len(ps)
	ended := false
	for rank, i := range ascendingIndices(ps) {
		if !ended {
			left = len(ps) - rank
			ended = ps[i]*float64(left) > alpha
		}
		out[i] = float64(left)
	}
	return out
}

// ascendingIndices returns the indices of ps, the smallest value first.
func ascendingIndices(ps []float64) []int {
	order := make([]int, len(ps))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(ps[i], ps[j]) })
	return order
}

// LeastP returns the smallest p value that a test can have with n values on one side and m on the other, whatever the
// values are; for SignedRank, the smaller count is the number of pairs. It returns 1 if a side is empty.
func LeastP(t Test, n, m int) float64 {
	if min(n, m) < 1 {
		return 1
	}
	if t == SignedRank {
		return min(1, math.Exp2(float64(1-min(n, m))))
	}
	return min(1, 2*math.Exp(-logChoose(n+m, n)))
}

// logChoose returns the logarithm of the number of ways to choose k of n.
func logChoose(n, k int) float64 {
	factorial := func(x int) float64 { v, _ := math.Lgamma(float64(x) + 1); return v }
	return factorial(n) - factorial(k) - factorial(n-k)
}

// Enough returns the least number of repetitions a side with which a comparison can have a p value of at most p. pairs
// is true if the two sides are measured in turn, so that the test is chosen as by UsePaired.
func Enough(p float64, pairs bool) int {
	const most = 60 // 2^-59 is below any p that a correction needs
	for n := 2; n < most; n++ {
		t := MannWhitney
		if pairs && UsePaired(n) {
			t = SignedRank
		}
		if LeastP(t, n, n) <= p {
			return n
		}
	}
	return most
}

// Widen returns by what factor an interval at the corrected level is longer than one at level alpha, by the normal
// distribution. factor (at least 1) is what the correction multiplied the p value by.
func Widen(alpha, factor float64) float64 {
	z := func(p float64) float64 { return math.Erfinv(1 - p) }
	if !(factor > 1) || !(alpha > 0 && alpha < 1) {
		return 1
	}
	return z(max(alpha/factor, 1e-12)) / z(alpha)
}

// MoreThan returns the one-sided p value of the claim that the values of a are typically more than factor times those
// of b, by the Mann-Whitney test on values multiplied by that factor; 1 if a side is empty. It needs only the order of
// values, so they may be 0 or negative.
func MoreThan(a, b []float64, factor float64) float64 {
	if len(a) == 0 || len(b) == 0 {
		return 1
	}
	scaled := make([]float64, len(b))
	for i, x := range b {
		scaled[i] = x * factor
	}
	return mannWhitney(a, scaled).oneSidedP()
}

// Above returns the one-sided p value of the claim that the median of the distribution of xs is above limit, by the
// sign test; values equal to limit count against it.
func Above(xs []float64, limit float64) float64 {
	n, over := len(xs), 0
	for _, x := range xs {
		if x > limit {
			over++
		}
	}
	p := 0.0
	for k := over; k <= n; k++ {
		p += math.Exp(logChoose(n, k) - float64(n)*math.Ln2)
	}
	return min(1, p)
}

// Conover returns the p value of the hypothesis that the i-th and the j-th of several samples do not differ: Student's
// t on the ranks of all values together (Conover and Iman 1979). It needs only the order of values, and reaches a given
// level with far fewer values than the ranks of two samples. The caller must correct it for the number of pairs.
func Conover(samples [][]float64, i, j int) float64 {
	ranks, _ := doubledMidranks(slices.Concat(samples...))
	means := make([]float64, len(samples))
	var within float64
	from := 0
	for k, xs := range samples {
		own := ranks[from : from+len(xs)]
		for _, doubled := range own {
			means[k] += float64(doubled) / 2 / float64(len(xs))
		}
		for _, doubled := range own {
			within += math.Pow(float64(doubled)/2-means[k], 2)
		}
		from += len(xs)
	}
	free := float64(len(ranks) - len(samples))
	apart := math.Abs(means[i] - means[j])
	if free < 1 || !(apart > 0) {
		return 1
	}
	return studentP(apart/math.Sqrt(within/free*(1/float64(len(samples[i]))+1/float64(len(samples[j])))), free)
}
