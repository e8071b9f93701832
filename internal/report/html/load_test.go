package html

import (
	"bytes"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/reporttest"
)

// TestLoadCurvesOnThePage: a chapter with a drawing for each path, and none where nothing was loaded.
func TestLoadCurvesOnThePage(t *testing.T) {
	for name, r := range map[string]reporttest.Result{"loads": reporttest.Loads(5), "closed": reporttest.NinePaths(2)} {
		d, err := reporttest.Build(r.Header, r.Records, report.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := Render(&b, d); err != nil {
			t.Fatal(err)
		}
		_, chapter, found := strings.Cut(b.String(), `<section id="load" `)
		if found != (name == "loads") || found != strings.Contains(b.String(), `<a href="#load">Latency against load</a>`) {
			t.Fatalf("%s: chapter %v", name, found)
		}
		if !found {
			continue
		}
		chapter, _, _ = strings.Cut(chapter, "\n<section id=")
		if n := strings.Count(chapter, "<svg"); n != 2 || !strings.Contains(chapter, "canal knee 50%") || !strings.Contains(chapter, "The knee is the highest load") {
			t.Errorf("%d drawings in %.2000s", n, chapter)
		}
	}
}
