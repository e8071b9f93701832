package markdown

import (
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/report/reporttest"
)

// TestReportFits: a report without budgets is the answer and one table, and nothing of a stranger's text acts on the page.
func TestReportFits(t *testing.T) {
	all := string(reporttest.Render(t, reporttest.NinePaths(6), GitHub))
	if n := len(all); n > 8<<10 {
		t.Errorf("%d bytes", n)
	}
	for _, want := range []string{"### ", "**best**", "| profile |", " best |", "does: ", "cnibench report -f html"} {
		if !strings.Contains(all, want) {
			t.Errorf("no %q in %s", want, all)
		}
	}
	if hostile := string(reporttest.Render(t, reporttest.Hostile(), GitHub)); strings.Contains(hostile, "<script") || strings.Contains(hostile, "](http") {
		t.Error(hostile)
	}
}
