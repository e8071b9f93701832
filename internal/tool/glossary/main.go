// Command glossary writes docs/glossary.md from the metric catalogue; `make generate` runs it.
package main

import (
	"fmt"
	"os"

	"github.com/cnibench/cnibench/internal/vocab/metric"
)

func main() {
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "glossary:", err)
		os.Exit(1)
	}
}

func write(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := metric.WriteGlossary(f); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
