package stat

import (
	"math"
	"math/rand/v2"
	"testing"
)

// around are summaries of so many times with intervals of a share to either side.
func around(share float64, medians ...float64) []Summary {
	var out []Summary
	for _, m := range medians {
		out = append(out, Summary{N: 5, Median: m, Low: m * (1 - share), High: m * (1 + share)})
	}
	return out
}

func TestKnee(t *testing.T) {
	queue := func(loads ...float64) (times []float64) {
		for _, load := range loads {
			times = append(times, 10/(1-load)) // M/M/1
		}
		return times
	}
	for name, c := range map[string]struct {
		times     []Summary
		low, high int
		ok        bool
	}{
		"a queue":               {around(0.01, queue(0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)...), 4, 4, true},
		"wide intervals":        {around(0.2, queue(0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)...), 4, 6, true},
		"flat":                  {around(0.1, 10, 10, 11, 10), 3, 3, true},
		"a disturbance is none": {around(0.01, 90, 10, 12, 95, 11, 30, 50), 4, 4, true},
		"never decided":         {around(0.6, 10, 10, 25), 1, 2, true},
		"steep at once":         {around(0.01, 10, 30, 60), 0, 0, true},
		"two points":            {around(0.1, 10, 30), 0, 0, false},
		"no number":             {around(0.1, 10, math.NaN(), 30), 0, 0, false},
		"none":                  {nil, 0, 0, false},
	} {
		low, high, ok := Knee(c.times)
		if low != c.low || high != c.high || ok != c.ok {
			t.Errorf("%s: got %d %d %v, want %d %d %v", name, low, high, ok, c.low, c.high, c.ok)
		}
	}
}

// TestKneeIsOrdered: whatever the curve, the two ends are in it and in order, and scaling the times changes nothing.
func TestKneeIsOrdered(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for range 2000 {
		var times, scaled []Summary
		for range 3 + r.IntN(9) {
			m := math.Exp(3 * r.NormFloat64())
			s := Summary{N: 4, Median: m, Low: m * r.Float64(), High: m * (1 + r.Float64())}
			times = append(times, s)
			scaled = append(scaled, Summary{N: 4, Median: s.Median * 1024, Low: s.Low * 1024, High: s.High * 1024})
		}
		low, high, ok := Knee(times)
		if !ok || low < 0 || high < low || high >= len(times) {
			t.Fatalf("knee %d to %d of %d", low, high, len(times))
		}
		if a, b, _ := Knee(scaled); a != low || b != high {
			t.Fatalf("scaled: %d to %d, was %d to %d", a, b, low, high)
		}
	}
}
