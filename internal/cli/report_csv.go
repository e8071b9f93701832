package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/report/csv"
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
	s, err := p.open(name)
	if err != nil {
		return usage(err)
	}
	out, err := csv.NewSamples(p.stdout, s.Header())
	if err != nil {
		return errors.Join(err, s.Close())
	}
	var written error
	err = p.each(s, false, func(rec *result.Record) error {
		written = out.Add(rec)
		return written
	})
	switch {
	case written != nil:
		return written
	case err != nil:
		return errors.Join(usage(err), out.Close())
	}
	return out.Close()
}
