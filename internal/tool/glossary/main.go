// Command glossary writes docs/reference/glossary.md: the words that cnibench uses in one sense only, and the metric catalogue.
// `make generate` runs it.
package main

import (
	_ "embed" // the words
	"fmt"
	"os"
	"strings"

	"github.com/cnibench/cnibench/internal/vocab/metric"
)

//go:generate go run . ../../../docs/reference/glossary.md

// words is the page before its table of metrics.
//
//go:embed words.md
var words string

func main() {
	if err := os.WriteFile(os.Args[1], []byte(page()), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, "glossary:", err)
		os.Exit(1)
	}
}

func page() string {
	var b strings.Builder
	b.WriteString(words)
	for _, m := range metric.All() {
		unit := m.Unit
		if metric.UnitFor(m.Name, "work") != unit {
			unit = strings.TrimSuffix(metric.UnitFor(m.Name, "work"), "/work") + " per unit of work"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", m.Name, unit, m.Better, m.Definition, m.Source)
	}
	return b.String()
}
