package stat

import (
	"math"
	"sync/atomic"
)

// Student compares two samples of positive values by Student's test on their logarithms, with a common deviation. It
// assumes that both scatter equally and log-normally, which rank tests do not, and needs two values a side where rank
// tests need four. Samples without any scatter have a ratio without an interval.
func Student(a, b []float64, confidence float64) Effect {
	n, m := len(a), len(b)
	e := undecidedEffect(min(n, m), StudentT)
	if e.N < 1 || !allPositive(a) || !allPositive(b) {
		return e
	}
	meanA, squareA := logMoments(a)
	meanB, squareB := logMoments(b)
	e.Ratio = math.Exp(meanA - meanB)
	free := float64(n + m - 2)
	if e.N < 2 || squareA+squareB <= 0 {
		return e
	}
	deviation := math.Sqrt((squareA + squareB) / free * (1/float64(n) + 1/float64(m)))
	e.P = studentP(math.Abs(meanA-meanB)/deviation, free)
	half := deviation * studentQuantile(confidence, free)
	e.Low, e.High, e.Confidence = math.Exp(meanA-meanB-half), math.Exp(meanA-meanB+half), confidence
	return e
}

// Mean returns the geometric mean of xs if all are positive, the arithmetic mean otherwise.
func Mean(xs []float64) float64 {
	if allPositive(xs) {
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

// studentP returns the chance that Student's t is further from 0 than t. free are the degrees of freedom, which need not
// be whole (Abramowitz and Stegun 26.7.1: the incomplete beta function).
func studentP(t, free float64) float64 {
	if math.IsInf(t, 0) {
		return 0
	}
	return betaShare(free/(free+t*t), free/2, 0.5)
}

// betaShare returns the regularised incomplete beta function I_x(a, b), by its continued fraction (26.5.8) in the form
// of Lentz.
func betaShare(x, a, b float64) float64 {
	switch {
	case x <= 0:
		return 0
	case x >= 1:
		return 1
	case x > (a+1)/(a+b+2):
		return 1 - betaShare(1-x, b, a)
	}
	both, _ := math.Lgamma(a + b)
	one, _ := math.Lgamma(a)
	other, _ := math.Lgamma(b)
	front := math.Exp(both-one-other+a*math.Log(x)+b*math.Log1p(-x)) / a
	c, d := 1.0, 1/(1-(a+b)*x/(a+1))
	value := d
	for m := 1.0; m < 1000; m++ {
		before := value
		for _, term := range [2]float64{m * (b - m) * x / ((a + 2*m - 1) * (a + 2*m)), -(a + m) * (a + b + m) * x / ((a + 2*m) * (a + 2*m + 1))} {
			c, d = 1+term/c, 1/(1+term*d)
			value *= c * d
		}
		if math.Abs(value-before) < 1e-15*value {
			break
		}
	}
	return front * value
}

// quantile is a result of studentQuantile with its arguments.
type quantile struct{ confidence, free, t float64 }

// latest is the quantile that was computed last. A comparison needs the same quantile several times.
var latest atomic.Pointer[quantile]

// studentQuantile returns the t that |t| exceeds with the probability 1 - confidence.
func studentQuantile(confidence, free float64) float64 {
	if q := latest.Load(); q != nil && q.confidence == confidence && q.free == free {
		return q.t
	}
	t := computeQuantile(confidence, free)
	latest.Store(&quantile{confidence, free, t})
	return t
}

// computeQuantile computes the quantile. The logarithm of the tail is almost linear, so false position (in the form of
// Illinois) needs few steps.
func computeQuantile(confidence, free float64) float64 {
	target := math.Log(1 - confidence)
	off := func(log float64) float64 { return math.Log(studentP(math.Exp(log), free)) - target }
	if !(confidence > 0) {
		return 0
	}
	low := math.Log(normalQuantile(confidence)) // the tails of the normal distribution are shorter
	high, step := low+0.1, 0.2
	above, below := off(low), off(high)
	for ; below > 0 && high < 50; step *= 2 {
		low, above = high, below
		high += step
		below = off(high)
	}
	for range 60 {
		mid := (low*below - high*above) / (below - above)
		x := off(mid)
		if math.Abs(x) < 1e-11 || high-low < 1e-12 {
			return math.Exp(mid)
		}
		if x > 0 {
			low, above, below = mid, x, below/2
		} else {
			high, below, above = mid, x, above/2
		}
	}
	return math.Exp(high)
}

// Detectable returns the difference, as a share, that a comparison of n values a side finds with a chance of 90 %,
// given their scatter as a share. It is infinite for fewer than two values.
func Detectable(scatter float64, n int, confidence float64) float64 {
	if n < 2 {
		return math.Inf(1)
	}
	// 80 % two-sided is 90 % one-sided.
	free := float64(2*n - 2)
	t := studentQuantile(confidence, free) + studentQuantile(0.8, free)
	return math.Expm1(t * scatter * math.Sqrt(2/float64(n)))
}
