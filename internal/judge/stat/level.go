package stat

import "math"

// Level is the weighted mean of the logarithms of values, with its error.
type Level struct {
	log, variance float64
	// free is the number of degrees of freedom of variance.
	// count is the equivalent number of values of equal weight, n the actual number of values.
	free, count float64
	n           int
	// lone has the error of the values alone, if they scatter more than most similar cells.
	lone *Level
}

// LevelOf returns the level of positive values. A value of twice the weight counts twice. The error is the error of a
// weighted mean for any scatter of the values (White's estimator), so it is as large as if there were only the heavy
// values.
func LevelOf(values, weights []float64) Level {
	l := Level{n: len(values)}
	var all, squares float64
	for i, w := range weights {
		all, squares = all+w, squares+w*w
		l.log += w * math.Log(values[i])
	}
	l.log /= all
	for i, w := range weights {
		off := w / all * (math.Log(values[i]) - l.log)
		l.variance += off * off
	}
	l.count = all * all / squares
	l.variance *= l.count / max(l.count-1, 0.5)
	l.free = max(l.count-1, 0.5)
	return l
}

// Left returns the level with only a share of its degrees of freedom. The removal of effects from its values used the rest.
func (l Level) Left(share float64) Level {
	l.free *= share
	return l
}

// Over returns the level of the quotient of l and base, which must be independent. Its degrees of freedom are
// Satterthwaite's.
func (l Level) Over(base Level) Level {
	sum := l.variance + base.variance
	return Level{
		log: l.log - base.log, variance: sum, n: min(l.n, base.n),
		free: sum * sum / (l.variance*l.variance/l.free + base.variance*base.variance/base.free),
	}
}

// Unsure returns the part of a change that may be chance, as a factor; l is the level of the quotient that changed. It
// is the whole change if that is within its standard error, and a sixteenth of its logarithm at twice the error.
// Removing only the rest adds at most the standard error.
func (l Level) Unsure() float64 {
	if !(l.variance > 0) || l.log == 0 {
		return 1
	}
	within := l.variance / (l.log * l.log)
	return math.Exp(l.log * min(1, within*within))
}

// Allowing returns the level with an additional error of known size: a standard deviation, as a logarithm.
func (l Level) Allowing(error float64) Level {
	if l.variance > 0 {
		more := l.variance + error*error
		l.free *= more * more / (l.variance * l.variance)
		l.variance = more
	}
	return l
}

// Value returns the weighted geometric mean of the values.
func (l Level) Value() float64 { return math.Exp(l.log) }

// Times returns the level of the values multiplied by factor.
func (l Level) Times(factor float64) Level {
	l.log += math.Log(factor)
	return l
}

// intervalHalfWidth returns the half-width of the level's interval at a confidence. known is false for one value, and
// for values that do not scatter.
func (l Level) intervalHalfWidth(confidence float64) (half float64, known bool) {
	if l.n < 2 || !(l.variance > 0) {
		return 0, false
	}
	return math.Sqrt(l.variance) * studentQuantile(confidence, max(1, l.free)), true
}

// Around returns s with the level and its interval in place of the median and its interval, if known. Values that
// scatter more than most similar cells use their own scatter.
func (l Level) Around(s Summary, confidence float64) Summary {
	s.Median = math.Exp(l.log)
	if l.lone != nil {
		l = *l.lone
	}
	if half, known := l.intervalHalfWidth(confidence); known {
		s.Low, s.High, s.Confidence = math.Exp(l.log-half), math.Exp(l.log+half), confidence
	}
	return s
}

// Welch compares two levels by Welch's test, which only assumes that the means of logarithms are normal. If one has no
// interval, the ratio has none.
func Welch(a, b Level, confidence float64) Effect {
	d := a.Over(b)
	e := undecidedEffect(d.n, StudentT)
	if d.n < 1 {
		return e
	}
	e.Ratio = math.Exp(d.log)
	if half, known := d.intervalHalfWidth(confidence); known {
		e.Low, e.High, e.Confidence = math.Exp(d.log-half), math.Exp(d.log+half), confidence
		e.P = studentP(math.Abs(d.log)/math.Sqrt(d.variance), max(1, d.free))
	}
	return e
}

// Scatter is the variance pooled over cells: its value, its degrees of freedom, and the number of cells.
type Scatter struct {
	square, free, cells float64
	// mean is the mean logarithm of the cells' variances; variance is the variance of that logarithm beyond chance.
	mean, variance float64
}

// unlike and above are limits on the logarithm of a variance, in standard deviations above the mean of the other cells.
// Beyond unlike (the normal quantile of 99 %), a cell does not use the pooled variance in comparisons.
// Beyond above, its interval uses its own variance. Otherwise the interval of a cell that scatters two or three times as
// much would contain the true value in only 88 to 92 % of cases. Comparisons do not use this limit: they are corrected
// for many others, and with so few values of their own they would find nothing.
const unlike, above = 2.33, 0.7

// ScatterOf fits the scatter of levels that were measured in the same way: the variances of cells are drawn from a
// scaled inverse chi-squared distribution, whose scale and degrees of freedom follow from the mean and the variance
// of their logarithms (Smyth 2004, Linear models and empirical Bayes methods for assessing differential expression).
// Levels that scatter very differently, or are few, say little about one another. The others never add more
// information than a level's own values. It returns the zero Scatter for fewer than two usable levels.
func ScatterOf(levels []Level) Scatter {
	var logs []float64
	var free, expected float64
	for _, l := range levels {
		if l.n > 1 && l.variance > 0 {
			logs = append(logs, math.Log(l.variance*l.count)-meanLogVariance(l.free))
			free, expected = free+l.free, expected+trigamma(l.free/2)
		}
	}
	n := float64(len(logs))
	if n < 2 {
		return Scatter{}
	}
	var mean, square float64
	for _, x := range logs {
		mean += x / n
	}
	for _, x := range logs {
		square += (x - mean) * (x - mean) / (n - 1)
	}
	// Trigamma decreases. The degrees of freedom of the distribution are where it equals the variance beyond chance,
	// and infinite if there is none.
	chance := expected / n
	excess, spread := square-chance, math.Inf(1)
	s := Scatter{square: math.Exp(mean), cells: n, mean: mean, variance: max(excess, 0) + chance/n}
	if excess > 0 {
		low, high := 0.0, 1e6
		for range 80 {
			if mid := (low + high) / 2; trigamma(mid/2) > excess {
				low = mid
			} else {
				high = mid
			}
		}
		spread = high
		s.square = math.Exp(mean + meanLogVariance(spread))
	}
	// The scale has an error of its own: the error of a mean of n logarithms.
	s.free = min(1/(1/spread+chance/(2*n)), free/n)
	if s.free < 0.1 {
		return Scatter{}
	}
	return s
}

// meanLogVariance returns the mean logarithm of a variance whose mean is 1, given its degrees of freedom.
func meanLogVariance(degrees float64) float64 { return digamma(degrees/2) - math.Log(degrees/2) }

// Among returns the level with the pooled scatter taken into account. A level that scatters much more is returned unchanged.
func (l Level) Among(s Scatter) Level {
	own := l.variance * l.count
	if s.free == 0 || l.n < 2 {
		return l
	}
	off := (math.Log(own) - meanLogVariance(l.free) - s.mean) / math.Sqrt(trigamma(l.free/2)+s.variance)
	if off > unlike {
		return l
	}
	both, lone := s.free+l.free, l
	l.variance = (s.free*s.square + l.free*own) / both / l.count
	// The cell itself is part of the pooled scatter: the fewer cells there are, the less the others add.
	l.free = 1 / (1/both + 2*s.free/(both*both*s.cells))
	if off > above {
		l.lone = &lone
	}
	return l
}

// digamma and trigamma are the first and second derivative of the logarithm of the gamma function (Abramowitz and
// Stegun 6.3.18, 6.4.12), at a positive x.
func digamma(x float64) float64 {
	sum := 0.0
	for ; x < 8; x++ {
		sum -= 1 / x
	}
	y := 1 / (x * x)
	return sum + math.Log(x) - 0.5/x - y*(1./12-y*(1./120-y/252))
}

func trigamma(x float64) float64 {
	sum := 0.0
	for ; x < 8; x++ {
		sum += 1 / (x * x)
	}
	y := 1 / (x * x)
	return sum + 1/x + y/2 + y/x*(1./6-y*(1./30-y/42))
}
