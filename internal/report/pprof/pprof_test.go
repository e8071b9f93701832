package pprof

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"

	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// document is a report of a case with samples, whose first trial lost them.
func document(t *testing.T, keep bool) report.Document {
	t.Helper()
	k := plan.Case{Profile: plan.VariantOf("canal"), Path: plan.ZeroPath, Workload: plan.Workload{Spec: plan.RR{}}.Normalize()}
	in := report.Collector{Stacks: keep}
	for rep := 1; rep <= 4; rep++ {
		o := &sample.Observation{Intervals: []sample.Interval{{EndNs: 1e7, Operations: 1, CPUNs: 1}}}
		rec := result.Record{Type: result.TypeTrial, Trial: plan.Trial{Case: k, Repetition: rep}, Status: result.OK, Client: o, Server: o,
			Metrics: map[string]float64{metric.ServiceDemand: 1000}}
		if err := in.Add(&rec); err != nil {
			t.Fatal(err)
		}
		rec.Type, rec.Stacks = result.TypeSampled, &sample.Stacks{Event: "cpu-clock", Rate: 500}
		for range rep {
			rec.Stacks.Add(0, sample.Counted{Samples: 1, Weight: 1}, "node-1", "entry_SYSCALL_64", "odd;name\x1b")
		}
		rec.Stacks.Add(0, sample.Counted{Samples: 1, Weight: 1}, "switch", "process_backlog")
		if err := in.Add(&rec); err != nil {
			t.Fatal(err)
		}
	}
	d, err := in.Build(result.Header{Created: time.Unix(1, 0), Plan: plan.Plan{Profiles: plan.Variants("canal"), Baseline: plan.VariantOf("canal")}}, report.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestRender: the profile has each stack once, innermost frame first, with its samples, their time and labels.
func TestRender(t *testing.T) {
	var b bytes.Buffer
	if err := Render(&b, document(t, true)); err != nil {
		t.Fatal(err)
	}
	p, err := profile.Parse(&b)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.CheckValid(); err != nil {
		t.Error(err)
	}
	if len(p.Sample) != 2 {
		t.Fatalf("%d samples", len(p.Sample))
	}
	s := p.Sample[0]
	if s.Value[0] != 10 || s.Value[1] != 20_000_000 || s.Location[0].Line[0].Function.Name != "odd;name\x1b" || s.Label["profile"][0] != "canal" {
		t.Errorf("%+v", s)
	}
	b.Reset()
	if err := Folded(&b, document(t, true)); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Split(b.String(), "\n"); !strings.HasPrefix(lines[0], "canal;host-to-host/cross-node;rr;node-1;entry_SYSCALL_64;odd,name") || !strings.HasSuffix(lines[0], " 10") || strings.Contains(lines[0], "\x1b") {
		t.Errorf("%q", lines)
	}
}

// TestNoStacks: without stacks there is no profile, and the error says what to do.
func TestNoStacks(t *testing.T) {
	var b bytes.Buffer
	for _, render := range []func(d report.Document) error{
		func(d report.Document) error { return Render(&b, d) }, func(d report.Document) error { return Folded(&b, d) },
	} {
		if err := render(document(t, false)); !errors.Is(err, report.ErrNoStacks) || b.Len() > 0 {
			t.Errorf("%v, %d bytes", err, b.Len())
		}
	}
}
