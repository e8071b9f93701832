package markdown

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/reporttest"
	"github.com/cnibench/cnibench/internal/tool/golden"
)

func render(t *testing.T, r reporttest.Result) []byte {
	t.Helper()
	return reporttest.Render(t, r, Render)
}

func TestGolden(t *testing.T) {
	for name, r := range map[string]reporttest.Result{
		"nine-paths.md": reporttest.NinePaths(5), "one-trial.md": reporttest.Small(1), "all-failed.md": reporttest.AllFailed(),
		"empty.md": {}, "growth.md": reporttest.Growth(), "hostile.md": reporttest.Hostile(), "not-numbers.md": reporttest.NotNumbers(),
	} {
		t.Run(name, func(t *testing.T) { golden.Check(t, name, render(t, r)) })
	}
}

func TestImpact(t *testing.T) {
	for name, r := range map[string]reporttest.Result{"impact.md": reporttest.NinePaths(5), "impact-hostile.md": reporttest.Hostile()} {
		works := reporttest.Job()
		if name == "impact-hostile.md" {
			works = works[1:] // it has no stream
		}
		d, err := reporttest.Build(r.Header, r.Records, report.Options{Metrics: []string{"transaction_rate"}, Impact: works})
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := Render(&b, d); err != nil {
			t.Fatal(err)
		}
		golden.Check(t, name, b.Bytes())
	}
}

// Every row of a table has as many cells as its heading, whatever the names are.
func TestTablesAreRectangular(t *testing.T) {
	for _, r := range []reporttest.Result{reporttest.NinePaths(2), reporttest.Hostile(), reporttest.AllFailed()} {
		width := 0
		for line := range strings.Lines(string(render(t, r))) {
			if !strings.HasPrefix(line, "|") {
				width = 0
				continue
			}
			n := strings.Count(strings.ReplaceAll(line, `\|`, ""), "|")
			if width == 0 {
				width = n
			}
			if n != width {
				t.Errorf("%d bars in a table of %d: %s", n, width, line)
			}
		}
	}
}

func TestHostileNamesStayText(t *testing.T) {
	out := string(render(t, reporttest.Hostile()))
	for _, bad := range []string{"<script", "\x1b", "evil|`"} {
		// The command to repeat is in a code block, where only the fence could end it.
		for line := range strings.Lines(out) {
			if strings.Contains(line, bad) && !strings.HasPrefix(line, "  cnibench run") {
				t.Errorf("%q in %q", bad, line)
			}
		}
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestWriteError(t *testing.T) {
	if err := Render(full{}, report.Document{}); err == nil {
		t.Error("a write error is lost")
	}
}
