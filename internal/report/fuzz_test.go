package report_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/judge/impact"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/report"
	reportjson "github.com/cnibench/cnibench/internal/report/json"
	"github.com/cnibench/cnibench/internal/report/markdown"
	"github.com/cnibench/cnibench/internal/report/text"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// odd are values that a file can hold and arithmetic stumbles over.
var odd = []float64{0, -1, 5e-324, 1e-300, 1e300, math.MaxFloat64, -math.MaxFloat64, math.Copysign(0, -1)}

// trialsOf makes a result out of any bytes, four a trial: its case, its repetition, its metric and fate, its value. So
// every input is a file that the reader takes, whatever the numbers in it are.
func trialsOf(b []byte) (result.Header, []result.Record) {
	profiles := plan.Variants("raw", "raw~twin", "host", "canal")
	workloads := []plan.Workload{{Spec: plan.RR{}}, {Spec: plan.Stream{Protocol: plan.UDP}}}
	metrics := []string{metric.ServiceDemand, metric.Goodput, metric.FrameLossRate, metric.SoftIRQShare, "rtt.p99", "from_the_future"}
	p := plan.Default()
	p.Profiles = plan.Variants("host", "canal")
	h := result.Header{Schema: result.Schema, Plan: p}
	var recs []result.Record
	for x := range slices.Chunk(b[:len(b)-len(b)%4], 4) {
		v := float64(x[3])
		if int(x[3]) < len(odd) {
			v = odd[x[3]]
		}
		rec := result.Record{
			Type: result.TypeTrial, Status: result.OK, WallNs: int64(x[0]),
			Trial: plan.Trial{Repetition: 1 + int(x[1]%12), Case: plan.Case{
				Profile: profiles[x[0]%4], Path: plan.Paths[x[0]/4%4], Workload: workloads[x[0]/16%2].Normalize(),
			}},
		}
		if fate := x[2] >> 5; fate == 7 {
			rec.Status, rec.Error = result.Failed, &result.Failure{Kind: "timeout", Message: "no reply"}
		} else {
			rec.Metrics = map[string]float64{metrics[int(x[2])%len(metrics)]: v}
		}
		if x[2] == 255 {
			rec = result.Record{Type: result.TypeEnd, End: &result.End{Reason: "budget", WallNs: int64(x[3]), Trials: int(x[1])}}
		}
		recs = append(recs, rec)
	}
	return h, recs
}

// fileOf writes a result as its file has it.
func fileOf(t *testing.T, h result.Header, recs []result.Record) *bytes.Buffer {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	err := e.Encode(h)
	for _, rec := range recs {
		var line any = rec
		if rec.Type == result.TypeEnd {
			line = map[string]any{"type": rec.Type, "end": rec.End} // as a Writer does
		}
		err = errors.Join(err, e.Encode(line))
	}
	if err != nil {
		t.Fatal(err)
	}
	return &b
}

// FuzzReport goes all the way from a file to the page with trials of any kind: alone, beside itself and as a history it
// is reported without a panic, and as JSON that can be read.
func FuzzReport(f *testing.F) {
	var seed []byte
	for i := range 160 {
		seed = append(seed, byte(i%32), byte(i/32), 0, byte(100+i%7))
	}
	f.Add(seed)
	f.Add([]byte{0, 1, 0, 5, 0, 2, 0, 6, 2, 1, 0, 4, 2, 2, 224, 0, 2, 3, 255, 9})
	f.Fuzz(func(t *testing.T, b []byte) {
		h, recs := trialsOf(b[:min(len(b), 640)])
		r, err := result.NewReader(fileOf(t, h, recs), "r")
		if err != nil {
			t.Fatal(err)
		}
		r.Slim()
		var page report.Collector
		var cells compare.Collector
		for range recs {
			rec, err := r.Next()
			if err := errors.Join(err, page.Add(&rec), cells.Add(&rec)); err != nil {
				t.Fatal(err)
			}
		}
		d, err := page.Build(r.Header(), report.Options{Impact: []impact.Work{{Kind: impact.Requests, Amount: 1e6, Text: "1M"}}})
		if err != nil {
			t.Fatal(err)
		}
		inWords(t, d)
		var out bytes.Buffer
		if err := errors.Join(reportjson.Render(&out, d), text.Render(io.Discard, d, text.Options{}), text.Render(io.Discard, d, text.Options{All: true}), markdown.Render(io.Discard, d)); err != nil {
			t.Fatal(err)
		}
		if !json.Valid(out.Bytes()) {
			t.Fatalf("not JSON: %s", out.Bytes())
		}
		a, err := cells.Analyse(r.Header(), compare.Options{})
		if err != nil {
			t.Fatal(err)
		}
		together(t, compare.Side{Name: "r", Header: r.Header(), Analysis: a})
	})
}

// inWords checks that what the document says in words stays within its verdicts.
func inWords(t *testing.T, d report.Document) {
	var all []report.Conclusion
	for _, s := range d.Sections {
		for _, table := range s.Tables {
			all = append(all, table.Conclusions...)
		}
	}
	for _, n := range d.Needs {
		all = append(all, n.Conclusion)
	}
	for _, c := range all {
		if err := honest(c); err != nil {
			t.Fatalf("%v: %s", err, c.Text)
		}
	}
}

// together sets a result beside itself and behind itself.
func together(t *testing.T, side compare.Side) {
	p, err := compare.NewPair(side, side, nil)
	if err != nil {
		return // it has no cell
	}
	for _, m := range p.Matches {
		if m.Verdict == compare.Better || m.Verdict == compare.Worse {
			t.Fatalf("it differs from itself: %+v", m)
		}
	}
	b, err := compare.ParseBudget("service_demand > +5%")
	if err != nil {
		t.Fatal(err)
	}
	r := report.PairResult{Pair: p, Held: []report.Held{{Budget: b, Holdings: p.Hold([]compare.Budget{b}, func(compare.Key) bool { return true })[0]}}, State: p.Judge()}
	var out bytes.Buffer
	if err := errors.Join(reportjson.Render(&out, report.BuildPair(r)), text.Render(io.Discard, report.BuildPair(r), text.Options{})); err != nil {
		t.Fatal(err)
	}
	var h compare.Historian
	h.Add(side)
	h.Add(side)
	if history, err := h.History(); err == nil {
		if len(history.Events()) > 0 {
			t.Fatalf("it changes: %+v", history.Events())
		}
		if err := errors.Join(reportjson.Render(&out, report.BuildHistory(history)), text.Render(io.Discard, report.BuildHistory(history), text.Options{})); err != nil {
			t.Fatal(err)
		}
	}
	for doc := range strings.SplitSeq(strings.TrimSuffix(out.String(), "}\n"), "\n}\n") {
		if !json.Valid([]byte(doc + "\n}")) {
			t.Fatalf("not JSON: %s", doc)
		}
	}
}
