// Command reference writes docs/reference-workloads.md from the options of workloads; `make generate` runs it.
package main

import (
	"fmt"
	"os"

	"github.com/cnibench/cnibench/internal/plan"
)

func main() {
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "reference:", err)
		os.Exit(1)
	}
}

func write(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := plan.WriteReference(f); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
