package report_test

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/html"
	jsonreport "github.com/cnibench/cnibench/internal/report/json"
	"github.com/cnibench/cnibench/internal/report/reporttest"
	"github.com/cnibench/cnibench/internal/report/text"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// podTrials makes trials of new pods with such a median; attached "" is of an earlier version.
func podTrials(profile, attached string, p50, lost float64) []result.Record {
	var out []result.Record
	for i := range 5 {
		p50 := p50
		if p50 < 5e9 {
			p50 *= 1 + float64(i)/1000
		}
		pods := &sample.Pods{Attached: attached, TimeoutNs: 5e9}
		m := map[string]float64{metric.FromDue + ".p50": p50, metric.FromDue + ".mean": p50, metric.FromStart + ".p50": p50 / 2, metric.ErrorRate: lost,
			metric.TTFRUnanswered: 20 * lost, metric.TTFRWait + ".device": p50}
		if attached == "" {
			pods.TimeoutNs, m = 0, map[string]float64{metric.OneDial + ".p50": p50, metric.OneDial + ".mean": p50, metric.ErrorRate: lost}
		}
		out = append(out, result.Record{Type: result.TypeTrial, Status: result.OK, Metrics: m, Client: &sample.Observation{Pods: pods},
			Trial: plan.Trial{Case: plan.Case{Profile: plan.VariantOf(profile), Path: plan.Path{From: plan.Pod, To: plan.Pod, Locality: plan.CrossNode},
				Workload: plan.Workload{Spec: plan.TTFR{}}.Normalize()}, Repetition: i + 1}})
	}
	return out
}

// rendered returns the text, page and JSON of trials.
func rendered(t *testing.T, recs []result.Record, profiles ...string) (all map[string]string) {
	t.Helper()
	p := plan.Plan{Profiles: plan.Variants(profiles...), Baseline: plan.VariantOf(profiles[0]), Workloads: []plan.Workload{{Spec: plan.TTFR{}}}}
	d, err := reporttest.Build(result.Header{Plan: p}, recs, report.Options{})
	if err != nil {
		t.Fatal(err)
	}
	all = map[string]string{}
	for name, render := range map[string]func(io.Writer, report.Document) error{"html": html.Render, "json": jsonreport.Render,
		"text": func(w io.Writer, d report.Document) error {
			return text.Render(w, d, text.Options{Width: 200, All: true})
		}} {
		var b bytes.Buffer
		if err := render(&b, d); err != nil {
			t.Fatal(err)
		}
		all[name] = b.String()
	}
	return all
}

// TestNewPodsSayHowTheyWereAttached in each form, that lower bounds are ones, and that two ways are not compared.
func TestNewPodsSayHowTheyWereAttached(t *testing.T) {
	recs := append(podTrials("canal", sample.AttachedInProcess, 20e6, 0), podTrials("slow", sample.AttachedInProcess, 5e9, 0.6)...)
	recs = append(recs, podTrials("ptp", sample.AttachedByPlugins, 10e6, 0)...)
	all := rendered(t, recs, "canal", "slow", "ptp")
	for name, want := range map[string][]string{
		"text": {"Time to first response from the due time", "from the start of the program", "in process", "by plugins", ">= 5", "no verdict compares one way with another",
			"by plugins: ptp", "in process: canal, slow"},
		"html": {"by plugins", "in process", "&gt;= 5", "no verdict compares one way with another"},
		"json": {`"attached":"by plugins"`, `"attached":"in process"`, `"at_least":true`, `"failed_share":0.6`},
	} {
		for _, w := range want {
			if !strings.Contains(all[name], w) {
				t.Errorf("%s lacks %q", name, w)
			}
		}
	}
	var r struct {
		Comparisons []struct{ Profile, Metric, Verdict string }
	}
	if err := json.Unmarshal([]byte(all["json"]), &r); err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, x := range r.Comparisons {
		if x.Profile == "ptp" {
			t.Errorf("%+v compares pods of plugins with others", x)
		}
		if x.Profile == "slow" && strings.HasSuffix(x.Metric, ".p50") {
			seen++
		}
	}
	if seen == 0 {
		t.Errorf("nothing is compared: %+v", r.Comparisons)
	}
}

// TestNewPodsOfAnEarlierVersion are shown as what they are.
func TestNewPodsOfAnEarlierVersion(t *testing.T) {
	all := rendered(t, append(podTrials("canal", "", 20e6, 0), podTrials("flannel-vxlan", "", 4e6, 0)...), "canal", "flannel-vxlan")
	if said := all["text"]; !strings.Contains(said, "by one dial (an earlier version") || !strings.Contains(said, sample.AttachedUnknown) {
		t.Errorf("%s", said)
	}
}
