package run

import (
	"errors"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/env"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// sampling is a world whose CPUs can be sampled. It counts the recordings that were opened and not finished.
type sampling struct {
	*world
	open, started int
	refuse, lose  error
	// program is a function of the stacks, counted are the recordings of runs that were begun, of which refuseCount has none.
	program     string
	counted     int
	refuseCount error
	counters    map[string]float64
}

func (w *sampling) At(plan.Variant) env.Site { return w }

func (w *sampling) Count(plan.Variant, plan.Path, time.Duration) (env.Recording, error) {
	w.counted++
	return env.Recording{Start: func() error { return nil }, Finish: func(client, _ *sample.Observation) (sample.Recorded, error) {
		return sample.Recorded{Programs: &sample.Programs{EmptyNs: 20, List: []sample.Program{{Name: "p", Runs: 5, Ns: 500}}}}, nil
	}}, w.refuseCount
}

func (w *sampling) Sample(v plan.Variant, _ plan.Path, length time.Duration) (env.Recording, error) {
	if w.refuse != nil {
		return env.Recording{}, w.refuse
	}
	w.open++
	return env.Recording{
		Start: func() error { w.started++; return nil },
		Finish: func(client, server *sample.Observation) (seen sample.Recorded, err error) {
			w.open--
			if client == nil || server == nil || w.lose != nil {
				return seen, w.lose
			}
			seen.Stacks = &sample.Stacks{Event: "cpu-clock", Counters: w.counters}
			seen.Stacks.Add(0, sample.Counted{Samples: 1, Weight: 1}, "pod", v.String())
			if w.program != "" {
				seen.Stacks.Add(0, sample.Counted{Samples: 1, Weight: 1}, "pod", w.program)
			}
			return seen, nil
		},
	}, nil
}

// sampledOf are the sampled trials of a result.
func sampledOf(c result.Contents) []result.Record {
	var list []result.Record
	for _, r := range c.Records {
		if r.Type == result.TypeSampled {
			list = append(list, r)
		}
	}
	return list
}

// TestSampled: each trial is followed by a sampled one of the same case and instance, twice as long, and the counts of the run
// are those of its trials.
func TestSampled(t *testing.T) {
	w, p := &sampling{world: newWorld("host", "canal")}, testPlan("canal")
	p.Explain = true
	end, c, _ := perform(t, w, p, Options{})
	timed, sampled := trials(c), sampledOf(c)
	if end.Trials != len(everyTrial(p)) || len(sampled) != len(timed) || w.started != len(timed) || w.open != 0 {
		t.Fatalf("%d trials, %d sampled of %d, %d recordings started, %d left open", end.Trials, len(sampled), len(timed), w.started, w.open)
	}
	for i, r := range sampled {
		if r.Trial != timed[i].Trial || r.Instance != timed[i].Instance || r.Status != result.OK || r.Stacks == nil || r.Stacks.Names[1] != r.Profile.String() {
			t.Errorf("sampled %+v", r)
		}
	}
	asked, windows := 0, map[time.Duration]int{}
	for _, list := range w.asked {
		for _, a := range list {
			windows[a.Window]++
			if a.Sampled {
				asked++
			}
		}
	}
	if 2*asked != windows[p.Duration]+windows[p.SampledWindow()] || windows[p.Duration] != windows[p.SampledWindow()] {
		t.Errorf("%d sides were sampled, windows %v", asked, windows)
	}
}

// TestNotSampled: without a right to sample, and when samples cannot be read, the trials are the same and the sampled ones say
// why; nothing stays open.
func TestNotSampled(t *testing.T) {
	no := errors.New("no right")
	for _, w := range []*sampling{{world: newWorld("host", "canal"), refuse: no}, {world: newWorld("host", "canal"), lose: no}} {
		p := testPlan("canal")
		p.Explain = true
		end, c, _ := perform(t, w, p, Options{})
		if end.Failed != 0 || len(trials(c)) != len(everyTrial(p)) || w.open != 0 {
			t.Errorf("end %+v, %d trials, %d open", end, len(trials(c)), w.open)
		}
		for _, r := range sampledOf(c) {
			if r.Status != result.Failed || r.Error.Kind != kindNotSampled || r.Error.Message != no.Error() || r.Stacks != nil {
				t.Errorf("%+v", r)
			}
		}
	}
	p := testPlan("canal")
	p.Explain = true
	_, c, _ := perform(t, newWorld("host", "canal"), p, Options{})
	if s := sampledOf(c); len(s) == 0 || s[0].Error.Message != errNoSampling.Error() {
		t.Errorf("%+v", s)
	}
}

// TestSampledTrialFails: a trial that fails while it is sampled says why and leaves nothing open; the trials keep their
// numbers.
func TestSampledTrialFails(t *testing.T) {
	w, p := &sampling{world: newWorld("host", "canal")}, testPlan("canal")
	p.Explain = true
	w.use(func(_ string, p control.Prepare) (*sample.Observation, *control.Error) {
		if p.Sampled {
			return nil, &control.Error{Kind: "reset", Message: "connection reset by peer"}
		}
		return ordinary(p)
	})
	end, c, _ := perform(t, w, p, Options{})
	if end.Failed != 0 || len(trials(c)) != len(everyTrial(p)) || w.open != 0 {
		t.Errorf("end %+v, %d trials, %d recordings open", end, len(trials(c)), w.open)
	}
	for _, r := range trials(c) {
		if r.Status != result.OK || len(r.Metrics) == 0 {
			t.Errorf("a trial beside: %+v", r)
		}
	}
	for _, r := range sampledOf(c) {
		if r.Status != result.Failed || r.Error.Kind != "reset" || r.Stacks != nil {
			t.Errorf("%+v", r)
		}
	}
}

// TestCounted: where samples have BPF programs, every fourth repetition counts their runs in a trial of its own. It says why
// it has none; without programs there is no such trial.
func TestCounted(t *testing.T) {
	const program = "bpf_prog_08219b7491364280_p"
	for _, w := range []*sampling{{program: program}, {program: program, refuseCount: errors.New("not permitted")}, {}} {
		w.world = newWorld("host", "canal")
		p := testPlan("canal")
		p.Explain, p.Repetitions = true, 5
		_, c, _ := perform(t, w, p, Options{})
		want, got := 0, 0
		for _, r := range sampledOf(c) {
			if w.program != "" && r.Counts() {
				want++
			}
		}
		for _, r := range c.Records {
			if r.Type != result.TypeCounted {
				continue
			}
			got++
			if w.refuseCount != nil && (r.Status != result.Failed || r.Error.Kind != kindNotCounted || r.Error.Message != "not permitted" || r.Programs != nil) {
				t.Errorf("%+v", r)
			}
			if w.refuseCount == nil && (r.Status != result.OK || r.Programs == nil || r.Programs.List[0].Runs != 5) {
				t.Errorf("%+v", r)
			}
		}
		if got != want || w.counted != want || len(trials(c)) != len(everyTrial(p)) {
			t.Errorf("%d counted, %d recordings, want %d; %d trials", got, w.counted, want, len(trials(c)))
		}
	}
}

// TestProcessorCounters: what the processor counted in a sampled trial becomes metrics per unit of work of that trial; without
// counters there are none.
func TestProcessorCounters(t *testing.T) {
	for _, counters := range []map[string]float64{nil, {metric.Instructions: 6e6, metric.Cycles: 3e6}} {
		w, p := &sampling{world: newWorld("host", "canal"), counters: counters}, testPlan("canal")
		p.Explain = true
		_, c, _ := perform(t, w, p, Options{})
		for _, r := range sampledOf(c) {
			n, ok := r.Metrics[metric.Instructions]
			if ok != (counters != nil) || ok && (r.Metrics[metric.CyclesPer] != 0.5 || n != 2*r.Metrics[metric.Cycles] || !(n > 0)) {
				t.Errorf("%v of %v", r.Metrics, counters)
			}
		}
		for _, r := range trials(c) {
			if _, ok := r.Metrics[metric.Instructions]; ok {
				t.Errorf("a trial that was not sampled has %v", r.Metrics)
			}
		}
	}
}
