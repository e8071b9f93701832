package report

import (
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/judge/explain"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// TestSampleNotes: what is missing from a side is named, and a side without faults has one note.
func TestSampleNotes(t *testing.T) {
	side := func(change func(*explain.Side)) explain.Side {
		s := explain.Side{
			Case: plan.Case{Profile: "canal"}, Samples: 900, Trials: 3, Event: "cpu-clock", Rate: 499, Foreign: 20,
			Parts: []explain.Share{{Part: explain.Part{ID: "ip"}, Share: 0.99}, {Part: explain.Unexplained, Share: 0.01}},
		}
		change(&s)
		return s
	}
	if notes := sampleNotes(side(func(*explain.Side) {})); len(notes) != 1 || notes[0] != "canal: 900 samples by cpu-clock at 499 Hz in 3 trials." {
		t.Errorf("%q", notes)
	}
	for want, change := range map[string]func(*explain.Side){
		"canal: 7 samples were lost.": func(s *explain.Side) { s.Lost = 7 },
		"canal: the stacks of 3 samples were cut short: missing are their outermost functions (kernel.perf_event_max_stack).":   func(s *explain.Side) { s.Cut = 3 },
		"canal: the kernel paused the sampling 2 times.":                                                                        func(s *explain.Side) { s.Throttled = 2 },
		"canal: the path is mostly idle: 90% of the samples are of idle CPUs and other tasks, and the parts stand on the rest.": func(s *explain.Side) { s.Foreign = 8100 },
		"canal: 1 sampled trial without samples: the client was killed.":                                                        func(s *explain.Side) { s.Failed, s.Failure = 1, "the client was killed" },
		"canal: missing are names of kernel functions, so nothing is explained.":                                                func(s *explain.Side) { s.Missing = []string{"names of kernel functions, so nothing is explained"} },
		"canal: 60% is not explained: this kernel has functions that the table of parts does not know.":                         func(s *explain.Side) { s.Parts[1].Share = 0.6 },
		"canal: 900 samples by cpu-clock at 499 Hz in 3 trials; sampling takes 2% of the CPU time.":                             func(s *explain.Side) { cost := 0.02; s.Cost = &cost },
	} {
		if notes := sampleNotes(side(change)); notes[len(notes)-1] != want {
			t.Errorf("want %q in\n%s", want, strings.Join(notes, "\n"))
		}
	}
}

// TestCounterGrid: processor counters of sides, absent for a side without, and no table where the machine has none.
func TestCounterGrid(t *testing.T) {
	rr := plan.Workload{Spec: plan.RR{}}.Normalize()
	none := explain.Side{Case: plan.Case{Profile: "canal", Workload: rr}}
	if g := counterGrids([]explain.Side{none, none}); g != nil {
		t.Errorf("%+v", g)
	}
	side := none
	side.Counters = map[string]explain.Interval{metric.Instructions: {Value: 61_200}, metric.CyclesPer: {Value: 0.714}}
	g := counterGrids([]explain.Side{side, none})
	if len(g) != 1 || strings.Join(g[0].Labels, ", ") != "instructions (k), cycles per instruction" || g[0].Title != "Processor counters for one transaction" ||
		strings.Join(slices.Concat(g[0].Cells...), " ") != "61.2 – 0.714 –" {
		t.Errorf("%+v", g)
	}
}

// TestOneCountedTrial: the scatter of what is counted once is not known, so no interval is printed.
func TestOneCountedTrial(t *testing.T) {
	one := explain.Program{Name: "tail", Runs: 6, Counted: explain.Interval{Value: 3e3, Low: 2e3, High: 4e3}, Sampled: explain.Interval{Value: 3e3, Low: 2e3, High: 4e3}}
	for trials, want := range map[int]string{1: number.Absent, 2: "2.00 to 4.00"} {
		s := explain.Side{Case: plan.Case{Profile: "cilium-native"}, Programs: &explain.Programs{List: []explain.Program{one}, All: one, Trials: trials}}
		g := programGrids([]explain.Side{s}, number.Common("ns", 3e3))[0]
		for _, cells := range g.Cells {
			if cells[2] != want {
				t.Errorf("%d trials: the interval of what was counted is %q", trials, cells[2])
			}
		}
	}
}
