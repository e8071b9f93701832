package adapter

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/cnibench/cnibench/internal/measure/facts"
)

// TestJoin: what two batches say is kept, each once; of times the earlier, of warm-ups the longer.
func TestJoin(t *testing.T) {
	early := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var all Batch
	for _, b := range []Batch{
		{Tool: "iperf3 3.12", Title: "a", Created: early.Add(time.Hour), Facts: facts.Facts{"kernel": "6.1"}, Readings: make([]Reading, 1), LeftOut: []string{"x"}},
		{Tool: "netperf 2.7.1", Title: "b", Created: early, Warmup: time.Second, Facts: facts.Facts{"kernel": "6.8"}, Readings: make([]Reading, 2), LeftOut: []string{"y", "x"}},
		{Tool: "iperf3 3.12", Environment: "kubernetes", Readings: make([]Reading, 1)},
	} {
		all.Join(b)
	}
	want := Batch{
		Tool: "iperf3 3.12, netperf 2.7.1", Title: "a; b", Environment: "kubernetes", Created: early, Warmup: time.Second,
		Facts: facts.Facts{"kernel": "6.1 | 6.8"}, Readings: make([]Reading, 4), LeftOut: []string{"x", "y"},
	}
	if diff := cmp.Diff(want, all, cmpopts.EquateEmpty(), cmp.AllowUnexported(Reading{})); diff != "" {
		t.Error(diff)
	}
}
