package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/judge/findings"
)

// TestPage: every claim of a reproduction is a row of the page, every figure a row of the file, and the first table counts
// them.
func TestPage(t *testing.T) {
	a := article{source: findings.Source{ID: "x", Title: "An article | of one"}, command: "cnibench reproduce x"}
	const said = `{"figures": [
		{"profile": "a", "path": "p", "workload": "rr", "metric": "rtt.p50", "unit": "ns", "published": 1500, "outcome": "not comparable", "why": "absolute"},
		{"profile": "b", "path": "p", "workload": "rr", "metric": "rtt.p50", "unit": "ns", "published": 3000, "published_ratio": 2,
		 "ratio": 2.1, "ratio_low": 2, "ratio_high": 2.2, "outcome": "reproduced"}],
		"claims": [{"id": "x.y", "statement": "B is slower.", "outcome": "not testable here", "evidence": ["needs at least 4 CPUs", "saw"]}],
		"checks": [{"findings": [{}, {}]}, {"findings": []}]}`
	if err := json.Unmarshal([]byte(said), &a); err != nil {
		t.Fatal(err)
	}
	got := page([]article{a})
	for _, want := range []string{
		"| `x` | figures | 1 | 0 | 0 | 0 | 1 |", "| `x` | claims | 0 | 0 | 0 | 0 | 1 |", `## An article \| of one`, "2 findings about the article",
		"Its 2 figures are in [articles.csv](data/articles.csv).", "| `x.y`: B is slower. | not comparable | needs at least 4 CPUs; and 1 more |",
	} {
		if !strings.Contains(strings.ReplaceAll(got, "µs", "us"), want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	const rows = "x,a,p,rr,rtt.p50,1.50 us,,,,,not comparable,absolute\nx,b,p,rr,rtt.p50,3.00 us,2.00x,2.10x,2.00x,2.20x,reproduced,\n"
	if got := strings.ReplaceAll(figures([]article{a}), "µs", "us"); !strings.HasSuffix(got, ",why\n"+rows) {
		t.Errorf("figures:\n%s\nwant:\n%s", got, rows)
	}
}
