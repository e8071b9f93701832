package report

import (
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/judge/compare"
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
		if got := firstVerdict(others); string(got) != tt.want {
			t.Errorf("%q: %q, want %q", tt.others, got, tt.want)
		}
	}
}
