package check

import (
	_ "embed" // the page
	"io"

	"github.com/cnibench/cnibench/internal/vocab/finding"
)

//go:generate go run ../../tool/checkrules ../../../docs/check.md

// page is docs/check.md before its list of rules.
//
//go:embed page.md
var page string

// WriteRules writes docs/check.md.
func WriteRules(w io.Writer) error {
	_, err := io.WriteString(w, page+finding.Manual(Rules()))
	return err
}
