package stat

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestAdjust(t *testing.T) {
	for _, c := range []struct{ in, want []float64 }{
		{nil, nil},
		{[]float64{0.03}, []float64{0.03}},
		{[]float64{0.04, 0.01, 0.03, 0.02}, []float64{0.04, 0.04, 0.04, 0.04}},
		{[]float64{0.5, 0.001, 1, 0.02}, []float64{0.5 * 4 / 3, 0.004, 1, 0.04}},
		{[]float64{1, 1, 1}, []float64{1, 1, 1}},
		{[]float64{0.01, 0.01}, []float64{0.01, 0.01}},
	} {
		if got := Adjust(c.in); !slices.EqualFunc(got, c.want, near) {
			t.Errorf("%v: got %v, want %v", c.in, got, c.want)
		}
	}
}

// A corrected value is never below the raw one, keeps the order, and of values below q as many as the step-up
// procedure rejects.
func TestAdjustRejectsAsTheProcedureDoes(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 1))
	for range 500 {
		ps := make([]float64, 1+r.IntN(30))
		for i := range ps {
			ps[i] = math.Pow(r.Float64(), 3)
		}
		got := Adjust(ps)
		rejected := 0
		for i := range ps {
			if got[i] < ps[i] || got[i] > 1 {
				t.Fatalf("p %g became %g", ps[i], got[i])
			}
			if got[i] <= 0.05 {
				rejected++
			}
			for j := range ps {
				if ps[i] < ps[j] && got[i] > got[j] {
					t.Fatalf("the order of %v was turned: %v", ps, got)
				}
			}
		}
		sorted, want := slices.Sorted(slices.Values(ps)), 0
		for k := 1; k <= len(sorted); k++ {
			if sorted[k-1] <= 0.05*float64(k)/float64(len(sorted)) {
				want = k
			}
		}
		if rejected != want {
			t.Fatalf("%v: %d rejected, the procedure rejects %d", ps, rejected, want)
		}
	}
}

func TestLeastP(t *testing.T) {
	for _, c := range []struct {
		test Test
		n, m int
		want float64
	}{
		{MannWhitney, 4, 4, 2. / 70}, {MannWhitney, 5, 5, 2. / 252}, {MannWhitney, 3, 100, 2. / 176851}, {MannWhitney, 0, 9, 1},
		{SignedRank, 7, 9, 2. / 128}, {SignedRank, 1, 1, 1}, {MannWhitney, 1, 1, 1},
	} {
		if got := LeastP(c.test, c.n, c.m); !near(got, c.want) {
			t.Errorf("%s %d %d: got %g, want %g", c.test, c.n, c.m, got, c.want)
		}
	}
	// It is attained: samples that lie wholly apart have it.
	for n := 2; n <= 12; n++ {
		var a, b []float64
		for i := range n {
			a, b = append(a, float64(1+i)), append(b, 100*float64(1+i))
		}
		if e := Ranks(a, b, 0.95); !near(e.P, LeastP(MannWhitney, n, n)) {
			t.Errorf("Mann-Whitney, n=%d: p %g, least %g", n, e.P, LeastP(MannWhitney, n, n))
		}
		if e := Paired(a, b, 0.95); !near(e.P, LeastP(SignedRank, n, n)) {
			t.Errorf("signed rank, n=%d: p %g, least %g", n, e.P, LeastP(SignedRank, n, n))
		}
	}
	for _, c := range []struct {
		p     float64
		pairs bool
		want  int
	}{{0.05, true, 4}, {0.05, false, 4}, {0.005, true, 6}, {0.002, true, 10}, {0.002, false, 7}, {0, false, 60}} {
		if got := Enough(c.p, c.pairs); got != c.want {
			t.Errorf("enough for %g: %d, want %d", c.p, got, c.want)
		}
	}
}

// The number of repetitions that warnings name is the one that the tests need.
func TestMinRepetitions(t *testing.T) {
	for _, pairs := range []bool{false, true} {
		if got := Enough(0.05, pairs); got != MinRepetitions {
			t.Errorf("pairs %t: %d repetitions decide, and %d are said", pairs, got, MinRepetitions)
		}
	}
}

func TestWiden(t *testing.T) {
	if got := Widen(0.05, 5); math.Abs(got-2.5758/1.9600) > 1e-3 {
		t.Errorf("1 %% beside 5 %%: %g", got)
	}
	for _, factor := range []float64{0, 1, math.NaN()} {
		if got := Widen(0.05, factor); got != 1 {
			t.Errorf("factor %g: %g", factor, got)
		}
	}
}

// MoreThan at factor 1 is one tail of the two-sided test where there are no ties, and its level holds for any factor.
func TestMoreThan(t *testing.T) {
	r := rand.New(rand.NewPCG(22, 1))
	for range 300 {
		n := 2 + r.IntN(30)
		a, b := noise(r, n, 0.1), noise(r, n, 0.1)
		one, other, two := MoreThan(a, b, 1), MoreThan(b, a, 1), mannWhitney(a, b).twoSidedP()
		if math.Abs(2*min(one, other)-two) > 1e-9 && 2*min(one, other) < 1 {
			t.Fatalf("tails %g and %g of %g (n=%d)", one, other, two, n)
		}
	}
	for _, n := range []int{4, 5, 10, 30} {
		got := share(uint64(500+n), func(r *rand.Rand) bool {
			a, b := noise(r, n, 0.05), noise(r, n, 0.05)
			for i := range a {
				a[i] *= 1.05
			}
			return MoreThan(a, b, 1.05) <= 0.05
		})
		if got > 0.05+tolerance {
			t.Errorf("n=%d: a ratio of 1.05 called more than that in %.1f %%", n, 100*got)
		}
	}
	zeros := []float64{0, 0, 0, 0, 0}
	if p := MoreThan(zeros, zeros, 1.05); p < 0.5 {
		t.Errorf("zeros beside zeros: %g", p)
	}
	if p := MoreThan([]float64{1, 2, 3, 4, 5}, zeros, 1.05); !near(p, 1./252) {
		t.Errorf("values beside zeros: %g", p)
	}
	if MoreThan(nil, zeros, 1) != 1 || MoreThan(zeros, nil, 1) != 1 {
		t.Error("nothing was said to be more than something")
	}
}

func TestAbove(t *testing.T) {
	for _, c := range []struct {
		xs    []float64
		limit float64
		want  float64
	}{
		{[]float64{2, 3, 4, 5, 6}, 1, 1. / 32}, {[]float64{0, 3, 4, 5, 6}, 1, 6. / 32}, {[]float64{1, 1}, 1, 1}, {nil, 0, 1},
	} {
		if got := Above(c.xs, c.limit); !near(got, c.want) {
			t.Errorf("%v above %g: %g, want %g", c.xs, c.limit, got, c.want)
		}
	}
}

// kth finds what sorting finds, to the last digit, with ties and without.
func TestSelection(t *testing.T) {
	r := rand.New(rand.NewPCG(23, 1))
	draw := func(n int) []float64 {
		xs, levels := make([]float64, n), 1+r.IntN(40)
		for i := range xs {
			xs[i] = r.NormFloat64()
			if levels < 20 {
				xs[i] = float64(r.IntN(levels)) / 3
			}
		}
		slices.Sort(xs)
		return xs
	}
	for range 400 {
		x, y := draw(1+r.IntN(20)), draw(1+r.IntN(20))
		var all, averages []float64
		for _, a := range x {
			for _, b := range y {
				all = append(all, a-b)
			}
		}
		for i, a := range x {
			for _, b := range x[i:] {
				averages = append(averages, midpoint(a, b))
			}
		}
		slices.Sort(all)
		slices.Sort(averages)
		for k := range all {
			if got := pairwiseDifferences(x, y).kth(k + 1); got != all[k] {
				t.Fatalf("difference %d of %v and %v: %g, want %g", k+1, x, y, got, all[k])
			}
		}
		for k := range averages {
			if got := walshAverages(x).kth(k + 1); got != averages[k] {
				t.Fatalf("average %d of %v: %g, want %g", k+1, x, got, averages[k])
			}
		}
		if got := pairwiseDifferences(x, y).median(); got != medianOfSorted(all) {
			t.Fatalf("median %g, want %g", got, medianOfSorted(all))
		}
	}
}

func TestOrderedPairs(t *testing.T) {
	r := rand.New(rand.NewPCG(24, 1))
	for range 200 {
		xs := make([]float64, r.IntN(30))
		for i := range xs {
			xs[i] = float64(r.IntN(12))
		}
		var rises, falls int
		for i, x := range xs {
			for _, y := range xs[i+1:] {
				if y > x {
					rises++
				} else if y < x {
					falls++
				}
			}
		}
		if up, down := orderedPairs(xs); up != rises || down != falls {
			t.Fatalf("%v: %d and %d, want %d and %d", xs, up, down, rises, falls)
		}
	}
}

func FuzzMoreThan(f *testing.F) {
	f.Add([]byte{1, 2, 3}, []byte{4, 5}, 1.05)
	f.Fuzz(func(t *testing.T, x, y []byte, factor float64) {
		if math.IsNaN(factor) || math.IsInf(factor, 0) {
			return
		}
		a, b := floats(x), floats(y)
		if p := MoreThan(a, b, factor); !(p >= 0 && p <= 1+1e-9) {
			t.Fatalf("p = %g", p)
		}
		if p := Above(a, factor); !(p >= 0 && p <= 1) {
			t.Fatalf("p = %g", p)
		}
	})
}

// TestHolmFactors: a test rejects at the level of its step exactly where its corrected p value is at most alpha, and the
// steps end with the first that does not.
func TestHolmFactors(t *testing.T) {
	if got, want := HolmFactors([]float64{0.01, 0.04, 0.001, 0.5}, 0.05), []float64{3, 2, 4, 2}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	r := rand.New(rand.NewPCG(22, 1))
	for range 500 {
		ps := make([]float64, 1+r.IntN(30))
		for i := range ps {
			ps[i] = math.Pow(r.Float64(), 6)
		}
		adjusted := Holm(ps)
		for i, factor := range HolmFactors(ps, 0.05) {
			if (adjusted[i] <= 0.05) != (ps[i]*factor <= 0.05) || factor < 1 || factor > float64(len(ps)) {
				t.Fatalf("%v: p %g, corrected %g, factor %g", ps, ps[i], adjusted[i], factor)
			}
		}
	}
}

// TestConover: of equal samples, most values of which are 0, at most 5 of 100 rows have a pair whose corrected p value is
// that small; one that is far from seven others differs from each with five values, which a comparison of two samples cannot
// after the correction.
func TestConover(t *testing.T) {
	r := rand.New(rand.NewPCG(23, 1))
	smallest := func(samples [][]float64) (ps []float64) {
		for i := range samples {
			for j := range i {
				ps = append(ps, Conover(samples, i, j))
			}
		}
		return Holm(ps)
	}
	for _, n := range []int{3, 5, 8} {
		wrong := 0
		const runs = 400
		for range runs {
			samples := make([][]float64, 8)
			for i := range samples {
				for range n {
					samples[i] = append(samples[i], max(0, r.NormFloat64()-0.5))
				}
			}
			if slices.Min(smallest(samples)) <= 0.05 {
				wrong++
			}
		}
		if t.Logf("%d values: %d of %d rows", n, wrong, runs); wrong > 0.05*runs {
			t.Errorf("%d values: %d of %d rows have a difference", n, wrong, runs)
		}
	}
	samples := make([][]float64, 8)
	for i := range samples {
		samples[i] = make([]float64, 5)
	}
	samples[7] = []float64{0.1, 0.2, 0.1, 0.3, 0.1}
	if p := 28 * Conover(samples, 7, 0); p > 0.001 || Conover(samples, 1, 0) != 1 || 28*LeastP(MannWhitney, 5, 5) < 0.05 {
		t.Errorf("p %g", p)
	}
	if p := Conover([][]float64{{1, 1}, {1, 1}}, 0, 1); p != 1 {
		t.Errorf("equal values: p %g", p)
	}
}
