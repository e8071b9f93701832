// Package github writes a report for the summary of a GitHub job and for the comment on a pull request: the outcome in a
// line, the budgets that are not kept, the cells that changed. Where nothing changed it is that line, and the rest is
// folded. Nothing is computed here.
package github

import (
	"fmt"
	"io"
	"strings"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/markdown"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

var icons = map[compare.State]string{compare.Kept: ":white_check_mark:", compare.Broken: ":x:", compare.Undecided: ":warning:"}

// Render writes d. A document without an outcome is written as Markdown.
func Render(w io.Writer, d report.Document) error {
	g := d.Gate
	if g == nil {
		return markdown.Render(w, d)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "### %s cnibench: %s\n", icons[g.State], number.Markdown(g.Headline))
	if g.State != compare.Kept {
		b.WriteString("\n")
		for _, line := range g.Budgets {
			fmt.Fprintf(&b, "- %s\n", number.Markdown(line))
		}
		markdown.Table(&b, g.Changed)
	}
	b.WriteString("\n<details><summary>All cells</summary>\n")
	if g.State == compare.Kept {
		b.WriteString("\n")
		for _, line := range g.Budgets {
			fmt.Fprintf(&b, "- %s\n", number.Markdown(line))
		}
	}
	markdown.Table(&b, g.Cells)
	fmt.Fprintf(&b, "\n%s\n\n</details>\n", number.Markdown(d.Title))
	_, err := io.WriteString(w, b.String())
	return err
}
