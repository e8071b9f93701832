package stat

import "math"

// Level is the mean of the logarithms of values that count by weights, with what is known of its error.
type Level struct {
	log, variance float64
	// free are the degrees of freedom of variance, count is how many values of one weight would say as much, n how many
	// there are.
	free, count float64
	n           int
	// lone is the error of the values by themselves where they scatter more than most of their like.
	lone *Level
}

// LevelOf is the level of positive values. A value of twice the weight counts twice. The error is that of a weighted mean
// whatever the scatter of each value is (White's estimator), as large as if there were only the heavy ones.
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

// Left is the level with a share of its degrees of freedom: the rest went into what was taken out of its values.
func (l Level) Left(share float64) Level {
	l.free *= share
	return l
}

// Over is the level of the quotient of independent values, by Satterthwaite's degrees of freedom.
func (l Level) Over(base Level) Level {
	sum := l.variance + base.variance
	return Level{
		log: l.log - base.log, variance: sum, n: min(l.n, base.n),
		free: sum * sum / (l.variance*l.variance/l.free + base.variance*base.variance/base.free),
	}
}

// Unsure is the factor of a movement that may be chance: all of one that is within its error, a sixteenth of one of twice that. The
// error of what is left when it is taken out is at most that of the movement.
func (l Level) Unsure() float64 {
	if !(l.variance > 0) || l.log == 0 {
		return 1
	}
	within := l.variance / (l.log * l.log)
	return math.Exp(l.log * min(1, within*within))
}

// Allowing is the level with a further error of so many standard deviations, as a logarithm, whose size is known.
func (l Level) Allowing(error float64) Level {
	if l.variance > 0 {
		more := l.variance + error*error
		l.free *= more * more / (l.variance * l.variance)
		l.variance = more
	}
	return l
}

// Value is the weighted geometric mean of the values.
func (l Level) Value() float64 { return math.Exp(l.log) }

// Times is the level of the values times a factor.
func (l Level) Times(factor float64) Level {
	l.log += math.Log(factor)
	return l
}

// interval is how far the level is uncertain to either side at a confidence, and whether that is known: not of one value,
// nor of values that do not scatter.
func (l Level) interval(confidence float64) (half float64, known bool) {
	if l.n < 2 || !(l.variance > 0) {
		return 0, false
	}
	return math.Sqrt(l.variance) * studentQuantile(confidence, max(1, l.free)), true
}

// Around returns s with the level and its interval in place of the median and its own, where that is known. Values that scatter more
// than most of their like speak for themselves there.
func (l Level) Around(s Summary, confidence float64) Summary {
	s.Median = math.Exp(l.log)
	if l.lone != nil {
		l = *l.lone
	}
	if half, known := l.interval(confidence); known {
		s.Low, s.High, s.Confidence = math.Exp(l.log-half), math.Exp(l.log+half), confidence
	}
	return s
}

// Welch compares two levels by Welch's test, which assumes that the means of logarithms are normal and no more. Without
// an interval of both there is a ratio and no interval.
func Welch(a, b Level, confidence float64) Effect {
	d := a.Over(b)
	e := undecided(d.n, StudentT)
	if d.n < 1 {
		return e
	}
	e.Ratio = math.Exp(d.log)
	if half, known := d.interval(confidence); known {
		e.Low, e.High, e.Confidence = math.Exp(d.log-half), math.Exp(d.log+half), confidence
		e.P = beyond(math.Abs(d.log)/math.Sqrt(d.variance), max(1, d.free))
	}
	return e
}

// Scatter is what the levels of many cells say together of how values scatter in each: the square of it, as sure as from so many
// degrees of freedom of its own, and from how many cells it is.
type Scatter struct {
	square, free, cells float64
	// mean is the mean logarithm of the squares of cells, and variance that of such a logarithm, without chance.
	mean, variance float64
}

// unlike and above are how many standard deviations the logarithm of a variance may be above the mean of the others. Beyond the first
// (the normal quantile of 99 %) a cell is not like the others in any comparison. Beyond the second it has an interval of its own: one
// of a cell that scatters two or three times as much as the others would hold its truth in 88 to 92 % otherwise. Comparisons are
// corrected for many others, and of so few values by themselves they would find nothing.
const unlike, above = 2.33, 0.7

// ScatterOf fits the scatter of levels that were measured alike: the variances of cells are drawn from a scaled inverse
// chi-squared distribution, whose scale and degrees of freedom follow from the mean and the variance of their logarithms
// (Smyth 2004, Linear models and empirical Bayes methods for assessing differential expression). Cells that differ much in
// how they scatter thus say little of one another, and so do few cells, whose scale is a guess. At most the others say as much
// as the values of a cell itself.
func ScatterOf(levels []Level) Scatter {
	var logs []float64
	var free, expected float64
	for _, l := range levels {
		if l.n > 1 && l.variance > 0 {
			logs = append(logs, math.Log(l.variance*l.count)-logOwn(l.free))
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
	// Trigamma falls: the degrees of freedom of the distribution are where it is what the scatter of the cells adds to that of
	// chance, and infinite where it adds nothing.
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
		s.square = math.Exp(mean + logOwn(spread))
	}
	// The scale has an error of its own: that of a mean of so many logarithms.
	s.free = min(1/(1/spread+chance/(2*n)), free/n)
	if s.free < 0.1 {
		return Scatter{}
	}
	return s
}

// logOwn is the mean logarithm of a variance of so many degrees of freedom whose mean is 1.
func logOwn(free float64) float64 { return digamma(free/2) - math.Log(free/2) }

// Among is the level with the scatter of its like taken into account. One that scatters so much more that it is not like
// them stays as it is.
func (l Level) Among(s Scatter) Level {
	own := l.variance * l.count
	if s.free == 0 || l.n < 2 {
		return l
	}
	off := (math.Log(own) - logOwn(l.free) - s.mean) / math.Sqrt(trigamma(l.free/2)+s.variance)
	if off > unlike {
		return l
	}
	both, lone := s.free+l.free, l
	l.variance = (s.free*s.square + l.free*own) / both / l.count
	// The cell is one of those that say how its like scatter: the fewer they are, the less do they add.
	l.free = 1 / (1/both + 2*s.free/(both*both*s.cells))
	if off > above {
		l.lone = &lone
	}
	return l
}

// digamma and trigamma are the derivatives of the logarithm of the gamma function (Abramowitz and Stegun 6.3.18, 6.4.12),
// at a positive x.
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
