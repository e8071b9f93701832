package report_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/reporttest"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// slowed is Small with calico-vxlan's CPU time times f, on another kernel.
func slowed(f float64) reporttest.Result {
	r := reporttest.Small(10)
	r.Header.Facts = facts.Facts{facts.Kernel: "6.99\x1b[2J"}
	for i, rec := range r.Records {
		if rec.Profile == plan.VariantOf("calico-vxlan") {
			r.Records[i].Metrics[metric.ServiceDemand] *= f
		}
	}
	return r
}

func side(t *testing.T, name string, r reporttest.Result) compare.Side {
	t.Helper()
	a, err := compare.Analyse(r.Header, r.Records, compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return compare.Side{Name: name, Header: r.Header, Analysis: a}
}

// The page of a pair names conditions first, then counts, the largest difference and the budgets; marks are verdicts.
func TestPairPage(t *testing.T) {
	p, err := compare.NewPair(side(t, "old", reporttest.Small(10)), side(t, "new", slowed(1.5)), nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := compare.ParseBudget("rr.service_demand > +5%")
	if err != nil {
		t.Fatal(err)
	}
	d := report.BuildPair(report.PairResult{Pair: p, Held: []report.Held{{Budget: b, Holdings: p.Hold([]compare.Budget{b}, func(compare.Key) bool { return true })[0]}}})
	answer := strings.Join(d.Lines, "\n")
	at := -1
	for _, want := range []string{"Different conditions: kernel", "1 worse", "Worse: service_demand calico-vxlan", "Budget rr.service_demand > +5%: broken in 1 of 1 cell:"} {
		i := strings.Index(answer, want)
		if i <= at {
			t.Errorf("%q is missing or not in its place in:\n%s", want, answer)
		}
		at = i
	}
	first := d.Sections[0].Tables[0].Rows[0]
	if !strings.HasPrefix(first.Label, "calico-vxlan ") || first.Entries[1].Verdict != compare.Worse || first.Entries[1].Ratio != "1.50x" || first.Entries[0].Mark() != "" {
		t.Errorf("the largest difference is not first: %+v", first)
	}
	for _, l := range d.Appendix {
		for _, item := range l.Items {
			if strings.ContainsRune(item.Text, '\x1b') {
				t.Errorf("%s: a control character reaches the page: %q", l.Heading, item.Text)
			}
		}
	}
}

// Where the moment makes everything slower, the quotients to the common baseline stay; the page says how far that
// moved.
func TestPairMoved(t *testing.T) {
	later := reporttest.Small(10)
	for i := range later.Records {
		later.Records[i].Metrics[metric.ServiceDemand] *= 1.3
	}
	p, err := compare.NewPair(side(t, "old", reporttest.Small(10)), side(t, "new", later), nil)
	if err != nil {
		t.Fatal(err)
	}
	d := report.BuildPair(report.PairResult{Pair: p})
	table := d.Sections[0].Tables[0]
	if notes := strings.Join(table.Notes, "\n"); !strings.Contains(notes, "quotients to host, measured in turn in both; host itself: +30%.") {
		t.Errorf("what the baseline moved by is not named:\n%s", notes)
	}
	for _, r := range table.Rows {
		if m := r.Entries[1].Verdict; m == compare.Worse || m == compare.Better {
			t.Errorf("%s is marked %s", r.Label, m)
		}
	}
}

// The page of a history names the result with which a level begins, and what changed there; of too few results it says
// that they show no change.
func TestHistoryPage(t *testing.T) {
	page := func(results ...reporttest.Result) report.Document {
		var h compare.Historian
		for i, r := range results {
			r.Header.Created = r.Header.Created.AddDate(0, i, 0)
			h.Add(side(t, fmt.Sprint("run ", i+1), r))
		}
		out, err := h.History()
		if err != nil {
			t.Fatal(err)
		}
		return report.BuildHistory(out)
	}
	old, slow := reporttest.Small(10), slowed(1.5)
	d := page(old, old, old, slow, slow, slow)
	answer := strings.Join(d.Lines, "\n")
	for _, want := range []string{"1 of ", "Since run 4 (2026-06-04), 1 cell; changed conditions: kernel (6.18.44 to 6.99", "service_demand calico-vxlan pod-to-pod/cross-node rr: +50%"} {
		if !strings.Contains(answer, want) {
			t.Errorf("%q is missing in:\n%s", want, answer)
		}
	}
	if !strings.Contains(strings.Join(d.Legend, "\n"), "quotients to host") {
		t.Errorf("the baseline is not named: %s", d.Legend)
	}
	if few := page(old, old, slow, slow); !strings.Contains(few.Lines[0], "4 results, 5 needed") {
		t.Errorf("four results: %s", few.Lines)
	}
}

func TestChange(t *testing.T) {
	for in, want := range map[float64]string{1: "0%", 1.123: "+12%", 1.05: "+5.0%", 0.9: "-10%", 0.95: "-5.0%", 30: "30.0x", 1.0001: "0%", math.NaN(): "–"} {
		if got := report.Change(in); got != want {
			t.Errorf("%g: %q, want %q", in, got, want)
		}
	}
}

// TestPairOfRules: a result whose yardstick was read by an older rule is compared by whole windows, and the answer says so.
func TestPairOfRules(t *testing.T) {
	made := func(name string, cold bool) compare.Side {
		r := reporttest.Small(10)
		for i := range r.Records {
			seen := &sample.Observation{Machine: "m"}
			for n := range 5 {
				x := sample.Interval{StartNs: int64(n) * 1e7, EndNs: int64(n+1) * 1e7, Operations: 100, CPUNs: 5e6, YardNs: 700}
				if cold {
					x.YardNs, x.ColdNs = 0, 1200
				}
				seen.Intervals = append(seen.Intervals, x)
			}
			r.Records[i].Client, r.Records[i].Server = seen, seen
		}
		return side(t, name, r)
	}
	const sentence = "whole windows are compared"
	for name, c := range map[string]struct {
		a, b bool
		said string
	}{"both new": {false, false, ""}, "A old": {true, false, "A was made"}, "B old": {false, true, "B was made"}, "both old": {true, true, ""}} {
		p, err := compare.NewPair(made("a", c.a), made("b", c.b), nil)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Join(report.BuildPair(report.PairResult{Pair: p}).Lines, "\n")
		if strings.Contains(text, sentence) != (c.said != "") || !strings.Contains(text, c.said) {
			t.Errorf("%s: %s", name, text)
		}
		for _, m := range p.Matches {
			if (m.A.Typical == nil) != (m.B.Typical == nil) || c.said != "" && m.A.Typical != nil {
				t.Errorf("%s: %v is shown by two estimates", name, m.Key)
			}
		}
	}
}
