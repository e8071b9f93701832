package config

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/cnibench/cnibench/internal/vocab/number"
)

// Schema names the format of JSON.
const Schema = "cnibench.config/v1"

// width is that of a line of text.
const width = 110

// JSON writes a report for programs.
func JSON(w io.Writer, r Report) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(struct {
		Schema string `json:"schema"`
		Report
	}{Schema, r})
}

// tally says how much was found.
func (r Report) tally() string {
	if len(r.Findings) == 0 {
		return "nothing to say against it"
	}
	var parts []string
	for s := Refused; s >= Note; s-- {
		if n := r.Count(s); n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, s.counted(n)))
		}
	}
	return strings.Join(parts, ", ")
}

// counted is the severity after a number.
func (s Severity) counted(n int) string {
	switch s {
	case Ignored:
		return "without effect"
	case Otherwise:
		return "otherwise than asked"
	case Note:
		if n != 1 {
			return "notes"
		}
	}
	return s.String()
}

// group is what one rule found.
type group struct {
	Rule
	findings []Finding
}

// groups puts the findings of a rule together, in the order of the report.
func (r Report) groups() []group {
	var list []group
	at := map[string]int{}
	for _, f := range r.Findings {
		i, seen := at[f.Rule]
		if !seen {
			i = len(list)
			at[f.Rule] = i
			list = append(list, group{Rule: ruleCalled(f.Rule)})
		}
		list[i].findings = append(list[i].findings, f)
	}
	return list
}

func (f Finding) sentence() string {
	if f.Where == "" {
		return f.Saw
	}
	return f.Where + ": " + f.Saw
}

// Text writes a report for a terminal.
func Text(w io.Writer, r Report) error {
	var b strings.Builder
	for _, d := range r.Documents {
		fmt.Fprintf(&b, "%s:%d: %s\n", number.Clean(d.File), d.Line, number.Clean(d.Kind))
	}
	b.WriteString(r.tally() + "\n")
	if len(r.Settings) > 0 {
		b.WriteString("\nIn force\n")
	}
	rows := [][]string{}
	for _, s := range r.Settings {
		rows = append(rows, []string{"  " + number.Clean(s.Component), number.Clean(s.Name), number.Clean(s.Value), s.Origin + ": " + number.Clean(s.By)})
	}
	columns(&b, rows)
	for _, g := range r.groups() {
		fmt.Fprintf(&b, "\n%s: %s (%s)\n", strings.ToUpper(g.Severity.String()), g.Title, g.ID)
		for _, f := range g.findings {
			wrapped(&b, "  - ", number.Clean(f.sentence()))
		}
		wrapped(&b, "  why: ", g.Why)
		wrapped(&b, "  do:  ", g.Do)
		wrapped(&b, "  see: ", g.Source)
	}
	for i, m := range r.Measured {
		if i == 0 {
			b.WriteByte('\n')
		}
		wrapped(&b, "What is measured with this is ", number.Clean(m.words()))
		for _, but := range m.But {
			wrapped(&b, "  but: ", number.Clean(but))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (m Measured) words() string {
	if m.Profile == "" {
		return m.Title + "."
	}
	return m.Profile + " (" + m.Title + ")."
}

// columns writes rows under one another; the last column is wrapped into what the others leave.
func columns(b *strings.Builder, rows [][]string) {
	widths := []int{0, 0, 0}
	for _, row := range rows {
		for i := range widths {
			widths[i] = max(widths[i], min(number.Width(row[i]), 40))
		}
	}
	for _, row := range rows {
		lead := ""
		for i := range widths {
			lead += number.Left(number.Truncate(row[i], widths[i]), widths[i]+2)
		}
		for i, line := range number.Wrap(row[3], max(30, width-number.Width(lead))) {
			if i > 0 {
				lead = strings.Repeat(" ", number.Width(lead))
			}
			b.WriteString(lead + line + "\n")
		}
	}
}

// wrapped writes text under its lead, further lines indented by as much.
func wrapped(b *strings.Builder, lead, text string) {
	for _, line := range number.Hang(lead, strings.Repeat(" ", min(len(lead), 7)), text, width) {
		b.WriteString(line + "\n")
	}
}

// Markdown writes a report as a page.
func Markdown(w io.Writer, r Report) error {
	var b strings.Builder
	b.WriteString("# What this configuration comes to\n\n")
	for _, d := range r.Documents {
		fmt.Fprintf(&b, "- %s, line %d: %s\n", number.Markdown(d.File), d.Line, number.Markdown(d.Kind))
	}
	b.WriteString("\n" + sentence(r.tally()) + ".\n")
	for _, m := range r.Measured {
		fmt.Fprintf(&b, "\n**What is measured with this is %s**\n", number.Markdown(m.words()))
		for i, but := range m.But {
			if i == 0 {
				b.WriteByte('\n')
			}
			fmt.Fprintf(&b, "- but: %s\n", number.Markdown(but))
		}
	}
	if len(r.Settings) > 0 {
		b.WriteString("\n## In force\n\n| of | setting | value | from |\n|---|---|---|---|\n")
	}
	for _, s := range r.Settings {
		fmt.Fprintf(&b, "| %s | %s | %s | %s: %s |\n", number.Markdown(s.Component), number.Markdown(s.Name), number.Markdown(s.Value), s.Origin, number.Markdown(s.By))
	}
	for _, g := range r.groups() {
		fmt.Fprintf(&b, "\n## %s: %s (`%s`)\n\n", sentence(g.Severity.String()), g.Title, g.ID)
		for _, f := range g.findings {
			b.WriteString("- " + number.Markdown(f.sentence()) + "\n")
		}
		fmt.Fprintf(&b, "\nWhy: %s.\n\nDo: %s.\n\nSee: %s.\n", number.Markdown(g.Why), number.Markdown(g.Do), number.Markdown(g.Source))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// sentence begins s with a capital.
func sentence(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
