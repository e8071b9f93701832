package figure

import (
	"math"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/chart"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// growths are the curves over a swept condition, one plot for each metric, workload and path.
func growths(all []report.Growth, s Series) []Figure {
	var out []Figure
	for _, g := range all {
		var values []float64
		for _, l := range g.Lines {
			for _, p := range l.Points {
				values = append(values, p.Median)
			}
		}
		scale := number.Common(g.Unit, values...)
		p := chart.Growth{
			Title: "growth of " + g.Title, Desc: strings.Join(g.Sentences, " "),
			Unit: g.Metric.Title + ", " + scale.Unit + ", log scale", XName: g.Condition + ", log scale; faint: the fitted law",
		}
		n := Numbers{Columns: []string{g.Condition, g.Metric.Title + " (" + scale.Unit + ")", "interval"}}
		for i, l := range g.Lines {
			// A variant of the plan's profile has the colour; a profile has the same in every plot.
			series := s[g.Variant(l.Profile)]
			if series == 0 {
				series = i + 1
			}
			line := chart.GrowthLine{Name: number.Clean(l.Profile), Series: series}
			for _, q := range l.Points {
				line.Points = append(line.Points, chart.GrowthPoint{X: q.X, Value: q.Median / scale.Size, Low: q.Low / scale.Size, High: q.High / scale.Size})
				n.Rows = append(n.Rows, NumbersRow{Series: series, Name: line.Name, Cells: []string{
					number.Number(q.X), scale.Format(q.Median), scale.Format(q.Low) + " to " + scale.Format(q.High),
				}})
			}
			line.Law = lawOf(l.At, l.Points[0].X, l.Points[len(l.Points)-1].X, scale.Size)
			p.Lines = append(p.Lines, line)
		}
		for _, x := range g.Points() {
			p.Ticks = append(p.Ticks, chart.GrowthTick{X: x, Text: shortCount(x)})
		}
		out = append(out, Figure{
			Kind: Growths, Heading: g.Title, Metric: g.Metric.Name, Path: g.Path, Workload: g.Workload, Drawing: p.Draw(), Numbers: n,
		})
	}
	return out
}

// lawOf draws a fitted curve between two values of the condition.
func lawOf(at func(float64) float64, from, to, size float64) []chart.GrowthPoint {
	const steps = 60
	var points []chart.GrowthPoint
	low, high := math.Log1p(from), math.Log1p(to)
	for i := range steps + 1 {
		x := math.Expm1(low + (high-low)*float64(i)/steps)
		points = append(points, chart.GrowthPoint{X: x, Value: at(x) / size})
	}
	return points
}

// shortCount writes a whole number in few columns: 10K.
func shortCount(x float64) string {
	if x >= 1000 && math.Mod(x, 1000) == 0 {
		return strconv.FormatFloat(x/1000, 'f', -1, 64) + "K"
	}
	return number.Number(x)
}
