package stat

import (
	"math"
	"slices"
)

// Point has the values measured under a condition whose size is X.
type Point struct {
	X float64
	Summary
	// Instances is the number of instances behind the values, if several values share one; 0 otherwise.
	Instances int
}

// independentCount returns the number of independent values of the point.
func (p Point) independentCount() int {
	if p.Instances > 0 {
		return min(p.N, p.Instances)
	}
	return p.N
}

// GrowsFrom is the number of instances from which the error of a point can be estimated. The range of two is so short
// by chance that a flat curve would be called growing in 12 to 17 of 100 cases.
const GrowsFrom = 3

// Shape is the kind of a curve.
type Shape string

const (
	// Constant means that a change of more than the margin over all points is excluded.
	Constant Shape = "constant"
	// Linear and Logarithmic are the laws that predict omitted points best.
	Linear      Shape = "linear"
	Logarithmic Shape = "logarithmic"
	// Rising means that the curve changes, but its points do not decide between linear and logarithmic, or fit neither.
	Rising Shape = "rising"
	// Undecided means that a change is neither shown nor excluded.
	Undecided Shape = "undecided"
)

// Curve is a law that was fitted to points. Changes are in the unit of the points; an unknown number is NaN.
type Curve struct {
	Shape  Shape
	Points []Point
	// Slope is the change for each unit of X of a linear curve, and for each doubling of X of a logarithmic one, with
	// its interval. For any other curve it is the slope of the better of the two laws.
	Slope, Low, High float64
	// Doubling means that Slope is for each doubling.
	Doubling bool
	// Change, ChangeLow and ChangeHigh are the change from the first point to the last, by the same law.
	Change, ChangeLow, ChangeHigh float64
	// Misfit is the largest distance of a point from the law as a share of the point.
	Misfit float64
	// Unfit means that no law fits, and that Change is the difference between the last point and the first.
	Unfit bool
	// Few means that a point has fewer than GrowsFrom instances, so that the curve is unknown.
	Few bool

	law law
}

// law is y = a + b*f(x), with the covariance of a and b.
type law struct {
	f          func(float64) float64
	a, b       float64
	vaa, vab   float64
	vbb        float64
	press      float64 // squared errors of prediction of omitted points, in squared standard errors
	inflation  float64 // ratio of the residuals to the errors of the points, at least 1
	parameters int
}

func identity(x float64) float64 { return x }

// logarithm returns 0 for 0 and grows by log 2 for each doubling of a large x.
func logarithm(x float64) float64 { return math.Log1p(x) }

func alwaysZero(float64) float64 { return 0 }

// leastError is the least relative standard error of a point: instances differ by more than the trials of one show.
const leastError = 0.002

// certain is the confidence with which the first and the last point must differ, if no law fits, for the curve to
// rise. It is so high that this third test of a curve adds almost nothing to the chance of error.
const certain = 0.999

// decisive is the least ratio of two laws' errors of prediction at which the worse law is ruled out.
const decisive = 2

// Grow fits a curve to at least two points of rising X, of at least GrowsFrom instances each, and returns it with its
// shape. The shape is the law that, fitted to all other points, predicts each point best, weighted by the points'
// intervals. It is constant or undecided unless the interval of the slope excludes 0 and the change exceeds the margin,
// a share of the first point. It is constant if two one-sided tests reject, by either law, that the change exceeds the
// margin (TOST). If no law fits, it is rising if its two ends differ significantly.
func Grow(points []Point, confidence, margin float64) Curve {
	nan := math.NaN()
	c := Curve{Shape: Undecided, Points: points, Slope: nan, Low: nan, High: nan, Change: nan, ChangeLow: nan, ChangeHigh: nan, Misfit: nan}
	errs := make([]float64, len(points))
	c.Few = slices.ContainsFunc(points, func(p Point) bool { return p.independentCount() < GrowsFrom })
	if c.Few || len(points) < 2 || !setStandardErrors(points, errs) {
		return c
	}
	// Two laws are tested, so each gets half the chance of error.
	each := 1 - (1-confidence)/2
	none, line, curve := fitLaw(points, errs, alwaysZero), fitLaw(points, errs, identity), fitLaw(points, errs, logarithm)
	best, other := line, curve
	if curve.press < line.press {
		best, other, c.Doubling = curve, line, true
	}
	c.law = best
	c.applyLaw(each)
	bound := margin * math.Abs(points[0].Median)
	within := true
	for _, l := range []law{line, curve} {
		_, low, high := l.changeOver(points, 1-2*(1-confidence))
		within = within && -bound <= low && high <= bound
	}
	grows := (c.Low > 0 || c.High < 0) && math.Abs(c.Change) > bound
	unknown := !grows || len(points) > 2 && best.press >= none.press
	switch {
	case within:
		c.Shape = Constant
	case unknown && c.setChangeByEnds(errs, bound):
		c.Shape = Rising
	case unknown:
	case best.missesAnyPoint(points, errs):
		c.Shape = Rising
		c.setChangeByEnds(errs, bound)
	case len(points) < 3 || other.press < decisive*best.press:
		c.Shape = Rising
	case c.Doubling:
		c.Shape = Logarithmic
	default:
		c.Shape = Linear
	}
	return c
}

// setStandardErrors sets errs to the standard errors of points. It returns false if one is unknown. Three or four values may
// be close by chance, so the relative error of such a point is at least the median of all points.
func setStandardErrors(points []Point, errs []float64) bool {
	shares := make([]float64, len(points))
	for i, p := range points {
		if !(p.Confidence > 0) || !(p.High > p.Low) && p.independentCount() < MinRepetitions {
			return false
		}
		errs[i] = max((p.High-p.Low)/2/normalQuantile(p.Confidence), leastError*math.Abs(p.Median))
		if !(errs[i] > 0) || math.IsInf(errs[i], 0) {
			return false
		}
		shares[i] = errs[i] / math.Abs(p.Median)
	}
	slices.Sort(shares)
	for i, p := range points {
		if half := shares[len(shares)/2] * math.Abs(p.Median); p.independentCount() <= MinRepetitions && half > errs[i] {
			errs[i] = half
		}
	}
	return true
}

// setChangeByEnds reports whether the last point differs significantly from the first by more than bound. If so, it makes
// that difference the change of c and sets Unfit.
func (c *Curve) setChangeByEnds(errs []float64, bound float64) bool {
	last := len(errs) - 1
	change := c.Points[last].Median - c.Points[0].Median
	half := normalQuantile(certain) * math.Hypot(errs[0], errs[last])
	if last < 2 || math.Abs(change)-half <= bound {
		return false
	}
	c.Unfit, c.Change, c.ChangeLow, c.ChangeHigh = true, change, change-half, change+half
	return true
}

// applyLaw sets the slope, the change and the misfit by the law of c.
func (c *Curve) applyLaw(confidence float64) {
	l := c.law
	half := normalQuantile(confidence) * math.Sqrt(l.vbb*l.inflation)
	scale := 1.0
	if c.Doubling {
		scale = math.Ln2
	}
	c.Slope, c.Low, c.High = l.b*scale, (l.b-half)*scale, (l.b+half)*scale
	c.Change, c.ChangeLow, c.ChangeHigh = l.changeOver(c.Points, confidence)
	c.Misfit = 0
	for _, p := range c.Points {
		c.Misfit = max(c.Misfit, math.Abs(l.at(p.X)-p.Median)/math.Abs(p.Median))
	}
}

// fitLaw returns the weighted least squares fit of f, with the error of predicting each point from the others.
func fitLaw(points []Point, errs []float64, f func(float64) float64) law {
	l := fitWithout(points, errs, f, -1)
	for i, p := range points {
		if i == 0 && len(points) == 1 {
			break
		}
		d := (fitWithout(points, errs, f, i).at(p.X) - p.Median) / errs[i]
		l.press += d * d
	}
	free := len(points) - l.parameters
	for i, p := range points {
		d := (l.at(p.X) - p.Median) / errs[i]
		if free > 0 {
			l.inflation += d * d / float64(free)
		}
	}
	l.inflation = max(1, l.inflation)
	return l
}

// fitWithout fits the law to all points but the one with the index without. If f is the same at all points, it fits a
// constant.
func fitWithout(points []Point, errs []float64, f func(float64) float64, without int) law {
	l := law{f: f, parameters: 1}
	var s, sx, sy, sxx, sxy float64
	for i, p := range points {
		if i == without {
			continue
		}
		w, x := 1/(errs[i]*errs[i]), f(p.X)
		s, sx, sy, sxx, sxy = s+w, sx+w*x, sy+w*p.Median, sxx+w*x*x, sxy+w*x*p.Median
	}
	det := s*sxx - sx*sx
	if !(det > 1e-12*s*sxx) {
		l.a, l.vaa = sy/s, 1/s
		return l
	}
	l.parameters = 2
	l.a, l.b = (sxx*sy-sx*sxy)/det, (s*sxy-sx*sy)/det
	l.vaa, l.vab, l.vbb = sxx/det, -sx/det, s/det
	return l
}

// missesAnyPoint reports whether a point's distance from the law exceeds three times its error, and also a quarter of
// its value or a sixteenth of the change, whichever is more.
func (l law) missesAnyPoint(points []Point, errs []float64) bool {
	change, _, _ := l.changeOver(points, 0)
	for i, p := range points {
		d := math.Abs(l.at(p.X) - p.Median)
		if d > 3*errs[i] && d > max(math.Abs(p.Median), math.Abs(change)/4)/4 {
			return true
		}
	}
	return false
}

// changeOver returns the change from the first point to the last, with its interval.
func (l law) changeOver(points []Point, confidence float64) (change, low, high float64) {
	half := normalQuantile(confidence) * math.Sqrt(l.vbb*l.inflation)
	span := l.f(points[len(points)-1].X) - l.f(points[0].X)
	return l.b * span, (l.b - half) * span, (l.b + half) * span
}

func (l law) at(x float64) float64 { return l.a + l.b*l.f(x) }

// standardErrorAt returns the standard error of at(x).
func (l law) standardErrorAt(x float64) float64 {
	u := l.f(x)
	return math.Sqrt(max(0, l.vaa+2*u*l.vab+u*u*l.vbb) * l.inflation)
}

// At returns the value of the law at x, NaN for a curve without a law.
func (c Curve) At(x float64) float64 {
	if c.law.f == nil {
		return math.NaN()
	}
	return c.law.at(x)
}

// Crossing is the place where two curves cross.
type Crossing struct {
	// X is where the laws meet. Low and High bound the range in which the difference is not significant.
	X, Low, High float64
	// Falls means that the first curve is below the second for larger X.
	Falls bool
	// From and To are the first and the last X of both.
	From, To float64
}

// Relation is how two curves compare over the range of X that both cover.
type Relation string

const (
	// Under and Over mean that the first curve is below or above the second in the whole range. Crosses means that
	// their order at its end differs from their order at its beginning.
	Under   Relation = "under"
	Over    Relation = "over"
	Crosses Relation = "crosses"
	// Unclear means that the difference is not significant at an end of the range.
	Unclear Relation = "unclear"
)

// keepsSide reports whether a is on the given side of b at every X that both have. side is -1 for below, 1 for above.
func keepsSide(a, b Curve, side float64) bool {
	for _, p := range a.Points {
		for _, q := range b.Points {
			if p.X == q.X && (p.Median-q.Median)*side < 0 {
				return false
			}
		}
	}
	return true
}

// Cross compares two curves from the first to the last X of both. They cross if their order at the last point
// significantly differs from their order at the first.
func Cross(a, b Curve, confidence float64) (Relation, Crossing) {
	if a.law.f == nil || b.law.f == nil {
		return Unclear, Crossing{}
	}
	from := max(a.Points[0].X, b.Points[0].X)
	to := min(a.Points[len(a.Points)-1].X, b.Points[len(b.Points)-1].X)
	z := normalQuantile(confidence)
	// side is -1 if a is below b, 1 if it is above, 0 if that is not significant.
	side := func(x float64) float64 {
		d := a.law.at(x) - b.law.at(x)
		if math.Abs(d) <= z*math.Hypot(a.law.standardErrorAt(x), b.law.standardErrorAt(x)) {
			return 0
		}
		return math.Copysign(1, d)
	}
	first, last := side(from), side(to)
	xs := logGrid(from, to)
	switch {
	case first == 0 || last == 0 || !(to > from):
		return Unclear, Crossing{}
	case first == last:
		if slices.ContainsFunc(xs, func(x float64) bool { return side(x) != first }) {
			return Unclear, Crossing{}
		}
		if (a.Unfit || b.Unfit) && !keepsSide(a, b, first) {
			return Unclear, Crossing{}
		}
		if first < 0 {
			return Under, Crossing{From: from, To: to}
		}
		return Over, Crossing{From: from, To: to}
	case a.Unfit || b.Unfit: // no law says where
		return Unclear, Crossing{}
	}
	c := Crossing{Falls: first > 0, Low: from, High: to, From: from, To: to}
	for _, x := range xs {
		if side(x) != first {
			break
		}
		c.Low = x
	}
	for _, x := range slices.Backward(xs) {
		if side(x) != last {
			break
		}
		c.High = x
	}
	low, high := from, to
	for range 100 {
		mid := (low + high) / 2
		if (a.law.at(mid)-b.law.at(mid) > 0) == (first > 0) {
			low = mid
		} else {
			high = mid
		}
	}
	c.X = (low + high) / 2
	return Crosses, c
}

// logGrid returns values from one to another, evenly spaced by the logarithm of the value plus 1.
func logGrid(from, to float64) []float64 {
	const steps = 2000
	xs := make([]float64, 0, steps+1)
	low, high := math.Log1p(from), math.Log1p(to)
	for i := range steps + 1 {
		xs = append(xs, min(to, max(from, math.Expm1(low+(high-low)*float64(i)/steps))))
	}
	return xs
}

// normalQuantile returns how many standard deviations to either side contain the share confidence of a normal
// distribution.
func normalQuantile(confidence float64) float64 { return math.Sqrt2 * math.Erfinv(confidence) }

// Grows reports whether a change of more than the margin is significant.
func (c Curve) Grows() bool { return c.Shape == Linear || c.Shape == Logarithmic || c.Shape == Rising }
