// Command gate runs the action of this repository, step by step as a runner of GitHub would, on pairs of a base and a change
// whose verdict is known: equal, fifty more rules for each packet, two builds of a plugin, a machine that is too busy, a
// change that cannot be raised. It fails if the action says anything else.
//
// Read action.go (the runner), fake.go (gh), scenarios.go (the pairs).
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/tool/toolbox"
)

func main() {
	document := flag.String("document", "", "Markdown `file` whose table is replaced")
	only := flag.String("only", "", "`name` of the one scenario that is run")
	flag.Parse()
	if flag.NArg() != 1 {
		toolbox.Usage("gate [-only SCENARIO] [-document FILE] CNIBENCH")
	}
	toolbox.Exit("gate", func(ctx context.Context) error { return campaign(ctx, flag.Arg(0), *only, *document) })
}

// campaign runs the scenarios and writes their table.
func campaign(ctx context.Context, program, only, document string) error {
	program, err := filepath.Abs(program)
	if err != nil {
		return err
	}
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	before := ""
	if document != "" {
		if before, err = toolbox.Read(document, "gate"); err != nil {
			return err
		}
	}
	var table strings.Builder
	table.WriteString("| base and change | verdict | comment | time | what the action says |\n|---|---|---|---|---|\n")
	var wrong []error
	for _, s := range scenarios {
		if only != "" && s.name != only {
			table.WriteString(rowOf(before, s.about))
			continue
		}
		fmt.Fprintf(os.Stderr, "gate: %s\n", s.name)
		began := time.Now()
		d, err := s.run(ctx, root, program)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		if !slices.Contains(strings.Split(s.verdict, " or "), d.verdict) {
			wrong = append(wrong, fmt.Errorf("%s: the verdict is %s, want %s", s.name, d.verdict, s.verdict))
		}
		commented := "none"
		if d.comment != "" {
			commented = "one"
		}
		fmt.Fprintf(&table, "| %s | %s | %s | %d s | %s |\n", s.about, d.verdict, commented, int(time.Since(began).Seconds()), d.said())
	}
	if document == "" {
		fmt.Print(table.String())
		return errors.Join(wrong...)
	}
	return errors.Join(toolbox.Table(document, "gate", program, table.String()), errors.Join(wrong...))
}

// rowOf is the row about a scenario in a table that was written before, or "".
func rowOf(table, about string) string {
	for line := range strings.Lines(table) {
		if strings.HasPrefix(line, "| "+about+" |") {
			return line
		}
	}
	return ""
}
