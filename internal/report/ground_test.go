package report_test

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/judge/check"
	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/figure"
	"github.com/cnibench/cnibench/internal/report/markdown"
	"github.com/cnibench/cnibench/internal/report/reporttest"
	"github.com/cnibench/cnibench/internal/report/text"
	"github.com/cnibench/cnibench/internal/vocab/finding"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// bothModels is a result with bulk data in both NIC models: without offload each KB costs eight times as much.
func bothModels(t *testing.T) reporttest.Result {
	t.Helper()
	r := reporttest.NinePaths(6)
	w, err := plan.ParseWorkload("stream(nic=wire)")
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Plan.Workloads = append(r.Header.Plan.Workloads, w)
	for _, rec := range slices.Clone(r.Records) {
		if rec.Type != result.TypeTrial || rec.Workload.String() != "stream" || w.Barred(rec.Path) != "" {
			continue
		}
		rec.Workload, rec.Metrics = w, maps.Clone(rec.Metrics)
		if rec.Metrics != nil {
			rec.Metrics[metric.ServiceDemand] *= 8
		}
		r.Records = append(r.Records, rec)
	}
	return r
}

// TestBothModelsFit: at 80 columns the second NIC model gives way to every other need, and keeps its line below the table.
func TestBothModelsFit(t *testing.T) {
	d := build(t, bothModels(t), report.Options{})
	const others, left, line = "requests  connects  bulk       Services  tail", "bulk (10 Gbit/s, no NIC offload) did not fit", "\n  no NIC offload  macvlan; "
	for width, fits := range map[int]bool{80: false, 97: true} {
		var b strings.Builder
		if err := text.Render(&b, d, text.Options{ASCII: true, Width: width}); err != nil {
			t.Fatal(err)
		}
		if out := b.String(); strings.Contains(out, left) == fits || !fits && !strings.Contains(out, others) || !strings.Contains(out, line) {
			t.Errorf("%d columns:\n%s", width, out)
		}
	}
}

// Every number of bulk data names its NIC model, and the first screen says what was measured where.
func TestBulkNamesItsModel(t *testing.T) {
	r := bothModels(t)
	r.Header.Facts[facts.CPUModel] = "A CPU"
	d := build(t, r, report.Options{})
	s := d.Summary
	if s.Model != "Lab model, NIC model ideal; bulk with no NIC offload beside it." || s.Machine != "A CPU, 2 CPUs, kernel 6.18.44" {
		t.Errorf("model %q, machine %q", s.Model, s.Machine)
	}
	if !strings.Contains(s.Lacks, "Best, but without Services and NetworkPolicy: macvlan") || strings.Contains(s.Lacks, "calico") {
		t.Errorf("what the best lack: %q", s.Lacks)
	}
	if !strings.HasPrefix(s.Message, "Bulk") && !strings.HasPrefix(s.Message, "Requests") || !strings.Contains(s.Message, "macvlan is best") {
		t.Errorf("message %q", s.Message)
	}
	var names, columns, titles []string
	for _, n := range d.Needs {
		names = append(names, n.Name)
	}
	for _, c := range s.Columns {
		columns = append(columns, c.Name+", "+c.Unit)
	}
	for _, x := range d.Sections {
		for _, table := range x.Tables {
			if table.Workload.Traits().Bulk() {
				titles = append(titles, table.Title)
			}
		}
	}
	for _, want := range []string{"Bulk transfer, ideal NIC", "Bulk transfer, no NIC offload"} {
		if !slices.Contains(names, want) {
			t.Errorf("needs: %q", names)
		}
	}
	for _, want := range []string{"bulk, 10 Gbit/s, ideal NIC", "bulk, 10 Gbit/s, no NIC offload"} {
		if !slices.Contains(columns, want) {
			t.Errorf("columns: %q", columns)
		}
	}
	for _, title := range titles {
		if want := map[bool]string{true: "no NIC offload", false: "ideal NIC"}[strings.Contains(title, "nic=wire")]; !strings.HasSuffix(title, ", "+want) {
			t.Errorf("table %q does not end with %s", title, want)
		}
	}
	if !strings.Contains(s.Proofs, "but not for bulk with no NIC offload") {
		t.Errorf("proofs: %s", s.Proofs)
	}
	var screen, shared, comment bytes.Buffer
	if err := text.Render(&screen, d, text.Options{Width: 80}); err != nil {
		t.Fatal(err)
	}
	if err := figure.RenderCard(&shared, d); err != nil {
		t.Fatal(err)
	}
	if err := markdown.GitHub(&comment, d); err != nil {
		t.Fatal(err)
	}
	for name, out := range map[string]string{"terminal": screen.String(), "card": shared.String(), "GitHub": comment.String()} {
		for _, want := range []string{"NIC model ideal", "no NIC offload", "NetworkPolicy: macvlan", "A CPU"} {
			if !strings.Contains(strings.Join(strings.Fields(out), " "), want) {
				t.Errorf("%s has no %q", name, want)
			}
		}
	}
	if !strings.Contains(shared.String(), "macvlan is best, canal needs") {
		t.Error("the card's title is not the answer")
	}
}

// Without a lab there is no NIC model, and variants with models of their own say it by their names.
func TestNoModelWhereNoneIs(t *testing.T) {
	r := reporttest.NinePaths(4)
	r.Header.Origin = "netperf"
	if s := build(t, r, report.Options{}).Summary; len(s.Model) > 0 {
		t.Errorf("imported: %q", s.Model)
	}
	r = reporttest.NinePaths(4)
	for i := range r.Records {
		if r.Records[i].Profile == plan.VariantOf("canal") {
			r.Records[i].Profile = plan.VariantOf("canal(nic=wire)")
		}
	}
	r.Header.Plan.Profiles = append(r.Header.Plan.Profiles, plan.VariantOf("canal(nic=wire)"))
	for _, n := range build(t, r, report.Options{}).Needs {
		if strings.HasPrefix(n.Name, "Bulk") && n.Name != "Bulk transfer" {
			t.Errorf("profiles differ in their model, and all are called %q", n.Name)
		}
	}
}

// What check fails for stands in the report.
func TestReportSaysWhatCheckSays(t *testing.T) {
	r := reporttest.NinePaths(5)
	const said = "Not plausible by 2 rules, same-node-slower and sums"
	o := report.Options{Checked: check.Report{Findings: []finding.Finding{
		{ID: "same-node-slower", Severity: finding.Doubtful}, {ID: "same-node-slower", Severity: finding.Doubtful},
		{ID: "sums", Severity: finding.Impossible}, {ID: "spread", Severity: finding.Note},
	}}}
	d := build(t, r, o)
	if !strings.Contains(strings.Join(d.Lines, " "), said) || !strings.Contains(strings.Join(d.Summary.Notes, " "), said) {
		t.Errorf("answer %q, notes %q", d.Lines, d.Summary.Notes)
	}
	o.Checked.Findings = o.Checked.Findings[3:]
	if d := build(t, r, o); strings.Contains(strings.Join(d.Lines, " "), "plausible") {
		t.Errorf("a note is no alarm: %q", d.Lines)
	}
}
