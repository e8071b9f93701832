package run

import (
	"errors"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/env"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
)

// sampling is a world whose CPUs can be sampled. It counts the recordings that were opened and not finished.
type sampling struct {
	*world
	open, started int
	refuse, lose  error
}

func (w *sampling) Capabilities() env.Capabilities {
	return env.Capabilities{Sample: func(v plan.Variant, _ plan.Path, length time.Duration) (env.Recording, error) {
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
				seen.Stacks = &sample.Stacks{Event: "cpu-clock"}
				seen.Stacks.Add(0, "pod", string(v))
				return seen, nil
			},
		}, nil
	}}
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
		if r.Trial != timed[i].Trial || r.Instance != timed[i].Instance || r.Status != result.OK || r.Stacks == nil || r.Stacks.Names[1] != string(r.Profile) {
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
