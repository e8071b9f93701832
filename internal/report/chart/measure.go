package chart

import "github.com/cnibench/cnibench/internal/vocab/number"

// textWidth estimates how wide a text is: a renderer's fonts are not known here.
func textWidth(s string, size float64) float64 { return float64(number.Width(s)) * size * 0.56 }

// fit cuts s to a width in pixels.
func fit(s string, size, width float64) string {
	return number.Truncate(s, int(width/(size*0.56)))
}

// spread moves positions apart, top to bottom, until neighbours are gap apart, within from and to as far as they fit.
// The positions must be sorted.
func spread(ys []float64, gap, from, to float64) []float64 {
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
