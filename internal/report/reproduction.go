package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/judge/check"
	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/judge/findings"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/finding"
	"github.com/cnibench/cnibench/internal/vocab/metric"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// reproductionSchema names the JSON format of BuildReproduction.
const reproductionSchema = "cnibench.reproduction/v1"

// Reproduction is a publication and a result that repeats it.
type Reproduction struct {
	Source findings.Source
	// Exact is the plan of the publication. Plan is the plan of the result.
	Exact, Plan plan.Plan
	Figures     []findings.Figure
	Claims      []findings.Judged
	// Published and Result have what package check found in the publication and in the result.
	Published, Result check.Report
}

// notComparable is the word for the outcome NotTestable of a figure, which is a published number. The result has no value to
// compare with it.
const notComparable = "not comparable"

func figureOutcomeText(o findings.Outcome) string {
	if o == findings.NotTestable {
		return notComparable
	}
	return string(o)
}

// figureData is a published number with its counterpart, as JSON.
type figureData struct {
	compare.Key
	Unit      string       `json:"unit"`
	Published *float64     `json:"published"`
	Here      *float64     `json:"here"`
	Low       *float64     `json:"low"`
	High      *float64     `json:"high"`
	Against   plan.Variant `json:"against,omitempty"`
	// Claimed is the published ratio to the profile Against. Ratio is the same ratio in the result.
	Claimed   *float64 `json:"published_ratio"`
	Ratio     *float64 `json:"ratio"`
	RatioLow  *float64 `json:"ratio_low"`
	RatioHigh *float64 `json:"ratio_high"`
	Outcome   string   `json:"outcome"`
	Why       string   `json:"why"`
}

// finitePointer returns a pointer to v, or nil if v is not finite.
func finitePointer(v float64) *float64 {
	if !number.Finite(v) {
		return nil
	}
	return &v
}

// BuildReproduction builds the report that compares a publication with a result. It lists each published number and claim
// with the outcome.
func BuildReproduction(r Reproduction) Document {
	var data []figureData
	for _, f := range r.Figures {
		d := figureData{Key: f.Published.Key, Unit: f.Published.Unit, Against: f.Against, Claimed: finitePointer(f.Claimed), Outcome: figureOutcomeText(f.Outcome), Why: f.Why}
		if f.Published.N > 0 {
			d.Published = finitePointer(f.Published.Median)
		}
		if f.Here.N > 0 {
			d.Here, d.Low, d.High = finitePointer(f.Here.Median), finitePointer(f.Here.Low), finitePointer(f.Here.High)
		}
		if !math.IsNaN(f.Ratio.Ratio) {
			d.Ratio, d.RatioLow, d.RatioHigh = finitePointer(f.Ratio.Ratio), finitePointer(f.Ratio.Low), finitePointer(f.Ratio.High)
		}
		data = append(data, d)
	}
	claims := each.Of(r.Claims, dataOfClaim)
	outcomeOf := func(f findings.Figure) findings.Outcome { return f.Outcome }
	d := Document{
		Title: r.Source.Title,
		Answer: Answer{Lines: []string{
			fmt.Sprintf("%s: %s.", number.Counted(len(r.Figures), "figure"), countsText(each.Of(r.Figures, outcomeOf), findings.Outcomes, figureOutcomeText)),
			fmt.Sprintf("%s: %s.", number.Counted(len(r.Claims), "claim"), countsText(outcomesOf(r.Claims), findings.Outcomes, claimOutcomeText)),
		}},
		Sections: []Section{r.deviationSection()},
		Data: struct {
			Schema  string         `json:"schema"`
			Article string         `json:"article"`
			Figures []figureData   `json:"figures"`
			Claims  []claimData    `json:"claims"`
			Checks  []check.Report `json:"checks"`
		}{reproductionSchema, r.Source.ID, data, claims, []check.Report{r.Published, r.Result}},
	}
	claimed := claimSections([]findings.Source{{ID: r.Source.ID, Title: "Claims", Note: r.Source.Note}}, r.Claims)
	d.Sections = append(append(append(d.Sections, r.figureSection()), claimed...), r.checkSection())
	d.Summary = r.buildSummary(d.Lines)
	return d
}

// buildSummary returns the reproduction on one screen, beginning with answer. It counts the figures by metric, workload and
// outcome, and lists the contradicted figures, the claims by outcome, and what cannot be compared.
func (r Reproduction) buildSummary(answer []string) *Summary {
	g := Grid{Title: "Figures that compare, as ratios to the first profile of a path", Columns: []string{""}, Prose: true}
	compared := each.Where(r.Figures, func(f findings.Figure) bool { return f.Outcome != findings.NotTestable })
	for _, group := range Grouped(compared, func(f findings.Figure) compare.Key {
		return compare.Key{Case: plan.Case{Workload: f.Published.Workload}, Metric: f.Published.Metric}
	}) {
		what := group[0].Published.Metric + " " + group[0].Published.Workload.Without("tool", "window").String()
		g.Add(what, countsText(each.Of(group, func(f findings.Figure) findings.Outcome { return f.Outcome }), findings.Outcomes, figureOutcomeText))
	}
	s := &Summary{Lead: append(answer, r.otherProfileLines()...)}
	if len(g.Labels) > 0 {
		s.Grids = append(s.Grids, g)
	}
	var against []Item
	for _, f := range compared {
		if f.Outcome == findings.Contradicted {
			against = append(against, Item{Name: figureName(f), Text: fmt.Sprintf("%s %s: %s there, %s here", f.Published.Metric,
				f.Published.Workload.Without("tool", "window"), number.Ratio(f.Claimed), number.Ratio(f.Ratio.Ratio))})
		}
	}
	const most = 8
	if more := len(against) - most; more > 0 {
		against = append(against[:most], Item{Text: number.Counted(more, "more figure") + ": --all"})
	}
	if len(against) > 0 {
		s.Lists = append(s.Lists, Section{Heading: "Contradicted figures", Items: against})
	}
	var claims []Item
	for _, o := range findings.Outcomes {
		of := each.Where(r.Claims, func(j findings.Judged) bool { return j.Outcome == o })
		if len(of) > 0 {
			claims = append(claims, Item{Name: claimOutcomeText(o), Text: strings.Join(each.Of(of, func(j findings.Judged) string { return j.ID }), ", ")})
		}
	}
	s.Lists = append(s.Lists, Section{Heading: "Claims", Items: claims})
	if left := r.incomparableItems(); len(left) > 0 {
		s.Lists = append(s.Lists, Section{Heading: "Figures that do not compare", Items: left})
	}
	s.Next = []Item{
		{Name: "all, with reasons", Text: fmt.Sprintf("cnibench reproduce --all --result %s %s", r.Result.Name, r.Source.ID), Code: true},
		{Name: "what cannot be true", Text: "cnibench check " + r.Result.Name, Code: true},
	}
	return s
}

// otherProfileLines returns a line that names the profiles of the result and of the article. It returns nil if both have a
// profile in common, or if the plan of the result has none.
func (r Reproduction) otherProfileLines() []string {
	wanted, has := each.Of(r.Exact.Profiles, plan.Variant.Profile), each.Of(r.Plan.Profiles, plan.Variant.Profile)
	if len(has) == 0 || slices.ContainsFunc(has, func(p string) bool { return slices.Contains(wanted, p) }) {
		return nil
	}
	return []string{fmt.Sprintf("This run has %s; the article's figures are of %s.", joinNames(has), joinNames(wanted))}
}

// incomparableItems returns an item for each reason why figures cannot be compared, with the number of these figures.
func (r Reproduction) incomparableItems() []Item {
	reason := func(f findings.Figure) string {
		why, _, _ := strings.Cut(f.Why, ":")
		return why
	}
	all := each.Where(r.Figures, func(f findings.Figure) bool { return f.Outcome == findings.NotTestable })
	return each.Of(Grouped(all, reason), func(of []findings.Figure) Item {
		return Item{Name: number.Counted(len(of), "figure"), Text: reason(of[0])}
	})
}

// claimOutcomeText returns the word for the outcome of a claim.
func claimOutcomeText(o findings.Outcome) string { return string(o) }

// deviationSection returns a section that lists what differs from the publication. It has settings of the plan, and
// properties that a plan cannot express.
func (r Reproduction) deviationSection() Section {
	s := Section{Heading: "Not as in the article"}
	g := Grid{Label: "setting", Columns: []string{"article", "here"}, Prose: true}
	for _, key := range r.Exact.Differ(r.Plan) {
		for _, x := range plan.Settings() {
			if x.Key == key && key != "seed" {
				g.Add(key, x.Text(r.Exact), x.Text(r.Plan))
			}
		}
	}
	if len(g.Labels) > 0 {
		s.Grids = append(s.Grids, g)
	}
	reasons := r.Source.Differs
	if !r.Plan.OnCluster() {
		reasons = append(slices.Clip(reasons), r.Source.DiffersInLab...)
	}
	s.Items = each.Of(reasons, func(text string) Item { return Item{Text: text} })
	return s
}

// figureSection returns a section with a table for each metric and workload. Metrics that only describe trials, such as the
// window, share one further table.
func (r Reproduction) figureSection() Section {
	s := Section{Heading: "Figures", Notes: []string{
		"A ratio is to the first profile of the path, on both sides: absolute values belong to a machine. Intervals are of 95 %.",
	}}
	about := Grid{Title: "Window, load and counts of a trial: they describe it and are not comparable", Label: "path, profile",
		Columns: []string{"workload", "metric", "article", "here"}}
	for _, group := range Grouped(r.Figures, func(f findings.Figure) compare.Key {
		return compare.Key{Case: plan.Case{Workload: f.Published.Workload}, Metric: f.Published.Metric}
	}) {
		first := group[0].Published
		m, _ := metric.Lookup(first.Metric)
		var shown []float64
		for _, f := range group {
			for _, c := range []compare.Cell{f.Published, f.Here} {
				if c.N > 0 {
					shown = append(shown, c.Median)
				}
			}
		}
		scale := number.Common(first.Unit, shown...)
		if m.Better == metric.Neither {
			for _, f := range group {
				about.Add(figureName(f), first.Workload.String(), first.Metric, strings.TrimSuffix(summaryText(f.Published.Summary, scale)+" "+scale.Unit, " 1"), summaryText(f.Here.Summary, scale))
			}
			continue
		}
		s.Grids = append(s.Grids, figureGrid(group, scale))
	}
	if len(about.Labels) > 0 {
		s.Grids = append(s.Grids, about)
	}
	return s
}

// figureGrid returns a table of the figures of one metric and workload. Its notes are the reasons why figures cannot be
// compared.
func figureGrid(group []findings.Figure, scale number.Scale) Grid {
	first := group[0].Published
	g := Grid{Title: fmt.Sprintf("%s under %s, %s", first.Metric, first.Workload, scale.Unit), Label: "path, profile",
		Columns: []string{"article", "here", "ratio there", "ratio here", "state"}}
	var reasons []string
	for _, f := range group {
		claimed, ratio, verdict := number.Absent, number.Absent, figureOutcomeText(f.Outcome)
		if !math.IsNaN(f.Claimed) {
			claimed = number.Ratio(f.Claimed)
		}
		if e := f.Ratio; !math.IsNaN(e.Ratio) {
			ratio = number.Range(e.Ratio, e.Low, e.High)
		}
		if f.Outcome == findings.NotTestable {
			i := slices.Index(reasons, f.Why)
			if i < 0 {
				i = len(reasons)
				reasons = append(reasons, f.Why)
			}
			verdict += " " + Superscript(i+1)
		}
		g.Add(figureName(f), summaryText(f.Published.Summary, scale), summaryText(f.Here.Summary, scale), claimed, ratio, verdict)
	}
	for i, why := range reasons {
		g.Notes = append(g.Notes, Superscript(i+1)+" "+number.Clean(why))
	}
	return g
}

func figureName(f findings.Figure) string {
	return f.Published.Path.String() + " " + number.Clean(f.Published.Profile.String())
}

// checkSection returns a section that counts the findings of package check by rule, in the publication and in the result.
func (r Reproduction) checkSection() Section {
	g := Grid{Label: "rule", Columns: []string{"severity", "in the article", "here", "what it finds"}, Prose: true}
	count := func(in check.Report, id string) string {
		n := len(each.Where(in.Findings, func(f finding.Finding) bool { return f.ID == id }))
		if n == 0 {
			return number.Absent
		}
		return fmt.Sprint(n)
	}
	seen := map[string]bool{}
	for _, f := range slices.Concat(r.Published.Findings, r.Result.Findings) {
		if !seen[f.ID] {
			seen[f.ID] = true
			g.Add(f.ID, string(f.Severity), count(r.Published, f.ID), count(r.Result, f.ID), f.Title)
		}
	}
	return Section{Heading: "What check finds in both", Grids: []Grid{g}, Notes: []string{
		fmt.Sprintf("Each with its place and reason: cnibench check %s %s", r.Published.Name, r.Result.Name),
	}}
}
