package report_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/external"
	"github.com/cnibench/cnibench/internal/judge/check"
	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/judge/findings"
	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/html"
	reportjson "github.com/cnibench/cnibench/internal/report/json"
	"github.com/cnibench/cnibench/internal/report/markdown"
	"github.com/cnibench/cnibench/internal/report/reporttest"
	"github.com/cnibench/cnibench/internal/report/text"
	"github.com/cnibench/cnibench/internal/tool/golden"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

const published = "../../examples/published"

// renderers can show every document.
var renderers = map[string]func(io.Writer, report.Document) error{
	"txt":  func(w io.Writer, d report.Document) error { return text.Render(w, d, text.Options{Width: 110}) },
	"md":   markdown.Render,
	"html": html.Render,
	"json": reportjson.Render,
}

// checked is what check finds in a result.
func checked(t *testing.T, name string, h result.Header, records []result.Record) check.Report {
	t.Helper()
	v := check.New(h)
	for _, r := range records {
		if err := v.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	r, err := v.Report(name, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// checkOf is what check finds in a file of examples/published.
func checkOf(t *testing.T, name string) check.Report {
	t.Helper()
	s, err := external.OpenStream(filepath.Join(published, name))
	if err != nil {
		t.Fatal(err)
	}
	var all []result.Record
	if err := errors.Join(s.Each(func(r *result.Record) error { all = append(all, *r); return nil }), s.Close()); err != nil {
		t.Fatal(err)
	}
	return checked(t, name, s.Header, all)
}

// TestCheckPublished holds what is said of each published result in a golden file.
func TestCheckPublished(t *testing.T) {
	files, err := os.ReadDir(published)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		var b bytes.Buffer
		if err := renderers["txt"](&b, report.BuildCheck([]check.Report{checkOf(t, f.Name())})); err != nil {
			t.Fatal(err)
		}
		golden.Check(t, "check/"+strings.TrimSuffix(f.Name(), ".csv")+".txt", b.Bytes())
	}
}

func TestCheckFormats(t *testing.T) {
	d := report.BuildCheck([]check.Report{checkOf(t, "kind-calico-cilium.csv"), checkOf(t, "calico-dataplanes.csv")})
	for _, format := range []string{"json", "md"} {
		var b bytes.Buffer
		if err := renderers[format](&b, d); err != nil {
			t.Error(err)
		}
		golden.Check(t, "check/two."+format, b.Bytes())
	}
	var b bytes.Buffer
	if err := html.Render(&b, d); err != nil || !strings.Contains(b.String(), "<code>leftovers</code>") || !strings.Contains(b.String(), "calico-dataplanes.csv</h2>") {
		t.Errorf("the page lacks its findings: %v", err)
	}
}

// TestCheckHostile: what a stranger wrote can neither steer a terminal nor become markup.
func TestCheckHostile(t *testing.T) {
	h := result.Header{Origin: "hand", Facts: facts.Facts{"source": "\x1b[2J<script>[a](b)", "leftovers": "a\x1b]0;x\a|b"}}
	r := checked(t, "na\x1bme\n<b>", h, reporttest.Small(2).Records)
	if len(r.Findings) == 0 {
		t.Fatal("nothing found")
	}
	for _, format := range []string{"txt", "md", "html"} {
		var b bytes.Buffer
		if err := renderers[format](&b, report.BuildCheck([]check.Report{r})); err != nil {
			t.Error(err)
		}
		if strings.ContainsAny(b.String(), "\x1b\a") || format == "md" && strings.Contains(b.String(), "<") || format == "html" && strings.Contains(b.String(), "<script>[") {
			t.Errorf("%s: %q", format, b.String())
		}
	}
}

// No line is wider than the terminal, but for single words that are longer.
func TestCheckFits(t *testing.T) {
	for _, width := range []int{40, 60, 80, 200} {
		for _, name := range []string{"canal-vs-cilium.csv", "nine-paths.csv"} {
			var b bytes.Buffer
			if err := text.Render(&b, report.BuildCheck([]check.Report{checkOf(t, name)}), text.Options{Width: width}); err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(b.String()) {
				if w := number.Width(strings.TrimSuffix(line, "\n")); w > width && len(strings.Fields(line)) > 2 {
					t.Errorf("width %d: %d columns: %s", width, w, line)
				}
			}
		}
	}
}

// TestFindings: every claim is in every format, under its source.
func TestFindings(t *testing.T) {
	r := reporttest.NinePaths(5)
	a, err := compare.Analyse(r.Header, r.Records, compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	claims := findings.Published()
	d := report.BuildFindings(claims.Sources, findings.Judge(a, claims.Claims))
	for format, render := range renderers {
		var b bytes.Buffer
		if err := render(&b, d); err != nil {
			t.Error(err)
		}
		for _, c := range claims.Claims {
			if !strings.Contains(b.String(), c.ID) {
				t.Errorf("%s: %s is lost", format, c.ID)
			}
		}
	}
	tally, sections := report.Claims(a)
	if len(sections) == 0 || !strings.Contains(tally, "published claims") {
		t.Errorf("%q, %d sections", tally, len(sections))
	}
}
