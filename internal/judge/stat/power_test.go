package stat

import (
	"math"
	"math/rand/v2"
	"testing"
)

// world draws the trials of two cells, n repetitions each.
type world struct {
	name string
	draw func(r *rand.Rand, n int, shift float64) (a, b []float64)
}

// independent is a world without drift, with trials drawn from one.
func independent(one func(r *rand.Rand) float64) func(*rand.Rand, int, float64) ([]float64, []float64) {
	return func(r *rand.Rand, n int, shift float64) (a, b []float64) {
		for range n {
			a, b = append(a, shift*one(r)), append(b, one(r))
		}
		return a, b
	}
}

// drifting adds what the two trials of a repetition share: a random walk and a step when another job begins.
func drifting(r *rand.Rand, n int, shift float64) (a, b []float64) {
	level, step := 0.0, r.IntN(n)
	for i := range n {
		level += 0.05 * r.NormFloat64()
		if i == step {
			level += 0.3
		}
		a = append(a, shift*math.Exp(level+0.05*r.NormFloat64()))
		b = append(b, math.Exp(level+0.05*r.NormFloat64()))
	}
	return a, b
}

var worlds = []world{
	{"normal", independent(func(r *rand.Rand) float64 { return 100 + 5*r.NormFloat64() })},
	{"lognormal", independent(func(r *rand.Rand) float64 { return math.Exp(0.5 * r.NormFloat64()) })},
	{"heavy tail", independent(func(r *rand.Rand) float64 { return math.Pow(1-r.Float64(), -1/1.5) })},
	{"few levels", independent(func(r *rand.Rand) float64 { return float64(10 + r.IntN(3)) })},
	{"drifting", drifting},
}

// chosen compares as package compare does: the test is picked by the number of repetitions.
func chosen(a, b []float64) Effect {
	if UsePaired(len(a)) {
		return Paired(a, b, 0.95)
	}
	return Unpaired(a, b, 0.95)
}

// share runs f often and returns how often it was true.
func share(seed uint64, f func(*rand.Rand) bool) float64 {
	const runs = 2000
	r := rand.New(rand.NewPCG(seed, 1))
	n := 0
	for range runs {
		if f(r) {
			n++
		}
	}
	return float64(n) / runs
}

// tolerance is three standard errors of a share near 5 % over 2000 runs.
const tolerance = 0.015

func TestFalsePositives(t *testing.T) {
	for _, w := range worlds {
		for _, n := range []int{4, 5, 6, 7, 10} {
			got := share(uint64(n), func(r *rand.Rand) bool {
				a, b := w.draw(r, n, 1)
				return chosen(a, b).P <= 0.05
			})
			if got > 0.05+tolerance {
				t.Errorf("%s, n=%d: A and A called different in %.1f %%", w.name, n, 100*got)
			}
		}
	}
}

func TestCoverage(t *testing.T) {
	for _, w := range worlds {
		for _, n := range []int{4, 5, 7, 10} {
			var stated float64
			got := share(uint64(100+n), func(r *rand.Rand) bool {
				e := chosen(w.draw(r, n, 1.3))
				stated = min(e.Confidence, 0.95)
				const slack = 1e-12 // of the logarithms, where ties put the truth on the edge
				return e.Low <= 1.3*(1+slack) && 1.3 <= e.High*(1+slack)
			})
			if got < stated-tolerance {
				t.Errorf("%s, n=%d: the ratio's interval held the truth in %.1f %%, stated %.1f %%", w.name, n, 100*got, 100*stated)
			}
		}
	}
	for _, n := range []int{2, 5, 6, 9, 20} {
		var stated float64
		got := share(uint64(200+n), func(r *rand.Rand) bool {
			xs := make([]float64, n)
			for i := range xs {
				xs[i] = math.Exp(r.NormFloat64())
			}
			s := Summarize(xs, 0.95)
			stated = s.Confidence
			return s.Low <= 1 && 1 <= s.High
		})
		if math.Abs(got-stated) > 0.035 {
			t.Errorf("n=%d: the median's interval held the truth in %.1f %%, stated %.1f %%", n, 100*got, 100*stated)
		}
	}
}

// A shift of 10 % under noise of 5 % must be found, with the number of repetitions that a standard plan has, whatever
// the drift; and the table at pairedFrom must hold.
func TestPower(t *testing.T) {
	steady := worlds[0].draw
	for _, c := range []struct {
		name  string
		draw  func(*rand.Rand, int, float64) ([]float64, []float64)
		n     int
		least float64
	}{
		{"steady", steady, 5, 0.55},
		{"steady", steady, 7, 0.78},
		{"steady", steady, 8, 0.82},
		{"steady", steady, 10, 0.93},
		{"drifting", drifting, 7, 0.75},
		{"drifting", drifting, 8, 0.80},
		{"drifting", drifting, 10, 0.92},
	} {
		got := share(uint64(300+c.n), func(r *rand.Rand) bool { return chosen(c.draw(r, c.n, 1.1)).P <= 0.05 })
		if got < c.least {
			t.Errorf("%s, n=%d: a 10 %% shift found in %.1f %%, want %.0f %%", c.name, c.n, 100*got, 100*c.least)
		}
	}
}

// What the choice between the tests rests on: under drift the pairs find what the unpaired test cannot.
func TestPairsSurviveDrift(t *testing.T) {
	found := func(test func(a, b []float64, c float64) Effect) float64 {
		return share(400, func(r *rand.Rand) bool {
			a, b := drifting(r, 8, 1.1)
			return test(a, b, 0.95).P <= 0.05
		})
	}
	if p, u := found(Paired), found(Unpaired); p < u+0.3 {
		t.Errorf("paired finds %.2f, unpaired %.2f", p, u)
	}
}

func FuzzEffect(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4}, []byte{5, 6, 7, 8})
	f.Add([]byte{0, 0}, []byte{0})
	f.Add([]byte{}, []byte{9})
	f.Fuzz(func(t *testing.T, x, y []byte) {
		a, b := floats(x), floats(y)
		for _, e := range []Effect{Unpaired(a, b, 0.95), Paired(a, b, 0.95)} {
			if !(e.P >= 0 && e.P <= 1+1e-9) || math.IsInf(e.Ratio, 0) || e.Confidence < 0 || e.Confidence > 1 {
				t.Fatalf("%v %v: %+v", a, b, e)
			}
			if !math.IsNaN(e.Ratio) && !(e.Low <= e.Ratio*(1+1e-12) && e.Ratio <= e.High*(1+1e-12)) {
				t.Fatalf("%v %v: estimate outside its interval: %+v", a, b, e)
			}
		}
		s := Summarize(a, 0.95)
		if s.N > 0 && !(s.Min <= s.Low && s.Low <= s.Median && s.Median <= s.High && s.High <= s.Max) {
			t.Fatalf("%v: %+v", a, s)
		}
		Examine(a, s)
	})
}

// floats turns bytes into at most 60 values around zero, so that signs, zeros, ties and both methods occur.
func floats(b []byte) []float64 {
	xs := make([]float64, 0, 60)
	for _, c := range b[:min(len(b), 60)] {
		xs = append(xs, float64(c)-64)
	}
	return xs
}
