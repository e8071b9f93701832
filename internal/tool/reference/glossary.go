package main

import (
	_ "embed" // the words
	"fmt"
	"io"
	"strings"

	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// words is the page before its table of metrics.
//
//go:embed words.md
var words string

// writeGlossary writes the words that cnibench uses in one sense only, and the metric catalogue.
func writeGlossary(w io.Writer) error {
	var b strings.Builder
	b.WriteString(words)
	for _, m := range metric.All() {
		unit := m.Unit
		if metric.UnitFor(m.Name, "work") != unit {
			unit = strings.TrimSuffix(metric.UnitFor(m.Name, "work"), "/work") + " per unit of work"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", m.Name, unit, m.Better, m.Definition, m.Source)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
