package markdown

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

var icons = map[compare.State]string{compare.Kept: ":white_check_mark:", compare.Broken: ":x:", compare.Undecided: ":warning:"}

// GitHub writes a report for the summary of a GitHub job or a comment on a pull request. With a Gate it writes the
// headline, then budgets and changed cells unless the state is Kept, then all cells folded. Without a Gate it writes only
// the summary, because GitHub cuts text above 64 KB. Without a summary it writes the whole document.
func GitHub(w io.Writer, d report.Document) error {
	g := d.Gate
	switch {
	case g == nil && d.Summary == nil:
		return Render(w, d)
	case g == nil:
		return writeGitHubSummary(w, d)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "### %s cnibench: %s\n", icons[g.State], number.Markdown(g.Headline))
	if g.State != compare.Kept {
		b.WriteString("\n")
		for _, line := range g.Budgets {
			fmt.Fprintf(&b, "- %s\n", number.Markdown(line))
		}
		Table(&b, g.Changed)
	}
	b.WriteString("\n<details><summary>All cells</summary>\n")
	if g.State == compare.Kept {
		b.WriteString("\n")
		for _, line := range g.Budgets {
			fmt.Fprintf(&b, "- %s\n", number.Markdown(line))
		}
	}
	Table(&b, g.Cells)
	fmt.Fprintf(&b, "\n%s\n\n</details>\n", number.Markdown(d.Title))
	_, err := io.WriteString(w, b.String())
	return err
}

// writeGitHubSummary writes the summary of d.
func writeGitHubSummary(w io.Writer, d report.Document) error {
	s := d.Summary
	var b strings.Builder
	item := func(i report.Item) string { return boldName(i, " ") + number.Markdown(i.Text) }
	fmt.Fprintf(&b, "### %s\n\n", number.Markdown(d.Title))
	for _, line := range slices.Concat(s.Ground(), s.Lead) {
		fmt.Fprintf(&b, "%s\n\n", number.Markdown(line))
	}
	for _, x := range s.Lists {
		fmt.Fprintf(&b, "- %s: %s\n", number.Markdown(x.Heading), strings.Join(each.Of(x.Items, item), "; "))
	}
	for _, g := range s.Grids {
		Table(&b, g)
	}
	if len(s.Columns) > 0 {
		Table(&b, summaryTable(s))
	}
	b.WriteString("\nAll tables: `cnibench report -f html`, or `-f markdown`.\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// marks has the word for each verdict on a value compared with the best value.
var marks = map[compare.Verdict]string{compare.Better: " best", compare.Worse: " worse", compare.Same: " same", compare.Inconclusive: " ?"}

// summaryTable returns the table of a summary; its notes explain how to read it.
func summaryTable(s *report.Summary) report.Grid {
	g := report.Grid{Title: s.Title, Label: "profile", Notes: s.Notes,
		Columns: each.Of(s.Columns, func(c report.SummaryColumn) string { return c.Name + ", " + c.Unit })}
	if s.Letters != "" {
		g.Columns = append(g.Columns, "does", "proof")
		g.Notes = append([]string{s.Certainty + ".", "does: " + s.Letters + ".", "proof: " + s.Proofs + "."}, s.Notes...)
	}
	for _, r := range s.Rows {
		cells := each.Of(r.Entries, func(e report.Entry) string {
			if e.Kind != report.Value {
				return e.Text
			}
			return e.Value + marks[e.Verdict]
		})
		if s.Letters != "" {
			cells = append(cells, r.Letters, r.Proof)
		}
		g.Add(r.Profile, cells...)
	}
	return g
}
