package stat

import "math"

// Level is the mean of the logarithms of values that count by weights, with what is known of its error.
type Level struct {
	log, variance float64
	// free are the degrees of freedom of variance, count is how many values of one weight would say as much, n how many
	// there are.
	free, count float64
	n           int
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
	return math.Sqrt(l.variance) * studentQuantile(confidence, max(1, int(l.free+0.5))), true
}

// Around returns s with the level and its interval in place of the median and its own, where that is known.
func (l Level) Around(s Summary, confidence float64) Summary {
	s.Median = math.Exp(l.log)
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
		e.P = 1 - within(math.Abs(d.log)/math.Sqrt(d.variance), max(1, int(d.free+0.5)))
	}
	return e
}

// Scatter is what the levels of many cells say together of how values scatter in each: the square of it, as sure as from
// so many degrees of freedom of its own.
type Scatter struct{ square, free float64 }

// alone is how many standard deviations the logarithm of a variance may be above what is expected of one like the others:
// the normal quantile of 99 %.
const alone = 2.33

// ScatterOf fits the scatter of levels that were measured alike: the variances of cells are drawn from a scaled inverse
// chi-squared distribution, whose scale and degrees of freedom follow from the mean and the variance of their logarithms
// (Smyth 2004, Linear models and empirical Bayes methods for assessing differential expression). Cells that differ much in
// how they scatter thus say little of one another. At most the others say as much as the values of a cell itself.
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
	// Trigamma falls: the degrees of freedom are where it is what the scatter of the cells adds to that of chance.
	low, high := 0.0, free/n
	for range 60 {
		if mid := (low + high) / 2; trigamma(mid/2) > square-expected/n {
			low = mid
		} else {
			high = mid
		}
	}
	if high < 0.1 {
		return Scatter{}
	}
	return Scatter{math.Exp(mean + logOwn(high)), high}
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
	off := logOwn(l.free) - logOwn(s.free)
	if math.Log(own/s.square)-off > alone*math.Sqrt(trigamma(l.free/2)+trigamma(s.free/2)) {
		return l
	}
	l.variance = (s.free*s.square + l.free*own) / (s.free + l.free) / l.count
	l.free += s.free
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
