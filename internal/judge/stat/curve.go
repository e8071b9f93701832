package stat

import (
	"math"
	"slices"
)

// Point is what was measured at one value X of a condition.
type Point struct {
	X float64
	Summary
	// Instances is how many instances the values come from, where several share one of them; 0 otherwise.
	Instances int
}

// count is how many values the point has that count as one each.
func (p Point) count() int {
	if p.Instances > 0 {
		return min(p.N, p.Instances)
	}
	return p.N
}

// GrowsFrom is the number of instances from which a point says how sure it is. The range of two is often so short by chance that a flat
// curve would be called growing in 12 to 17 of 100 cases.
const GrowsFrom = 3

// Shape is the kind of a curve.
type Shape string

const (
	// Constant means that a change beyond the margin over all points is excluded.
	Constant Shape = "constant"
	// Linear and Logarithmic are what predicts points that were left out best.
	Linear      Shape = "linear"
	Logarithmic Shape = "logarithmic"
	// Rising means that the curve changes, and that its points do not tell linear from logarithmic or fit neither.
	Rising Shape = "rising"
	// Undecided means that a change is neither shown nor excluded.
	Undecided Shape = "undecided"
)

// Curve is a law that was fitted to points. All numbers but X are in the unit of the points; what is not known is NaN.
type Curve struct {
	Shape  Shape
	Points []Point
	// Slope is the change for each unit of X of a linear curve, and for each doubling of X of a logarithmic one, with its
	// interval. Of any other curve it is that of the better of the two laws.
	Slope, Low, High float64
	// Doubling says that Slope is for each doubling.
	Doubling bool
	// Change, ChangeLow and ChangeHigh are the change from the first point to the last, by the same law.
	Change, ChangeLow, ChangeHigh float64
	// Misfit is the largest distance of a point from the law as a share of the point.
	Misfit float64
	// Unfit says that no law fits, and that Change is the difference of the last point and the first.
	Unfit bool
	// Few says that a point has fewer than GrowsFrom instances, so that nothing is known of the curve.
	Few bool

	law law
}

// law is y = a + b*f(x), with the covariance of a and b.
type law struct {
	f          func(float64) float64
	a, b       float64
	vaa, vab   float64
	vbb        float64
	press      float64 // squared errors of prediction of points left out, in squared standard errors
	inflation  float64 // by how much the residuals exceed the errors of the points, at least 1
	parameters int
}

func straight(x float64) float64 { return x }

// logarithm is 0 at 0 and grows by log 2 for each doubling of a large x.
func logarithm(x float64) float64 { return math.Log1p(x) }

func level(float64) float64 { return 0 }

// leastError is the least relative standard error of a point: instances differ by more than the trials of one say.
const leastError = 0.002

// certain is the confidence at which the first and the last point differ although no law fits. It is so high that this third
// look at a curve adds nothing to the chance of error.
const certain = 0.999

// decisive is how many times the error of prediction of one law must be that of another to rule it out.
const decisive = 2

// Grow fits a curve to at least two points of rising X, of at least GrowsFrom instances each, and says what kind it is. Its kind is that of the law which, fitted
// to all other points, predicts each point best, weighted by the points' intervals. It is constant or undecided unless the
// interval of the slope excludes 0 and the change exceeds the margin, a share of the first point. It is constant where two
// one-sided tests reject, by either law, that the change is beyond the margin (TOST). Where no law fits, it rises if its ends
// alone are enough to say so.
func Grow(points []Point, confidence, margin float64) Curve {
	nan := math.NaN()
	c := Curve{Shape: Undecided, Points: points, Slope: nan, Low: nan, High: nan, Change: nan, ChangeLow: nan, ChangeHigh: nan, Misfit: nan}
	errs := make([]float64, len(points))
	c.Few = slices.ContainsFunc(points, func(p Point) bool { return p.count() < GrowsFrom })
	if c.Few || len(points) < 2 || !errorsOf(points, errs) {
		return c
	}
	// Two laws are tried, so that each has half the chance of error.
	each := 1 - (1-confidence)/2
	none, line, curve := fit(points, errs, level), fit(points, errs, straight), fit(points, errs, logarithm)
	best, other := line, curve
	if curve.press < line.press {
		best, other, c.Doubling = curve, line, true
	}
	c.law = best
	c.describe(each)
	bound := margin * math.Abs(points[0].Median)
	within := true
	for _, l := range []law{line, curve} {
		_, low, high := l.change(points, 1-2*(1-confidence))
		within = within && -bound <= low && high <= bound
	}
	grows := (c.Low > 0 || c.High < 0) && math.Abs(c.Change) > bound
	unknown := !grows || len(points) > 2 && best.press >= none.press
	switch {
	case within:
		c.Shape = Constant
	case unknown && c.ends(errs, bound):
		c.Shape = Rising
	case unknown:
	case best.misses(points, errs):
		c.Shape = Rising
		c.ends(errs, bound)
	case len(points) < 3 || other.press < decisive*best.press:
		c.Shape = Rising
	case c.Doubling:
		c.Shape = Logarithmic
	default:
		c.Shape = Linear
	}
	return c
}

// errorsOf fills in the standard error of each point, false if one is not known. Three or four values may be close by chance: such a point is not
// taken for surer than half of the points are.
func errorsOf(points []Point, errs []float64) bool {
	shares := make([]float64, len(points))
	for i, p := range points {
		if !(p.Confidence > 0) || !(p.High > p.Low) && p.count() < MinRepetitions {
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
		if half := shares[len(shares)/2] * math.Abs(p.Median); p.count() <= MinRepetitions && half > errs[i] {
			errs[i] = half
		}
	}
	return true
}

// ends says whether the last point differs from the first by more than a bound, and makes that the change.
func (c *Curve) ends(errs []float64, bound float64) bool {
	last := len(errs) - 1
	change := c.Points[last].Median - c.Points[0].Median
	half := normalQuantile(certain) * math.Hypot(errs[0], errs[last])
	if last < 2 || math.Abs(change)-half <= bound {
		return false
	}
	c.Unfit, c.Change, c.ChangeLow, c.ChangeHigh = true, change, change-half, change+half
	return true
}

// describe fills in what follows from the law.
func (c *Curve) describe(confidence float64) {
	l := c.law
	half := normalQuantile(confidence) * math.Sqrt(l.vbb*l.inflation)
	scale := 1.0
	if c.Doubling {
		scale = math.Ln2
	}
	c.Slope, c.Low, c.High = l.b*scale, (l.b-half)*scale, (l.b+half)*scale
	c.Change, c.ChangeLow, c.ChangeHigh = l.change(c.Points, confidence)
	c.Misfit = 0
	for _, p := range c.Points {
		c.Misfit = max(c.Misfit, math.Abs(l.at(p.X)-p.Median)/math.Abs(p.Median))
	}
}

// fit is the weighted least squares fit, with the error of predicting each point from the others.
func fit(points []Point, errs []float64, f func(float64) float64) law {
	l := solve(points, errs, f, -1)
	for i, p := range points {
		if i == 0 && len(points) == 1 {
			break
		}
		d := (solve(points, errs, f, i).at(p.X) - p.Median) / errs[i]
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

// solve fits the law to all points but the one at index without. Points that all have the same f fit a constant.
func solve(points []Point, errs []float64, f func(float64) float64, without int) law {
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

// misses says whether a point is further from the law than its error explains, and by more than a quarter of its value, or of
// a quarter of the change if that is more.
func (l law) misses(points []Point, errs []float64) bool {
	change, _, _ := l.change(points, 0)
	for i, p := range points {
		d := math.Abs(l.at(p.X) - p.Median)
		if d > 3*errs[i] && d > max(math.Abs(p.Median), math.Abs(change)/4)/4 {
			return true
		}
	}
	return false
}

// change is that from the first point to the last, with its interval.
func (l law) change(points []Point, confidence float64) (change, low, high float64) {
	half := normalQuantile(confidence) * math.Sqrt(l.vbb*l.inflation)
	span := l.f(points[len(points)-1].X) - l.f(points[0].X)
	return l.b * span, (l.b - half) * span, (l.b + half) * span
}

func (l law) at(x float64) float64 { return l.a + l.b*l.f(x) }

// spread is the standard error of at.
func (l law) spread(x float64) float64 {
	u := l.f(x)
	return math.Sqrt(max(0, l.vaa+2*u*l.vab+u*u*l.vbb) * l.inflation)
}

// At returns the value of the law at x, NaN for a curve without one.
func (c Curve) At(x float64) float64 {
	if c.law.f == nil {
		return math.NaN()
	}
	return c.law.at(x)
}

// Crossing is where one curve begins to lie below another.
type Crossing struct {
	// X is where the laws meet; Low and High are between where the difference is known with confidence.
	X, Low, High float64
	// Falls says that the first curve lies below the second beyond X, not before it.
	Falls bool
	// From and To are the first and the last X of both.
	From, To float64
}

// Relation says how two curves lie to each other over the points that both have.
type Relation string

const (
	// Under and Over hold for the first curve at every point; Crosses means once each, both shown.
	Under   Relation = "under"
	Over    Relation = "over"
	Crosses Relation = "crosses"
	// Unclear means that the difference is not shown at an end of the range.
	Unclear Relation = "unclear"
)

// Cross compares two curves from the first to the last X of both. They cross where their order is shown to be another at
// the last point than at the first.
func Cross(a, b Curve, confidence float64) (Relation, Crossing) {
	if a.law.f == nil || b.law.f == nil {
		return Unclear, Crossing{}
	}
	from := max(a.Points[0].X, b.Points[0].X)
	to := min(a.Points[len(a.Points)-1].X, b.Points[len(b.Points)-1].X)
	z := normalQuantile(confidence)
	// side is -1 where a is below b, 1 where it is above, 0 where that is not known.
	side := func(x float64) float64 {
		d := a.law.at(x) - b.law.at(x)
		if math.Abs(d) <= z*math.Hypot(a.law.spread(x), b.law.spread(x)) {
			return 0
		}
		return math.Copysign(1, d)
	}
	first, last := side(from), side(to)
	xs := grid(from, to)
	switch {
	case first == 0 || last == 0 || !(to > from):
		return Unclear, Crossing{}
	case first == last:
		if slices.ContainsFunc(xs, func(x float64) bool { return side(x) != first }) {
			return Unclear, Crossing{}
		}
		if first < 0 {
			return Under, Crossing{From: from, To: to}
		}
		return Over, Crossing{From: from, To: to}
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

// grid returns values from one to another, evenly spaced by the logarithm of the value plus 1.
func grid(from, to float64) []float64 {
	const steps = 2000
	xs := make([]float64, 0, steps+1)
	low, high := math.Log1p(from), math.Log1p(to)
	for i := range steps + 1 {
		xs = append(xs, min(to, max(from, math.Expm1(low+(high-low)*float64(i)/steps))))
	}
	return xs
}

// normalQuantile is how many standard deviations to either side hold such a share of a normal distribution.
func normalQuantile(confidence float64) float64 { return math.Sqrt2 * math.Erfinv(confidence) }

// Grows says whether a change beyond the margin is shown.
func (c Curve) Grows() bool { return c.Shape == Linear || c.Shape == Logarithmic || c.Shape == Rising }
