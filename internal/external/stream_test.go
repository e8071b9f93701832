package external

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// TestOpenStream: what is no result is an error that names the file.
func TestOpenStream(t *testing.T) {
	for _, c := range []struct{ name, body, says, hint string }{
		{"empty", "", "it is empty", ""},
		{"other", "hello", "not a result of cnibench, nor the output of a supported tool", "cnibench-csv v1"},
		{"version", `{"schema":"cnibench.result/v9"}` + "\n", "v9", "version"},
		{"iperf3", `{"start":{"test_start":{"protocol":"TCP","num_streams":1,"blksize":10}},"intervals":[],"end":{"sum_received":{"seconds":1,"bytes":5}}}`, "profile or the path", "cnibench import"},
	} {
		name := filepath.Join(t.TempDir(), c.name)
		if err := os.WriteFile(name, []byte(c.body), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenStream(name); err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(advice.Of(err), c.hint) || !strings.Contains(err.Error(), c.name) {
			t.Errorf("%s: %v (hint %q), want %q", c.name, err, advice.Of(err), c.says)
		}
	}
	if _, err := OpenStream(filepath.Join(t.TempDir(), "nowhere")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// TestStream reads a result and a foreign output from a pipe, which cannot be read twice.
func TestStream(t *testing.T) {
	trial := `{"type":"trial","profile":"x","path":"host-to-host/cross-node","workload":"rr","repetition":1,"status":"ok",` +
		`"metrics":{"goodput":1},"client":{"side":"client"}}` + "\n"
	csv, err := os.ReadFile(filepath.Join("outputs", "testdata", "csv", "full.csv"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, body string
		slim       bool
		records    int
		observed   bool
		warning    string
	}{
		{"ours", `{"schema":"cnibench.result/v1"}` + "\n" + trial + trial, false, 2, true, ""},
		{"slim", `{"schema":"cnibench.result/v1"}` + "\n" + trial, true, 1, false, ""},
		{"cut", `{"schema":"cnibench.result/v1"}` + "\n" + trial + trial[:40], false, 1, true, "cut short"},
		{"csv", string(csv), false, -1, false, ""},
	} {
		s, err := NewStream(iotest.OneByteReader(strings.NewReader(c.body)), "stdin")
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if c.slim {
			s.Slim()
		}
		n, observed := 0, false
		err = s.Each(func(rec *result.Record) error {
			n++
			observed = observed || rec.Client != nil
			return nil
		})
		if err != nil || c.records >= 0 && n != c.records || n == 0 || observed != c.observed || !strings.Contains(s.Warning(), c.warning) || (s.Warning() == "") != (c.warning == "") {
			t.Errorf("%s: %d records, observed %v, warning %q, error %v", c.name, n, observed, s.Warning(), err)
		}
		enough := errors.New("enough")
		if s, err = NewStream(strings.NewReader(c.body), "stdin"); err != nil {
			t.Fatal(err)
		}
		if err := s.Each(func(*result.Record) error { return enough }); !errors.Is(err, enough) {
			t.Errorf("%s: an error of do came back as %v", c.name, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := NewStream(iotest.ErrReader(io.ErrClosedPipe), "stdin"); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("a broken pipe: %v", err)
	}
}
