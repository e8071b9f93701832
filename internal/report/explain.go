package report

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/judge/explain"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/advice"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/metric"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// explainSchema names the version of the JSON of an explanation.
const explainSchema = "cnibench.explain/v1"

// Explanation attributes the difference between two profiles, or between two paths of one profile, to parts of the CPU
// time.
type Explanation struct {
	A, B        plan.Variant
	Differences []explain.Difference
	// Without has the reason for each case that cannot be explained.
	Without []string
}

// unexplainedMost is the share of unexplained CPU time above which a note states the share.
const unexplainedMost = 0.05

// Explain attributes the differences from profile a to profile b, for each path and workload that both have among
// sides. It fails if a profile has no sampled trial.
func Explain(an *compare.Analysis, sides []explain.Side, a, b plan.Variant) (Explanation, error) {
	x := Explanation{A: a, B: b}
	profiles := each.Of(sides, func(s explain.Side) plan.Variant { return s.Profile })
	for _, name := range []plan.Variant{a, b} {
		if !slices.Contains(profiles, name) {
			return x, advice.With(fmt.Errorf("the result has no sampled trial of %q", name),
				"sampled are: "+cmp.Or(strings.Join(slices.Compact(slices.Sorted(slices.Values(plan.Texts(profiles)))), ", "), "none")+"; cnibench run --explain samples")
		}
	}
	for _, s := range sides {
		if s.Profile != a {
			continue
		}
		i := slices.IndexFunc(sides, func(t explain.Side) bool {
			return t.Profile == b && t.Path == s.Path && t.Workload == s.Workload
		})
		if i < 0 {
			continue
		}
		d, ok := explain.Between(an, s, sides[i])
		if !ok {
			x.Without = append(x.Without, unexplainedReason(s), unexplainedReason(sides[i]))
			continue
		}
		x.Differences = append(x.Differences, d)
	}
	x.Without = slices.DeleteFunc(x.Without, func(why string) bool { return why == "" })
	return x, nil
}

// ExplainPaths attributes the difference between two paths of a result with one profile and one workload. A path
// without a sampled trial is named in Without.
func ExplainPaths(an *compare.Analysis, sides []explain.Side, from, to plan.Path) Explanation {
	x := Explanation{A: an.Profiles[0], B: an.Profiles[0]}
	of := func(p plan.Path) explain.Side {
		i := slices.IndexFunc(sides, func(s explain.Side) bool { return s.Path == p })
		if i < 0 {
			return explain.Side{Case: plan.Case{Profile: x.A, Path: p}, Failure: "it has no sampled trial"}
		}
		return sides[i].Called(p.String())
	}
	a, b := of(from), of(to)
	if d, ok := explain.Between(an, a, b); ok {
		x.Differences = append(x.Differences, d)
		return x
	}
	x.Without = slices.DeleteFunc([]string{unexplainedReason(a), unexplainedReason(b)}, func(why string) bool { return why == "" })
	return x
}

// unexplainedReason returns the reason why a side has no parts; "" if it has parts.
func unexplainedReason(s explain.Side) string {
	switch {
	case len(s.Parts) > 0:
		return ""
	case s.Failure != "":
		return s.Key() + ": " + s.Failure
	case s.Demand.Value == 0:
		return s.Key() + ": no service demand was measured"
	}
	return s.Key() + ": no sample lies in a window"
}

// BuildExplanation builds the report of an explanation.
func BuildExplanation(x Explanation, run Run) Document {
	title := fmt.Sprintf("Where the CPU time goes: from %s to %s", number.Clean(x.A.String()), number.Clean(x.B.String()))
	d := Document{Title: title, Result: Result{Run: run}, Data: explanationOf(x)}
	for _, diff := range x.Differences {
		d.Sides = append(d.Sides, diff.A, diff.B)
		s := differenceSection(diff)
		if len(x.Differences) == 1 {
			d.Lines, s.Notes = s.Notes, nil
		} else if len(s.Notes) > 0 {
			d.Lines = append(d.Lines, s.Heading+": "+s.Notes[0])
		}
		d.Sections = append(d.Sections, s)
	}
	d.Sections = slices.Concat(d.Sections, unexplainedSections(x), differencePictures(x.Differences), sidePictures(d.Sides, nil))
	return d
}

// unexplainedSections returns a section with the cases that cannot be explained; nil without any.
func unexplainedSections(x Explanation) []Section {
	if len(x.Without) == 0 {
		return nil
	}
	return []Section{{Heading: "Not explained", Items: each.Of(x.Without, func(why string) Item { return Item{Text: number.Clean(why)} })}}
}

// scaleOf returns one scale for the service demands of both sides of a difference.
func scaleOf(d explain.Difference) number.Scale {
	return number.Common(d.A.Unit, d.A.Demand.Value, d.B.Demand.Value)
}

// barWidth is the length of the longest change bar, in characters.
const barWidth = 20

// changeBar draws v as a row of + or - signs. A value of the size most has the longest bar, barWidth signs.
func changeBar(v, most float64) string {
	n := int(math.Round(barWidth * math.Abs(v) / most))
	if v < 0 {
		return strings.Repeat("-", n)
	}
	return strings.Repeat("+", n)
}

const withinNoise = "within the noise"

// differenceSection returns a section with the parts of a difference, its BPF programs and its processor counters.
func differenceSection(d explain.Difference) Section {
	scale := scaleOf(d)
	a, b := d.A.Name(), d.B.Name()
	s := Section{Heading: fmt.Sprintf("%s, %s", d.A.Workload, d.A.Path), Notes: d.Findings()}
	g := Grid{Title: "Parts of the service demand (" + scale.Unit + ")", Label: "part", Columns: []string{a, b, "change", "95 % interval", ""}}
	most := 0.0
	for _, c := range d.Changes {
		most = max(most, math.Abs(c.By.Value))
	}
	for _, c := range d.Changes {
		if !d.Named(c) {
			continue
		}
		mark := changeBar(c.By.Value, most)
		if c.Noise {
			mark = withinNoise
		}
		g.Add(number.Clean(c.Title), scale.Format(c.A), scale.Format(c.B), scale.Signed(c.By.Value), signedIntervalText(scale, c.By), mark)
	}
	if rest := d.Rest; rest.Parts > 0 {
		mark := withinNoise
		if !rest.Noise {
			mark = "each within the noise or small"
		}
		g.Add(number.Counted(rest.Parts, "other part"), scale.Format(rest.A), scale.Format(rest.B), scale.Signed(rest.By.Value), signedIntervalText(scale, rest.By), mark)
	}
	g.Add("sum", scale.Format(d.A.Demand.Value), scale.Format(d.B.Demand.Value), scale.Signed(d.Total.Value), signedIntervalText(scale, d.Total), "")
	sides := []explain.Side{d.A, d.B}
	addOtherTasksRow(&g, sides, scale, "", "", "")
	g.Notes = sampleNotes(sides)
	s.Grids = append([]Grid{g}, slices.Concat(programGrids(sides, scale), counterGrids(sides))...)
	return s
}

// othersLeast is the smallest share of the CPU time that counts as work of other tasks. Below it, a table has no row about
// other tasks, and a note does not name the task.
const othersLeast = 0.001

// addOtherTasksRow adds a row with the CPU time of tasks outside the path. It adds none if the time is too small for every
// side. The row has a cell for each side, then the cells in rest.
func addOtherTasksRow(g *Grid, sides []explain.Side, scale number.Scale, rest ...string) {
	if slices.ContainsFunc(sides, func(s explain.Side) bool { return s.OtherTime() > othersLeast*s.Demand.Value }) {
		g.Add("beside it, other tasks on these CPUs", append(each.Of(sides, func(s explain.Side) string { return scale.Format(s.OtherTime()) }), rest...)...)
	}
}

// otherTasksText describes up to three tasks outside the path that took most of its CPUs; "" if their shares are too small.
func otherTasksText(s explain.Side) string {
	most := each.Where(s.Others[:min(len(s.Others), 3)], func(o explain.Other) bool { return o.Share >= othersLeast })
	return strings.Join(each.Of(most, func(o explain.Other) string {
		return fmt.Sprintf("%s (%s)", number.Clean(o.Command), number.Percent(o.Share))
	}), ", ")
}

// counterGrids returns tables of the processor's counters. The sides have one path and one workload. It returns nil if the
// machine has no counters.
func counterGrids(sides []explain.Side) []Grid {
	work := sides[0].Workload.Traits().Work
	g := Grid{Title: "Processor counters for one " + work, Label: "counter", Columns: each.Of(sides, func(s explain.Side) string { return s.Name() })}
	for _, name := range metric.Counted {
		list := each.Of(sides, func(s explain.Side) float64 {
			if i, ok := s.Counters[name]; ok {
				return i.Value
			}
			return math.NaN()
		})
		if !slices.ContainsFunc(list, number.Finite) {
			continue
		}
		scale := number.Common("1", list...)
		g.Add(counterTitle(name, "", scale), each.Of(list, scale.Format)...)
	}
	if len(g.Labels) == 0 {
		return nil
	}
	return append([]Grid{g}, countedPartGrids(sides)...)
}

// countedPartGrids returns a grid for each counter that was sampled. The grid attributes the events of the counter to parts.
func countedPartGrids(sides []explain.Side) (grids []Grid) {
	for _, name := range metric.Counted {
		counted := func(s explain.Side) []explain.Valued { return s.Counted[name] }
		if !slices.ContainsFunc(sides, func(s explain.Side) bool { return len(counted(s)) > 0 }) {
			continue
		}
		sums := each.Of(sides, func(s explain.Side) float64 { return s.Counters[name].Value })
		p := parts{sides: sides, of: counted, sums: sums, scale: number.Common("1", sums...)}
		grids = append(grids, p.grid(counterTitle(name, " by part", p.scale)))
	}
	return grids
}

// counterTitle returns the title of a counter followed by the text in by. It adds the unit in brackets if the scale has one.
func counterTitle(name, by string, scale number.Scale) string {
	m, _ := metric.Lookup(name)
	title := strings.TrimSuffix(m.Title, " per unit of work") + by
	if scale.Unit != "1" {
		title += " (" + scale.Unit + ")"
	}
	return title
}

// programGrids returns a grid for each side that has BPF programs. The grid compares the CPU time of each program as counted
// by the kernel with the time by samples.
func programGrids(sides []explain.Side, scale number.Scale) []Grid {
	var grids []Grid
	for _, s := range sides {
		p := s.Programs
		if p == nil {
			continue
		}
		name := s.Name()
		g := Grid{Title: fmt.Sprintf("BPF programs of %s by the kernel's count, and by samples (%s)", name, scale.Unit), Label: "program",
			Columns: []string{"runs", "counted", "95 % interval", "sampled", "95 % interval"}}
		row := func(title string, x explain.Program) {
			if x.Runs == 0 {
				g.Add(title, number.Absent, number.Absent, "", scale.Format(x.Sampled.Value), intervalText(scale, x.Sampled))
				return
			}
			within := intervalText(scale, x.Counted)
			if p.Trials < 2 {
				within = number.Absent
			}
			g.Add(title, number.Number(x.Runs), scale.Format(x.Counted.Value), within, scale.Format(x.Sampled.Value), intervalText(scale, x.Sampled))
		}
		for _, x := range p.List {
			row(number.Clean(x.Name), x)
		}
		row("all", p.All)
		agree := "Both accounts agree within their errors"
		if !p.Agree {
			agree = "The two accounts differ beyond their errors"
		}
		if p.Trials < 2 {
			agree = "One trial has no interval"
		}
		if p.Trials > 0 {
			g.Notes = append(g.Notes, fmt.Sprintf("%s. Runs are for a unit of work, counted in %s; programs without runs are called by others.", agree, number.Counted(p.Trials, "trial")))
		}
		if p.Failed > 0 {
			g.Notes = append(g.Notes, fmt.Sprintf("%s without counts: %s.", number.Counted(p.Failed, "trial"), number.Clean(p.Failure)))
		}
		grids = append(grids, g)
	}
	return grids
}

func intervalText(scale number.Scale, i explain.Interval) string {
	return scale.Format(i.Low) + " to " + scale.Format(i.High)
}

func signedIntervalText(scale number.Scale, i explain.Interval) string {
	return scale.Signed(i.Low) + " to " + scale.Signed(i.High)
}

// sampleNotes returns a note on the number of samples and the cost of sampling, then notes on what is missing from each
// side.
func sampleNotes(sides []explain.Side) []string {
	var samples, trials, costs []float64
	var by []string
	var missing []string
	for _, s := range sides {
		missing = append(missing, missingNotes(s)...)
		if s.Trials == 0 {
			continue
		}
		samples, trials = append(samples, float64(s.Samples)), append(trials, float64(s.Trials))
		if s.Cost != nil {
			costs = append(costs, max(0, *s.Cost))
		}
		if event := fmt.Sprintf("%s at %d Hz", s.Event, s.Rate); !slices.Contains(by, event) {
			by = append(by, event)
		}
	}
	if len(samples) == 0 {
		return missing
	}
	whole := func(v float64) string { return fmt.Sprintf("%.0f", v) }
	each := ""
	if len(samples) > 1 {
		each = " of each profile"
		if sides[0].Profile == sides[1].Profile {
			each = " of each path"
		}
	}
	note := fmt.Sprintf("%s samples%s by %s, in %s trials", rangeText(samples, whole), each, strings.Join(by, " or "), rangeText(trials, whole))
	if len(costs) > 0 {
		note += fmt.Sprintf("; sampling takes %s of the CPU time", rangeText(costs, number.Percent))
	}
	return append([]string{note + "."}, missing...)
}

// rangeText formats the least and the largest of values: "3 to 5". If both have the same text, it returns this text once.
func rangeText(values []float64, format func(float64) string) string {
	low, high := format(slices.Min(values)), format(slices.Max(values))
	if low == high {
		return low
	}
	return low + " to " + high
}

// missingNotes returns notes on what is missing from a side, such as lost samples and functions without names.
func missingNotes(s explain.Side) []string {
	name := s.Name()
	var notes []string
	add := func(format string, args ...any) { notes = append(notes, name+": "+fmt.Sprintf(format, args...)+".") }
	if s.Lost > 0 {
		add("%d samples were lost", s.Lost)
	}
	if s.Cut > 0 {
		add("the stacks of %d samples were cut short: missing are their outermost functions (kernel.perf_event_max_stack)", s.Cut)
	}
	if s.Throttled > 0 {
		add("the kernel paused the sampling %d times", s.Throttled)
	}
	if idle := s.Idle(); idle > uint64(s.Samples) {
		who := "idle CPUs"
		if len(s.Others) == 0 {
			who += " and other tasks"
		}
		add("the path is mostly idle: %s of the samples are of %s, and the parts stand on the rest", number.Percent(float64(idle)/float64(idle+uint64(s.Samples))), who)
	}
	if names := otherTasksText(s); names != "" {
		add("other tasks on its CPUs are %s", names)
	}
	if s.Failed > 0 {
		add("%s without samples: %s", number.Counted(s.Failed, "sampled trial"), number.Clean(s.Failure))
	}
	for _, m := range s.Missing {
		add("missing are %s", number.Clean(m))
	}
	nameless := slices.ContainsFunc(s.Missing, func(m string) bool { return strings.HasPrefix(m, sample.NoSymbols) })
	if share := s.Part(explain.Unexplained.ID).Share; share > unexplainedMost && !nameless {
		add("%s is not explained: this kernel has functions that the table of parts does not know", number.Percent(share))
	}
	return notes
}

// explanationData is the JSON of an explanation.
type explanationData struct {
	Schema      string                `json:"schema"`
	A           plan.Variant          `json:"a"`
	B           plan.Variant          `json:"b"`
	Differences []explainedDifference `json:"differences"`
	Without     []string              `json:"without,omitempty"`
}

// Lined returns x.
func (x explanationData) Lined() any { return x }

// explainedDifference is a difference as JSON.
type explainedDifference struct {
	Path     plan.Path        `json:"path"`
	Workload string           `json:"workload"`
	Unit     string           `json:"unit"`
	Total    explain.Interval `json:"total"`
	Nothing  bool             `json:"nothing_to_explain"`
	Findings []string         `json:"findings"`
	// Prediction is set if a removal was requested.
	Prediction *explain.Prediction `json:"prediction,omitempty"`
	Changes    []explain.Change    `json:"changes"`
	Families   []explain.Change    `json:"families"`
	Sides      []explainedProfile  `json:"sides"`
}

// explainedProfile is a side as JSON.
type explainedProfile struct {
	Profile  plan.Variant `json:"profile"`
	Path     plan.Path    `json:"path"`
	Workload string       `json:"workload"`
	explain.Side
}

// explainedProfileOf returns the JSON of a side.
func explainedProfileOf(s explain.Side) explainedProfile {
	return explainedProfile{s.Profile, s.Path, s.Workload.String(), s}
}

func explanationOf(x Explanation) explanationData {
	return explanationData{explainSchema, x.A, x.B, each.Of(x.Differences, func(d explain.Difference) explainedDifference {
		return explainedDifference{
			d.A.Path, d.A.Workload.String(), d.A.Unit, d.Total, d.Nothing, d.Findings(), d.Prediction, d.Changes, d.Families,
			[]explainedProfile{explainedProfileOf(d.A), explainedProfileOf(d.B)},
		}
	}), x.Without}
}

// partsShown is the number of parts that a table of profiles shows; the others are summed.
const partsShown = 18

// sidesByCase groups sides by path and workload.
func sidesByCase(sides []explain.Side) [][]explain.Side {
	return Grouped(sides, func(s explain.Side) plan.Case { return plan.Case{Path: s.Path, Workload: s.Workload} })
}

// explainedPage returns the tables and figures of parts for each path and workload.
func explainedPage(b *builder) page {
	p := page{subjects: []Subject{{"explained", []explainedProfile(nil)}}}
	if len(b.sides) == 0 {
		return p
	}
	p.subjects[0].Value = each.Of(b.sides, explainedProfileOf)
	s := Section{Heading: "Where the CPU time goes", Asked: true, Notes: []string{
		"Service demand of the trials without samples, split by the stacks of sampled trials. A part is the innermost function that the table of parts knows. Columns add up.",
	}}
	for _, of := range sidesByCase(b.sides) {
		g, scale := partsGrid(of)
		s.Grids = append(s.Grids, g)
		for _, g := range slices.Concat(programGrids(of, scale), counterGrids(of)) {
			g.Title = fmt.Sprintf("%s, %s: %s", of[0].Workload, of[0].Path, g.Title)
			s.Grids = append(s.Grids, g)
		}
	}
	s.Folded = len(s.Grids) > 3
	p.sections = append([]Section{s}, sidePictures(b.sides, b.series())...)
	return p
}

// parts has the data for a table with a row for each part and a column for each side. of returns the values of a side's
// parts. sums has the total of each side.
type parts struct {
	sides []explain.Side
	of    func(explain.Side) []explain.Valued
	sums  []float64
	scale number.Scale
}

// grid returns a table with the largest parts, the sum of the other parts, and the totals. Numbers have no
// digits beyond the median error of the parts.
func (p parts) grid(title string) Grid {
	g := Grid{Title: title, Label: "part", Columns: each.Of(p.sides, func(s explain.Side) string { return s.Name() })}
	order := explain.Common(p.sides, p.of)
	shown := order[:min(len(order), partsShown)]
	var errs []float64
	for _, s := range p.sides {
		for _, x := range p.of(s) {
			if slices.Contains(shown, x.Part) && x.High > x.Low {
				errs = append(errs, (x.High-x.Low)/2)
			}
		}
	}
	slices.Sort(errs)
	format := p.scale.Format
	if len(errs) > 0 {
		middle := errs[len(errs)/2]
		format = p.scale.Within(middle)
		unit := " " + p.scale.Unit
		if unit == " 1" {
			unit = ""
		}
		g.Notes = append(g.Notes, fmt.Sprintf("Half of the parts are known to %s%s or better, the least known to %s (95 %% confidence).",
			p.scale.Format(middle), unit, p.scale.Format(errs[len(errs)-1])))
	}
	row := func(title string, of ...explain.Part) {
		var cells []string
		for _, s := range p.sides {
			all, sum := p.of(s), 0.0
			for _, x := range all {
				if slices.Contains(of, x.Part) {
					sum += x.Value
				}
			}
			if len(all) == 0 {
				sum = math.NaN()
			}
			cells = append(cells, format(sum))
		}
		g.Add(title, cells...)
	}
	for _, x := range shown {
		row(number.Clean(x.Title), x)
	}
	if rest := order[len(shown):]; len(rest) > 0 {
		row(number.Counted(len(rest), "smaller part"), rest...)
	}
	g.Add("sum", each.Of(p.sums, func(v float64) string {
		if v == 0 {
			return number.Absent
		}
		return format(v)
	})...)
	return g
}

// partsGrid returns the table of parts of the sides, which have one path and workload, and the scale of its values.
func partsGrid(sides []explain.Side) (Grid, number.Scale) {
	sums := each.Of(sides, func(s explain.Side) float64 { return s.Demand.Value })
	p := parts{sides: sides, of: explain.Side.Times, sums: sums, scale: number.Common(sides[0].Unit, sums...)}
	g := p.grid(fmt.Sprintf("%s, %s: parts (%s)", sides[0].Workload, sides[0].Path, p.scale.Unit))
	why := slices.DeleteFunc(each.Of(sides, unexplainedReason), func(why string) bool { return why == "" })
	addOtherTasksRow(&g, sides, p.scale)
	g.Notes = slices.Concat(each.Of(why, func(w string) string { return number.Clean(w) + "." }), g.Notes, sampleNotes(sides))
	return g, p.scale
}

// ErrNoStacks is the error for writing the stacks of a result that has none.
var ErrNoStacks = advice.With(errors.New("the result has no stacks"), "cnibench run --explain samples them")
