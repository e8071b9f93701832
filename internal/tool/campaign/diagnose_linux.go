package main

import (
	"context"
	"flag"
	"os"
	"path/filepath"
)

// plantedFaults lets `cnibench diagnose` name the faults that a script plants in labs by plain tools.
type plantedFaults struct{ script string }

func (p *plantedFaults) flags(f *flag.FlagSet) {
	f.StringVar(&p.script, "script", "scripts/diagnose.sh", "`file` that plants the faults, and prints a row for each")
}

// measure returns the table that the script prints. It fails if a fault was not named.
func (p *plantedFaults) measure(ctx context.Context, in setting) (string, error) {
	program, err := filepath.Abs(in.program)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(in.dir, 0o777); err != nil {
		return "", err
	}
	rows, err := output(ctx, "env", "KEEP="+in.dir, "sh", p.script, program)
	if rows == "" {
		return "", err
	}
	return "\n" + rows, err
}
