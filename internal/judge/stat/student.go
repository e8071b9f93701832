package stat

import (
	"math"
)

// Student compares two samples of positive values by Student's test on their logarithms, with one deviation for both.
// It assumes that they scatter alike and log-normally, which rank tests do not, and needs two values a side where those
// need four. Samples that do not scatter at all say nothing of how they would: they have a ratio without an interval.
func Student(a, b []float64, confidence float64) Effect {
	n, m := len(a), len(b)
	e := undecided(min(n, m), StudentT)
	if e.N < 1 || !positive(a) || !positive(b) {
		return e
	}
	meanA, squareA := logMoments(a)
	meanB, squareB := logMoments(b)
	e.Ratio = math.Exp(meanA - meanB)
	free := n + m - 2
	if e.N < 2 || squareA+squareB <= 0 {
		return e
	}
	deviation := math.Sqrt((squareA + squareB) / float64(free) * (1/float64(n) + 1/float64(m)))
	e.P = 1 - within(math.Abs(meanA-meanB)/deviation, free)
	half := deviation * studentQuantile(confidence, free)
	e.Low, e.High, e.Confidence = math.Exp(meanA-meanB-half), math.Exp(meanA-meanB+half), confidence
	return e
}

// Mean is the geometric mean of xs where all are positive, the arithmetic one otherwise.
func Mean(xs []float64) float64 {
	if positive(xs) {
		mean, _ := logMoments(xs)
		return math.Exp(mean)
	}
	mean := 0.0
	for _, x := range xs {
		mean += x / float64(len(xs))
	}
	return mean
}

// logMoments returns the mean of the logarithms of xs and the sum of their squared distances from it.
func logMoments(xs []float64) (mean, square float64) {
	for _, x := range xs {
		mean += math.Log(x) / float64(len(xs))
	}
	for _, x := range xs {
		square += (math.Log(x) - mean) * (math.Log(x) - mean)
	}
	return mean, square
}

// within is the chance that Student's t lies between -t and t (Abramowitz and Stegun 26.7.3 and 26.7.4).
func within(t float64, free int) float64 {
	angle := math.Atan(t / math.Sqrt(float64(free)))
	sin, cos := math.Sincos(angle)
	odd := free % 2
	term, sum := 1.0, 1.0
	if odd == 1 {
		term, sum = cos, cos
	}
	for k := 2 + odd; k <= free-2; k += 2 {
		term *= cos * cos * float64(k-1) / float64(k)
		sum += term
	}
	switch {
	case free == 1:
		return 2 / math.Pi * angle
	case odd == 1:
		return 2 / math.Pi * (angle + sin*sum)
	}
	return sin * sum
}

// studentQuantile is the t that lies beyond such a share of all, from both sides.
func studentQuantile(confidence float64, free int) float64 {
	low, high := 0.0, 1.0
	for within(high, free) < confidence && high < 1e12 {
		high *= 2
	}
	for range 100 {
		if mid := (low + high) / 2; within(mid, free) < confidence {
			low = mid
		} else {
			high = mid
		}
	}
	return high
}

// Detectable is the difference, as a share, that a comparison of n values a side finds with a chance of 90 %, where values
// scatter by a share. It is infinite below two values.
func Detectable(scatter float64, n int, confidence float64) float64 {
	if n < 2 {
		return math.Inf(1)
	}
	// 80 % within on both sides are 90 % from one side.
	t := studentQuantile(confidence, 2*n-2) + studentQuantile(0.8, 2*n-2)
	return math.Expm1(t * scatter * math.Sqrt(2/float64(n)))
}
