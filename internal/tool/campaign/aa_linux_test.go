package main

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/judge/compare"
)

// What pairs differ by beyond their errors is found, and errors alone give next to nothing.
func TestBeyond(t *testing.T) {
	r := rand.New(rand.NewPCG(32, 7))
	for _, own := range []float64{0, 0.01} {
		var pairs []pair
		for range 400 {
			const error = 0.005
			off := math.Exp(math.Hypot(error, own) * r.NormFloat64())
			c := pairCell{Workload: "rr", Metric: "m", Verdict: "same", ratio: ratio{1, 0.9, 1.1}}
			c.Quotient = &ratio{off, off * math.Exp(-1.96*error), off * math.Exp(1.96*error)}
			yardstick, unjudged := c, c
			yardstick.Yardstick, yardstick.Quotient, unjudged.Verdict, unjudged.Quotient = true, &ratio{5, 4, 6}, "", &ratio{5, 4, 6}
			pairs = append(pairs, pair{Cells: []pairCell{c, yardstick, unjudged}})
		}
		got := beyond(pairs, false)["rr m"]
		if math.Abs(got-own) > 0.002 {
			t.Errorf("%g: %g", own, got)
		}
		if has := strings.Contains(allowances(map[string]float64{"rr m": got}, nil), "\nrr m 1."); has != (own > 0) && got > 0.0095 {
			t.Errorf("%g: table %q", own, allowances(map[string]float64{"rr m": got}, nil))
		}
	}
}

// Runs beside other work are allowed at least what runs alone are.
func TestAllowances(t *testing.T) {
	got := allowances(map[string]float64{"rr m": 0.01, "rr n": 0.02, "rr o": 0.0001}, map[string]float64{"rr m": 0.05, "crr m": 0.03})
	want := "crr m 0.00 3.00\nrr m 1.00 5.00\nrr n 2.00 2.00\n"
	if _, rows, _ := strings.Cut(got, "\n"); rows != want {
		t.Errorf("got\n%swant\n%s", rows, want)
	}
}

// Of the pairs with a neighbour those count whose files differ in other work.
func TestNoisy(t *testing.T) {
	pairs := []pair{{Differences: []difference{{Name: "kernel"}}}, {Differences: []difference{{Name: compare.OtherWork}}}, {}}
	if got := noisy(pairs); len(got) != 1 || got[0].Differences[0].Name != compare.OtherWork {
		t.Errorf("%v", got)
	}
}

// Files beside a neighbour are spread among the others, all of them.
func TestInterleaved(t *testing.T) {
	for _, n := range [][2]int{{9, 4}, {2, 1}, {3, 3}} {
		turns, beside := interleaved(n[0], n[1]), 0
		for _, b := range turns {
			if b {
				beside++
			}
		}
		if len(turns) != n[0]+n[1] || beside != n[1] {
			t.Errorf("%v: %v", n, turns)
		}
	}
}
