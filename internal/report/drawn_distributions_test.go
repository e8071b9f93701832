package report

import (
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/report/plot"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// TestCurvesEndAtTenEvents: neither a line nor the table beside it speaks of a share beyond which fewer than ten values lie;
// the longest value is in the table.
func TestCurvesEndAtTenEvents(t *testing.T) {
	c := Curve{Case: plan.Case{Profile: plan.VariantOf("canal")}, Count: 1000}
	for _, q := range []float64{0, 0.5, 0.9, 0.99, 0.995, 0.999} {
		c.Points = append(c.Points, Percentile{Q: q, Ns: 1000 * (1 + q)})
	}
	c.Points[len(c.Points)-1].Ns = 9000
	s := Series{plan.VariantOf("canal"): 1}
	figures := distributionFigures([]Curve{c}, []plan.Workload{c.Workload}, s)
	if len(figures) != 1 {
		t.Fatalf("%d figures", len(figures))
	}
	row := figures[0].Numbers.Rows[0].Cells
	if row[3] == "–" || row[4] != "–" || row[5] != "–" || row[len(row)-1] != "9.00" {
		t.Errorf("the table has %q", row)
	}
	line := curveLine(c, s, number.Common("ns", 1000))
	if last := line.Points[len(line.Points)-1]; len(line.Points) != 4 || last.X != plot.Nine(0.99) {
		t.Errorf("the line ends at %v", last)
	}
	few := Curve{Case: c.Case, Count: 5, Points: c.Points[:1]}
	if got := distributionFigures([]Curve{few}, []plan.Workload{c.Workload}, s); !strings.Contains(got[0].Drawing.Desc, "canal") {
		t.Errorf("of five values: %q", got[0].Drawing.Desc)
	}
}
