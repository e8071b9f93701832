package figure

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/reporttest"
	"github.com/cnibench/cnibench/internal/tool/golden"
)

// A card has the answer, what it was measured with, and nothing from anywhere else.
func TestCard(t *testing.T) {
	r := reporttest.NinePaths(6)
	d, err := reporttest.Build(r.Header, r.Records, report.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := RenderCard(&b, d); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "card.svg", b.Bytes())
	for _, want := range []string{`width="1200" height="630"`, "macvlan", "requests", "10 Gbit/s", d.RunID(), "kernel 6.18.44"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q", want)
		}
	}
	if n := strings.Count(b.String(), "http"); n != 1 { // the name space
		t.Errorf("%d addresses", n)
	}
	if err := RenderCard(io.Discard, report.Document{}); err == nil {
		t.Error("a card of nothing")
	}
}
