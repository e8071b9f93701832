package report

import (
	"fmt"
	"maps"
	"math"
	"math/bits"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/report/plot"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// maxCurves is the largest number of cases with a distribution. It bounds the memory for a file of any size. A case takes at
// most 4,000 buckets while it is collected.
const maxCurves = 2000

// distributionPage returns the section with the percentile curves.
func distributionPage(b *builder) page {
	return page{sections: []Section{{ID: "distributions", Heading: "Distributions", Folded: true, Notes: []string{
		"Percentile curves: how long the share of all exchanges took at most. Each further nine is as wide as the one before, and time is on a log axis, so the tail is as plain as the middle. The trials of a cell are pooled here; those of the tables are of each trial by itself.",
	}, Figures: distributionFigures(b.from.curves.collectedCurves(), b.analysis.Workloads, b.series())}}}
}

// Curve is the distribution of the round-trip times of all finished trials of a case, pooled.
type Curve struct {
	plan.Case
	Count int64
	// Points are in ascending order of Q. The last is the largest value.
	Points []Percentile
}

// Percentile states that the share Q of all values, in [0,1), took at most Ns nanoseconds. Ns has an error of up to
// 0.4 %.
type Percentile struct{ Q, Ns float64 }

// Known reports whether at least ten values are beyond the share q, as the percentile metrics require.
func (c Curve) Known(q float64) bool { return float64(c.Count)*(1-q) >= 9.999999 }

// At returns the time in ns within which the share q of all values lies; NaN if too few values are beyond q.
func (c Curve) At(q float64) float64 {
	if !c.Known(q) {
		return math.NaN()
	}
	for _, p := range c.Points {
		if p.Q >= q-1e-9 {
			return p.Ns
		}
	}
	return math.NaN()
}

// curveCollector collects distributions record by record. The zero value is ready for use.
type curveCollector struct {
	cases map[plan.Case]*pool
	order []*pool
	// omitted counts the trials whose case was left out, because there were already maxCurves cases.
	omitted int
}

// pool is the distribution of one case, from all its trials so far.
type pool struct {
	plan.Case
	histogram
}

// add adds a record with its observations. Failed trials, twins and records without observations add nothing.
func (g *curveCollector) add(rec *result.Record) {
	if rec.Type != result.TypeTrial || rec.Status != result.OK || rec.Profile.IsTwin() ||
		rec.Client == nil || rec.Client.RTT == nil || rec.Client.RTT.Count() == 0 {
		return
	}
	c := rec.Case
	c.Workload = c.Workload.Normalize()
	p := g.cases[c]
	if p == nil {
		if len(g.order) >= maxCurves {
			g.omitted++
			return
		}
		p = &pool{Case: c}
		if g.cases == nil {
			g.cases = map[plan.Case]*pool{}
		}
		g.cases[c] = p
		g.order = append(g.order, p)
	}
	rec.Client.RTT.Each(p.histogram.add)
}

// collectedCurves returns the collected distributions, in the order of first appearance.
func (g *curveCollector) collectedCurves() []Curve {
	return each.Of(g.order, func(p *pool) Curve { return Curve{Case: p.Case, Count: p.n, Points: p.percentileCurve()} })
}

// histogram counts times in buckets, 128 for each power of two. The key is the middle of a bucket in ns.
type histogram struct {
	counts map[int64]int64
	n      int64
}

func (t *histogram) add(ns, count int64) {
	if ns < 1 || count < 1 || count > math.MaxInt64-t.n {
		return
	}
	if t.counts == nil {
		t.counts = map[int64]int64{}
	}
	width := int64(1) << max(0, bits.Len64(uint64(ns))-8)
	t.counts[ns&-width+(width-1)/2] += count
	t.n += count
}

// percentileCurve returns percentiles in ascending order: 0 %, 50 %, 95 %, and eight steps for each further nine up to
// 99.99 %. It omits percentiles beyond which there is no value. The last point is the largest value. It returns nil if
// there are no values.
func (t *histogram) percentileCurve() []Percentile {
	const perNine, nines = 8, 4
	var qs []float64
	for j := range perNine*nines + 1 {
		if q := 1 - math.Pow(10, -float64(j)/perNine); float64(t.n)*(1-q) >= 0.999999 {
			qs = append(qs, q)
		}
	}
	for _, q := range []float64{0.5, 0.95} { // percentiles of tables that are not among the steps
		if float64(t.n)*(1-q) >= 1 {
			qs = append(qs, q)
		}
	}
	slices.Sort(qs)
	var out []Percentile
	var seen, longest int64
	for _, longest = range slices.Sorted(maps.Keys(t.counts)) {
		seen += t.counts[longest]
		for len(qs) > 0 && float64(seen) >= math.Max(1, qs[0]*float64(t.n)-1e-6) {
			out = append(out, Percentile{qs[0], float64(longest)})
			qs = qs[1:]
		}
	}
	if t.n == 0 {
		return nil
	}
	return append(out, Percentile{1 - 1/float64(t.n), float64(longest)})
}

// tableShares are the shares in the table below percentile curves.
var tableShares = []struct {
	q    float64
	text string
}{{0.5, "50%"}, {0.9, "90%"}, {0.99, "99%"}, {0.999, "99.9%"}, {0.9999, "99.99%"}}

// distributionFigures returns plots of the percentile curves, one per workload and path. The plots of a workload share one
// scale.
func distributionFigures(all []Curve, workloads []plan.Workload, s Series) []Figure {
	scales := map[plan.Workload][]float64{}
	for _, c := range all {
		for _, p := range c.Points {
			if len(scales[c.Workload]) > 0 && !c.Known(p.Q) {
				break
			}
			scales[c.Workload] = append(scales[c.Workload], p.Ns)
		}
	}
	var out []Figure
	order := func(c Curve) []int {
		return []int{slices.Index(workloads, c.Workload), slices.Index(plan.Paths, c.Path), s[c.Profile]}
	}
	together := func(c Curve) plan.Case { return plan.Case{Path: c.Path, Workload: c.Workload} }
	all = each.Where(all, func(c Curve) bool { return len(c.Points) > 0 }) // a file of others may have times of 0 alone
	slices.SortStableFunc(all, func(x, y Curve) int { return slices.Compare(order(x), order(y)) })
	for _, lines := range Grouped(all, together) {
		at := lines[0].Case
		scale := number.Common("ns", scales[at.Workload]...)
		low, high := slices.Min(scales[at.Workload]), slices.Max(scales[at.Workload])
		p := plot.Lines{
			Title: "round-trip times, " + at.Workload.String() + ", " + at.Path.String(), Unit: "round-trip time, " + scale.Unit + ", log scale",
			XName: "share that took at most so long", Low: low / scale.Size, High: high / scale.Size,
		}
		most := 2.0
		n := Numbers{Columns: []string{"exchanges"}}
		for _, q := range tableShares {
			n.Columns = append(n.Columns, q.text+" ("+scale.Unit+")")
		}
		n.Columns = append(n.Columns, "longest ("+scale.Unit+")")
		var said []string
		for _, c := range lines {
			l := curveLine(c, s, scale)
			for _, q := range l.Points {
				most = max(most, q.X)
			}
			p.Lines = append(p.Lines, l)
			row := curveNumbers(c, s, scale)
			n.Rows = append(n.Rows, row)
			said = append(said, fmt.Sprintf("%s half within %s", row.Name, scale.Format(c.At(0.5))+" "+scale.Unit))
		}
		p.XHigh = min(most, 6)
		p.Ticks = plot.NineTicks(p.XHigh)
		p.Desc = "Percentile curves of the pooled trials: " + strings.Join(said, "; ") + "."
		out = append(out, Figure{Kind: "percentiles", Heading: at.Path.String(), Path: at.Path, Workload: at.Workload, Drawing: p.Draw(), Numbers: n})
	}
	return out
}

func curveLine(c Curve, s Series, scale number.Scale) plot.Line {
	l := plot.Line{Name: number.Clean(c.Profile.String()), Series: s[c.Profile]}
	for _, p := range c.Points {
		if !c.Known(p.Q) {
			break // a line up to single events would add nothing to the table
		}
		l.Points = append(l.Points, plot.LinePoint{X: plot.Nine(p.Q), Value: p.Ns / scale.Size})
	}
	return l
}

func curveNumbers(c Curve, s Series, scale number.Scale) NumbersRow {
	row := NumbersRow{Series: s[c.Profile], Name: number.Clean(c.Profile.String()), Cells: []string{fmt.Sprint(c.Count)}}
	for _, q := range tableShares {
		row.Cells = append(row.Cells, scale.Format(c.At(q.q)))
	}
	row.Cells = append(row.Cells, scale.Format(c.Points[len(c.Points)-1].Ns))
	return row
}
