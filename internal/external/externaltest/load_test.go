package externaltest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// TestLoad reads the same contents from our own file and from a foreign one.
func TestLoad(t *testing.T) {
	dir := t.TempDir()
	foreign, err := Load(filepath.Join("..", "outputs", "testdata", "csv", "full.csv"))
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "r.jsonl")
	w, err := result.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	err = w.Header(foreign.Header)
	for _, r := range foreign.Records {
		if r.Type == result.TypeTrial {
			err = errors.Join(err, w.Append(r))
		}
	}
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	ours, err := Load(name)
	if err != nil {
		t.Fatal(err)
	}
	if len(ours.Records) != len(foreign.Records)-1 || ours.Header.Plan.Baseline != plan.VariantOf("host") {
		t.Errorf("%d records with baseline %q, want %d with host", len(ours.Records), ours.Header.Plan.Baseline, len(foreign.Records)-1)
	}
	for _, c := range []struct{ name, body, says, hint string }{
		{"empty", "", "it is empty", ""},
		{"other", "hello", "not a result of cnibench, nor the output of a supported tool", "cnibench-csv v1"},
		{"version", `{"schema":"cnibench.result/v9"}` + "\n", "v9", "version"},
		{"iperf3", `{"start":{"test_start":{"protocol":"TCP","num_streams":1,"blksize":10}},"intervals":[],"end":{"sum_received":{"seconds":1,"bytes":5}}}`, "profile or the path", "cnibench import"},
	} {
		name := filepath.Join(dir, c.name)
		if err := os.WriteFile(name, []byte(c.body), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(name); err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(advice.Of(err), c.hint) || !strings.Contains(err.Error(), name) && !strings.Contains(err.Error(), c.name) {
			t.Errorf("Load(%s): %v (hint %q), want %q", c.name, err, advice.Of(err), c.says)
		}
	}
	if _, err := Load(filepath.Join(dir, "nowhere")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Load of no file: %v", err)
	}
}
