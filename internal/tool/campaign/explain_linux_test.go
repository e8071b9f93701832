package main

import (
	"testing"

	"github.com/cnibench/cnibench/internal/judge/explain"
)

// TestJudgement: the measured share of the right part judges, not one that is drawn to what is expected.
func TestJudgement(t *testing.T) {
	for _, c := range []struct {
		value, low, high, beyond float64
		want                     string
	}{
		{1, 0.9, 1.1, 0, "yes"}, {0.86, 0.7, 1.0, 0.03, "yes"}, {0.8, 0.7, 0.9, 0, "undecided"}, {1.2, 1.1, 1.3, 0, "undecided"},
		{0.6, 0.5, 0.7, 0, "no"}, {1.3, 1.2, 1.4, 0, "no"}, {1, 0.9, 1.1, 0.04, "no"}, {-0.1, -0.5, 0.3, 0, "no"},
	} {
		if got := judgement(explain.Interval{Value: c.value, Low: c.low, High: c.high}, c.beyond); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}
