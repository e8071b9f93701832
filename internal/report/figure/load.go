package figure

import (
	"fmt"
	"math"
	"strings"

	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/chart"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// loads are the curves of times over load, one plot per workload and path; those of a workload share one scale.
func loads(curves []report.LoadCurve, s Series) []Figure {
	times := map[plan.Workload][]float64{}
	for _, c := range curves {
		for _, l := range c.Lines {
			for _, p := range l.Points {
				times[c.Workload] = append(times[c.Workload], p.Half.Median)
				if p.Tail.N > 0 {
					times[c.Workload] = append(times[c.Workload], p.Tail.Median)
				}
			}
		}
	}
	var out []Figure
	for _, c := range curves {
		scale := number.Common("ns", times[c.Workload]...)
		low, high := math.Inf(1), math.Inf(-1)
		for _, v := range times[c.Workload] {
			low, high = math.Min(low, v/scale.Size), math.Max(high, v/scale.Size)
		}
		p := chart.Loads{
			Title: "latency against load, " + c.Workload.String() + ", " + c.Path.String(), Low: low, High: high,
			Unit:  "99th percentile, and the median as the fainter line, " + scale.Unit + ", log scale",
			XName: "load, as a share of the capacity of each; the ring is the knee",
		}
		n := Numbers{Columns: []string{"load", "p50 (" + scale.Unit + ")", "p99 (" + scale.Unit + ")", "interval of p99", "doubt"}}
		var said []string
		for _, l := range c.Lines {
			p.Lines = append(p.Lines, loadLine(l, s, scale))
			n.Rows = append(n.Rows, loadNumbers(l, s, scale)...)
			said = append(said, fmt.Sprintf("%s knee %s", number.Clean(l.Profile), l.Knee))
		}
		p.Desc = "Times over load: " + strings.Join(said, "; ") + "."
		out = append(out, Figure{Kind: Loads, Heading: c.Path.String(), Path: c.Path, Workload: c.Workload, Drawing: p.Draw(), Numbers: n})
	}
	return out
}

func loadLine(l report.LoadLine, s Series, scale number.Scale) chart.LoadLine {
	out := chart.LoadLine{Name: number.Clean(l.Profile), Series: s[l.Profile], Knee: math.NaN()}
	if l.Knee.Found && !l.Knee.None {
		out.Knee = 100 * l.Knee.Low
	}
	or := func(x stat.Summary, v float64) float64 {
		if x.N == 0 {
			return math.NaN()
		}
		return v / scale.Size
	}
	for _, p := range l.Points {
		out.Points = append(out.Points, chart.LoadPoint{
			Load: 100 * p.Load, Half: or(p.Half, p.Half.Median), Tail: or(p.Tail, p.Tail.Median),
			TailLow: or(p.Tail, p.Tail.Low), TailHigh: or(p.Tail, p.Tail.High),
		})
	}
	return out
}

// loadNumbers has a row for each load of a profile.
func loadNumbers(l report.LoadLine, s Series, scale number.Scale) []NumbersRow {
	var rows []NumbersRow
	for _, p := range l.Points {
		cells := []string{plan.FormatShare(p.Load), scale.Format(p.Half.Median), number.Absent, number.Absent, ""}
		if p.Tail.N > 0 {
			cells[2] = scale.Format(p.Tail.Median)
		}
		if p.Tail.N > 1 {
			cells[3] = scale.Format(p.Tail.Low) + " to " + scale.Format(p.Tail.High)
		}
		switch {
		case p.Late:
			cells[4] = "the tail is the sender's"
		case p.Saturated:
			cells[4] = "responses fell behind"
		}
		rows = append(rows, NumbersRow{Series: s[l.Profile], Name: number.Clean(l.Profile), Cells: cells})
	}
	return rows
}
