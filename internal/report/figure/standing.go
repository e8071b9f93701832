package figure

import (
	"math"
	"strings"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/chart"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// Standing draws the profiles of a need in their order, best first.
func Standing(n report.Need, s Series) chart.Drawing {
	scale := n.Scale()
	p := chart.Dots{Unit: scale.Unit, Reference: math.NaN(), Low: math.NaN(), High: math.NaN()}
	p.Title = n.Metric.Title + ", " + n.Workload.String() + ", " + n.Path.String()
	var said []string
	for _, x := range n.Standings {
		e := report.Entry{Value: scale.Format(x.Cell.Median), Cell: &x.Cell}
		row := dotRow(number.Clean(x.Cell.Profile), s[x.Cell.Profile], e, scale)
		p.Rows = append(p.Rows, row)
		said = append(said, row.Name+" "+row.Value)
	}
	p.Desc = "In order, best first, in " + scale.Unit + ": " + strings.Join(said, "; ") + "."
	return p.Draw()
}
