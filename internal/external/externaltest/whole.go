// Package externaltest reads result files whole, for tests.
package externaltest

import (
	"os"

	"github.com/cnibench/cnibench/internal/measure/result"
)

// Whole returns the records of a result file with their observations, which result.Load leaves out.
func Whole(name string) (all []result.Record, err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() // it was only read
	r, err := result.NewReader(f, name)
	if err != nil {
		return nil, err
	}
	err = r.Each(func(rec *result.Record) error {
		all = append(all, *rec)
		return nil
	})
	return all, err
}
