package findings

import (
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// TestFigures: ratios are judged, absolute values are not, and what is missing has its reason.
func TestFigures(t *testing.T) {
	published := func(a, b float64) *compare.Analysis {
		return analysis(t, metric.Goodput, map[string][]float64{"a " + where: {a}, "b " + where: {b}})
	}
	here := analysis(t, metric.Goodput, map[string][]float64{"a " + where: around(10), "b " + where: around(20)})
	header := result.Header{Profiles: []result.Profile{{Name: plan.VariantOf("b"), Skipped: "no such module"}}}
	for name, tt := range map[string]struct {
		published, here *compare.Analysis
		want            Outcome
		says            string
	}{
		"the same ratio":   {published(5, 10), here, Reproduced, "claimed 2.00x"},
		"another size":     {published(5, 50), here, InPart, "the size does not"},
		"the other way":    {published(10, 5), here, Contradicted, "claimed 0.50x"},
		"from zero":        {published(0, 5), here, Reproduced, ""},
		"to zero":          {published(5, 0), here, Contradicted, "the other way round"},
		"both zero":        {published(0, 0), here, Contradicted, "similar is within"},
		"one is not there": {published(5, 10), analysis(t, metric.Goodput, map[string][]float64{"a " + where: around(10)}), NotTestable, "no such module"},
	} {
		// The order of cells without a plan is that of the profiles; both have one set of two.
		all := Figures(tt.here, header, ordered(tt.published))
		if len(all) != 2 {
			t.Fatalf("%s: %d figures", name, len(all))
		}
		if all[0].Outcome != NotTestable || !strings.HasPrefix(all[0].Why, "absolute") {
			t.Errorf("%s: the first is %s: %s", name, all[0].Outcome, all[0].Why)
		}
		if got := all[1]; got.Outcome != tt.want || !strings.Contains(got.Why, tt.says) {
			t.Errorf("%s: got %s: %s; want %s: %s", name, got.Outcome, got.Why, tt.want, tt.says)
		}
	}
}

// ordered has the cells of a before those of b.
func ordered(a *compare.Analysis) *compare.Analysis {
	if len(a.Cells) == 2 && a.Cells[0].Profile == plan.VariantOf("b") {
		a.Cells[0], a.Cells[1] = a.Cells[1], a.Cells[0]
	}
	return a
}

// TestCountsAreNotCompared: what describes a trial is not judged.
func TestCountsAreNotCompared(t *testing.T) {
	a := analysis(t, metric.Transferred, map[string][]float64{"a " + where: around(10), "b " + where: around(20)})
	for _, f := range Figures(a, result.Header{}, a) {
		if f.Outcome != NotTestable || !strings.Contains(f.Why, "describes one trial") {
			t.Errorf("%s: %s", f.Outcome, f.Why)
		}
	}
}
