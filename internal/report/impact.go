package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/judge/impact"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// exampleShares are the shares of network time that a table assumes if the reader gives none.
var exampleShares = []float64{0.1, 0.3, 0.5}

// impactHeading is the heading of the section about the reader's own job.
const impactHeading = "What it means for the job"

// impactSections returns a section that estimates the time and the CPU time of works on each profile; nil without works. It
// fails for work that the result does not cover.
func (b *builder) impactSections(works []impact.Work) ([]Section, error) {
	if len(works) == 0 {
		return nil, nil
	}
	path, ok := b.mainPath()
	if !ok {
		return []Section{{Heading: impactHeading, Asked: true, Notes: []string{"No trial finished with a number to estimate from."}}}, nil
	}
	all, err := impact.Assess(b.analysis, path, works)
	if err != nil {
		return nil, err
	}
	base := number.Clean(b.analysis.Baseline.String())
	out := Section{Heading: impactHeading, Asked: true, Notes: []string{fmt.Sprintf(
		"Times are for this work alone, at the rate measured on %s. CPU time is that of both ends and of the kernel between them. Ratios and changes are against %s, and only where the verdict is better or worse.", path, base)}}
	if b.inLab() {
		out.Notes = append(out.Notes, "In the lab one machine does the work of all nodes, so its seconds differ from those of a cluster. Ratios carry over better; ratios of CPU time carry over best.")
	}
	if b.analysis.Baseline == plan.VariantOf(profile.Raw) {
		out.Notes = append(out.Notes, fmt.Sprintf("No job runs on %s: name the profile of your job with --baseline.", base))
	}
	for _, e := range all {
		out.Grids = append(out.Grids, impactGrid(e, base))
	}
	for _, f := range impact.Forecasts(b.analysis, path) {
		out.Grids = append(out.Grids, forecastGrid(f))
	}
	return []Section{out}, nil
}

// impactGrid returns the table of one estimate: for each profile the time, the CPU time, and the change of the whole
// job.
func impactGrid(e impact.Estimate, base string) Grid {
	title := fmt.Sprintf("%s of %s", e.Kind, e.Text)
	if e.Kind == impact.Requests || e.Kind == impact.Connections {
		title = e.Text + " " + string(e.Kind)
	}
	g := Grid{Label: "profile", Title: fmt.Sprintf("%s (%s %s)", title, e.Workload, e.Path)}
	var times, costs []float64
	for _, r := range e.Rows {
		times, costs = append(times, r.Time.Value), append(costs, r.CPU.Value)
	}
	time, cpu := number.Common("ns", times...), number.Common("ns", costs...)
	g.Columns = []string{"time, " + time.Unit, "to " + base, "CPU time, " + cpu.Unit, "to " + base}
	shares := exampleShares
	if e.Share > 0 {
		shares = []float64{e.Share}
	}
	for _, s := range shares {
		g.Columns = append(g.Columns, fmt.Sprintf("job, %s network", shareText(s)))
	}
	var open []compare.Comparison
	for _, r := range e.Rows {
		g.Labels = append(g.Labels, number.Clean(r.Profile.String()))
		row := []string{quantityText(r.Time, time), changeText(r.TimeChange), quantityText(r.CPU, cpu), changeText(r.CPUChange)}
		for _, s := range shares {
			row = append(row, jobText(r.TimeChange, s))
		}
		if r.Profile == e.Baseline {
			row = []string{row[0], "baseline", row[2], "baseline"}
			row = append(row, slices.Repeat([]string{"baseline"}, len(shares))...)
		}
		g.Cells = append(g.Cells, row)
		for _, c := range []*impact.Change{r.TimeChange, r.CPUChange} {
			if c != nil {
				open = append(open, compare.Comparison{Verdict: c.Verdict, Need: c.Need})
			}
		}
	}
	if len(e.Rows) == 0 {
		g.Notes = append(g.Notes, "Not measured on this path.")
		return g
	}
	g.Notes = append(g.Notes, jobNote(e, base))
	if more := decidingNote(open); more != "" {
		g.Notes = append(g.Notes, "Inconclusive changes"+more+".")
	}
	return g
}

// forecastGrid returns a table that compares the calculated time of a job's step with the measured time.
func forecastGrid(f impact.Forecast) Grid {
	g := Grid{Label: "profile", Title: "A step of " + f.Workload.String()}
	var times []float64
	for _, r := range f.Rows {
		times = append(times, r.Said.Value, r.Took.Value)
	}
	scale := number.Common("ns", times...)
	g.Columns = []string{"calculated, " + scale.Unit, "measured, " + scale.Unit, "error"}
	for _, r := range f.Rows {
		g.Add(number.Clean(r.Profile.String()), quantityText(r.Said, scale), quantityText(r.Took, scale), signedText(r.Error()))
	}
	g.Notes = append(g.Notes, fmt.Sprintf("Calculated from the goodput of %s and from %s, which the busiest member sends or takes. Measured is the mean exchange, without compute.",
		f.From, number.WithUnit("B", float64(f.Bytes))))
	return g
}

// jobNote returns a note that says which share of network time the columns about the whole job assume.
func jobNote(e impact.Estimate, base string) string {
	if e.Share > 0 {
		return fmt.Sprintf("The whole job changes by this if %s of its time on %s is this work and the rest stays the same (Amdahl's law).", shareText(e.Share), base)
	}
	return fmt.Sprintf("The share of network time in your job is unknown: the columns show three shares of its time on %s (Amdahl's law). Measure yours and give it: %s=%s/share=30%%.", base, e.Kind, e.Text)
}

// quantityText formats a value with its interval, if it has one.
func quantityText(q impact.Quantity, scale number.Scale) string {
	if !q.Known() {
		return number.Absent
	}
	if math.IsNaN(q.Low) || math.IsNaN(q.High) {
		return scale.Format(q.Value)
	}
	return fmt.Sprintf("%s (%s to %s)", scale.Format(q.Value), scale.Format(q.Low), scale.Format(q.High))
}

// changeText formats a ratio to the baseline with its interval. If the difference is not significant, it returns "same"
// or "inconclusive". For nil it returns number.Absent.
func changeText(c *impact.Change) string {
	switch {
	case c == nil:
		return number.Absent
	case c.Verdict == compare.Same:
		return "same"
	case !c.Claimed():
		return string(compare.Inconclusive)
	}
	return number.Range(c.Value, c.Low, c.High)
}

// jobText formats the change of the whole job's time in percent. share is the part of that time which the work takes, from
// 0 to 1. If the difference is not significant, it returns the text of changeText.
func jobText(c *impact.Change, share float64) string {
	if !c.Claimed() {
		return changeText(c)
	}
	q := c.Job(share)
	return fmt.Sprintf("%s (%s to %s)", signedText(q.Value), signedText(q.Low), signedText(q.High))
}

// signedText formats a change in percent with its sign: "-21%", "+0.4%".
func signedText(v float64) string {
	s := number.Percent(math.Abs(v))
	switch {
	case v < 0:
		return "-" + s
	case v > 0:
		return "+" + s
	}
	return s
}

// shareText formats a share as a percentage: "30%", "12.5%".
func shareText(share float64) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.4f", 100*share), "0"), ".") + "%"
}
