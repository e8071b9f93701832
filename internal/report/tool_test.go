package report_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/reporttest"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// TestToolsBeside gives a run in which netperf has measured everything too, at twice the cost.
func TestToolsBeside(t *testing.T) {
	r := reporttest.Small(5)
	by := r.Header.Plan.Workloads[0]
	by.Tool = "netperf"
	r.Header.Plan.Workloads = append(r.Header.Plan.Workloads, by)
	for _, rec := range slices.Clone(r.Records) {
		rec.Workload = by
		metrics := map[string]float64{}
		for name, v := range rec.Metrics {
			metrics[name] = 2 * v
		}
		delete(metrics, "rtt.p99") // not every tool has everything
		rec.Metrics = metrics
		r.Records = append(r.Records, rec)
	}
	d, err := reporttest.Build(r.Header, r.Records, report.Options{})
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(d.Appendix, func(l report.Section) bool { return strings.HasPrefix(l.Heading, "Tools beside our engine") })
	if i < 0 {
		t.Fatalf("no such list in %+v", d.Appendix)
	}
	items := d.Appendix[i].Items
	if len(items) != 2 {
		t.Fatalf("%d items for 2 profiles: %+v", len(items), items)
	}
	for _, item := range items {
		if !strings.Contains(item.Name, "pod-to-pod/cross-node rr") || strings.Count(item.Text, "(2.00x)") != 3 ||
			!strings.Contains(item.Text, ", by netperf ") || strings.Contains(item.Text, "99th") {
			t.Errorf("%+v", item)
		}
	}
	// The tool's own tables stand, and nothing is compared across them.
	titles := 0
	for _, s := range d.Sections {
		for _, table := range s.Tables {
			if table.Metric == metric.ServiceDemand && table.Workload == by {
				titles++
			}
		}
	}
	for _, c := range d.Analysis.Comparisons {
		if c.Workload != by && c.Workload != r.Header.Plan.Workloads[0] {
			t.Errorf("a comparison of %s", c.Workload)
		}
	}
	if titles != 1 {
		t.Errorf("%d tables of service demand by the tool", titles)
	}
	for _, n := range d.Needs {
		if n.Workload.Tool != "" {
			t.Errorf("%s is answered by a tool", n.Name)
		}
	}
}
