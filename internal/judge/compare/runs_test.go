package compare

import (
	"testing"

	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/measure/outcome"
)

// analysisOf has one case of ten trials under each of two metrics; busy of the trials had other work beside them.
func analysisOf(busy int) *Analysis {
	a := &Analysis{}
	for _, m := range []string{"service_demand", "rtt.p50"} {
		c := Cell{Key: Key{Metric: m}}
		c.N = 10
		if busy > 0 {
			c.Warnings = []stat.Warning{{ID: "spread", Trials: 10}, {ID: outcome.OtherLoad, Trials: busy}}
		}
		a.cells = append(a.cells, c)
	}
	return a
}

// The run-to-run error is that of runs beside other work as soon as one of the two was, and a reader sees when it was one
// alone.
func TestRunToRun(t *testing.T) {
	for _, tt := range []struct {
		a, b    int
		beside  bool
		noticed string
	}{{0, 0, false, ""}, {0, 4, true, "0% 40%"}, {4, 0, true, "40% 0%"}, {4, 5, true, ""}} {
		p := &Pair{A: Side{Analysis: analysisOf(tt.a)}, B: Side{Analysis: analysisOf(tt.b)}}
		want := alone
		if tt.beside {
			want = besideWork
		}
		if got := p.runAllowance(); got["rr service_demand"] != want["rr service_demand"] || len(got) != len(want) {
			t.Errorf("%d and %d of 10 trials: %v, want %v", tt.a, tt.b, got, want)
		}
		noticed := ""
		for _, d := range p.Differences {
			noticed += d.A + " " + d.B
		}
		if noticed != tt.noticed {
			t.Errorf("%d and %d of 10 trials: difference %q, want %q", tt.a, tt.b, noticed, tt.noticed)
		}
	}
}

// Runs beside other work are allowed at least as much as runs alone.
func TestRunsTable(t *testing.T) {
	if len(alone) == 0 || len(alone) != len(besideWork) {
		t.Fatalf("%d rows alone, %d beside", len(alone), len(besideWork))
	}
	for k, share := range alone {
		if besideWork[k] < share {
			t.Errorf("%s: %g beside other work, %g alone", k, besideWork[k], share)
		}
	}
}
