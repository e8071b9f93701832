package main

import (
	"context"
	"flag"
	"os"
)

// plantedFaults lets `cnibench diagnose` name the faults that a script plants in labs by plain tools.
type plantedFaults struct{}

func (plantedFaults) flags(*flag.FlagSet) {}

// measure returns the table that the script prints. It fails if a fault was not named.
func (plantedFaults) measure(ctx context.Context, in setting) (string, error) {
	if err := os.MkdirAll(in.dir, 0o777); err != nil {
		return "", err
	}
	rows, err := output(ctx, "env", "KEEP="+in.dir, "sh", "scripts/diagnose.sh", in.program)
	if rows == "" {
		return "", err
	}
	return "\n" + rows, err
}
