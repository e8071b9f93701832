package cli

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/report/csv"
	"github.com/cnibench/cnibench/internal/result"
)

// fits refuses flags that are another format's.
func (a reportArgs) fits(cmd *cobra.Command) error {
	switch {
	case a.samples && a.format != "csv":
		return usageOf(cmd, fmt.Errorf("--samples is for -f csv, and the format is %s", a.format))
	case a.worseFails && a.format != "junit":
		return usageOf(cmd, fmt.Errorf("--worse-fails is for -f junit, and the format is %s", a.format))
	}
	return nil
}

// samples writes the trials of the result file called name as numbers that import reads.
func (p *program) samples(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return usage(fmt.Errorf("open result file: %w", err))
	}
	defer f.Close() // it was only read
	r, err := result.NewReader(f, name)
	if err != nil {
		return usage(err)
	}
	r.Slim()
	out, err := csv.NewSamples(p.stdout, r.Header())
	if err != nil {
		return err
	}
	for {
		rec, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return errors.Join(usage(err), out.Close())
		}
		if err := out.Add(&rec); err != nil {
			return err
		}
	}
	if w := r.Warning(); w != "" {
		fmt.Fprintf(p.stderr, "cnibench: %s\n", w)
	}
	return out.Close()
}
