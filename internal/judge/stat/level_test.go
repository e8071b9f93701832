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

// What the cells of a table have in common makes their intervals narrower, and they hold the truth as often as they say;
// also where some cells scatter twice or four times as much as others.
func TestLevelsAmongOthers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cells, n int
		spread   float64
		narrower bool
	}{
		{12, 6, 0, true}, {12, 6, 0.3, true}, {12, 6, 0.7, false}, {12, 6, 1.5, false}, {3, 6, 0, true}, {3, 6, 0.7, false}, {40, 4, 0.3, true},
	} {
		r := rand.New(rand.NewPCG(7, uint64(c.cells)))
		var held, all, ratio, families float64
		const rounds = 1500
		for range rounds {
			levels := cellsOf(r, c.cells, c.n, c.spread)
			s := ScatterOf(levels)
			wrong := false
			for _, l := range levels {
				alone, _ := l.interval(0.95)
				half, known := l.Among(s).interval(0.95)
				if !known {
					t.Fatal("a level has no interval")
				}
				all++
				ratio += half / alone
				if math.Abs(l.log) <= half {
					held++
				}
				// The family as a whole, by Bonferroni.
				half, _ = l.Among(s).interval(1 - 0.05/float64(c.cells))
				wrong = wrong || math.Abs(l.log) > half
			}
			if wrong {
				families++
			}
		}
		if got := held / all; got < 0.935 {
			t.Errorf("%+v: intervals of 95 %% hold %.3f", c, got)
		}
		if got := families / rounds; got > 0.07 {
			t.Errorf("%+v: %.3f of all families have a false one", c, got)
		}
		if mean := ratio / all; c.narrower && mean > 0.97 {
			t.Errorf("%+v: intervals are %.2f times as long", c, mean)
		}
		t.Logf("%+v: %.3f held, %.3f of families wrong, intervals %.2f times as long", c, held/all, families/rounds, ratio/all)
	}
}

// A cell that scatters ten times as much as the others is not made sure by them.
func TestLevelUnlikeOthers(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	held, rounds := 0.0, 2000.0
	for range int(rounds) {
		levels := cellsOf(r, 11, 6, 0.1)
		var values, weights []float64
		for range 6 {
			values, weights = append(values, math.Exp(0.2*r.NormFloat64())), append(weights, 1)
		}
		odd := LevelOf(values, weights)
		half, _ := odd.Among(ScatterOf(append(levels, odd))).interval(0.95)
		if math.Abs(odd.log) <= half {
			held++
		}
	}
	if got := held / rounds; got < 0.93 {
		t.Errorf("its interval of 95 %% holds %.3f", got)
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
