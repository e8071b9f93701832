package html

import (
	"fmt"
	"strings"

	"github.com/cnibench/cnibench/internal/judge/findings"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// claims is what the result says about published comparisons.
type claims struct {
	Tally   string
	Sources []claimSource
	// Folded are those that this result cannot decide, and how many they are.
	Folded string
	Rest   []claimRow
}

// claimSource is a publication with its claims that can be tested here.
type claimSource struct {
	Title, Note string
	Rows        []claimRow
}

type claimRow struct {
	Source, Statement, Outcome string
	Evidence                   []string
}

// claims judges what was published; nil unless the result can test any of it.
func (b *builder) claims() *claims {
	if b.d.Analysis == nil {
		return nil
	}
	published := findings.Published()
	all := findings.Judge(b.d.Analysis, published.Claims)
	n := findings.Counts(all)
	testable := len(all) - n[findings.NotTestable]
	if testable == 0 {
		return nil
	}
	out := &claims{Folded: fmt.Sprintf("%d claims that this result cannot test", n[findings.NotTestable])}
	var parts []string
	for _, o := range findings.Outcomes {
		if o != findings.NotTestable {
			parts = append(parts, fmt.Sprintf("%d %s", n[o], o))
		}
	}
	out.Tally = fmt.Sprintf("%d of %d published claims can be tested by this result: %s.", testable, len(all), strings.Join(parts, ", "))
	for _, s := range published.Sources {
		title := s.Title
		if s.Date != "" {
			title += " (" + s.Date + ")"
		}
		at := claimSource{Title: title, Note: s.Note}
		for _, f := range all {
			switch {
			case f.Source != s.ID:
			case f.Outcome == findings.NotTestable:
				out.Rest = append(out.Rest, claim(title, f))
			default:
				at.Rows = append(at.Rows, claim(title, f))
			}
		}
		if len(at.Rows) > 0 {
			out.Sources = append(out.Sources, at)
		}
	}
	return out
}

// claim is a row; what a result's names bring into the evidence is cleaned.
func claim(source string, f findings.Finding) claimRow {
	row := claimRow{Source: source, Statement: f.Statement, Outcome: string(f.Outcome)}
	for _, e := range f.Evidence {
		row.Evidence = append(row.Evidence, number.Clean(e))
	}
	if f.Note != "" {
		row.Evidence = append(row.Evidence, "note: "+f.Note)
	}
	return row
}
