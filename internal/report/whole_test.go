package report

import (
	"testing"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// Typical values stand beside undisturbed ones: how far they are off at least and most, where, and for the baseline.
func TestWholeNote(t *testing.T) {
	cell := func(profile plan.Variant, undisturbed, typical float64) *compare.Cell {
		c := &compare.Cell{Unit: "ns/transaction", Estimate: compare.Estimate{Summary: stat.Summary{Median: undisturbed}}}
		c.Profile, c.Path, c.Metric = profile, plan.ZeroPath, metric.ServiceDemand
		if typical > 0 {
			c.Typical = &compare.Estimate{Summary: stat.Summary{Median: typical}}
		}
		return c
	}
	raw := cell(plan.VariantOf("raw"), 5000, 5100)
	for name, c := range map[string]struct {
		cells []*compare.Cell
		base  *compare.Cell
		want  string
	}{
		"nothing undisturbed": {[]*compare.Cell{cell(plan.VariantOf("p"), 5000, 0), nil}, raw, ""},
		"all agree":           {[]*compare.Cell{cell(plan.VariantOf("p"), 5000, 5010), cell(plan.VariantOf("q"), 5000, 4990)}, nil, "Typical values, of whole windows, agree with the undisturbed ones within 0.5%."},
		"one is far off": {
			[]*compare.Cell{cell(plan.VariantOf("p"), 5000, 4990), cell(plan.VariantOf("q"), 20000, 23000)}, raw,
			"Typical values, of whole windows, differ from the undisturbed ones by -0.2% to +15%; farthest off is q host-host cross: 23.0 for 20.0 µs/transaction; raw: +2.0%.",
		},
	} {
		if got := wholeWindowsNote(c.cells, c.base); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
		}
	}
}
