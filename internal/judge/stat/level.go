package stat

import "math"

// Level is the mean of the logarithms of values that count by weights, with what is known of its error.
type Level struct {
	log, variance float64
	// free are the degrees of freedom of variance, n is how many values there are.
	free float64
	n    int
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
	count := all * all / squares // of values of one weight that would say as much
	l.variance *= count / max(count-1, 0.5)
	l.free = float64(l.n - 1)
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
	return math.Sqrt(l.variance) * studentQuantile(confidence, max(1, int(l.free))), true
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
		e.P = 1 - within(math.Abs(d.log)/math.Sqrt(d.variance), max(1, int(d.free)))
	}
	return e
}
