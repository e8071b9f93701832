package stat

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func near(a, b float64) bool {
	return a == b || math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) <= 1e-9*max(math.Abs(a), math.Abs(b))
}

func TestSummarize(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		name string
		in   []float64
		want Summary
	}{
		{"nothing", nil, Summary{0, nan, nan, nan, 0, nan, nan}},
		{"one", []float64{3}, Summary{1, 3, 3, 3, 0, 3, 3}},
		{"two", []float64{4, 2}, Summary{2, 3, 2, 4, 0.5, 2, 4}},
		{"five: the range, and what it covers", []float64{5, 1, 4, 2, 3}, Summary{5, 3, 1, 5, 0.9375, 1, 5}},
		{"six: the range reaches 95 %", []float64{6, 5, 4, 3, 2, 1}, Summary{6, 3.5, 1, 6, 0.96875, 1, 6}},
		{"nine: second from either end", []float64{1, 2, 3, 4, 5, 6, 7, 8, 9}, Summary{9, 5, 2, 8, 1 - 20./512, 1, 9}},
		{"zeros", []float64{0, 0, 0, 0}, Summary{4, 0, 0, 0, 0.875, 0, 0}},
	} {
		got := Summarize(c.in, 0.95)
		g := []float64{float64(got.N), got.Median, got.Low, got.High, got.Confidence, got.Min, got.Max}
		w := []float64{float64(c.want.N), c.want.Median, c.want.Low, c.want.High, c.want.Confidence, c.want.Min, c.want.Max}
		if !slices.EqualFunc(g, w, near) {
			t.Errorf("%s: got %v, want %v", c.name, g, w)
		}
	}
	in := []float64{3, 1, 2}
	Summarize(in, 0.95)
	if !slices.Equal(in, []float64{3, 1, 2}) {
		t.Errorf("Summarize reordered its argument: %v", in)
	}
}

// The critical values are those of the printed tables: the largest U (or W) that rejects at 5 %, two-sided.
func TestCriticalValues(t *testing.T) {
	for _, c := range []struct{ n, m, u int }{
		{4, 4, 0}, {5, 5, 2}, {6, 6, 5}, {7, 7, 8}, {8, 8, 13}, {9, 9, 17}, {10, 10, 23}, {20, 20, 127}, {5, 8, 6}, {3, 8, 2}, {4, 20, 14},
	} {
		if k, cover := uRank(c.n, c.m, 0.95); k-1 != c.u || cover < 0.95 {
			t.Errorf("U for n=%d m=%d: got %d with coverage %g, want %d", c.n, c.m, k-1, cover, c.u)
		}
	}
	for _, c := range []struct{ n, w int }{{6, 0}, {7, 2}, {8, 3}, {9, 5}, {10, 8}, {12, 13}, {15, 25}, {20, 52}, {25, 89}} {
		if k, cover := wRank(c.n, 0.95); k-1 != c.w || cover < 0.95 {
			t.Errorf("W for n=%d: got %d with coverage %g, want %d", c.n, k-1, cover, c.w)
		}
	}
	// Below the sizes that can reach 95 % the whole range is given, with what it covers.
	if k, cover := uRank(3, 3, 0.95); k != 1 || !near(cover, 0.9) {
		t.Errorf("U for n=m=3: got %d, %g, want 1, 0.9", k, cover)
	}
	if k, cover := wRank(5, 0.95); k != 1 || !near(cover, 1-2./32) {
		t.Errorf("W for n=5: got %d, %g, want 1, 0.9375", k, cover)
	}
}

// bruteU deals the values out in every way and counts those at least as far from the middle.
func bruteU(a, b []float64) float64 {
	all := slices.Concat(a, b)
	sum := func(in func(int) bool) (u float64) {
		for i, x := range all {
			if !in(i) {
				continue
			}
			for j, y := range all {
				switch {
				case in(j):
				case x > y:
					u++
				case x == y:
					u += 0.5
				}
			}
		}
		return math.Abs(u - float64(len(a)*len(b))/2)
	}
	seen := sum(func(i int) bool { return i < len(a) })
	far, total := 0., 0.
	for mask := range 1 << len(all) {
		if popcount(mask) != len(a) {
			continue
		}
		total++
		if sum(func(i int) bool { return mask>>i&1 == 1 }) >= seen {
			far++
		}
	}
	return far / total
}

func popcount(m int) (n int) {
	for ; m > 0; m &= m - 1 {
		n++
	}
	return n
}

// bruteW flips every sign and counts the rank sums at least as far from the middle.
func bruteW(d []float64) float64 {
	d = slices.DeleteFunc(slices.Clone(d), func(x float64) bool { return x == 0 })
	rank := make([]float64, len(d))
	for i, x := range d {
		for _, y := range d {
			switch {
			case math.Abs(y) < math.Abs(x):
				rank[i]++
			case math.Abs(y) == math.Abs(x):
				rank[i] += 0.5
			}
		}
		rank[i] += 0.5
	}
	off := func(positive func(int) bool) (s float64) {
		for i, r := range rank {
			if positive(i) {
				s += r
			} else {
				s -= r
			}
		}
		return math.Abs(s)
	}
	seen := off(func(i int) bool { return d[i] > 0 })
	far := 0.
	for mask := range 1 << len(d) {
		if off(func(i int) bool { return mask>>i&1 == 1 }) >= seen {
			far++
		}
	}
	return far / float64(int(1)<<len(d))
}

func TestExactAgainstEnumeration(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		levels := 1 + r.IntN(20) // few levels make many ties
		draw := func(n int) []float64 {
			xs := make([]float64, n)
			for i := range xs {
				xs[i] = float64(r.IntN(levels) - levels/3)
			}
			return xs
		}
		a, b := draw(1+r.IntN(5)), draw(1+r.IntN(5))
		if got, want := mannWhitney(a, b).twoSidedP(), bruteU(a, b); !near(got, want) {
			t.Fatalf("Mann-Whitney of %v and %v: p = %g, enumeration %g", a, b, got, want)
		}
		d := draw(1 + r.IntN(8))
		if got, want := signedRank(d).twoSidedP(), bruteW(d); !near(got, want) {
			t.Fatalf("signed rank of %v: p = %g, enumeration %g", d, got, want)
		}
	}
}

// Where counting out ends and the normal approximation begins, the two must nearly agree.
func TestApproximationJoinsExact(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 50 {
		a, b := noise(r, 25, 0.05), noise(r, 25, 0.05)
		for i := range a {
			a[i] *= 1.01
		}
		ranks, _ := doubledMidranks(slices.Concat(a, b))
		sum := 0
		for _, x := range ranks[:25] {
			sum += x
		}
		normal := rankSum{deviation: float64(sum-25*51) / 2, variance: rankSumVariance(ranks, 25)}
		if exact, approx := mannWhitney(a, b).twoSidedP(), normal.twoSidedP(); math.Abs(exact-approx) > 0.01 {
			t.Fatalf("Mann-Whitney n=25: exact %g, approximation %g", exact, approx)
		}
	}
	for _, n := range []int{20, 25} {
		ke, ce := exactRank(uCounts(n, n), 0.95)
		f := float64(n)
		ka, ca := normalRank(f*f/2, f*f*(2*f+1)/12, 0.95)
		if max(ke-ka, ka-ke) > 1 || math.Abs(ce-ca) > 0.005 {
			t.Errorf("U rank n=%d: exact %d (%g), approximation %d (%g)", n, ke, ce, ka, ca)
		}
	}
	ke, ce := exactRank(wCounts(50), 0.95)
	ka, ca := normalRank(50*51/4., 50*51*101/24., 0.95)
	if max(ke-ka, ka-ke) > 2 || math.Abs(ce-ca) > 0.005 {
		t.Errorf("W rank n=50: exact %d (%g), approximation %d (%g)", ke, ce, ka, ca)
	}
	if e := Paired(noise(r, 300, 0.05), noise(r, 300, 0.05), 0.95); !(e.Low < 1 && e.High > 1) && e.P > 0.05 || e.High-e.Low > 0.03 {
		t.Errorf("300 pairs: %+v", e)
	}
}

// noise draws n positive values around 100 with the given coefficient of variation.
func noise(r *rand.Rand, n int, cv float64) []float64 {
	xs := make([]float64, n)
	for i := range xs {
		xs[i] = 100 * math.Exp(cv*r.NormFloat64())
	}
	return xs
}

func TestEffectSmall(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		name string
		got  Effect
		want Effect
	}{
		{"no values", Unpaired(nil, []float64{1}, 0.95), Effect{nan, nan, nan, 0, 1, 0, MannWhitney}},
		{"no pairs", Paired([]float64{1}, nil, 0.95), Effect{nan, nan, nan, 0, 1, 0, SignedRank}},
		{"one each", Unpaired([]float64{3}, []float64{2}, 0.95), Effect{1.5, 1.5, 1.5, 0, 1, 1, MannWhitney}},
		{"one pair", Paired([]float64{3}, []float64{2}, 0.95), Effect{1.5, 1.5, 1.5, 0, 1, 1, SignedRank}},
		{"four apart", Unpaired([]float64{8, 8, 8, 8}, []float64{4, 4, 4, 4}, 0.95), Effect{2, 2, 2, 1 - 2./70, 2. / 70, 4, MannWhitney}},
		{"zeros have no ratio but an order", Unpaired([]float64{1, 2, 3, 4}, []float64{0, 0, 0, 0}, 0.95), Effect{nan, nan, nan, 0, 2. / 70, 4, MannWhitney}},
		{"all zero", Unpaired([]float64{0, 0}, []float64{0, 0}, 0.95), Effect{nan, nan, nan, 0, 1, 2, MannWhitney}},
		{"negative pairs", Paired([]float64{-1, -2}, []float64{1, 1}, 0.95), Effect{nan, nan, nan, 0, 0.5, 2, SignedRank}},
		{"the longer tail is left out", Paired([]float64{2, 2, 9}, []float64{1, 1}, 0.95), Effect{2, 2, 2, 0.5, 0.5, 2, SignedRank}},
	} {
		g, w := c.got, c.want
		if !near(g.Ratio, w.Ratio) || !near(g.Low, w.Low) || !near(g.High, w.High) || !near(g.Confidence, w.Confidence) ||
			!near(g.P, w.P) || g.N != w.N || g.Test != w.Test {
			t.Errorf("%s: got %+v, want %+v", c.name, g, w)
		}
	}
}

// Scaling one side scales the estimate and its interval; swapping the sides turns them over; p stays.
func TestEquivariance(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 200 {
		n := 2 + r.IntN(10)
		a, b := noise(r, n, 0.2), noise(r, n, 0.2)
		scaled := make([]float64, n)
		for i, x := range a {
			scaled[i] = x * 1e6
		}
		for _, f := range []func(a, b []float64, c float64) Effect{Unpaired, Paired} {
			e, s, turned := f(a, b, 0.95), f(scaled, a, 0.95), f(b, a, 0.95)
			if !near(turned.Ratio, 1/e.Ratio) || !near(turned.Low, 1/e.High) || !near(turned.High, 1/e.Low) || !near(turned.P, e.P) {
				t.Fatalf("swapped %+v is %+v", e, turned)
			}
			if s := f(scaled, b, 0.95); !near(s.Ratio, e.Ratio*1e6) || !near(s.Low, e.Low*1e6) || !near(s.High, e.High*1e6) {
				t.Fatalf("scaled %+v is %+v", e, s)
			}
			if !near(s.Ratio, 1e6) {
				t.Fatalf("a against itself times 1e6: %+v", s)
			}
			if !(e.Low <= e.Ratio && e.Ratio <= e.High) {
				t.Fatalf("estimate outside its interval: %+v", e)
			}
			// The interval is the inversion of the test.
			if e.Confidence >= 0.95 && (e.P <= 0.05) != (e.Low > 1 || e.High < 1) {
				t.Fatalf("test and interval disagree: %+v", e)
			}
		}
	}
}

func TestExamine(t *testing.T) {
	ids := func(xs ...float64) []string {
		var out []string
		for _, w := range Examine(xs, Summarize(xs, 0.95)) {
			out = append(out, w.ID)
		}
		return out
	}
	for _, c := range []struct {
		name string
		in   []float64
		want []string
	}{
		{"nothing", nil, nil},
		{"three", []float64{1, 1, 1}, []string{Few}},
		{"steady", []float64{100, 103, 99, 101, 98, 102, 100, 101}, nil},
		{"wide", []float64{100, 200, 90, 150, 60}, []string{Spread}},
		{"one far off", []float64{100, 101, 99, 100, 140, 102, 98, 100, 101, 100}, []string{Outlier}},
		{"constant but for a digit", []float64{100, 100, 100, 100, 100, 101, 100, 100}, nil},
		{"rising", []float64{100, 101, 102, 103, 104, 105, 106}, []string{Trend}},
		{"five in order prove nothing", []float64{100, 101, 102, 103, 104}, nil},
		{"ties are no drift", []float64{5, 5, 5, 5, 5, 5, 5, 5}, nil},
	} {
		if got := ids(c.in...); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}
