package run

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/control/controltest"
	"github.com/cnibench/cnibench/internal/env"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
)

// recovered is a world that says whether it stands.
type recovered struct {
	*world
	recover func(context.Context) (string, error)
}

func (m recovered) At(plan.Variant) env.Site                    { return m }
func (m recovered) Recover(ctx context.Context) (string, error) { return m.recover(ctx) }

// dieAt has the client of canal end in its n-th trial.
func dieAt(n int32) func(string, control.Prepare) (*sample.Observation, *control.Error) {
	var calls atomic.Int32
	return func(name string, p control.Prepare) (*sample.Observation, *control.Error) {
		if name == "canal/a" && calls.Add(1) == n {
			return nil, controltest.Die
		}
		return ordinary(p)
	}
}

// TestRecover: after a failed trial the run continues when the environment has recovered, and else ends.
func TestRecover(t *testing.T) {
	for _, why := range []error{nil, errors.New("pod server is gone")} {
		w, p := newWorld("host", "canal"), testPlan("canal")
		w.script = dieAt(2)
		asked := 0
		e := recovered{w, func(context.Context) (string, error) { asked++; return "no API server", why }}
		name, end, err := begin(t, t.Context(), e, p, Options{})
		all := trials(load(t, name))
		if asked != 1 || end.Failed != 1 {
			t.Errorf("asked %d times, %+v", asked, end)
		}
		if why == nil {
			said := slices.ContainsFunc(all, func(r result.Record) bool {
				return r.Error != nil && strings.HasSuffix(r.Error.Message, "; no API server")
			})
			if err != nil || len(all) != len(everyTrial(p)) || !said {
				t.Errorf("%d trials, %v, said: %v", len(all), err, said)
			}
			continue
		}
		var lost *LostError
		if !errors.As(err, &lost) || lost.Failed != 1 || lost.Trials != len(all) || !errors.Is(err, why) {
			t.Fatalf("%+v, %d trials: %v", end, len(all), err)
		}
		last := all[len(all)-1]
		if last.Status != result.Failed || !strings.HasSuffix(last.Error.Message, "; pod server is gone") {
			t.Errorf("the last trial is %+v", last)
		}
		// An environment that was raised anew measures the rest.
		w.use(nil)
		if end, err = goOn(t, e, name); err != nil || end.Reason != result.Complete {
			t.Errorf("%+v, %v", end, err)
		}
		if n := len(trials(load(t, name))); n != len(everyTrial(p)) {
			t.Errorf("%d trials after all", n)
		}
	}
}

// TestRecoverIsInterrupted gives up while the environment is away: the trial is kept, and the run is an interrupted one.
func TestRecoverIsInterrupted(t *testing.T) {
	w, p := newWorld("host", "canal"), testPlan("canal")
	w.script = dieAt(1)
	ctx, stop := context.WithCancel(t.Context())
	e := recovered{w, func(ctx context.Context) (string, error) { stop(); <-ctx.Done(); return "", ctx.Err() }}
	if _, end, err := begin(t, ctx, e, p, Options{}); err != nil || end.Reason != result.Interrupted || end.Failed != 1 {
		t.Errorf("%+v, %v", end, err)
	}
}

// TestAgentThatWentBetweenTrials replaces one that has ended since: no trial is spent on it.
func TestAgentThatWentBetweenTrials(t *testing.T) {
	w := newWorld("host")
	p := &pool{clients: map[string]*control.Client{}}
	defer p.close()
	end := w.endpoint("host/a")
	first, err := p.ensureAgent(t.Context(), "a", end)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := p.ensureAgent(t.Context(), "a", end); err != nil || again != first {
		t.Errorf("an agent that lives is replaced: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second, err := p.ensureAgent(t.Context(), "a", end)
	if err != nil || second == first || second.Gone() || w.starts["host/a"] != 2 {
		t.Errorf("started %d times, %v", w.starts["host/a"], err)
	}
}
