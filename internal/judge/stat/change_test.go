package stat

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// runs draws a series of n runs with so many trials each, whose levels are as given; every run wanders by itself.
func runs(r *rand.Rand, levels []float64, trials int, noise, wander float64) [][]float64 {
	out := make([][]float64, len(levels))
	for i, level := range levels {
		own := math.Exp(wander * r.NormFloat64())
		for range trials {
			out[i] = append(out[i], 1e4*level*own*math.Exp(noise*r.NormFloat64()))
		}
	}
	return out
}

// flat is n times one level; step has another level from at on.
func flat(n int) []float64 { return slices.Repeat([]float64{1}, n) }

func step(n, at int, to float64) []float64 {
	s := flat(n)
	for i := at; i < n; i++ {
		s[i] = to
	}
	return s
}

// A series that changes nowhere shows a change in at most one of twenty, also where each run has a level of its own,
// and where that resembles the level before it. Before resemblance counted it was 15 to 52 % of series with 0.5 and
// 0.8.
func TestChangesOfNothing(t *testing.T) {
	for _, c := range []struct {
		n, trials            int
		noise, wander, alike float64
	}{
		{6, 5, 0.05, 0, 0}, {10, 5, 0.05, 0, 0}, {10, 5, 0.03, 0.03, 0}, {10, 10, 0.01, 0.05, 0}, {20, 5, 0.03, 0.03, 0},
		{5, 5, 0.02, 0.03, 0.5}, {10, 5, 0.02, 0.03, 0.5}, {20, 5, 0.02, 0.03, 0.5}, {25, 5, 0.02, 0.03, 0.6},
	} {
		r := rand.New(rand.NewPCG(51, uint64(c.n)))
		changed := 0
		const histories = 300
		for range histories {
			series := runs(r, wandering(r, c.n, c.wander, c.alike), c.trials, c.noise, 0)
			if len(Changes(series, 0.01, 0.05)) > 0 {
				changed++
			}
		}
		share := float64(changed) / histories
		t.Logf("%+v: %.1f %%", c, 100*share)
		if share > 0.05+0.025 {
			t.Errorf("%+v: a change in %.1f %%", c, 100*share)
		}
	}
}

// wandering draws levels of which each is as much like the one before it as alike says.
func wandering(r *rand.Rand, n int, deviation, alike float64) []float64 {
	levels := make([]float64, n)
	x := r.NormFloat64()
	for i := range levels {
		levels[i] = math.Exp(deviation * x)
		x = alike*x + math.Sqrt(1-alike*alike)*r.NormFloat64()
	}
	return levels
}

func TestChangesAreFound(t *testing.T) {
	r := rand.New(rand.NewPCG(52, 1))
	for _, c := range []struct {
		name          string
		levels        []float64
		noise, wander float64
		want          []int
		least         float64
	}{
		{"too few runs", step(4, 2, 2), 0.02, 0, nil, 1},
		{"in the middle", step(10, 5, 1.1), 0.03, 0.01, []int{5}, 0.90},
		{"the last run", step(10, 9, 1.2), 0.02, 0.01, []int{9}, 0.80},
		{"downwards", step(8, 3, 0.85), 0.03, 0.01, []int{3}, 0.90},
		{"there and back", []float64{1, 1, 1, 1, 1.2, 1.2, 1.2, 1.2, 1, 1, 1, 1}, 0.03, 0.01, []int{4, 8}, 0.85},
		{"within the margin", step(10, 5, 1.005), 0.001, 0, nil, 1},
	} {
		found := 0
		const histories = 100
		for range histories {
			var at []int
			for _, x := range Changes(runs(r, c.levels, 7, c.noise, c.wander), 0.01, 0.05) {
				at = append(at, x.At)
			}
			if slices.Equal(at, c.want) {
				found++
			}
		}
		t.Logf("%s: %d %%", c.name, found)
		if share := float64(found) / histories; share < c.least {
			t.Errorf("%s: %v found in %.0f %%", c.name, c.want, 100*share)
		}
	}
}

func TestChangesSmall(t *testing.T) {
	for _, c := range []struct {
		series [][]float64
		want   []int
	}{
		{nil, nil},
		{[][]float64{{1, 2, 3}}, nil},
		{[][]float64{{}, {1}, {}}, nil},
		{[][]float64{{0, 0, 0, 0, 0}, {0, 0, 0, 0, 0}}, nil},
		{[][]float64{{0, 0}, {0, 0}, {0, 0}, {}, {5, 6}, {7, 8}}, []int{4}},
		{[][]float64{{-5, -6}, {-7, -8}, {-9}, {5, 6}, {7, 8, 9}}, []int{3}},
	} {
		var got []int
		for _, x := range Changes(c.series, 0.01, 0.05) {
			got = append(got, x.At)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%v: changes at %v, want %v", c.series, got, c.want)
		}
	}
	// The same series has the same changes, to the last digit.
	r := rand.New(rand.NewPCG(53, 1))
	s := runs(r, step(9, 4, 1.1), 6, 0.04, 0.01)
	if a, b := fmt.Sprint(Changes(s, 0.01, 0.05)), fmt.Sprint(Changes(s, 0.01, 0.05)); a != b {
		t.Errorf("%s and %s", a, b)
	}
}

func TestWander(t *testing.T) {
	r := rand.New(rand.NewPCG(54, 1))
	s := runs(r, step(400, 200, 2), 9, 0.001, 0.05)
	if w := Wander(s); math.Abs(w/0.05-1) > 0.2 {
		t.Errorf("wander %g, want 0.05", w)
	}
	if w := Wander(s[:3]); !math.IsNaN(w) {
		t.Errorf("three runs: %g", w)
	}
	if w := Wander([][]float64{{0}, {1}, {1}, {1}}); !math.IsNaN(w) {
		t.Errorf("a zero: %g", w)
	}
}

func FuzzChanges(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8}, uint8(3))
	f.Fuzz(func(t *testing.T, b []byte, each uint8) {
		var series [][]float64
		for chunk := range slices.Chunk(floats(b), 1+int(each%9)) {
			series = append(series, chunk)
		}
		last := 0
		for _, c := range Changes(series, 0.01, 0.05) {
			if c.At <= last || c.At >= len(series) {
				t.Fatalf("%v: a change at %d after %d", series, c.At, last)
			}
			last = c.At
		}
	})
}
