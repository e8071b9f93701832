package report_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/plan/mesh"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/html"
	"github.com/cnibench/cnibench/internal/report/json"
	"github.com/cnibench/cnibench/internal/report/text"
)

// meshed gives each record of a run over pairs to add: n nodes of which n3 has two milliseconds of delay, and a link without
// TCP.
func meshed(n int, which string, add func(*result.Record)) result.Header {
	p := plan.Default()
	p.Profiles, p.Baseline, p.Twin, p.Repetitions, p.Pairs.Which = plan.Variants("calico-vxlan"), plan.VariantOf("calico-vxlan"), false, 2, which
	p.Lab.Plants = []mesh.Plant{{Node: "n3", Delay: 2 * time.Millisecond}}
	h := result.Header{Schema: result.Schema, Plan: p, Profiles: []result.Profile{{Name: plan.VariantOf("calico-vxlan")}}}
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("n%d", i+1))
		h.Nodes = append(h.Nodes, mesh.Node{Name: names[i]})
	}
	r := rand.New(rand.NewPCG(1, 2))
	s := p.Pairs.Schedule(names, 7)
	for rep := 1; rep <= 2; rep++ {
		for i := range s.Rounds() {
			for _, pair := range s.Round(i, rep) {
				for at, rtt := range map[plan.Path]float64{plan.ZeroPath: 25e3, {From: plan.Pod, To: plan.Pod, Locality: plan.CrossNode}: 45e3} {
					if pair.From == "n3" || pair.To == "n3" {
						rtt += 2e6
					}
					rtt *= math.Exp(0.05 * r.NormFloat64())
					rec := result.Record{Type: result.TypeTrial, Status: result.OK, Metrics: map[string]float64{"rtt.p50": rtt, "transaction_rate": 1e9 / rtt},
						Trial: plan.Trial{Case: plan.Case{Profile: plan.VariantOf("calico-vxlan"), Path: at, Workload: plan.Workload{Spec: plan.RR{}}.Normalize()}, Repetition: rep, Pair: pair}}
					if pair.From == "n5" && pair.To == "n9" || pair.From == "n9" && pair.To == "n5" {
						rec.Status, rec.Metrics, rec.Error = result.Failed, nil, &result.Failure{Kind: "connect", Message: "refused"}
					}
					add(&rec)
				}
			}
		}
	}
	return h
}

// TestNodesPage: a report names the node and the link, says what was planted, and draws the pairs within 80 columns.
func TestNodesPage(t *testing.T) {
	var c report.Collector
	h := meshed(16, mesh.All, func(rec *result.Record) {
		if err := c.Add(rec); err != nil {
			t.Fatal(err)
		}
	})
	d, err := c.Build(h, report.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := text.Render(&b, d, text.Options{Width: 80}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"16 nodes, 120 pairs measured", "node n3: ", "n3=delay:2ms", "link n5 - n9: failed", "·  ·  #  ·"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	for line := range strings.SplitSeq(b.String(), "\n") {
		if len([]rune(line)) > 80 {
			t.Errorf("%d columns: %s", len([]rune(line)), line)
		}
	}
}

// TestNodesPageNamesTheProfile: of two profiles in one run, a finding names the one that it is about.
func TestNodesPageNamesTheProfile(t *testing.T) {
	var c report.Collector
	h := meshed(16, mesh.All, func(rec *result.Record) {
		other := *rec
		other.Profile = plan.VariantOf("canal")
		if rec.Metrics["rtt.p50"] > 1e6 { // n3, which is not slow with canal
			rtt := map[bool]float64{true: 45e3, false: 25e3}[rec.Path.From == plan.Pod]
			other.Metrics = map[string]float64{"rtt.p50": rtt, "transaction_rate": 1e9 / rtt}
		}
		for _, r := range []*result.Record{rec, &other} {
			if err := c.Add(r); err != nil {
				t.Fatal(err)
			}
		}
	})
	h.Plan.Profiles = plan.Variants("calico-vxlan", "canal")
	h.Profiles = append(h.Profiles, result.Profile{Name: plan.VariantOf("canal")})
	d, err := c.Build(h, report.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := text.Render(&b, d, text.Options{Width: 120}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), "node n3 with calico-vxlan") || strings.Contains(b.String(), "node n3 with canal") {
		t.Errorf("the finding does not name its profile in\n%s", b.String())
	}
}

// BenchmarkManyPairs reports what a report of 1,000 nodes and all their pairs takes: docs/how-to/find-the-slow-node.md.
func BenchmarkManyPairs(b *testing.B) {
	for b.Loop() {
		var c report.Collector
		h := meshed(1000, mesh.All, func(rec *result.Record) {
			if err := c.Add(rec); err != nil {
				b.Fatal(err)
			}
		})
		d, err := c.Build(h, report.Options{})
		if err != nil {
			b.Fatal(err)
		}
		var seen runtime.MemStats
		runtime.ReadMemStats(&seen)
		b.ReportMetric(float64(seen.Sys)/1e6, "MB")
		for name, render := range map[string]func(*bytes.Buffer) error{
			"text": func(to *bytes.Buffer) error { return text.Render(to, d, text.Options{Width: 80}) },
			"html": func(to *bytes.Buffer) error { return html.Render(to, d) },
			"json": func(to *bytes.Buffer) error { return json.Render(to, d) },
		} {
			var out bytes.Buffer
			if err := render(&out); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(out.Len())/1e3, "kB-"+name)
		}
	}
}
