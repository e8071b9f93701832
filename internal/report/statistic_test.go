package report

import (
	"testing"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/plan"
)

// TestValuesAre: every value is called what it is: a median, or a weighted mean, by metric and, where they differ, by
// workload.
func TestValuesAre(t *testing.T) {
	cell := func(metric string, spec plan.Spec, weighted bool) *compare.Cell {
		c := &compare.Cell{Key: compare.Key{Case: plan.Case{Workload: plan.Workload{Spec: spec}.Normalize()}, Metric: metric}}
		if c.Summary = (stat.Summary{N: 4}); weighted {
			c.Typical = &compare.Estimate{}
		}
		return c
	}
	rr, stream := plan.RR{}, plan.Stream{}
	empty := cell("goodput", stream, false)
	empty.N = 0
	for want, cells := range map[string][]*compare.Cell{
		"Each value is the median of 4 trials":                               {cell("goodput", stream, false), nil},
		"Each value is a weighted mean of 4 trials":                          {cell("service_demand", rr, true), empty},
		"Each value is the median of 4 trials, or a weighted mean (goodput)": {cell("goodput", stream, true), cell("rtt.p99", rr, false)},
		"Each value is the median of 4 trials, or a weighted mean (service demand of rr)": {
			cell("service_demand", rr, true), cell("service_demand", stream, false)},
		"Each value is the median of 4 trials, or a weighted mean (service demand of rr in part; transaction rate)": {
			cell("service_demand", rr, true), cell("service_demand", rr, false), cell("transaction_rate", rr, true)},
	} {
		weighted, medians := statisticsOf(cells)
		if got := statisticSentence(weighted, medians, " of 4 trials"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := statisticSentence(nil, true, ""); got != "Each value is a median" {
		t.Error(got)
	}
}
