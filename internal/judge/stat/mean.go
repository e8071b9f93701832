package stat

import "math"

// WeightedMean returns the mean of weighted values, the variance of its error for any scatter of the values (White's
// estimator), and its degrees of freedom. The variance of fewer than two values is NaN.
func WeightedMean(values, weights []float64) (mean, variance, free float64) {
	var all, squares float64
	for i, w := range weights {
		all, squares = all+w, squares+w*w
		mean += w * values[i]
	}
	mean /= all
	count := all * all / squares
	if len(values) < 2 || count <= 1 {
		return mean, math.NaN(), 0
	}
	for i, w := range weights {
		off := w / all * (values[i] - mean)
		variance += off * off
	}
	return mean, variance * count / (count - 1), count - 1
}

// Reach returns how many standard errors an interval of the given confidence extends to either side. free is its
// degrees of freedom; less than 1 counts as 1.
func Reach(confidence, free float64) float64 {
	return studentQuantile(confidence, max(1, free))
}
