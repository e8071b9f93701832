package cli

import (
	"errors"

	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/report/csv"
)

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
