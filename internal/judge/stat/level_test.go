package stat

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestDigammaAndTrigamma(t *testing.T) {
	t.Parallel()
	const euler = 0.57721566490153286
	for _, c := range []struct{ got, want float64 }{
		{digamma(1), -euler},
		{digamma(0.5), -euler - 2*math.Ln2},
		{digamma(2), 1 - euler},
		{trigamma(1), math.Pi * math.Pi / 6},
		{trigamma(0.5), math.Pi * math.Pi / 2},
		{trigamma(2), math.Pi*math.Pi/6 - 1},
	} {
		if math.Abs(c.got-c.want) > 1e-8 {
			t.Errorf("got %v, want %v", c.got, c.want)
		}
	}
}

// cellsOf draws cells of n values each, whose deviations differ by a factor that is log-normal.
func cellsOf(r *rand.Rand, cells, n int, spread float64) []Level {
	out := make([]Level, cells)
	for i := range out {
		deviation := 0.02 * math.Exp(spread*r.NormFloat64())
		values, weights := make([]float64, n), make([]float64, n)
		for k := range values {
			values[k], weights[k] = math.Exp(deviation*r.NormFloat64()), 1
		}
		out[i] = LevelOf(values, weights)
	}
	return out
}

// shown says whether the interval that is shown of a level holds the truth, which is 1.
func shown(l Level) bool {
	s := l.Around(Summary{}, 0.95)
	return s.Low <= 1 && 1 <= s.High
}

// holds says whether the interval of a level in comparisons, of a confidence, holds the truth.
func holds(l Level, confidence float64) bool {
	return studentP(math.Abs(l.log)/math.Sqrt(l.variance), max(1, l.free)) >= 1-confidence
}

// TestLevelCoverage: intervals hold the truth as often as they say, of a lone cell and in tables of any size, of cells by
// themselves and of the quotient of two, whether values count alike or by weights. Before, those of tables of two cells held
// it in 91 %: the scale of so few was taken for known.
func TestLevelCoverage(t *testing.T) {
	t.Parallel()
	for name, draw := range map[string]func(*rand.Rand) (weight, deviation float64){
		"alike": func(*rand.Rand) (float64, float64) { return 1, 1 },
		"by weight": func(r *rand.Rand) (float64, float64) {
			w := 0.2 + 0.8*r.Float64()
			return w, 1 / math.Sqrt(w)
		},
	} {
		for _, cells := range []int{1, 2, 3, 10, 40} {
			for _, n := range []int{3, 4, 6, 12} {
				r := rand.New(rand.NewPCG(17, uint64(100*cells+n)))
				var own, pair, rare, all, pairs float64
				for range 6000/cells + 200 {
					levels := make([]Level, cells)
					for i := range levels {
						values, weights := make([]float64, n), make([]float64, n)
						for k := range values {
							w, deviation := draw(r)
							values[k], weights[k] = math.Exp(0.02*deviation*r.NormFloat64()), w
						}
						levels[i] = LevelOf(values, weights)
					}
					s := ScatterOf(levels)
					for i, l := range levels {
						l = l.Among(s)
						all, own, rare = all+1, own+one(shown(l)), rare+one(!holds(l, 0.999))
						if i > 0 {
							pairs, pair = pairs+1, pair+one(holds(l.Over(levels[i-1].Among(s)), 0.95))
						}
					}
				}
				t.Logf("%s, %d cells of %d: %.3f held, %.3f of quotients, %.4f beyond 99.9 %%", name, cells, n, own/all, pair/pairs, rare/all)
				if own < 0.94*all || pair < 0.935*pairs || rare > 0.0025*all {
					t.Errorf("%s, %d cells of %d: intervals of 95 %% hold %.3f, of quotients %.3f; %.4f beyond 99.9 %%", name, cells, n, own/all, pair/pairs, rare/all)
				}
			}
		}
	}
}

func one(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// TestLevelsAmongOthers: intervals hold where cells differ in how they scatter, too, and the family as a whole does by
// Bonferroni. That is what the others are asked for: single values tell little of how rarely a mean is far off.
func TestLevelsAmongOthers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cells, n int
		spread   float64
		shorter  float64
	}{
		{12, 6, 0, 0.85}, {12, 6, 0.3, 0.9}, {12, 6, 0.7, 1.05}, {12, 6, 1.5, 1.15}, {3, 6, 0, 1}, {3, 6, 0.7, 1.05}, {40, 4, 0.3, 0.8},
	} {
		r := rand.New(rand.NewPCG(7, uint64(c.cells)))
		var held, all, ratio, families float64
		rounds := 6000 / c.cells
		for range rounds {
			levels := cellsOf(r, c.cells, c.n, c.spread)
			s := ScatterOf(levels)
			family := 1 - 0.05/float64(c.cells)
			wrong := false
			for i, l := range levels {
				l = l.Among(s)
				all, held = all+1, held+one(shown(l))
				wrong = wrong || !holds(l, family)
				if i == 0 {
					alone, _ := levels[i].intervalHalfWidth(family)
					half, known := l.intervalHalfWidth(family)
					if !known {
						t.Fatal("a level has no interval")
					}
					ratio += half / alone
				}
			}
			families += one(wrong)
		}
		t.Logf("%+v: %.3f held, %.3f of families wrong, intervals of a family %.2f times as long", c, held/all, families/float64(rounds), ratio/float64(rounds))
		if got := held / all; got < 0.94 {
			t.Errorf("%+v: intervals of 95 %% hold %.3f", c, got)
		}
		if got := families / float64(rounds); got > 0.07 {
			t.Errorf("%+v: %.3f of all families have a false one", c, got)
		}
		if mean := ratio / float64(rounds); mean > c.shorter {
			t.Errorf("%+v: intervals of a family are %.2f times as long", c, mean)
		}
	}
}

// TestLevelUnlikeOthers: a lone cell that scatters more than the others is not made sure by them. Before, its intervals held
// the truth in
// 85 to 90 %. Comparisons of it still hold it in 88 to 95 % only (quotients).
func TestLevelUnlikeOthers(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{3, 4, 6} {
		for _, factor := range []float64{1.5, 2, 3, 10} {
			const rounds = 3000
			held, quotient := 0.0, 0.0
			for range rounds {
				levels := cellsOf(r, 11, n, 0)
				values, weights := make([]float64, n), make([]float64, n)
				for k := range values {
					values[k], weights[k] = math.Exp(0.02*factor*r.NormFloat64()), 1
				}
				odd := LevelOf(values, weights)
				s := ScatterOf(append(levels, odd))
				odd = odd.Among(s)
				held, quotient = held+one(shown(odd)), quotient+one(holds(odd.Over(levels[0].Among(s)), 0.95))
			}
			t.Logf("%d values that scatter %g times as much: %.3f held, %.3f of quotients", n, factor, held/rounds, quotient/rounds)
			if held < 0.905*rounds || quotient < 0.86*rounds { // 0.92 of three that scatter twice as much, less three standard errors
				t.Errorf("%d values that scatter %g times as much: %.3f held, %.3f of quotients", n, factor, held/rounds, quotient/rounds)
			}
		}
	}
}

func TestScatterOfFew(t *testing.T) {
	t.Parallel()
	one := LevelOf([]float64{1, 2, 3}, []float64{1, 1, 1})
	alike := LevelOf([]float64{1, 1, 1}, []float64{1, 1, 1})
	single := LevelOf([]float64{1}, []float64{1})
	for _, levels := range [][]Level{nil, {one}, {one, alike}, {one, single}} {
		if s := ScatterOf(levels); s != (Scatter{}) {
			t.Errorf("%d levels: %+v", len(levels), s)
		}
	}
	if got := one.Among(Scatter{}); got != one {
		t.Errorf("got %+v, want %+v", got, one)
	}
	if got := single.Among(ScatterOf([]Level{one, one})); got != single {
		t.Errorf("one value got the scatter of others: %+v", got)
	}
	if got := alike.Among(ScatterOf([]Level{one, one})); math.IsNaN(got.variance) || !(got.variance > 0) {
		t.Errorf("equal values: %+v", got)
	}
}
