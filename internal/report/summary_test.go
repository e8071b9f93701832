package report

import (
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/plan"
)

// TestMarkOfFirst: the first of a column is marked only if something about it is decided.
func TestMarkOfFirst(t *testing.T) {
	for _, tt := range []struct{ others, want string }{
		{"", ""}, {"inconclusive", ""}, {"inconclusive inconclusive", ""},
		{"same", "same"}, {"same inconclusive", "same"}, {"inconclusive same worse", "better"}, {"worse", "better"},
	} {
		var others []compare.Standing
		for _, v := range strings.Fields(tt.others) {
			others = append(others, compare.Standing{ToBest: compare.Comparison{Verdict: compare.Verdict(v)}})
		}
		if got := bestVerdict(others); string(got) != tt.want {
			t.Errorf("%q: %q, want %q", tt.others, got, tt.want)
		}
	}
}

// TestShareMessage: the title of a card says what is decided, and that nothing is.
func TestShareMessage(t *testing.T) {
	against := func(v compare.Verdict, ratio float64) (s compare.Standing) {
		s.Cell.Profile = plan.VariantOf("canal")
		s.ToBest.Verdict, s.ToBest.Ratio = v, ratio
		return s
	}
	first := against("", 1)
	first.Cell.Profile = plan.VariantOf("macvlan")
	for want, choice := range map[string][]compare.Standing{
		"": {first},
		"Requests: no difference between 2 dataplanes is decided":   {first, against(compare.Inconclusive, 1.1)},
		"Requests: macvlan is best, canal has 2.00x of its latency": {first, against(compare.Worse, 2)},
		"Requests: no difference between 3 dataplanes is decided":   {first, against(compare.Same, 1), against(compare.Same, 1)},
	} {
		n := Need{Name: "Requests on standing connections", Choice: choice}
		n.Metric.Title = "latency"
		if got := n.shareMessage(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
