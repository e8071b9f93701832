package report_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/reporttest"
)

// TestInterimLeads: the dataplane that is ahead is named where there are others, and bare networks count for no decision.
func TestInterimLeads(t *testing.T) {
	interim := func(r reporttest.Result) report.Interim {
		var c report.Collector
		for i := range r.Records {
			if err := c.Add(&r.Records[i]); err != nil {
				t.Fatal(err)
			}
		}
		out, err := c.Interim(r.Header)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	if got := interim(reporttest.Small(6)); len(got.Leads) > 0 || got.Summary == nil {
		t.Errorf("one dataplane: %q ahead so far", got.Leads)
	}
	many := interim(reporttest.NinePaths(6))
	if !slices.ContainsFunc(many.Leads, func(s string) bool { return strings.HasPrefix(s, "requests macvlan") }) {
		t.Errorf("ahead so far: %q", many.Leads)
	}
	verdicts := 0
	for _, r := range many.Summary.Rows {
		for _, e := range r.Entries {
			if !r.Bare && e.Verdict != "" {
				verdicts++
			}
		}
	}
	if many.Compared != verdicts || many.Decided > many.Compared || many.Decided == 0 {
		t.Errorf("decided %d of %d, with %d verdicts on dataplanes", many.Decided, many.Compared, verdicts)
	}
}
