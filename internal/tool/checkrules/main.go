// Command checkrules writes docs/check.md from the rules of package check; `make generate` runs it.
package main

import (
	"fmt"
	"os"

	"github.com/cnibench/cnibench/internal/judge/check"
)

func main() {
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "checkrules:", err)
		os.Exit(1)
	}
}

func write(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := check.WriteRules(f); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
