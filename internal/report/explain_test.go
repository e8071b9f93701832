package report

import (
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/judge/diagnose"
	"github.com/cnibench/cnibench/internal/judge/explain"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// TestSampleNotes: what is missing from a side is named, and sides without faults share one note.
func TestSampleNotes(t *testing.T) {
	side := func(change func(*explain.Side)) explain.Side {
		s := explain.Side{
			Case: plan.Case{Profile: plan.VariantOf("canal")}, Samples: 900, Trials: 3, Event: "cpu-clock", Rate: 499, Foreign: 20,
			Parts: []explain.Share{{Part: explain.Part{ID: "ip"}, Share: 0.99}, {Part: explain.Unexplained, Share: 0.01}},
		}
		change(&s)
		return s
	}
	sound := side(func(*explain.Side) {})
	other := side(func(s *explain.Side) { s.Profile = plan.VariantOf("ptp") })
	costly := side(func(s *explain.Side) { cost := 0.02; s.Samples, s.Cost = 1200, &cost })
	for want, sides := range map[string][]explain.Side{
		"900 samples by cpu-clock at 499 Hz, in 3 trials.":                                                            {sound},
		"900 samples of each profile by cpu-clock at 499 Hz, in 3 trials.":                                            {sound, other},
		"900 to 1200 samples of each profile by cpu-clock at 499 Hz, in 3 trials; sampling takes 2% of the CPU time.": {other, costly},
		"900 to 1200 samples of each path by cpu-clock at 499 Hz, in 3 trials; sampling takes 2% of the CPU time.":    {sound, costly},
	} {
		if notes := sampleNotes(sides); len(notes) != 1 || notes[0] != want {
			t.Errorf("%q, want %q", notes, want)
		}
	}
	for want, change := range map[string]func(*explain.Side){
		"canal: 7 samples were lost.": func(s *explain.Side) { s.Lost = 7 },
		"canal: the stacks of 3 samples were cut short: missing are their outermost functions (kernel.perf_event_max_stack).":   func(s *explain.Side) { s.Cut = 3 },
		"canal: the kernel paused the sampling 2 times.":                                                                        func(s *explain.Side) { s.Throttled = 2 },
		"canal: the path is mostly idle: 90% of the samples are of idle CPUs and other tasks, and the parts stand on the rest.": func(s *explain.Side) { s.Foreign = 8100 },
		"canal: 1 sampled trial without samples: the client was killed.":                                                        func(s *explain.Side) { s.Failed, s.Failure = 1, "the client was killed" },
		"canal: 60% is not explained: this kernel has functions that the table of parts does not know.":                         func(s *explain.Side) { s.Parts[1].Share = 0.6 },
		// Without names of functions it is not the table that lacks them.
		"canal: missing are names of kernel functions, so nothing is explained: kptr_restrict.": func(s *explain.Side) {
			s.Missing, s.Parts[1].Share = []string{sample.NoSymbols + ": kptr_restrict"}, 1
		},
		"canal: other tasks on its CPUs are gzip (20%), kworker/1:1-events (0.5%).": func(s *explain.Side) {
			s.Foreign = 8100 // gzip, not idle CPUs
			s.Others = []explain.Other{{Command: "gzip", Samples: 8000, Share: 0.2}, {Command: "kworker/1:1-events", Samples: 20, Share: 0.005}, {Command: "sshd", Share: 0.0002}}
		},
	} {
		if notes := sampleNotes([]explain.Side{side(change), sound}); len(notes) != 2 || notes[1] != want {
			t.Errorf("want %q in\n%s", want, strings.Join(notes, "\n"))
		}
	}
}

// TestExplainPaths: the columns have the names of the two paths. A path without samples is named as not explained.
func TestExplainPaths(t *testing.T) {
	name := plan.VariantOf("canal")
	an := &compare.Analysis{Profiles: []plan.Variant{name}}
	side := func(p plan.Path, demand float64) explain.Side {
		return explain.Side{
			Case: plan.Case{Profile: name, Path: p, Workload: plan.Workload{Spec: plan.RR{}}.Normalize()}, Unit: "ns", Samples: 250, Trials: 4, Demand: explain.Interval{Value: demand},
			Parts: []explain.Share{{Part: explain.Part{ID: "ip", Title: "IP"}, Share: 1}},
		}
	}
	sides := []explain.Side{side(diagnose.HostPath, 20_000), side(diagnose.PodPath, 30_000)}
	d := BuildDiagnosis(diagnose.Answer{Text: "fine"}, new(ExplainPaths(an, sides, diagnose.HostPath, diagnose.PodPath)))
	if g := d.Sections[1].Grids[0]; !slices.Equal(g.Columns[:2], []string{diagnose.HostPath.String(), diagnose.PodPath.String()}) {
		t.Errorf("%q", g.Columns)
	}
	if x := d.Data.(diagnosisData).Explained; x == nil || len(x.Differences) != 1 {
		t.Errorf("%+v", x)
	}
	x := ExplainPaths(an, sides[:1], diagnose.HostPath, diagnose.PodPath)
	if len(x.Differences) != 0 || len(x.Without) != 1 || !strings.Contains(x.Without[0], "no sampled trial") {
		t.Errorf("%+v", x)
	}
}

// TestOthersAreBesideTheSum: other tasks have a row of their own, below the sum, if there are any.
func TestOthersAreBesideTheSum(t *testing.T) {
	side := func(others ...explain.Other) explain.Side {
		return explain.Side{
			Case: plan.Case{Profile: plan.VariantOf("canal"), Workload: plan.Workload{Spec: plan.RR{}}.Normalize()}, Unit: "ns", Samples: 250, Trials: 4,
			Demand: explain.Interval{Value: 40_000}, Parts: []explain.Share{{Part: explain.Part{ID: "ip", Title: "IP"}, Share: 1, Time: explain.Interval{Value: 40_000}}},
			Others: others,
		}
	}
	const row = "beside it, other tasks on these CPUs"
	g, _ := partsGrid([]explain.Side{side(explain.Other{Command: "gzip", Time: 8000}, explain.Other{Command: "sh", Time: 2000}), side()})
	if n := len(g.Labels); g.Labels[n-1] != row || g.Labels[n-2] != "sum" || !slices.Equal(g.Cells[n-1], []string{"10.0", "0"}) {
		t.Errorf("%q %q", g.Labels, g.Cells)
	}
	if g, _ := partsGrid([]explain.Side{side(), side(explain.Other{Command: "sh", Time: 20})}); slices.Contains(g.Labels, row) {
		t.Errorf("without others: %q", g.Labels)
	}
}

// TestPartsAreKnownTo: a table of parts says how well they are known.
func TestPartsAreKnownTo(t *testing.T) {
	s := explain.Side{
		Case: plan.Case{Profile: plan.VariantOf("canal"), Workload: plan.Workload{Spec: plan.RR{}}.Normalize()}, Unit: "ns", Samples: 250, Trials: 4, Event: "cpu-clock", Rate: 499,
		Demand: explain.Interval{Value: 40_000},
		Parts: []explain.Share{
			{Part: explain.Part{ID: "ip", Title: "IP"}, Share: 0.75, Time: explain.Interval{Value: 30_000, Low: 28_500, High: 31_500}},
			{Part: explain.Part{ID: "veth", Title: "veth"}, Share: 0.25, Time: explain.Interval{Value: 10_000, Low: 9_000, High: 11_000}},
		},
	}
	g, _ := partsGrid([]explain.Side{s})
	if want := "Half of the parts are known to 1.50 µs or better, the least known to 1.50"; len(g.Notes) != 2 || !strings.HasPrefix(g.Notes[0], want) {
		t.Errorf("%q, want %q first", g.Notes, want)
	}
}

// TestCounterGrid: processor counters of sides, absent for a side without, and no table where the machine has none.
func TestCounterGrid(t *testing.T) {
	rr := plan.Workload{Spec: plan.RR{}}.Normalize()
	none := explain.Side{Case: plan.Case{Profile: plan.VariantOf("canal"), Workload: rr}}
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

// TestCountedParts: the parts of a counter, and their sum, as far as they are known; absent for a side without.
func TestCountedParts(t *testing.T) {
	rr := plan.Workload{Spec: plan.RR{}}.Normalize()
	none := explain.Side{Case: plan.Case{Profile: plan.VariantOf("canal"), Workload: rr}}
	side := none
	side.Counters = map[string]explain.Interval{metric.Instructions: {Value: 61_200}}
	side.Counted = map[string][]explain.Valued{metric.Instructions: {
		{Part: explain.Part{ID: "b", Title: "B"}, Interval: explain.Interval{Value: 40_800, Low: 40_300, High: 41_300}},
		{Part: explain.Part{ID: "a", Title: "A"}, Interval: explain.Interval{Value: 20_400, Low: 19_900, High: 20_900}},
	}}
	none.Counters = map[string]explain.Interval{metric.Instructions: {Value: 50_000}} // without samples by the event
	g := countedPartGrids([]explain.Side{side, none})
	if len(g) != 1 || g[0].Title != "instructions by part (k)" || strings.Join(g[0].Labels, " ") != "B A sum" || strings.Join(slices.Concat(g[0].Cells...), " ") != "40.8 – 20.4 – 61.2 50.0" {
		t.Errorf("%+v", g)
	}
}

// TestOneCountedTrial: the scatter of what is counted once is not known, so no interval is printed.
func TestOneCountedTrial(t *testing.T) {
	one := explain.Program{Name: "tail", Runs: 6, Counted: explain.Interval{Value: 3e3, Low: 2e3, High: 4e3}, Sampled: explain.Interval{Value: 3e3, Low: 2e3, High: 4e3}}
	for trials, want := range map[int]string{1: number.Absent, 2: "2.00 to 4.00"} {
		s := explain.Side{Case: plan.Case{Profile: plan.VariantOf("cilium-native")}, Programs: &explain.Programs{List: []explain.Program{one}, All: one, Trials: trials}}
		g := programGrids([]explain.Side{s}, number.Common("ns", 3e3))[0]
		for _, cells := range g.Cells {
			if cells[2] != want {
				t.Errorf("%d trials: the interval of what was counted is %q", trials, cells[2])
			}
		}
	}
}
