package report_test

import (
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/reporttest"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// TestLossIsLocated tells where datagrams were lost, and of a search that this was above its result.
func TestLossIsLocated(t *testing.T) {
	r := reporttest.Small(3)
	search := plan.Workload{Spec: plan.Throughput{}}.Normalize()
	r.Header.Plan.Workloads = []plan.Workload{search}
	for i := range r.Records {
		if r.Records[i].Metrics == nil {
			continue
		}
		r.Records[i].Workload = search
		r.Records[i].Metrics = map[string]float64{
			metric.Throughput: 9e8, metric.FirstFailing: 9.5e8, "loss.qdisc": 0.04, "loss.socket_buffer": 0.01, "loss.path": 0,
		}
	}
	var items []report.Item
	for _, l := range build(t, r, report.Options{}).Appendix {
		if l.Heading == "Where datagrams were lost" {
			items = l.Items
		}
	}
	if len(items) == 0 {
		t.Fatal("the report does not say")
	}
	want := "throughput: above the throughput, at 950 Mbit/s, 1% in the receiving socket's buffer, 4% in a queueing discipline"
	for _, i := range items {
		if !strings.HasSuffix(i.Text, want) {
			t.Errorf("%s: %s", i.Name, i.Text)
		}
	}
	for _, l := range build(t, reporttest.Small(3), report.Options{}).Appendix {
		if l.Heading == "Where datagrams were lost" {
			t.Errorf("nothing was lost, and the report says %v", l.Items)
		}
	}
}
