// Package externaltest helps tests to read files of other tools.
package externaltest

import (
	"github.com/cnibench/cnibench/internal/external"
	"github.com/cnibench/cnibench/internal/measure/result"
)

// Load reads the file called name into memory, as external.OpenStream and Each do, without observations.
func Load(name string) (result.Contents, error) {
	s, err := external.OpenStream(name)
	if err != nil {
		return result.Contents{}, err
	}
	defer s.Close() // it was only read
	s.Slim()
	c := result.Contents{Header: s.Header}
	err = s.Each(func(rec *result.Record) error {
		c.Records = append(c.Records, *rec)
		return nil
	})
	if err != nil {
		return result.Contents{}, err
	}
	c.Warning = s.Warning()
	return c, nil
}
