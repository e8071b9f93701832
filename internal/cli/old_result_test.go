package cli

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOldResults: a result file of each version of the format, kept as the program of its day wrote it, says today what it
// said then. One of a version to come is refused.
func TestOldResults(t *testing.T) {
	const name = "testdata/results/v1.jsonl"
	run := func(args ...string) (int, string, string) {
		var out, errs bytes.Buffer
		p := &program{stdout: &out, stderr: &errs}
		return p.main(args), out.String(), errs.String()
	}
	code, out, errs := run("report", "-f", "json", name)
	if code != exitFine {
		t.Fatalf("report: exit %d: %s", code, errs)
	}
	var d struct {
		Cells []struct {
			Profile, Metric string
			N               int
			Median          float64
		}
	}
	if err := json.Unmarshal([]byte(out), &d); err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, c := range d.Cells {
		if c.Metric == "service_demand" {
			found++
			if want := map[string]float64{"base": 43651.5, "change": 44146.7}[c.Profile]; c.N != 6 || math.Abs(c.Median/want-1) > 1e-4 {
				t.Errorf("%s: %v of %d trials, want %v of 6", c.Profile, c.Median, c.N, want)
			}
		}
	}
	if found != 2 {
		t.Errorf("%d cells of service_demand", found)
	}
	for _, args := range [][]string{{"compare", name, name}, {"compare", "--history", name, name}, {"check", name}, {"report", "-f", "html", name}} {
		if code, out, errs := run(args...); code != exitFine || out == "" {
			t.Errorf("%v: exit %d: %s", args, code, errs)
		}
	}
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	next := filepath.Join(t.TempDir(), "v2.jsonl")
	if err := os.WriteFile(next, bytes.Replace(text, []byte("cnibench.result/v1"), []byte("cnibench.result/v2"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := run("report", next); code != exitUsage || !strings.Contains(errs, `"cnibench.result/v2"`) {
		t.Errorf("the next version: exit %d: %s", code, errs)
	}
}
