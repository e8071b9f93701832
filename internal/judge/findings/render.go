package findings

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/cnibench/cnibench/internal/vocab/number"
)

// Schema names this version of the JSON form.
const Schema = "cnibench.findings/v1"

// Report is a set of findings with their sources, ready to be written.
type Report struct {
	Sources  []Source
	Findings []Finding
}

// wrapAt is the width of the text form where the terminal's is not known, in columns.
const wrapAt = 100

// Text writes the findings for people, source by source; width is that of the terminal in columns, 0 if unknown.
func (r Report) Text(w io.Writer, width int) error {
	if width <= 0 {
		width = wrapAt
	}
	var b strings.Builder
	for _, s := range r.Sources {
		fs := r.of(s)
		if len(fs) == 0 {
			continue
		}
		fmt.Fprintf(&b, "%s\n", heading(s))
		indent(&b, "  ", s.Note, width)
		for _, f := range fs {
			fmt.Fprintf(&b, "\n  %-17s %s\n", strings.ToUpper(string(f.Outcome)), f.ID)
			indent(&b, "    ", f.Statement, width)
			for _, e := range f.Evidence {
				indent(&b, "      ", "- "+e, width)
			}
			if f.Note != "" {
				indent(&b, "      ", "note: "+f.Note, width)
			}
		}
		b.WriteString("\n")
	}
	b.WriteString(r.tally() + "\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// Markdown writes the findings as a table for each source.
func (r Report) Markdown(w io.Writer) error {
	var b strings.Builder
	for _, s := range r.Sources {
		fs := r.of(s)
		if len(fs) == 0 {
			continue
		}
		fmt.Fprintf(&b, "### %s\n\n", number.Markdown(heading(s)))
		if s.Note != "" {
			fmt.Fprintf(&b, "%s\n\n", number.Markdown(s.Note))
		}
		b.WriteString("| claim | outcome | evidence |\n|---|---|---|\n")
		for _, f := range fs {
			text := f.Evidence
			if f.Note != "" {
				text = append(text[:len(text):len(text)], "Note: "+f.Note)
			}
			fmt.Fprintf(&b, "| %s | %s | %s |\n", number.Markdown(f.Statement), f.Outcome, number.Markdown(strings.Join(text, "; ")))
		}
		b.WriteString("\n")
	}
	b.WriteString(r.tally() + "\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// JSON writes the findings for programs.
func (r Report) JSON(w io.Writer) error {
	type finding struct {
		ID        string   `json:"id"`
		Source    string   `json:"source"`
		Statement string   `json:"statement"`
		Metric    string   `json:"metric,omitempty"`
		Workload  string   `json:"workload,omitempty"`
		Paths     []string `json:"paths,omitempty"`
		Outcome   Outcome  `json:"outcome"`
		Evidence  []string `json:"evidence"`
		Note      string   `json:"note,omitempty"`
	}
	out := struct {
		Schema   string    `json:"schema"`
		Findings []finding `json:"findings"`
	}{Schema: Schema, Findings: []finding{}}
	for _, f := range r.Findings {
		out.Findings = append(out.Findings, finding{
			f.ID, f.Source, f.Statement, f.Metric, f.Workload, f.Paths, f.Outcome, f.Evidence, f.Note,
		})
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(out)
}

func (r Report) of(s Source) []Finding {
	var fs []Finding
	for _, f := range r.Findings {
		if f.Source == s.ID {
			fs = append(fs, f)
		}
	}
	return fs
}

func (r Report) tally() string {
	n := Counts(r.Findings)
	var parts []string
	for _, o := range Outcomes {
		parts = append(parts, fmt.Sprintf("%d %s", n[o], o))
	}
	return fmt.Sprintf("%d claims: %s.", len(r.Findings), strings.Join(parts, ", "))
}

func heading(s Source) string {
	if s.Date == "" {
		return s.Title
	}
	return s.Title + " (" + s.Date + ")"
}

func indent(b *strings.Builder, by, text string, width int) {
	if text == "" {
		return
	}
	for _, line := range number.Hang(by, by, number.Clean(text), max(width, len(by)+20)) {
		b.WriteString(line + "\n")
	}
}
