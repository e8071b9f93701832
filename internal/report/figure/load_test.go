package figure

import (
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/report/plot"
	"github.com/cnibench/cnibench/internal/report/reporttest"
)

// TestLoads: a curve for each path, with a line and a ring for each profile, its numbers, and words for those who cannot
// see it.
func TestLoads(t *testing.T) {
	d := document(t, reporttest.Loads(5))
	n := 0
	for _, f := range All(d) {
		if f.Kind != "load" {
			continue
		}
		n++
		var lines []string
		for _, r := range f.Numbers.Rows {
			if !slices.Contains(lines, r.Name) {
				lines = append(lines, r.Name)
			}
		}
		if f.Heading != f.Path.String() || len(f.Numbers.Rows) != 5*len(lines) || len(f.Drawing.Groups) != 1+len(lines) {
			t.Errorf("%s: %d rows of numbers, %d groups, %d lines", Name(f), len(f.Numbers.Rows), len(f.Drawing.Groups), len(lines))
		}
		for i, l := range lines {
			if !strings.Contains(f.Drawing.Desc, l+" knee 50%") {
				t.Errorf("%s does not say the knee of %s: %s", Name(f), l, f.Drawing.Desc)
			}
			rings := 0
			for _, s := range f.Drawing.Groups[1+i].Shapes {
				if s.Color == plot.Paper {
					rings++
				}
			}
			if rings != 1 {
				t.Errorf("%s: %d rings around the knee of %s", Name(f), rings, l)
			}
		}
	}
	if n != 2 {
		t.Errorf("%d figures of two paths", n)
	}
}
