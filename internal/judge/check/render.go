package check

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/vocab/number"
)

// Schema names the format of JSON.
const Schema = "cnibench.check/v1"

// usual is the width of a line of text where the terminal's is not known, narrow the least.
const (
	usual  = 110
	narrow = 40
)

// JSON writes reports for programs.
func JSON(w io.Writer, reports []Report) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(struct {
		Schema string   `json:"schema"`
		Files  []Report `json:"files"`
	}{Schema, reports})
}

// group is what one rule found at one severity.
type group struct {
	Rule
	findings []Finding
}

// groups puts the findings of a rule together, in the order of the report.
func (r Report) groups() []group {
	titles := map[string]string{}
	for _, q := range rules {
		titles[q.ID] = q.Title
	}
	var list []group
	for _, f := range r.Findings {
		i := slices.IndexFunc(list, func(g group) bool { return g.ID == f.Rule && g.Severity == f.Severity })
		if i < 0 {
			i = len(list)
			list = append(list, group{Rule: Rule{f.Rule, titles[f.Rule], f.Severity, f.Why, f.Do}})
		}
		list[i].findings = append(list[i].findings, f)
	}
	return list
}

// tellsOf says what was looked at and how much was found.
func (r Report) tellsOf() string {
	s := fmt.Sprintf("%d cells, %d trials (%d failed)", r.Cells, r.Trials, r.Failed)
	if r.Claims > 0 {
		s += fmt.Sprintf(", %d claims", r.Claims)
	}
	if len(r.Findings) == 0 {
		return s + ": nothing found"
	}
	notes := "notes"
	if r.Count(Note) == 1 {
		notes = "note"
	}
	return s + fmt.Sprintf(": %d impossible, %d doubtful, %d %s", r.Count(Impossible), r.Count(Doubtful), r.Count(Note), notes)
}

// Text writes reports for a terminal of width columns, 0 if that is not known.
func Text(w io.Writer, reports []Report, width int) error {
	if width <= 0 {
		width = usual
	}
	b := lines{width: max(narrow, width)}
	for i, r := range reports {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.wrapped("", number.Clean(r.Name))
		if r.Source != "" {
			b.wrapped("  ", number.Clean(r.Source))
		}
		b.wrapped("  ", r.tellsOf())
		for _, g := range r.groups() {
			b.WriteByte('\n')
			b.wrapped("", fmt.Sprintf("%s: %s (%s)", strings.ToUpper(g.Severity.String()), g.Title, g.ID))
			for _, f := range g.findings {
				b.wrapped("  - ", number.Clean(joined(f.Where, f.Saw)))
			}
			b.wrapped("  why: ", g.Why)
			b.wrapped("  do:  ", g.Do)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func joined(where, saw string) string {
	if where == "" {
		return saw
	}
	return where + ": " + saw
}

// lines is text for a terminal of so many columns.
type lines struct {
	strings.Builder
	width int
}

// wrapped writes text under its lead, further lines indented by as much.
func (b *lines) wrapped(lead, text string) {
	for _, line := range number.Hang(lead, strings.Repeat(" ", len(lead)), text, b.width) {
		b.WriteString(line + "\n")
	}
}

// Markdown writes reports as a page.
func Markdown(w io.Writer, reports []Report) error {
	var b strings.Builder
	for i, r := range reports {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "# %s\n\n", number.Markdown(r.Name))
		if r.Source != "" {
			fmt.Fprintf(&b, "%s\n\n", number.Markdown(r.Source))
		}
		b.WriteString(r.tellsOf() + ".\n")
		for _, g := range r.groups() {
			fmt.Fprintf(&b, "\n## %s: %s (`%s`)\n\n", g.Severity, g.Title, g.ID)
			for _, f := range g.findings {
				b.WriteString("- ")
				if f.Where != "" {
					b.WriteString("**" + number.Markdown(f.Where) + "**: ")
				}
				b.WriteString(number.Markdown(f.Saw) + "\n")
			}
			fmt.Fprintf(&b, "\nWhy: %s.\n\nDo: %s.\n", number.Markdown(g.Why), number.Markdown(g.Do))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
