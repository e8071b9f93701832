package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/judge/check"
	"github.com/cnibench/cnibench/internal/judge/config"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/finding"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// BuildConfig builds the report of a judged configuration. It lists the files, the matching profiles, the settings and the
// findings.
func BuildConfig(r config.Report) Document {
	d := Document{Data: struct {
		Schema string `json:"schema"`
		config.Report
	}{config.Schema, r}}
	first := Section{Heading: "Configuration"}
	read := Grid{Title: "Read", Label: "File", Columns: []string{"Document"}, Prose: true}
	for _, doc := range r.Documents {
		where := doc.File
		if doc.Line > 0 {
			where = fmt.Sprintf("%s:%d", where, doc.Line)
		}
		what := doc.Kind
		if doc.NotJudged != "" {
			what += ": not judged: " + doc.NotJudged
		}
		read.Add(number.Clean(where), number.Clean(what))
	}
	profiles := Grid{Title: "Amounts to", Label: "Profile", Columns: []string{"Dataplane"}, Prose: true}
	for _, m := range r.Measured {
		profiles.Add(cmp.Or(m.Profile, "none"), number.Clean(strings.Join(append([]string{m.Title}, m.But...), "; but ")))
	}
	settings := Grid{Title: "In force", Label: "Setting", Columns: []string{"Value", "Source"}, Prose: true}
	for i, s := range slices.Concat(r.Settings, r.Wire) {
		if i >= len(r.Settings) && slices.Contains(r.Settings, s) {
			continue
		}
		settings.Add(number.Clean(s.Component+" "+s.Name), number.Clean(s.Value), number.Clean(s.Origin+": "+s.By))
	}
	for _, g := range []Grid{read, profiles, settings} {
		if len(g.Cells) > 0 {
			first.Grids = append(first.Grids, g)
		}
	}
	first.Findings = slices.Clone(r.Findings)
	for i, f := range first.Findings {
		first.Findings[i].Where, first.Findings[i].Saw = number.Clean(f.Where), number.Clean(f.Saw)
	}
	first.Notes = append(first.Notes, configCountsText(r))
	d.Sections = append(d.Sections, first)
	return d
}

// configCountsText describes how many findings there are, and how many documents were not judged.
func configCountsText(r config.Report) string {
	skipped := len(each.Where(r.Documents, func(d config.Document) bool { return d.NotJudged != "" }))
	switch {
	case skipped == 0:
		return findingCountsText(r.Findings)
	case skipped == len(r.Documents) && len(r.Findings)+len(r.Settings) == 0:
		return "Nothing was judged."
	case len(r.Findings) == 0:
		return "No findings in what was judged. Not judged: " + number.Counted(skipped, "document") + "."
	}
	return findingCountsText(r.Findings) + " Not judged: " + number.Counted(skipped, "document") + "."
}

// findingCountsText describes how many findings there are of each severity.
func findingCountsText(fs []finding.Finding) string {
	var parts []string
	for _, s := range []finding.Severity{finding.Refused, finding.Otherwise, finding.NoEffect} {
		if n := finding.Count(fs, s); n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, s))
		}
	}
	if n := finding.Count(fs, finding.Note); n > 0 {
		parts = append(parts, number.Counted(n, "note"))
	}
	if len(parts) == 0 {
		return "No findings."
	}
	return strings.Join(parts, ", ") + "."
}

// checkSchema names the JSON format of BuildCheck.
const checkSchema = "cnibench.check/v1"

// BuildCheck builds the report of check's findings in several results.
func BuildCheck(all []check.Report) Document {
	d := Document{Data: struct {
		Schema string         `json:"schema"`
		Files  []check.Report `json:"files"`
	}{checkSchema, all}}
	for _, r := range all {
		s := Section{Heading: number.Clean(r.Name), Findings: r.Findings}
		if r.Source != "" {
			s.Notes = append(s.Notes, number.Clean(r.Source))
		}
		s.Notes = append(s.Notes, checkCountsText(r))
		d.Sections = append(d.Sections, s)
	}
	return d
}

// checkCountsText describes how many cells, trials and claims were checked, and how many findings each severity has.
func checkCountsText(r check.Report) string {
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
