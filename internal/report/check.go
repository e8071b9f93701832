package report

import (
	"fmt"

	"github.com/cnibench/cnibench/internal/judge/check"
	"github.com/cnibench/cnibench/internal/vocab/finding"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// CheckSchema names the JSON format of BuildCheck.
const CheckSchema = "cnibench.check/v1"

// BuildCheck makes the report of what check found in each of several results.
func BuildCheck(all []check.Report) Document {
	d := Document{Data: struct {
		Schema string         `json:"schema"`
		Files  []check.Report `json:"files"`
	}{CheckSchema, all}}
	for _, r := range all {
		s := Section{Heading: number.Clean(r.Name), Findings: r.Findings}
		if r.Source != "" {
			s.Notes = append(s.Notes, number.Clean(r.Source))
		}
		s.Notes = append(s.Notes, checked(r))
		d.Sections = append(d.Sections, s)
	}
	return d
}

// checked says what was looked at and how much was found.
func checked(r check.Report) string {
	s := fmt.Sprintf("%s, %s (%d failed)", number.Counted(r.Cells, "cell"), number.Counted(r.Trials, "trial"), r.Failed)
	if r.Claims > 0 {
		s += ", " + number.Counted(r.Claims, "claim")
	}
	if len(r.Findings) == 0 {
		return s + ": no findings."
	}
	n := func(v finding.Severity) int { return finding.Count(r.Findings, v) }
	return s + fmt.Sprintf(": %d impossible, %d doubtful, %s.", n(finding.Impossible), n(finding.Doubtful), number.Counted(n(finding.Note), "note"))
}
