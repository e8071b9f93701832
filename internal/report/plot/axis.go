package plot

import (
	"math"
	"strconv"

	"github.com/cnibench/cnibench/internal/vocab/number"
)

// axis maps values to pixels in one direction.
type axis struct {
	low, high float64 // in values
	from, to  float64 // in pixels
	log       bool
}

// pixel returns the position of v on the axis, in pixels. For a value outside the axis it returns the nearer end.
func (a axis) pixel(v float64) float64 {
	low, high := a.low, a.high
	if a.log {
		low, high, v = math.Log(low), math.Log(high), math.Log(math.Max(v, a.low))
	}
	share := (v - low) / (high - low)
	if math.IsNaN(share) {
		share = 0
	}
	return a.from + math.Min(1, math.Max(0, share))*(a.to-a.from)
}

// linearAxis returns an axis that includes low and high, and its ticks. Both ends are round numbers. There are about n
// ticks. The caller sets the fields from and to.
func linearAxis(low, high float64, n int) (axis, []float64) {
	low, high = finiteRange(low, high)
	if high-low < 1e-9*math.Abs(high) || high == low {
		pad := math.Max(math.Abs(high)*0.1, 1e-12)
		low, high = low-pad, high+pad
	}
	step := niceStep((high - low) / float64(max(1, n)))
	first, last := math.Floor(low/step+1e-9), math.Ceil(high/step-1e-9)
	var ticks []float64
	for i := first; i <= last; i++ {
		ticks = append(ticks, i*step)
	}
	return axis{low: first * step, high: last * step}, ticks
}

// finiteRange returns two finite values in ascending order; 0 replaces NaN.
func finiteRange(low, high float64) (float64, float64) {
	const most = 1e300
	fix := func(v float64) float64 {
		if math.IsNaN(v) {
			return 0
		}
		return math.Max(-most, math.Min(most, v))
	}
	low, high = fix(low), fix(high)
	return math.Min(low, high), math.Max(low, high)
}

// niceStep returns the smallest number that is at least v and is 1, 2 or 5 times a power of ten. v is positive.
func niceStep(v float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5} {
		if m*power >= v*(1-1e-9) {
			return m * power
		}
	}
	return 10 * power
}

// logarithmicAxis returns a logarithmic axis that includes low and high, and its ticks. Both ends are 1, 2 or 5 times a
// power of ten. The ticks are all such numbers on the axis, or some powers of ten if there are more than n such numbers. If
// low is not positive, the axis begins near a millionth of high. The caller sets the fields from and to.
func logarithmicAxis(low, high float64, n int) (axis, []float64) {
	low, high = finiteRange(low, high)
	if low <= 0 {
		low = math.Max(high*1e-6, math.SmallestNonzeroFloat64)
	}
	if high <= low {
		high = low * 2
	}
	steps := logSteps(low, high)
	a := axis{low: steps[0], high: steps[len(steps)-1], log: true}
	if len(steps) <= n {
		return a, steps
	}
	decade := math.Ceil(math.Log10(a.low) - 1e-9)
	last := math.Floor(math.Log10(a.high) + 1e-9)
	stride := math.Max(1, math.Ceil((last-decade+1)/float64(max(1, n))))
	var ticks []float64
	for d := decade; d <= last; d += stride {
		ticks = append(ticks, math.Pow(10, d))
	}
	return a, ticks
}

// logSteps returns the numbers 1, 2 and 5 times a power of ten in ascending order. They begin with the last one at or below
// low and end with the first one at or above high.
func logSteps(low, high float64) []float64 {
	var steps []float64
	for d := math.Floor(math.Log10(low)); ; d++ {
		for _, m := range []float64{1, 2, 5} {
			v := m * math.Pow(10, d)
			if len(steps) > 0 && v <= low*(1+1e-9) {
				steps = steps[:0]
			}
			steps = append(steps, v)
			if v >= high*(1-1e-9) && len(steps) > 1 {
				return steps
			}
		}
	}
}

// drawAxes draws the axes of a plot. For the vertical axis y it draws a line and a text at each of ticks. marks are the
// shapes of the horizontal axis x. names has the text of y, then the text of x.
func drawAxes(x, y axis, ticks []float64, marks []Shape, names [2]string) Group {
	g := Group{}
	for _, t := range ticks {
		g.Shapes = append(g.Shapes, line(Grid, 1, Point{x.from, y.pixel(t)}, Point{x.to, y.pixel(t)}),
			small(text(Muted, Point{x.from - 5, y.pixel(t) + 4}, tickText(t), End)))
	}
	g.Shapes = append(g.Shapes, marks...)
	g.Shapes = append(g.Shapes,
		small(text(Muted, Point{0, 12}, names[0], Start)),
		small(text(Muted, Point{x.from, y.from + 31}, names[1], Start)))
	return g
}

// finiteBounds returns the least and the greatest of the finite values. It returns false if no value is finite.
func finiteBounds(values ...float64) (low, high float64, ok bool) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if !number.Finite(v) {
			continue
		}
		low, high, ok = math.Min(low, v), math.Max(high, v), true
	}
	return low, high, ok
}

// tickText formats a tick with at most six significant digits.
func tickText(v float64) string {
	if v == 0 {
		return "0"
	}
	s := strconv.FormatFloat(v, 'g', 6, 64)
	if f, err := strconv.ParseFloat(s, 64); err == nil && math.Abs(f) >= 1e-4 && math.Abs(f) < 1e6 {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	return s
}

// textWidth estimates the width of a text in pixels, since the fonts of the reader are unknown.
func textWidth(s string, size float64) float64 { return float64(number.Width(s)) * size * 0.56 }

// namesWidth returns the width in pixels that the longest name of a row needs. It returns no less than least and no more
// than mostLabel.
func namesWidth(least float64, names ...string) float64 {
	room := least
	for _, name := range names {
		room = max(room, math.Ceil(textWidth(name, textSize))+9)
	}
	return min(room, mostLabel)
}

// fitText truncates s to a width in pixels; size is the font size.
func fitText(s string, size, width float64) string {
	return number.Truncate(s, int(width/(size*0.56)))
}

// spreadPositions moves sorted positions apart until neighbours have a distance of gap. It keeps them within from and to if
// there is room.
func spreadPositions(ys []float64, gap, from, to float64) []float64 {
	out := make([]float64, len(ys))
	for i, y := range ys {
		out[i] = max(y, from)
		if i > 0 {
			out[i] = max(out[i], out[i-1]+gap)
		}
	}
	for i := len(out) - 1; i >= 0; i-- {
		limit := to
		if i < len(out)-1 {
			limit = out[i+1] - gap
		}
		out[i] = min(out[i], limit)
	}
	return out
}
