package explain

import "math"

// sparse returns better estimates of the changes of parts than the measured ones, which have the same sum.
//
// Most parts of two sides are equal, and each measured change has an error. A change is drawn toward 0 by the probability that
// it is nothing but its error: how many parts change, and how far, is learned from all of them (empirical Bayes with two normal
// distributions). The sum is known better than any part, because it comes from trials without samples. What the drawing leaves
// over goes to the parts by what is still uncertain of them.
func sparse(measured, variance []float64) []float64 {
	share, spread := 0.5, 0.0
	for _, d := range measured {
		spread += d * d / float64(len(measured))
	}
	if !(spread > 0) {
		return measured
	}
	estimates, left := make([]float64, len(measured)), make([]float64, len(measured))
	for range 100 {
		var changed, squares float64
		for i, d := range measured {
			v := max(variance[i], spread*1e-9)
			p := 1 / (1 + (1-share)/share*density(d, v)/density(d, v+spread))
			mean, rest := d*spread/(v+spread), v*spread/(v+spread)
			estimates[i], left[i] = p*mean, p*(rest+mean*mean)-p*p*mean*mean
			changed, squares = changed+p, squares+p*(rest+mean*mean)
		}
		n := float64(len(measured))
		share = min(max(changed/n, 1/(2*n)), 1-1/(2*n))
		spread = squares / max(changed, 1e-9)
	}
	var over, uncertain float64
	for i, d := range measured {
		over, uncertain = over+d-estimates[i], uncertain+left[i]
	}
	if !(uncertain > 0) {
		return measured
	}
	// No part moves further than its error: with few samples all of this is a guess, and the parts stay where they were.
	most := 1.0
	for i, d := range measured {
		estimates[i] += over * left[i] / uncertain
		if by := math.Abs(estimates[i] - d); by > 0 {
			most = min(most, furthest*math.Sqrt(max(variance[i], spread*1e-9))/by)
		}
	}
	for i, d := range measured {
		estimates[i] = d + most*(estimates[i]-d)
	}
	return estimates
}

// furthest is how many standard errors a change may be moved.
const furthest = 2

// density is that of a normal distribution around 0.
func density(x, variance float64) float64 {
	return math.Exp(-x*x/(2*variance)) / math.Sqrt(2*math.Pi*variance)
}

// settle draws the changes of a difference toward 0 where they may be errors of the samples, and the two sides of each part
// with them. The sum of the changes stays what it is.
func settle(changes []Change, variance []float64) {
	measured := make([]float64, len(changes))
	for i, c := range changes {
		measured[i] = c.By.Value
	}
	var one, two, both, all float64 // what the parts that only A has move by, that only B has, and the others; what A has
	estimates := sparse(measured, variance)
	for i, c := range changes {
		all += c.A
		switch by := estimates[i] - measured[i]; {
		case c.B == 0:
			one += by
		case c.A == 0:
			two += by
		default:
			both += by
		}
	}
	// Of the other parts' moves this share is A's, so that the sides keep their sums. If parts that only one side has move far,
	// too few samples say which parts there are: the changes stay as measured.
	toA := -one / both
	if !(math.Abs(toA-0.5) < 3) {
		if toA = 0.5; math.Abs(one)+math.Abs(two) > negligible*all {
			return
		}
	}
	for i := range changes {
		c, by := &changes[i], estimates[i]-measured[i]
		part := toA
		switch {
		case c.B == 0:
			part = 1
		case c.A == 0:
			part = 0
		}
		c.A, c.B, c.By.Value = c.A-part*by, c.B+(1-part)*by, estimates[i]
		if least := min(c.A, c.B); least < 0 {
			c.A, c.B = c.A-least, c.B-least
		}
		c.By = c.By.extended()
	}
}

// negligible is the share of a side that its sum may be off by.
const negligible = 0.01
