package stat

import "math"

// KneeFactor is how far above the lowest time of a curve its times are beyond the knee.
const KneeFactor = 2

// Knee finds where a curve of times over rising loads leaves the ground: the last load whose time is not above
// KneeFactor times the lowest of the curve. It looks from the high end, so that a disturbed trial at a low load is not
// taken for a knee. It returns indices: low decides by the medians; high by the intervals, of which both must agree that a time is
// above, and is never below low. Where the two are one, the knee is decided; where both are the last index, the curve has
// none. ok is false for a curve of fewer than three times, or with one that is not a number.
func Knee(times []Summary) (low, high int, ok bool) {
	if len(times) < 3 {
		return 0, 0, false
	}
	ground := times[0]
	for _, t := range times {
		if math.IsNaN(t.Median) || math.IsNaN(t.Low) || math.IsNaN(t.High) {
			return 0, 0, false
		}
		if t.Median < ground.Median {
			ground = t
		}
	}
	low, high = len(times)-1, len(times)-1
	for low > 0 && times[low].Median > KneeFactor*ground.Median {
		low--
	}
	for high > low && times[high].Low > KneeFactor*ground.High {
		high--
	}
	return low, high, true
}
