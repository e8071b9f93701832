package stat

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// simulated measures a curve at points, with noise of a share of each value and n trials.
func simulated(r *rand.Rand, xs []float64, truth func(float64) float64, noise float64, n int) []Point {
	var points []Point
	for _, x := range xs {
		var values, weights []float64
		for range n {
			values, weights = append(values, truth(x)*math.Exp(noise*r.NormFloat64())), append(weights, 1)
		}
		points = append(points, Point{X: x, Summary: LevelOf(values, weights).Around(Summarize(values, 0.95), 0.95)})
	}
	return points
}

var (
	four  = []float64{0, 1000, 10000, 30000}
	three = []float64{0, 1000, 10000}
)

// TestGrowKinds: on curves of a known kind, the kind is found nearly always, another growing kind nearly never, and a
// constant is nearly never taken for a growth.
func TestGrowKinds(t *testing.T) {
	const runs = 400
	for name, tt := range map[string]struct {
		truth       func(float64) float64
		xs          []float64
		noise       float64
		want        Shape
		least, most int // how often want at least, and a wrong claim at most, in percent
	}{
		"constant":             {func(float64) float64 { return 45000 }, four, 0.01, Constant, 78, 4},
		"constant, three":      {func(float64) float64 { return 45000 }, three, 0.01, Constant, 75, 4},
		"constant, loud":       {func(float64) float64 { return 45000 }, four, 0.1, Undecided, 80, 6},
		"steep":                {func(x float64) float64 { return 50000 + 12*x }, four, 0.02, Linear, 97, 1},
		"steep, three":         {func(x float64) float64 { return 50000 + 12*x }, three, 0.02, Linear, 95, 2},
		"steep, loud":          {func(x float64) float64 { return 50000 + 12*x }, four, 0.1, Linear, 85, 2},
		"gentle":               {func(x float64) float64 { return 50000 + 0.4*x }, four, 0.02, Linear, 60, 3},
		"logarithmic":          {func(x float64) float64 { return 50000 + 2000*math.Log1p(x) }, four, 0.02, Logarithmic, 80, 3},
		"within the margin":    {func(x float64) float64 { return 50000 + 0.01*x }, four, 0.005, Constant, 90, 2},
		"falling":              {func(x float64) float64 { return 900 - 0.02*x }, four, 0.01, Linear, 95, 1},
		"falling, logarithmic": {func(x float64) float64 { return 900 - 30*math.Log1p(x) }, four, 0.01, Logarithmic, 90, 2},
	} {
		r := rand.New(rand.NewPCG(1, 2))
		right, wrong := 0, 0
		for range runs {
			c := Grow(simulated(r, tt.xs, tt.truth, tt.noise, 8), 0.95, 0.03)
			switch c.Shape {
			case tt.want:
				right++
			case Undecided, Rising:
				if tt.want == Constant && c.Shape == Rising {
					wrong++
				}
			default:
				if tt.want != Undecided || c.Shape != Constant {
					wrong++
				}
			}
		}
		if 100*right < tt.least*runs || 100*wrong > tt.most*runs {
			t.Errorf("%s: %d of %d are %s, %d are wrongly another", name, right, runs, tt.want, wrong)
		}
	}
}

// TestGrowEquivalence: what grows by the margin is called constant in at most 5 of 100 cases.
func TestGrowEquivalence(t *testing.T) {
	const runs = 1000
	for name, truth := range map[string]func(float64) float64{
		"linear": func(x float64) float64 { return 50000 + 0.05*x }, "falling": func(x float64) float64 { return 50000 - 0.05*x },
		"logarithmic": func(x float64) float64 { return 50000 + 1500*math.Log1p(x)/math.Log1p(30000) },
	} {
		r := rand.New(rand.NewPCG(9, 10))
		constant := 0
		for range runs {
			if Grow(simulated(r, four, truth, 0.01, 12), 0.95, 0.03).Shape == Constant {
				constant++
			}
		}
		if t.Logf("%s: %d of %d are constant", name, constant, runs); constant > 0.05*runs {
			t.Errorf("%s: %d of %d that grow by the margin are constant", name, constant, runs)
		}
	}
}

// TestGrowSlopeCovers: the interval of the slope holds the true slope at least as often as it says.
func TestGrowSlopeCovers(t *testing.T) {
	const runs, slope = 1000, 11.8
	r := rand.New(rand.NewPCG(3, 4))
	held, change := 0, 0
	for range runs {
		c := Grow(simulated(r, four, func(x float64) float64 { return 48000 + slope*x }, 0.03, 6), 0.95, 0.03)
		if c.Low <= slope && slope <= c.High {
			held++
		}
		if c.ChangeLow <= slope*30000 && slope*30000 <= c.ChangeHigh {
			change++
		}
	}
	if held < 0.95*runs || change < 0.95*runs {
		t.Errorf("the interval holds the slope in %d and the change in %d of %d runs", held, change, runs)
	}
}

// TestCross: a crossing within the range is found, and its interval holds it. Curves that differ are called so, equal ones
// not.
func TestCross(t *testing.T) {
	const runs = 300
	r := rand.New(rand.NewPCG(5, 6))
	iptables := func(x float64) float64 { return 48000 + 12*x }
	found, held, apart, equal := 0, 0, 0, 0
	for range runs {
		c := func(truth func(float64) float64) Curve { return Grow(simulated(r, four, truth, 0.02, 8), 0.95, 0.03) }
		a, b := c(iptables), c(func(float64) float64 { return 54000 })
		if how, x := Cross(b, a, 0.95); how == Crosses && x.Falls {
			found++
			if x.Low <= 500 && 500 <= x.High {
				held++
			}
		}
		if how, x := Cross(c(func(float64) float64 { return 40000 }), a, 0.95); how == Under && x.From == 0 && x.To == 30000 {
			apart++
		}
		if how, _ := Cross(c(func(float64) float64 { return 54000 }), b, 0.95); how == Unclear {
			equal++
		}
	}
	if found < 0.9*runs || float64(held) < 0.95*float64(found) || apart < 0.95*runs || equal < 0.85*runs {
		t.Errorf("of %d: %d crossings found, %d held, %d different, %d equal", runs, found, held, apart, equal)
	}
}

// TestCrossOfNoLaw: a curve that no law fits crosses nowhere that could be named, and is under another where all points are.
func TestCrossOfNoLaw(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	xs := []float64{0, 100, 1000, 10000}
	step := func(x float64) float64 { return 50000 + 20000*min(1, math.Floor(x/1000)) }
	c := func(truth func(float64) float64) Curve { return Grow(simulated(r, xs, truth, 0.002, 8), 0.95, 0.03) }
	unfit := c(step)
	if !unfit.Unfit {
		t.Fatal("a law fits the steps")
	}
	if how, _ := Cross(unfit, c(func(float64) float64 { return 60000 }), 0.95); how == Crosses {
		t.Error("a crossing was named")
	}
	if how, _ := Cross(unfit, c(func(float64) float64 { return 90000 }), 0.95); how != Under {
		t.Error("all points are under, and it is", how)
	}
}

// TestGrowFitsNone: a curve that grows faster than a line rises, although no law says by how much. One that scatters does not.
func TestGrowFitsNone(t *testing.T) {
	const runs = 300
	r := rand.New(rand.NewPCG(7, 8))
	xs := []float64{0, 100, 1000, 10000}
	faster := func(x float64) float64 { return 160000 + x*(0.7+0.26*x) }
	rising, wrong := 0, 0
	for range runs {
		c := Grow(simulated(r, xs, faster, 0.02, 8), 0.95, 0.03)
		if want := faster(10000) - 160000; c.Shape == Rising && c.Unfit && c.ChangeLow < want && want < c.ChangeHigh {
			rising++
		}
		if Grow(simulated(r, xs, func(float64) float64 { return 160000 }, 0.02, 8), 0.95, 0.03).Unfit {
			wrong++
		}
	}
	if rising < 0.95*runs || wrong > 0.01*runs {
		t.Errorf("of %d: %d rise, %d constant ones are said to", runs, rising, wrong)
	}
}

// TestGrowMisses: what grows clearly faster than a line is not called linear, even if a line is better than a logarithm.
func TestGrowMisses(t *testing.T) {
	const runs = 300
	r := rand.New(rand.NewPCG(11, 12))
	rising := 0
	for range runs { // iptables rules: 75 us a Service, and each further one more
		if c := Grow(simulated(r, four, func(x float64) float64 { return 15e6 + 75e3*x*(1+x/12000) }, 0.1, 5), 0.95, 0.03); c.Shape == Rising && c.Unfit {
			rising++
		}
	}
	if rising < 0.9*runs {
		t.Errorf("%d of %d rise without a law", rising, runs)
	}
}

// TestGrowOfFlat: a flat curve is called growing in at most 5 of 100 cases, of as few instances as say anything, by medians
// or levels and with any number of points; and one that grows by a fifth is found. Two instances say nothing: before, 12 to
// 17 of 100 flat curves grew.
func TestGrowOfFlat(t *testing.T) {
	t.Parallel()
	const runs = 600
	for _, n := range []int{2, 3, 4, 6} {
		for _, xs := range [][]float64{{0, 30000}, three, four, {0, 1, 2, 4, 8, 16}} {
			r := rand.New(rand.NewPCG(21, uint64(n)))
			grows, found := map[string]int{}, map[string]int{}
			draw := func(slope float64, n int) map[string]Curve {
				level := simulated(r, xs, func(x float64) float64 { return 50000 * (1 + slope*x/xs[len(xs)-1]) }, 0.03, n)
				typical := slices.Clone(level)
				for i, x := range xs {
					var values []float64
					for range n {
						values = append(values, 50000*(1+slope*x/xs[len(xs)-1])*math.Exp(0.03*r.NormFloat64()))
					}
					typical[i].Summary = Summarize(values, 0.95)
				}
				return map[string]Curve{"levels": Grow(level, 0.95, 0.03), "medians": Grow(typical, 0.95, 0.03)}
			}
			for range runs {
				for how, c := range draw(0, n) {
					if c.Grows() {
						grows[how]++
					}
					if c.Few != (n < GrowsFrom) {
						t.Fatalf("%d instances: few is %v", n, c.Few)
					}
				}
				for how, c := range draw(0.2, n) {
					if c.Grows() {
						found[how]++
					}
				}
			}
			t.Logf("%d instances, %d points: of %d flat curves grow %v, of those that grow %v", n, len(xs), runs, grows, found)
			for _, how := range []string{"levels", "medians"} {
				least := 0.5
				if n < GrowsFrom {
					least = 0
				}
				if grows[how] > 0.05*runs || float64(found[how]) < least*runs || n < GrowsFrom && found[how] > 0 {
					t.Errorf("%d instances, %d points, %s: of %d flat curves %d grow, of those that grow %d", n, len(xs), how, runs, grows[how], found[how])
				}
			}
		}
	}
	points := simulated(rand.New(rand.NewPCG(1, 1)), four, func(x float64) float64 { return 50000 + x }, 0.001, 8)
	points[1].Instances = 2
	if c := Grow(points, 0.95, 0.03); !c.Few || c.Shape != Undecided {
		t.Errorf("eight trials of two instances: %s, few %v", c.Shape, c.Few)
	}
}

func TestGrowOfTooLittle(t *testing.T) {
	one := Summarize([]float64{5}, 0.95)
	many := Summarize([]float64{5, 5.1, 4.9, 5.2}, 0.95)
	for name, points := range map[string][]Point{
		"none": nil, "one point": {{X: 0, Summary: many}}, "one trial": {{X: 0, Summary: one}, {X: 10, Summary: one}, {X: 100, Summary: one}}, "no trial": {{X: 0, Summary: many}, {X: 10, Summary: Summarize(nil, 0.95)}},
	} {
		c := Grow(points, 0.95, 0.03)
		if c.Shape != Undecided || !math.IsNaN(c.Slope) || !math.IsNaN(c.At(1)) {
			t.Errorf("%s: %+v", name, c)
		}
		if how, _ := Cross(c, c, 0.95); how != Unclear {
			t.Errorf("%s: %s", name, how)
		}
	}
	rises := Grow([]Point{{X: 0, Summary: many}, {X: 10, Summary: Summarize([]float64{50, 51, 49, 52}, 0.95)}}, 0.95, 0.03)
	if rises.Shape != Rising || rises.Low <= 0 || math.Abs(rises.Change-45) > 2 {
		t.Errorf("two points tell that a curve rises: %+v", rises)
	}
}
