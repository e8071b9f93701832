package figure

import (
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/plot"
	"github.com/cnibench/cnibench/internal/report/reporttest"
)

// document has details too: every trial the same histogram.
func document(t *testing.T, r reporttest.Result) report.Document {
	t.Helper()
	for i := range r.Records {
		rec := &r.Records[i]
		o := &sample.Observation{RTT: sample.NewHistogram()}
		for i := range int64(200) {
			o.RTT.Record(5000 + 100*i)
		}
		if !rec.Workload.Traits().Exchanges() {
			o.RTT = nil
		}
		rec.Client, rec.Server = o, o
	}
	d, err := reporttest.Build(r.Header, r.Records, report.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestAll(t *testing.T) {
	d := document(t, reporttest.NinePaths(5))
	kinds := map[string]int{}
	names := map[string]bool{}
	for _, f := range All(d) {
		kinds[f.Kind]++
		if names[Name(f)] {
			t.Errorf("two figures are called %s", Name(f))
		}
		names[Name(f)] = true
		if f.Drawing.Title == "" || f.Drawing.Desc == "" || f.Heading == "" {
			t.Errorf("%s lacks words: %q, %q, %q", Name(f), f.Drawing.Title, f.Drawing.Desc, f.Heading)
		}
		if len(f.Numbers.Rows) == 0 {
			t.Errorf("%s has no numbers", Name(f))
		}
		for _, r := range f.Numbers.Rows {
			if len(r.Cells) != len(f.Numbers.Columns) {
				t.Errorf("%s: %d cells in %d columns", Name(f), len(r.Cells), len(f.Numbers.Columns))
			}
		}
	}
	tables := 0
	for _, s := range d.Sections {
		tables += len(s.Tables)
	}
	// Nine paths and three workloads, two of which have round trips.
	want := map[string]int{Heat: tables, Dots: 9 * tables, "percentiles": 18}
	for k, n := range want {
		if kinds[k] != n {
			t.Errorf("%d figures of kind %s, want %d", kinds[k], k, n)
		}
	}
}

// Every sample of every shown cell is a dot of a plot, and in its table.
func TestEverySampleIsShown(t *testing.T) {
	d := document(t, reporttest.NinePaths(5))
	shown, listed := 0, 0
	for _, f := range All(d) {
		if f.Kind != Dots {
			continue
		}
		for _, g := range f.Drawing.Groups {
			for _, s := range g.Shapes {
				if s.Kind == plot.Spots {
					shown += len(s.Points)
				}
			}
		}
		for _, r := range f.Numbers.Rows {
			listed += len(strings.Fields(r.Cells[3]))
		}
	}
	want := 0
	for _, s := range d.Sections {
		for _, tab := range s.Tables {
			for _, r := range tab.Rows {
				for _, e := range r.Entries {
					if e.Cell != nil {
						want += len(e.Cell.Samples)
					}
				}
			}
		}
	}
	if want == 0 || shown != want || listed != want {
		t.Errorf("%d samples are drawn, %d listed, %d there", shown, listed, want)
	}
}

// The shade follows the verdict, and the size of the ratio in both directions; a name that claims nothing is neutral.
func TestShade(t *testing.T) {
	entry := func(m compare.Verdict, ratio float64) report.Entry {
		return report.Entry{Verdict: m, Comparison: &compare.Comparison{Effect: stat.Effect{Ratio: ratio}}}
	}
	for _, c := range []struct {
		e    report.Entry
		want plot.Color
	}{
		{entry(compare.Worse, 1.05), "worse1"}, {entry(compare.Worse, 1.3), "worse2"}, {entry(compare.Worse, 2.4), "worse3"}, {entry(compare.Worse, 40), "worse4"},
		{entry(compare.Better, 1/1.05), "better1"}, {entry(compare.Better, 1/1.3), "better2"}, {entry(compare.Better, 3), "better4"},
		{entry(compare.Worse, 1/3.0), "worse4"}, // goodput of a third
		{entry(compare.Worse, math.NaN()), "worse1"}, {entry(compare.Same, 1.2), plot.Same}, {entry(compare.Inconclusive, 9), plot.Neutral},
		{report.Entry{Verdict: compare.Better}, "better1"}, {report.Entry{}, plot.Neutral},
	} {
		if got := Shade(c.e); got != c.want {
			t.Errorf("mark %q, %+v: got %s, want %s", c.e.Verdict, c.e.Comparison, got, c.want)
		}
	}
}

// A hostile result gives file names that are safe in every shell and file system, and draws.
func TestNamesOfFiles(t *testing.T) {
	safe := regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,119}$`)
	for _, r := range []reporttest.Result{reporttest.NinePaths(2), reporttest.Hostile(), reporttest.NotNumbers(), reporttest.AllFailed()} {
		all := All(document(t, r))
		if len(all) == 0 {
			t.Error("no figures")
		}
		for _, f := range all {
			if !safe.MatchString(Name(f)) {
				t.Errorf("file name %q", Name(f))
			}
		}
	}
	f := report.Figure{Kind: Dots, Workload: plan.Workload{Spec: plan.RR{Protocol: "../../etc/passwd\x00"}}}
	if got := Name(f); !safe.MatchString(got) || strings.Contains(got, "..") {
		t.Errorf("file name %q", got)
	}
	if All(report.Document{}) != nil {
		t.Error("figures of nothing")
	}
}

func FuzzSlug(f *testing.F) {
	f.Add("dots rtt.p99 rr(tcp)")
	f.Add("../../x\x00ÄÖ")
	safe := regexp.MustCompile(`^([a-z0-9][a-z0-9-]*)?$`)
	f.Fuzz(func(t *testing.T, s string) {
		if got := Slug(s); !safe.MatchString(got) || len(got) > 120 {
			t.Fatalf("%q became %q", s, got)
		}
	})
}
