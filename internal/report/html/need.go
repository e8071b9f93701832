package html

import (
	"fmt"
	"html/template"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/figure"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// need is a card of the first screen: who stands first under one workload, by how much, how sure.
type need struct {
	W, L               int
	Kind, Pick, Number string
	Lines              []string
	Chart              template.HTML
}

func (b *builder) needs() []need {
	var out []need
	for _, n := range b.d.Needs {
		pick := n.Standings[n.Pick]
		scale := n.Scale()
		card := need{
			W: b.load[n.Workload], L: b.path[n.Path],
			Kind: n.Name + ": " + number.Clean(n.Workload.String()) + ", " + n.Path.String(), Pick: choice(n),
			Number: fmt.Sprintf("%s %s %s", scale.Format(pick.Cell.Median), scale.Unit, n.Metric.Title),
			Chart:  b.svg(figure.Standing(n, b.series)),
		}
		if name := number.Clean(pick.Cell.Profile); card.Pick != name {
			card.Number = name + ": " + card.Number
		}
		for _, line := range []string{n.Conclusion.Text, n.Under, n.Certainty + "."} {
			if line != "" {
				card.Lines = append(card.Lines, line)
			}
		}
		out = append(out, card)
	}
	return out
}

// choice is the heading of a card: the pick with those that do not differ from it.
func choice(n report.Need) string {
	pick, near := number.Clean(n.Standings[n.Pick].Cell.Profile), n.Near
	switch {
	case len(near) > 0 && len(n.Conclusion.Claims) == 0:
		return "no significant difference"
	case len(near) == 0:
		return pick
	case len(near) == 1:
		return pick + " or " + near[0]
	}
	return fmt.Sprintf("%s or %d more", pick, len(near))
}
