package report

import (
	"fmt"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/judge/findings"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// findingsSchema names the JSON format of BuildFindings.
const findingsSchema = "cnibench.findings/v1"

// claimData is a judged claim as JSON.
type claimData struct {
	ID        string           `json:"id"`
	Source    string           `json:"source"`
	Statement string           `json:"statement"`
	Metric    string           `json:"metric,omitempty"`
	Workload  string           `json:"workload,omitempty"`
	Paths     []plan.Path      `json:"paths,omitempty"`
	Outcome   findings.Outcome `json:"outcome"`
	Evidence  []string         `json:"evidence"`
	Note      string           `json:"note,omitempty"`
}

func dataOfClaim(j findings.Judged) claimData {
	return claimData{j.ID, j.Source, j.Statement, j.Metric, j.Workload.String(), j.Paths, j.Outcome, j.Evidence, j.Note}
}

// BuildFindings builds the report of judged claims of publications, source by source.
func BuildFindings(sources []findings.Source, all []findings.Judged) Document {
	data := each.Of(all, dataOfClaim)
	return Document{
		Answer: Answer{Lines: []string{fmt.Sprintf("%s: %s.", number.Counted(len(all), "claim"), claimCountsText(all))}}, Sections: claimSections(sources, all),
		Data: struct {
			Schema   string      `json:"schema"`
			Findings []claimData `json:"findings"`
		}{findingsSchema, data},
	}
}

// Claims judges published claims by the cells of an analysis. tally describes how many claims can be tested, and with
// which outcomes. testable has a section for each publication with such claims.
func Claims(a *compare.Analysis) (tally string, testable []Section) {
	published := findings.Published()
	all := findings.Judge(a, published.Claims)
	tested := each.Where(all, func(j findings.Judged) bool { return j.Outcome != findings.NotTestable })
	tally = fmt.Sprintf("This result can test %d of %d published claims: %s.", len(tested), len(all), claimCountsText(tested))
	return tally, claimSections(published.Sources, tested)
}

func claimSections(sources []findings.Source, all []findings.Judged) []Section {
	var out []Section
	for _, source := range sources {
		s := Section{Heading: source.Title}
		if source.Date != "" {
			s.Heading += " (" + source.Date + ")"
		}
		if source.Note != "" {
			s.Notes = []string{source.Note}
		}
		for _, j := range all {
			if j.Source == source.ID {
				s.Findings = append(s.Findings, j.Findings()...)
			}
		}
		if len(s.Findings) > 0 {
			out = append(out, s)
		}
	}
	return out
}

// claimCountsText describes how many claims have each outcome.
func claimCountsText(all []findings.Judged) string {
	return countsText(outcomesOf(all), findings.Outcomes, func(o findings.Outcome) string { return string(o) })
}

func outcomesOf(all []findings.Judged) []findings.Outcome {
	return each.Of(all, func(j findings.Judged) findings.Outcome { return j.Outcome })
}
