package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/measure/outcome"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/report/plot"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/metric"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// LoadCurve has the times of one workload on one path as a function of the load. It has a line for each profile.
type LoadCurve struct {
	// Workload is the workload without its load, because the load is the axis of the curve.
	Workload plan.Workload
	Path     plan.Path
	// Lines are in report order. There is at least one line. Each has at least two points.
	Lines []LoadLine
	// Grids has the curves as tables.
	Grids []Grid
}

// LoadLine is the curve of one profile.
type LoadLine struct {
	Profile plan.Variant
	// Capacity is the rate, in requests per second, of which the loads are shares; NaN if unknown.
	Capacity float64
	// Points are in the order of rising load.
	Points []LoadPoint
	Knee   Knee
}

// LoadPoint is the measurement at one load. Times are in ns. N is 0 in a summary without values.
type LoadPoint struct {
	// Load is the share of the capacity.
	Load float64
	// Half and Tail are the median and the 99th percentile of the times.
	Half, Tail stat.Summary
	// Late means that the sender's own delay caused the tail in at least half of the trials.
	// Saturated means that the responses fell behind the schedule in at least half of the trials.
	Late, Saturated bool
}

// Knee is the highest load whose 99th percentile is at most stat.KneeFactor times the lowest one of the curve.
type Knee struct {
	// Low is the load of the knee by the medians. High is its load by the intervals, which is never below Low.
	Low, High float64
	// Found is false if the curve does not show whether there is a knee. None means that there is no knee: times stay near
	// the lowest time up to the highest load.
	Found, None bool
}

// String describes the knee: "70%", "50% to 70%", "above 95%", or number.Absent.
func (k Knee) String() string {
	switch {
	case !k.Found:
		return number.Absent
	case k.None:
		return "above " + plan.FormatShare(k.High)
	case k.Low == k.High:
		return plan.FormatShare(k.Low)
	}
	return plan.FormatShare(k.Low) + " to " + plan.FormatShare(k.High)
}

// loadNotes explain how to read the curves.
var loadNotes = []string{
	"Requests follow a schedule at a share of the capacity measured on the same path and profile; times count from the scheduled start. The same load is a different rate for each profile.",
	fmt.Sprintf("The knee is the highest load whose 99th percentile is at most %d times the lowest of the curve: by medians, and as a range where the intervals give another load.", stat.KneeFactor),
}

// loadPage returns the curves of times over load.
func loadPage(b *builder) page {
	all := b.loadCurves()
	s := Section{Heading: "Latency against load", ID: "load", Notes: loadNotes, Drawn: true, Asked: true, Figures: loadFigures(all, b.series())}
	for _, c := range all {
		s.Grids = append(s.Grids, c.Grids...)
	}
	return page{sections: []Section{s}, subjects: []Subject{{"load_curves", loadData(all)}}}
}

// loadCurves returns the load curves of the result, by workload and path.
func (b *builder) loadCurves() []LoadCurve {
	var out []LoadCurve
	var seen []plan.Workload
	for _, w := range b.analysis.Workloads {
		base := w.Paced(0, 0)
		if w.Traits().Load == 0 || slices.Contains(seen, base) {
			continue
		}
		seen = append(seen, base)
		steps := loadSteps(b.analysis.Workloads, base)
		for _, path := range b.analysis.Paths {
			c := LoadCurve{Workload: base, Path: path}
			for _, profile := range b.analysis.Profiles {
				if l := b.loadLine(profile, path, steps); len(l.Points) > 1 {
					c.Lines = append(c.Lines, l)
				}
			}
			if len(c.Lines) > 0 {
				c.Grids = c.curveGrids(steps)
				out = append(out, c)
			}
		}
	}
	return out
}

// loadSteps returns the workloads that differ from base only in their load, by rising load.
func loadSteps(all []plan.Workload, base plan.Workload) []plan.Workload {
	steps := each.Where(all, func(w plan.Workload) bool { return w.Traits().Load > 0 && w.Paced(0, 0) == base })
	slices.SortFunc(steps, func(v, w plan.Workload) int { return cmp.Compare(v.Traits().Load, w.Traits().Load) })
	return steps
}

// loadLine returns the curve of one profile; it omits points without a time.
func (b *builder) loadLine(profile plan.Variant, path plan.Path, steps []plan.Workload) LoadLine {
	l := LoadLine{Profile: profile, Capacity: math.NaN()}
	var tails []stat.Summary
	for _, w := range steps {
		cell := func(name string) (compare.Cell, bool) {
			c, ok := b.analysis.Cell(compare.Key{Case: plan.Case{Profile: profile, Path: path, Workload: w}, Metric: name})
			return c, ok && c.N > 0
		}
		half, ok := cell(w.Traits().Times() + ".p50")
		if !ok {
			continue
		}
		p := LoadPoint{Load: w.Traits().Load, Half: half.Summary}
		if tail, ok := cell(w.Traits().Times() + ".p99"); ok {
			p.Tail = tail.Summary
			p.Late, p.Saturated = raisedOften(tail, outcome.LateSender), raisedOften(tail, outcome.Saturated)
			tails = append(tails, tail.Summary)
		}
		if c, ok := cell(metric.Capacity); ok {
			l.Capacity = c.Median
		}
		l.Points = append(l.Points, p)
	}
	// A point without a 99th percentile would shift the others.
	if low, high, ok := stat.Knee(tails); ok && len(tails) == len(l.Points) {
		l.Knee = Knee{Low: l.Points[low].Load, High: l.Points[high].Load, Found: true, None: low == len(tails)-1}
	}
	return l
}

// raisedOften reports whether at least half of a cell's trials have the warning id.
func raisedOften(c compare.Cell, id string) bool {
	return slices.ContainsFunc(c.Warnings, func(w stat.Warning) bool { return w.ID == id && 2*w.Trials >= c.N })
}

// doubtsText describes the loads at which something other than the path causes the times; "" if there are none.
func (l LoadLine) doubtsText() string {
	var late, saturated []string
	for _, p := range l.Points {
		if p.Late {
			late = append(late, plan.FormatShare(p.Load))
		}
		if p.Saturated {
			saturated = append(saturated, plan.FormatShare(p.Load))
		}
	}
	var said []string
	if len(late) > 0 {
		said = append(said, "at "+strings.Join(late, ", ")+" the busy CPU of the sender causes the tail: it says nothing about the path, nor does a knee there")
	}
	if len(saturated) > 0 {
		said = append(said, "at "+strings.Join(saturated, ", ")+" responses fell behind the schedule, and times grow with the window")
	}
	if said == nil {
		return ""
	}
	return number.Clean(l.Profile.String()) + ": " + strings.Join(said, "; ") + "."
}

// tableLoad is the load for the first table. The table shows the times at the measured load that is nearest to tableLoad.
const tableLoad = 0.5

// curveGrids returns three tables: a summary, then the median and the 99th percentile at each load.
func (c LoadCurve) curveGrids(steps []plan.Workload) []Grid {
	var rates, times []float64
	for _, l := range c.Lines {
		rates = append(rates, l.Capacity)
		for _, p := range l.Points {
			times = append(times, p.Half.Median)
		}
	}
	rate, time := number.Common("1/s", rates...), number.Common("ns", times...)
	distance := func(w plan.Workload) float64 { return math.Abs(w.Traits().Load - tableLoad) }
	middle := slices.MinFunc(steps, func(v, w plan.Workload) int { return cmp.Compare(distance(v), distance(w)) }).Traits().Load
	name := c.Workload.String() + ", " + c.Path.String()
	at := plan.FormatShare(middle)
	all := Grid{Label: "profile", Title: name, Columns: []string{
		"capacity, " + rate.Unit, "knee", "p50 at " + at + ", " + time.Unit, "p99 at " + at + ", " + time.Unit,
	}}
	halves := Grid{Label: "profile", Title: name + ": median of the times by load (" + time.Unit + ")"}
	tails := Grid{Label: "profile", Title: name + ": 99th percentile of the times by load (" + time.Unit + ")"}
	for _, w := range steps {
		halves.Columns = append(halves.Columns, plan.FormatShare(w.Traits().Load))
	}
	tails.Columns = halves.Columns
	for _, l := range c.Lines {
		label := number.Clean(l.Profile.String())
		var fifty, ninetynine []string
		for _, w := range steps {
			p := l.pointAt(w.Traits().Load)
			fifty = append(fifty, summaryText(p.Half, time))
			text := summaryText(p.Tail, time)
			if l.Knee.Found && !l.Knee.None && w.Traits().Load == l.Knee.Low {
				text += " knee"
			}
			ninetynine = append(ninetynine, text)
		}
		p := l.pointAt(middle)
		all.Add(label, rate.Format(l.Capacity), l.Knee.String(), summaryText(p.Half, time), summaryText(p.Tail, time))
		if d := l.doubtsText(); d != "" {
			all.Notes = append(all.Notes, d)
		}
		halves.Add(label, fifty...)
		tails.Add(label, ninetynine...)
	}
	return []Grid{all, halves, tails}
}

// pointAt returns the point of a load, or a point without values if the load was not measured.
func (l LoadLine) pointAt(load float64) LoadPoint {
	found, _ := each.First(l.Points, func(p LoadPoint) bool { return p.Load == load })
	return found
}

// summaryText formats a median with its spread; number.Absent without values.
func summaryText(s stat.Summary, scale number.Scale) string {
	if s.N == 0 {
		return number.Absent
	}
	return strings.TrimSpace(scale.Format(s.Median) + " " + spreadText(s))
}

// loadCurveData is a LoadLine as JSON. The samples are in the cells.
type loadCurveData struct {
	Profile  plan.Variant `json:"profile"`
	Path     plan.Path    `json:"path"`
	Workload string       `json:"workload"`
	Capacity float64      `json:"capacity"`
	// KneeLow and KneeHigh are loads. They are null if the curve does not show a knee, and if Flat is true: times then
	// stay low up to the highest load.
	KneeLow  float64         `json:"knee_low"`
	KneeHigh float64         `json:"knee_high"`
	Flat     bool            `json:"flat"`
	Points   []loadPointData `json:"points"`
}

type loadPointData struct {
	Load    float64 `json:"load"`
	P50     float64 `json:"p50"`
	P99     float64 `json:"p99"`
	P99Low  float64 `json:"p99_low"`
	P99High float64 `json:"p99_high"`
}

// loadData returns the JSON of the curves, one for each profile.
func loadData(curves []LoadCurve) []loadCurveData {
	var out []loadCurveData
	for _, c := range curves {
		for _, l := range c.Lines {
			out = append(out, dataOfLoad(c, l))
		}
	}
	return out
}

func dataOfLoad(c LoadCurve, l LoadLine) loadCurveData {
	nan := math.NaN()
	or := func(s stat.Summary, v float64) float64 {
		if s.N == 0 {
			return nan
		}
		return v
	}
	out := loadCurveData{
		Profile: l.Profile, Path: c.Path, Workload: c.Workload.String(), Capacity: l.Capacity, KneeLow: nan, KneeHigh: nan, Flat: l.Knee.None,
	}
	if l.Knee.Found && !l.Knee.None {
		out.KneeLow, out.KneeHigh = l.Knee.Low, l.Knee.High
	}
	for _, p := range l.Points {
		out.Points = append(out.Points, loadPointData{
			p.Load, or(p.Half, p.Half.Median), or(p.Tail, p.Tail.Median), or(p.Tail, p.Tail.Low), or(p.Tail, p.Tail.High),
		})
	}
	return out
}

// loadFigures returns plots of the times over load, one per workload and path. The plots of a workload share one scale.
func loadFigures(curves []LoadCurve, s Series) []Figure {
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
		p := plot.Lines{
			Title: "latency against load, " + c.Workload.String() + ", " + c.Path.String(), Low: low, High: high,
			Unit:  "99th percentile, and the median as the fainter line, " + scale.Unit + ", log scale",
			XName: "load, as a share of the capacity of each; the ring is the knee",
		}
		n := Numbers{Columns: []string{"load", "p50 (" + scale.Unit + ")", "p99 (" + scale.Unit + ")", "interval of p99", "doubt"}}
		var said []string
		most := 10.0
		for _, l := range c.Lines {
			p.Lines = append(p.Lines, loadPlotLine(l, s, scale))
			most = max(most, 100*l.Points[len(l.Points)-1].Load)
			n.Rows = append(n.Rows, loadNumbers(l, s, scale)...)
			said = append(said, fmt.Sprintf("%s knee %s", number.Clean(l.Profile.String()), l.Knee))
		}
		p.Ticks, p.XHigh = plot.PercentTicks(most)
		p.Desc = "Times over load: " + strings.Join(said, "; ") + "."
		out = append(out, Figure{Kind: "load", Heading: c.Path.String(), Path: c.Path, Workload: c.Workload, Drawing: p.Draw(), Numbers: n})
	}
	return out
}

// loadPlotLine returns the line of the 99th percentile, with the median as the faint line.
func loadPlotLine(l LoadLine, s Series, scale number.Scale) plot.Line {
	out := plot.Line{Name: number.Clean(l.Profile.String()), Series: s[l.Profile]}
	or := func(x stat.Summary, v float64) float64 {
		if x.N == 0 {
			return math.NaN()
		}
		return v / scale.Size
	}
	for _, p := range l.Points {
		out.Points = append(out.Points, plot.LinePoint{
			X: 100 * p.Load, Value: or(p.Tail, p.Tail.Median), Low: or(p.Tail, p.Tail.Low), High: or(p.Tail, p.Tail.High),
			Ring: l.Knee.Found && !l.Knee.None && p.Load == l.Knee.Low,
		})
		out.Faint = append(out.Faint, plot.LinePoint{X: 100 * p.Load, Value: or(p.Half, p.Half.Median)})
	}
	return out
}

// loadNumbers returns a row for each load of a profile.
func loadNumbers(l LoadLine, s Series, scale number.Scale) []NumbersRow {
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
		rows = append(rows, NumbersRow{Series: s[l.Profile], Name: number.Clean(l.Profile.String()), Cells: cells})
	}
	return rows
}
