package stat

import (
	"cmp"
	"math"
	"slices"
)

// exactTotal bounds the number of values for exact distributions. Beyond it the normal approximation has more digits
// than needed. Counts stay below 2^53, so float64 holds them exactly.
const exactTotal = 50

// doubledMidranks returns twice the rank of every value, in the order of xs. Ties share the mean of their ranks;
// doubled ranks are integers. tied reports whether there are ties.
func doubledMidranks(xs []float64) (doubled []int, tied bool) {
	order := make([]int, len(xs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(xs[i], xs[j]) })
	doubled = make([]int, len(xs))
	for i := 0; i < len(order); {
		j := i
		for j < len(order) && xs[order[j]] == xs[order[i]] {
			j++
		}
		for _, at := range order[i:j] {
			doubled[at] = i + 1 + j // twice the mean of ranks i+1 ... j
		}
		tied = tied || j-i > 1
		i = j
	}
	return doubled, tied
}

// rankSum is a rank statistic and its distribution under the null hypothesis: by the counts of its values or, without
// counts, by the normal approximation.
type rankSum struct {
	// counts has the number of orders that give each value of the statistic, by that value.
	// at is the observed value. doubledMiddle is twice the middle, which may be half way between two values.
	counts            []float64
	at, doubledMiddle int
	// deviation is the distance of the statistic from its mean, variance its variance. Both are for the normal
	// approximation.
	deviation, variance float64
}

// twoSidedP returns the chance of a value that is at least as far from the middle as the observed one.
func (s rankSum) twoSidedP() float64 {
	if s.counts == nil {
		return min(1, 2*s.normalTail(math.Abs(s.deviation)))
	}
	distance := max(2*s.at-s.doubledMiddle, s.doubledMiddle-2*s.at)
	return s.selectedShare(func(i int) bool { return max(2*i-s.doubledMiddle, s.doubledMiddle-2*i) >= distance })
}

// oneSidedP returns the chance of a value that is at least as high as the observed one.
func (s rankSum) oneSidedP() float64 {
	if s.counts == nil {
		return s.normalTail(s.deviation)
	}
	return s.selectedShare(func(i int) bool { return i >= s.at })
}

// selectedShare returns the share of the orders whose value of the statistic counted selects.
func (s rankSum) selectedShare(counted func(place int) bool) float64 {
	var far, all float64
	for i, c := range s.counts {
		all += c
		if counted(i) {
			far += c
		}
	}
	return far / all
}

// normalTail returns the chance of at least this deviation by the normal approximation, with continuity correction.
func (s rankSum) normalTail(deviation float64) float64 {
	return math.Erfc((deviation-0.5)/math.Sqrt(2*s.variance)) / 2
}

// mannWhitney returns the rank sum of a among the values of a and b.
func mannWhitney(a, b []float64) rankSum {
	n, total := len(a), len(a)+len(b)
	ranks, tied := doubledMidranks(slices.Concat(a, b))
	sum := 0
	for _, r := range ranks[:n] {
		sum += r
	}
	middle := n * (total + 1) // twice the expected rank sum
	switch {
	case total > exactTotal:
		return rankSum{deviation: float64(sum-middle) / 2, variance: rankSumVariance(ranks, n)}
	case tied:
		return rankSum{counts: subsetSums(ranks, n), at: sum, doubledMiddle: 2 * middle}
	}
	// Twice the rank sum minus its least value n(n+1) is twice U.
	return rankSum{counts: uCounts(n, total-n), at: (sum - n*(n+1)) / 2, doubledMiddle: n * (total - n)}
}

// rankSumVariance returns the variance of the rank sum of n of the values with these doubled ranks, ties included.
func rankSumVariance(doubled []int, n int) float64 {
	total := float64(len(doubled))
	mean := total + 1
	var square float64
	for _, r := range doubled {
		d := (float64(r) - mean) / 2
		square += d * d
	}
	return float64(n) * (total - float64(n)) / (total * (total - 1)) * square
}

// signedRank returns the sum of the ranks of the positive differences; it leaves out differences of zero.
func signedRank(d []float64) rankSum {
	d = slices.DeleteFunc(slices.Clone(d), func(x float64) bool { return x == 0 })
	sizes := make([]float64, len(d))
	for i, x := range d {
		sizes[i] = math.Abs(x)
	}
	ranks, _ := doubledMidranks(sizes)
	sum, all := 0, 0
	var variance float64
	for i, r := range ranks {
		all += r
		variance += float64(r) * float64(r) / 16
		if d[i] > 0 {
			sum += r
		}
	}
	if len(ranks) > exactTotal {
		return rankSum{deviation: float64(sum)/2 - float64(all)/4, variance: variance}
	}
	return rankSum{counts: signSums(ranks), at: sum, doubledMiddle: all}
}

// uCounts returns how many of the (n+m choose n) orders give Mann-Whitney's U each value 0 ... nm: the coefficients of
// the Gaussian binomial, built up one factor (1-x^(m+i))/(1-x^i) at a time.
func uCounts(n, m int) []float64 {
	c := make([]float64, n*m+1)
	c[0] = 1
	for i := 1; i <= n; i++ {
		for u := len(c) - 1; u >= m+i; u-- {
			c[u] -= c[u-m-i]
		}
		for u := i; u < len(c); u++ {
			c[u] += c[u-i]
		}
	}
	return c
}

// wCounts returns how many of the 2^n sign patterns give the signed-rank sum each value 0 ... n(n+1)/2.
func wCounts(n int) []float64 {
	ranks := make([]int, n)
	for i := range ranks {
		ranks[i] = i + 1
	}
	return signSums(ranks)
}

// signSums counts the subsets of ranks by their sum.
func signSums(ranks []int) []float64 {
	all := 0
	for _, r := range ranks {
		all += r
	}
	c := make([]float64, all+1)
	c[0] = 1
	for _, r := range ranks {
		for s := all; s >= r; s-- {
			c[s] += c[s-r]
		}
	}
	return c
}

// subsetSums counts the subsets of n of the ranks by their sum.
func subsetSums(ranks []int, n int) []float64 {
	all := 0
	for _, r := range ranks {
		all += r
	}
	c := make([][]float64, n+1)
	for k := range c {
		c[k] = make([]float64, all+1)
	}
	c[0][0] = 1
	for _, r := range ranks {
		for k := n; k >= 1; k-- {
			for s := all; s >= r; s-- {
				c[k][s] += c[k-1][s-r]
			}
		}
	}
	return c[n]
}

// uRank returns which of the nm sorted pairwise ratios, counted from either end, bounds the interval of the requested
// confidence, and the coverage of that interval. k is 1 if even the whole range does not have that confidence.
func uRank(n, m int, confidence float64) (k int, coverage float64) {
	if n+m > exactTotal {
		nm := float64(n) * float64(m)
		return normalRank(nm/2, nm*float64(n+m+1)/12, confidence)
	}
	return exactRank(uCounts(n, m), confidence)
}

// wRank returns the same as uRank, for the n(n+1)/2 Walsh averages of n pairs.
func wRank(n int, confidence float64) (k int, coverage float64) {
	if n > exactTotal {
		f := float64(n)
		return normalRank(f*(f+1)/4, f*(f+1)*(2*f+1)/24, confidence)
	}
	return exactRank(wCounts(n), confidence)
}

// exactRank returns the largest k whose coverage 1 - 2 P(S < k) is at least confidence, or 1 if there is none. It
// also returns the coverage.
func exactRank(counts []float64, confidence float64) (k int, coverage float64) {
	var all float64
	for _, c := range counts {
		all += c
	}
	k, below := 1, counts[0]
	// The k-th value from one end must not pass the k-th from the other.
	for 2*(k+1) <= len(counts) && 1-2*(below+counts[k])/all >= confidence {
		below += counts[k]
		k++
	}
	return k, max(0, 1-2*below/all)
}

// normalRank approximates exactRank by the normal distribution.
func normalRank(mean, variance, confidence float64) (k int, coverage float64) {
	z := math.Sqrt2 * math.Erfinv(confidence)
	k = max(1, int(mean-z*math.Sqrt(variance)))
	return k, math.Erf((mean - float64(k) + 0.5) / math.Sqrt(2*variance))
}
