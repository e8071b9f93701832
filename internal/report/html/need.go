package html

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/compare"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/figure"
	"github.com/cnibench/cnibench/internal/unit"
)

// need is a card of the first screen: who stands first under one workload, by how much, how sure.
type need struct {
	W, L               int
	Kind, Pick, Number string
	Lines              []string
	Chart              template.HTML
}

// kinds name what a workload stands for.
var kinds = map[plan.Kind]string{
	plan.Stream: "Bulk transfer", plan.RR: "Requests on standing connections", plan.CRR: "A connection for each request", plan.Ping: "Echo",
}

func (b *builder) needs() []need {
	var out []need
	for _, n := range b.d.Needs {
		pick := n.Standings[n.Pick]
		scale := figure.StandingScale(n)
		title := kinds[n.Workload.Kind]
		if title == "" {
			title = unit.Clean(string(n.Workload.Kind))
		}
		out = append(out, need{
			W: b.load[n.Workload], L: b.path[n.Path],
			Kind: title + ": " + unit.Clean(n.Workload.String()) + ", " + n.Path.String(), Pick: unit.Clean(pick.Cell.Profile),
			Number: fmt.Sprintf("%s %s %s", scale.Format(pick.Cell.Median), scale.Unit, n.Metric.Title),
			Lines:  certainty(n), Chart: b.svg(figure.Standing(n, b.series)),
		})
	}
	return out
}

// certainty says what the pick is told apart from, never more than a verdict: its neighbours, the last, and the bare
// node if that stands before it.
func certainty(n report.Need) []string {
	pick, last := n.Standings[n.Pick], n.Standings[len(n.Standings)-1]
	var out []string
	if len(n.Near) > 0 {
		out = append(out, "Not told apart from it: "+strings.Join(n.Near, ", ")+".")
	}
	if name := unit.Clean(last.Cell.Profile); n.Pick < len(n.Standings)-1 && !slices.Contains(n.Near, name) {
		out = append(out, beside(pick.ToLast, name, ""))
	}
	if n.Pick > 0 {
		first := n.Standings[0].Cell.Profile
		known, _ := profile.Lookup(first)
		out = append(out, beside(pick.ToBest, first, " ("+known.Title+")"))
	}
	return out
}

// beside writes a comparison with another profile; note is said of that one.
func beside(x compare.Comparison, other, note string) string {
	if x.Verdict != compare.Better && x.Verdict != compare.Worse {
		return "Not told apart from " + other + note + "."
	}
	if math.IsNaN(x.Ratio) {
		return fmt.Sprintf("Told apart from %s%s: %s.", other, note, x.Verdict)
	}
	return fmt.Sprintf("%s of %s%s, %s to %s.", unit.Ratio(x.Ratio), other, note, unit.Ratio(x.Low), unit.Ratio(x.High))
}
