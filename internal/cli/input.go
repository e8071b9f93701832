package cli

import (
	"errors"
	"fmt"

	"github.com/cnibench/cnibench/internal/external"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// inputs is the paragraph of help about what a FILE may be.
const inputs = `A FILE is a result of cnibench, the output of another tool if it says all that a result needs (a CSV file of docs/reference/import.md,
knb, k8s-netperf, cilium connectivity perf; for the others there is cnibench import), or - for stdin.`

// openResult opens the result called name, or stdin for "-".
func (p *program) openResult(name string) (*external.Stream, error) {
	if name == "-" {
		return external.NewStream(p.stdin, displayName(name))
	}
	s, err := external.OpenStream(name)
	if err != nil && name == DefaultResult && !fileExists(name) {
		err = advice.With(err, "cnibench run writes it; name another file if the result is elsewhere")
	}
	return s, err
}

// readAll reads each text. It returns the values that could be read, and every error.
func readAll[T any](texts []string, read func(string) (T, error)) ([]T, error) {
	var values []T
	var errs []error
	for _, s := range texts {
		v, err := read(s)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		values = append(values, v)
	}
	return values, errors.Join(errs...)
}

// displayName returns the name of a file in reports and errors: stdin for "-".
func displayName(name string) string {
	if name == "-" {
		return "stdin"
	}
	return name
}

// forEachRecord calls do with every record of s, prints the warning of s to stderr, and closes s. Records have no
// observations unless whole is true.
func (p *program) forEachRecord(s *external.Stream, whole bool, do func(*result.Record) error) error {
	defer s.Close() // it was only read
	if !whole {
		s.Slim()
	}
	if err := s.Each(do); err != nil {
		return err
	}
	if w := s.Warning(); w != "" {
		fmt.Fprintf(p.stderr, "cnibench: %s\n", w)
	}
	return nil
}
