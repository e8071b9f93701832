package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/report/plot"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/metric"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// Growth has the curves of one metric over a swept condition, a line for each profile.
type Growth struct {
	compare.GrowthFamily
	// Condition is the name of the flag that sets the condition.
	Condition string
	// Title names the metric, the workload and the path. For the cost of an instance's state it names only the metric.
	Title string
	// Sentences has one sentence for each of Lines, then one for each of Crossings.
	Sentences []string
	// Grid has the values of the curves.
	Grid Grid
	// first has the variant of each profile at the first point of the sweep.
	first map[plan.Variant]plan.Variant
}

// growthNotes explain how to read the curves.
var growthNotes = []string{
	"The kind of a curve is that of the law that predicts each point best from the others: constant, logarithmic or linear. Points count by their intervals.",
	"A change is claimed where its interval excludes zero and it is beyond the margin. Constant means that a change beyond the margin over the whole range is excluded (two one-sided tests).",
}

// conditionUnits has the word for one unit of each swept condition: "Service" for services.
var conditionUnits = map[string]string{
	"services": "Service", "endpoints": "endpoint of each Service", "policies": "policy that selects the pods",
	"policies-unselected": "policy that selects no pod", "pods-per-node": "pod of a node", "mtu": "byte of the MTU", "nodes": "node", "flows": "flow", "pod-mtu": "byte of the pods' MTU", "connections": "standing connection", "message": "byte of a message",
}

// conditionPlurals has the words for many units of a swept condition, where they differ from its name.
var conditionPlurals = map[string]string{
	"services": "Services", "endpoints": "endpoints", "policies": "policies", "policies-unselected": "policies that select no pod",
	"pods-per-node": "pods a node", "connections": "standing connections", "mtu": "bytes of MTU", "pod-mtu": "bytes of the pods' MTU", "message": "bytes of a message",
}

func conditionUnit(condition string) string {
	if word := conditionUnits[condition]; word != "" {
		return word
	}
	return condition
}

// growthTarget returns what the numbers of a family measure: "the CPU time of a new connection".
func growthTarget(f compare.GrowthFamily) string {
	if f.OfState() {
		return f.Metric.Title
	}
	what := "one " + string(f.Workload.Traits().Work) + " of " + f.Workload.String()
	switch is := f.Workload.Traits(); {
	case is.Protocol == plan.TCP && is.Reconnect:
		what = "a new connection"
	case is.Standing() && is.Protocol == plan.TCP:
		what = "a transaction of a standing connection"
	}
	if f.Metric.Name == metric.ServiceDemand {
		return "the CPU time of " + what
	}
	return "the " + f.Metric.Title + " of " + f.Workload.String()
}

// growthsOf returns the families with sentences and tables. p has the sweep. margin is the largest relative difference that
// does not matter.
func growthsOf(families []compare.GrowthFamily, p plan.Plan, margin float64) []Growth {
	sweep, first := p.Sweep, map[plan.Variant]plan.Variant{}
	for _, s := range p.Swept() {
		first[s.Of] = s.Variants[0]
	}
	return each.Of(families, func(f compare.GrowthFamily) Growth {
		g := Growth{GrowthFamily: f, Condition: sweep.Condition, first: first, Title: capitalized(f.Metric.Title)}
		if !f.OfState() {
			g.Title += ", " + f.Workload.String() + ", " + f.Path.String()
		}
		w := wording{f, sweep, margin}
		g.Sentences = append(each.Of(f.Lines, w.lineSentence), each.Of(f.Crossings, w.crossingSentence)...)
		g.Grid = w.growthGrid(g.Title)
		return g
	})
}

// wording writes the sentences and the table of a family.
type wording struct {
	compare.GrowthFamily
	sweep  plan.Sweep
	margin float64
}

// amountText formats a number of the family with its unit.
func (w wording) amountText(v float64) string {
	s := number.Common(w.baseUnit(), v)
	return s.Format(v) + " " + s.Unit
}

// baseUnit returns the unit without its unit of work: "ns" for "ns/packet". The sentences name the unit of work.
func (w wording) baseUnit() string {
	unit, _, _ := strings.Cut(w.Unit, "/")
	return unit
}

// boundsText formats an interval with its unit.
func (w wording) boundsText(low, high float64) string {
	s := number.Common(w.baseUnit(), low, high)
	return s.Format(low) + " to " + s.Format(high) + " " + s.Unit
}

// estimateText formats a number with its interval, all in one unit.
func (w wording) estimateText(v, low, high float64) string {
	s := number.Common(w.baseUnit(), v)
	return fmt.Sprintf("%s %s (%s to %s)", s.Format(v), s.Unit, s.Format(low), s.Format(high))
}

// lineSentence returns the sentence about one profile's curve.
func (w wording) lineSentence(l compare.GrowthLine) string {
	name, of := number.Clean(l.Profile.String()), growthTarget(w.GrowthFamily)
	last := countText(l.Points[len(l.Points)-1].X)
	each, slope, low, high := "each "+conditionUnit(w.sweep.Condition), l.Slope, l.Low, l.High
	if l.Doubling {
		each = "each doubling of " + w.sweep.Condition
	}
	verb, from := "adds", "to"
	if slope < 0 {
		verb, from, slope, low, high = "takes", "from", -slope, -high, -low
	}
	switch l.Shape {
	case stat.Linear, stat.Logarithmic:
		text := fmt.Sprintf("%s: %s %s %s %s %s, %s.", name, each, verb, w.estimateText(slope, low, high), from, of, l.Shape)
		if l.Misfit > w.margin {
			text += fmt.Sprintf(" Points differ from that law by up to %s.", number.Percent(l.Misfit))
		}
		return text
	case stat.Rising:
		why := "its points do not tell linear from logarithmic"
		if l.Unfit {
			why = "neither a line nor a logarithm fits its points"
		}
		return fmt.Sprintf("%s: %s changes by %s up to %s; %s.", name, of, w.estimateText(l.Change, l.ChangeLow, l.ChangeHigh), last, why)
	case stat.Constant:
		return fmt.Sprintf("%s: %s adds nothing to %s: constant within %s up to %s.", name, "a "+conditionUnit(w.sweep.Condition), of, number.Percent(w.margin), last)
	}
	first := l.Points[0].Median
	if l.Few {
		return fmt.Sprintf("%s: %s: %s at %s, %s at %s; fewer than %d instances cannot tell whether it grows: --repetitions %d.", name, of,
			w.amountText(first), countText(l.Points[0].X), w.amountText(l.Points[len(l.Points)-1].Median), last, stat.GrowsFrom, stat.GrowsFrom)
	}
	if math.IsNaN(l.Change) {
		return fmt.Sprintf("%s: %s: %s at %s, %s at %s; too few values for a curve.", name, of,
			w.amountText(first), countText(l.Points[0].X), w.amountText(l.Points[len(l.Points)-1].Median), last)
	}
	return fmt.Sprintf("%s: a change of %s beyond the margin is neither shown nor excluded up to %s: %s (%s to %s).", name, of, last, w.boundsText(l.ChangeLow, l.ChangeHigh),
		number.Percent(l.ChangeLow/first), number.Percent(l.ChangeHigh/first))
}

// crossingSentence returns the sentence about two profiles: which is cheaper, and at which values of the condition.
func (w wording) crossingSentence(c compare.Crossing) string {
	first, second, of := number.Clean(c.First.String()), number.Clean(c.Second.String()), growthTarget(w.GrowthFamily)
	if c.Relation == stat.Over || c.Relation == stat.Crosses && !c.Falls {
		first, second = second, first
	}
	things := w.sweep.Condition
	if word := conditionPlurals[things]; word != "" {
		things = word
	}
	where := fmt.Sprintf("at %s to %s %s", countText(c.From), countText(c.To), things)
	if c.Relation == stat.Crosses {
		where = fmt.Sprintf("from %s %s on (%s to %s)", countText(c.X), things, countText(c.Low), countText(c.High))
	}
	return fmt.Sprintf("%s is cheaper than %s %s: %s.", first, second, where, of)
}

// countText formats a count with commas: "30,000". From 1,000 it rounds to three significant digits.
func countText(v float64) string {
	n := int(math.Round(v))
	if n >= 1000 {
		step := int(math.Pow10(len(strconv.Itoa(n)) - 3))
		n = (n + step/2) / step * step
	}
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// growthScale returns a scale that fits the points of all profiles.
func growthScale(f compare.GrowthFamily) number.Scale {
	var values []float64
	for _, l := range f.Lines {
		for _, p := range l.Points {
			values = append(values, p.Median)
		}
	}
	return number.Common(f.Unit, values...)
}

// growthGrid returns a table with a row for each profile: the value at each point, then the kind and the slope of its curve.
func (w wording) growthGrid(title string) Grid {
	scale := growthScale(w.GrowthFamily)
	g := Grid{Title: title + " (" + scale.Unit + ")", Label: "profile",
		Columns: each.Of(w.sweep.Points, func(point int) string { return countText(float64(point)) })}
	g.Columns = append(g.Columns, "kind", "slope")
	for _, l := range w.Lines {
		var cells []string
		for _, point := range w.sweep.Points {
			text := number.Absent
			for _, p := range l.Points {
				if p.X == float64(point) {
					text = summaryText(p.Summary, scale)
				}
			}
			cells = append(cells, text)
		}
		g.Add(number.Clean(l.Profile.String()), append(cells, string(l.Shape), w.slopeText(l))...)
	}
	return g
}

// slopeText formats the slope of a line with its interval; number.Absent if the line has no slope.
func (w wording) slopeText(l compare.GrowthLine) string {
	per := conditionUnit(w.sweep.Condition)
	if l.Doubling {
		per = "doubling"
	}
	if !l.Grows() || l.Shape == stat.Rising {
		return number.Absent
	}
	s := number.Common(w.baseUnit(), l.Slope)
	return fmt.Sprintf("%s %s a %s, %s to %s", s.Format(l.Slope), s.Unit, per, s.Format(l.Low), s.Format(l.High))
}

// growthPage returns the curves over a swept condition. Sentences about CPU time, and about the time to load or change
// the state, go to the answer. Other sentences become notes of the tables.
func growthPage(b *builder) page {
	all := growthsOf(b.analysis.Growth(b.header.Plan, b.from.states), b.header.Plan, b.analysis.Margin)
	s := Section{Heading: "Growth", ID: "growth", Notes: growthNotes, Drawn: true, Figures: growthFigures(all, b.series())}
	var answer []string
	for _, g := range all {
		if slices.Contains([]string{metric.ServiceDemand, metric.ProgramTime, metric.StateChange}, g.Metric.Name) {
			answer = append(answer, g.Sentences...)
		} else {
			g.Grid.Notes = g.Sentences
		}
		s.Grids = append(s.Grids, g.Grid)
	}
	return page{sections: []Section{s}, answer: answer, subjects: []Subject{{"growth", growthData(all)}, {"crossings", crossingData(all)}}}
}

// Points returns the values of the condition at which any profile was measured, in ascending order.
func (g Growth) Points() []float64 {
	var xs []float64
	for _, l := range g.Lines {
		for _, p := range l.Points {
			xs = append(xs, p.X)
		}
	}
	slices.Sort(xs)
	return slices.Compact(xs)
}

// Variant returns the variant of a profile at the first point of the sweep.
func (g Growth) Variant(of plan.Variant) plan.Variant { return g.first[of] }

// growthCurve is a metric of one profile over a swept condition. Path and Workload are "" for the cost of an instance's
// state.
type growthCurve struct {
	Profile   plan.Variant `json:"profile"`
	Condition string       `json:"condition"`
	Path      string       `json:"path"`
	Workload  string       `json:"workload"`
	Metric    string       `json:"metric"`
	Unit      string       `json:"unit"`
	// Kind is constant, linear, logarithmic, rising or undecided.
	Kind string `json:"kind"`
	// Slope is the change for each unit of the condition. If Per is "doubling", it is the change for each doubling.
	Slope float64 `json:"slope"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
	Per   string  `json:"per"`
	// Change is the difference between the last point and the first, by the fitted law. Misfit is the largest distance of a
	// point from the law, as a share of the point's value.
	Change     float64       `json:"change"`
	ChangeLow  float64       `json:"change_low"`
	ChangeHigh float64       `json:"change_high"`
	Misfit     float64       `json:"misfit"`
	Text       string        `json:"text"`
	Points     []growthPoint `json:"points"`
}

type growthPoint struct {
	At    float64 `json:"at"`
	N     int     `json:"n"`
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// curveCrossing is the relation between the curves of two profiles.
type curveCrossing struct {
	First     plan.Variant `json:"first"`
	Second    plan.Variant `json:"second"`
	Condition string       `json:"condition"`
	Path      string       `json:"path"`
	Workload  string       `json:"workload"`
	Metric    string       `json:"metric"`
	// Relation is the relation of the first curve to the second: under, over or crosses. At is where they cross, with the
	// interval Low to High; these are null if they do not cross. Falls means that the first is lower after the crossing.
	Relation string  `json:"relation"`
	At       float64 `json:"at"`
	Low      float64 `json:"low"`
	High     float64 `json:"high"`
	Falls    bool    `json:"falls"`
	Text     string  `json:"text"`
}

// pathAndWorkload returns the path and the workload of curves; "" for the cost of an instance's state.
func pathAndWorkload(g Growth) (path, workload string) {
	if g.OfState() {
		return "", ""
	}
	return g.Path.String(), g.Workload.String()
}

func growthData(all []Growth) []growthCurve {
	var out []growthCurve
	for _, g := range all {
		path, workload := pathAndWorkload(g)
		for i, l := range g.Lines {
			c := growthCurve{
				Profile: l.Profile, Condition: g.Condition, Path: path, Workload: workload, Metric: g.Metric.Name, Unit: g.Unit,
				Kind: string(l.Shape), Slope: l.Slope, Low: l.Low, High: l.High, Per: "one", Change: l.Change, ChangeLow: l.ChangeLow,
				ChangeHigh: l.ChangeHigh, Misfit: l.Misfit, Text: g.Sentences[i],
			}
			if l.Doubling {
				c.Per = "doubling"
			}
			for _, p := range l.Points {
				c.Points = append(c.Points, growthPoint{p.X, p.N, p.Median, p.Low, p.High})
			}
			out = append(out, c)
		}
	}
	return out
}

func crossingData(all []Growth) []curveCrossing {
	var out []curveCrossing
	for _, g := range all {
		path, workload := pathAndWorkload(g)
		for i, c := range g.Crossings {
			x := curveCrossing{
				First: c.First, Second: c.Second, Condition: g.Condition, Path: path, Workload: workload, Metric: g.Metric.Name,
				Relation: string(c.Relation), At: c.X, Low: c.Low, High: c.High, Falls: c.Falls, Text: g.Sentences[len(g.Lines)+i],
			}
			if c.Relation != stat.Crosses {
				x.At, x.Low, x.High = math.NaN(), math.NaN(), math.NaN()
			}
			out = append(out, x)
		}
	}
	return out
}

// growthFigures returns the curves over a swept condition, one plot for each metric, workload and path.
func growthFigures(all []Growth, s Series) []Figure {
	var out []Figure
	for _, g := range all {
		scale := growthScale(g.GrowthFamily)
		p := plot.Lines{
			Title: "growth of " + g.Title, Desc: strings.Join(g.Sentences, " "),
			Unit: g.Metric.Title + ", " + scale.Unit + ", log scale", XName: g.Condition + ", log scale; faint: the fitted law",
			XHigh: math.Log1p(1), Low: math.Inf(1),
		}
		n := Numbers{Columns: []string{g.Condition, g.Metric.Title + " (" + scale.Unit + ")", "interval"}}
		for i, l := range g.Lines {
			// The colour belongs to the plan's profile, so a profile has the same one in every plot.
			series := s[g.Variant(l.Profile)]
			if series == 0 {
				series = i + 1
			}
			line := plot.Line{Name: number.Clean(l.Profile.String()), Series: series, Fitted: true}
			for _, q := range l.Points {
				at := plot.LinePoint{X: math.Log1p(q.X), Value: q.Median / scale.Size, Low: q.Low / scale.Size, High: q.High / scale.Size}
				line.Points, p.XHigh = append(line.Points, at), max(p.XHigh, at.X)
				if q.Low > 0 {
					p.Low, p.High = min(p.Low, at.Low), max(p.High, at.High)
				}
				n.Rows = append(n.Rows, NumbersRow{Series: series, Name: line.Name, Cells: []string{
					number.Number(q.X), scale.Format(q.Median), scale.Format(q.Low) + " to " + scale.Format(q.High),
				}})
			}
			line.Faint = lawPoints(l.At, l.Points[0].X, l.Points[len(l.Points)-1].X, scale.Size)
			p.Lines = append(p.Lines, line)
		}
		for _, x := range g.Points() {
			p.Ticks = append(p.Ticks, plot.Tick{At: math.Log1p(x), Text: shortCount(x)})
		}
		out = append(out, Figure{
			Kind: "growth", Heading: g.Title, Metric: g.Metric.Name, Path: g.Path, Workload: g.Workload, Drawing: p.Draw(), Numbers: n,
		})
	}
	return out
}

// lawPoints returns points of a fitted curve between two values of the condition, for a plot. size is the size of the
// plot's unit.
func lawPoints(at func(float64) float64, from, to, size float64) []plot.LinePoint {
	const steps = 60
	var points []plot.LinePoint
	low, high := math.Log1p(from), math.Log1p(to)
	for i := range steps + 1 {
		x := math.Expm1(low + (high-low)*float64(i)/steps)
		points = append(points, plot.LinePoint{X: math.Log1p(x), Value: at(x) / size})
	}
	return points
}

// shortCount formats a number briefly: "10K" for 10,000.
func shortCount(x float64) string {
	if x >= 1000 && math.Mod(x, 1000) == 0 {
		return strconv.FormatFloat(x/1000, 'f', -1, 64) + "K"
	}
	return number.Number(x)
}
