package explain

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestSparse draws changes with errors: one part in twenty that changes, a few, all. The estimates have the sum of what was
// measured, are nearer to the truth than what was measured, and in the first case have almost all in the right place.
func TestSparse(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	const parts, rounds, sd = 20, 400, 30.
	for _, changed := range []int{1, 5, parts} {
		var raw, drawn, right, wrong float64
		for range rounds {
			truth, measured, variance := make([]float64, parts), make([]float64, parts), make([]float64, parts)
			total, sum := 0.0, 0.0
			for i := range parts {
				if i < changed {
					truth[i] = 400 + 1600*r.Float64()
				}
				measured[i], variance[i] = truth[i]+sd*r.NormFloat64(), sd*sd
				total, sum = total+truth[i], sum+measured[i]
			}
			for i := range measured { // the sum is known from elsewhere
				measured[i] -= (sum - total) / parts
			}
			got, sum := sparse(measured, variance), 0.0
			for i := range got {
				raw, drawn, sum = raw+math.Pow(measured[i]-truth[i], 2), drawn+math.Pow(got[i]-truth[i], 2), sum+got[i]
				if i > 0 && changed == 1 {
					wrong += math.Abs(got[i]) / total
				}
			}
			right += got[0] / total
			if math.Abs(sum-total) > 1e-6 {
				t.Fatalf("%d changed: the sum is %f, want %f", changed, sum, total)
			}
		}
		if drawn > raw*1.05 || changed < parts && drawn > 0.7*raw {
			t.Errorf("%d changed: squares of the errors were %.0f and are %.0f", changed, raw, drawn)
		}
		if changed == 1 && (math.Abs(right/rounds-1) > 0.05 || wrong/rounds > 0.05) {
			t.Errorf("in the right part are %.3f, in all others %.3f", right/rounds, wrong/rounds)
		}
	}
}

// TestSparseFewSamples: errors as large as the changes do not move a change further than two of them, also if all leftovers
// have one sign.
func TestSparseFewSamples(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 400 {
		measured, variance, sum, want := make([]float64, 18), make([]float64, 18), 0.0, 0.0
		for i := range measured {
			measured[i], variance[i] = -3000*r.Float64(), math.Pow(4000*r.Float64(), 2)
			if i == 0 {
				measured[i] = 3000
			}
			want += measured[i]
		}
		for i, e := range sparse(measured, variance) {
			sum += e
			if math.Abs(e-measured[i]) > furthest*math.Sqrt(variance[i])*1.001 {
				t.Fatalf("%f becomes %f, its error is %f", measured[i], e, math.Sqrt(variance[i]))
			}
		}
		if math.Abs(sum-want) > 1e-6*math.Abs(want) {
			t.Fatalf("the sum is %f, want %f", sum, want)
		}
	}
}

// TestSparseEdges: nothing measured, no errors, and one part.
func TestSparseEdges(t *testing.T) {
	for _, measured := range [][]float64{{}, {0, 0}, {5}, {1, -1, 3}, {1e9, 1e-9}} {
		got, sum, want := sparse(measured, make([]float64, len(measured))), 0.0, 0.0
		for i := range measured {
			sum, want = sum+got[i], want+measured[i]
		}
		if math.Abs(sum-want) > 1e-6*math.Abs(want) {
			t.Errorf("%v becomes %v", measured, got)
		}
	}
}

// TestSettle: both sides keep their sums, and a part that one side does not have stays absent there.
func TestSettle(t *testing.T) {
	changes := []Change{
		{A: 0, B: 5000, By: Interval{5000, 4900, 5100}}, {A: 1000, B: 1040, By: Interval{40, -60, 140}, Noise: true},
		{A: 2000, B: 1950, By: Interval{-50, -150, 50}, Noise: true}, {A: 700, B: 0, By: Interval{-700, -780, -620}},
	}
	settle(changes, []float64{2500, 2500, 2500, 1600})
	a, b, by := 0.0, 0.0, 0.0
	for _, c := range changes {
		a, b, by = a+c.A, b+c.B, by+c.By.Value
		if math.Abs(c.B-c.A-c.By.Value) > 1e-6 || c.By.Low > c.By.Value || c.By.High < c.By.Value {
			t.Errorf("%+v", c)
		}
	}
	if math.Abs(a-3700) > 1e-6 || math.Abs(b-7990) > 1e-6 || math.Abs(by-4290) > 1e-6 {
		t.Errorf("sides are %f and %f, the change %f", a, b, by)
	}
	if changes[0].A != 0 || changes[3].B != 0 || math.Abs(changes[1].By.Value) > 20 || math.Abs(changes[2].By.Value) > 25 {
		t.Errorf("%+v", changes)
	}
}
