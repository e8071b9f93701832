package stat

import "math"

// leastExpected is the least expected count for which Pearson's statistic is approximately chi-squared (Cochran's
// rule).
const leastExpected = 5

// EvenP returns the p value of Pearson's chi-squared test of counts against an even distribution: the chance that
// independent events with equal probabilities are spread at least as unevenly. ok is false if the test does not apply:
// fewer than two counts, or fewer than five expected of each.
func EvenP(counts []float64) (p float64, ok bool) {
	sum := 0.0
	for _, n := range counts {
		sum += n
	}
	expected := sum / float64(len(counts))
	if len(counts) < 2 || !(expected >= leastExpected) {
		return 0, false
	}
	square := 0.0
	for _, n := range counts {
		square += (n - expected) * (n - expected) / expected
	}
	return gammaQ(float64(len(counts)-1)/2, square/2), true
}

// gammaQ returns the regularised upper incomplete gamma function Q(a, x) for a > 0 and x >= 0: the chance that a
// chi-squared variable of 2a degrees of freedom exceeds 2x. Below the mean the series of its complement converges fast,
// above it the continued fraction.
func gammaQ(a, x float64) float64 {
	const (
		enough = 1e-15
		steps  = 10_000
	)
	if x <= 0 {
		return 1
	}
	log, _ := math.Lgamma(a)
	front := math.Exp(a*math.Log(x) - x - log)
	if x < a+1 {
		term := 1 / a
		sum := term
		for n := 1.0; n < steps && term > sum*enough; n++ {
			term *= x / (a + n)
			sum += term
		}
		return 1 - front*sum
	}
	// Lentz's method for 1/(x+1-a- 1(1-a)/(x+3-a- 2(2-a)/(x+5-a- ...)))
	b := x + 1 - a
	c, d := math.Inf(1), 1/b
	value := d
	for n := 1.0; n < steps; n++ {
		an := -n * (n - a)
		b += 2
		d = 1 / (an*d + b)
		c = b + an/c
		value *= c * d
		if math.Abs(c*d-1) < enough {
			break
		}
	}
	return front * value
}
