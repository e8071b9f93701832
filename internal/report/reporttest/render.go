package reporttest

import (
	"bytes"
	"io"
	"testing"

	"github.com/cnibench/cnibench/internal/report"
)

// Render builds the report of r and returns the output of render. It fails the test on an error.
func Render(t testing.TB, r Result, render func(io.Writer, report.Document) error) []byte {
	t.Helper()
	d, err := Build(r.Header, r.Records, report.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := render(&b, d); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
