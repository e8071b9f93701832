package report

import (
	"fmt"
	"slices"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// Gate is the outcome of a comparison for a pull request, or of the budgets on one run.
type Gate struct {
	State compare.State
	// Headline is the outcome in one line.
	Headline string
	// Budgets has a line for each budget, broken budgets first.
	Budgets []string
	// Cells has a row for each judged cell, the largest difference first. Changed has only the better and worse cells.
	Changed, Cells Grid
}

// gateOf returns the outcome of a comparison and of its budgets.
func gateOf(r PairResult) *Gate {
	g := &Gate{State: r.State}
	judged := r.Judged()
	slices.SortStableFunc(judged, compareBySize)
	verdicts := verdictCountsText(each.Of(judged, func(m compare.Match) compare.Verdict { return m.Verdict }))
	words := map[compare.State]string{compare.Kept: "no cost found", compare.Broken: "the change costs more", compare.Undecided: "undecided"}
	g.Headline = fmt.Sprintf("%s: %s (%s)", words[r.State], number.Counted(len(judged), "cell"), verdicts)
	if len(r.Held) > 0 {
		words[compare.Kept], words[compare.Broken] = "within budget", "a budget is broken"
		g.Headline = fmt.Sprintf("%s: %s over %s (%s)", words[r.State], number.Counted(len(r.Held), "budget"), number.Counted(len(judged), "cell"), verdicts)
	}
	held := slices.Clone(r.Held)
	rank := map[compare.State]int{compare.Broken: 0, compare.Undecided: 1, compare.Kept: 2}
	slices.SortStableFunc(held, func(x, y Held) int { return rank[x.State()] - rank[y.State()] })
	g.Budgets = each.Of(held, heldText)
	columns := []string{"metric", "before", "after", "change", "verdict"}
	g.Changed, g.Cells = Grid{Label: "case", Columns: columns}, Grid{Label: "case", Columns: columns}
	for _, m := range judged {
		scale := number.Common(m.B.Unit, m.A.Median, m.B.Median)
		change := number.Absent
		if m.Low == m.Low && m.High == m.High {
			change = fmt.Sprintf("%s to %s", Change(m.Low), Change(m.High))
		}
		label := pairLabel(m, m.Path.String()) + " " + number.Clean(m.Workload.String())
		cells := []string{m.Metric, scale.Format(m.A.Median), scale.Format(m.B.Median) + " " + scale.Unit, change, string(m.Verdict)}
		g.Cells.Add(label, cells...)
		if isDecided(m) {
			g.Changed.Add(label, cells...)
		}
	}
	return g
}

// Hold sets Gate to the outcome of budgets on the profiles of one run. It adds the budgets to Lines, and to the
// beginning of the summary.
func (d *Document) Hold(r PairResult) {
	d.Gate = gateOf(r)
	d.Lines = append(d.Lines, d.Gate.Budgets...)
	if d.Summary != nil {
		d.Summary.Lead = append(slices.Clone(d.Gate.Budgets), d.Summary.Lead...)
	}
}
