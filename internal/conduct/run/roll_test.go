package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/env"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// rolledWorld is a world whose Services can be rolled.
type rolledWorld struct {
	*world
	// do is what a roll comes to; nil is well.
	do func(b control.Backend, in bool) error

	mu    sync.Mutex
	rolls []string
	out   map[int]bool
	// first is closed when a backend is out.
	first chan struct{}
}

// failOnce has the client of the first trial fail while the first backend is out, which in this window is long enough for
// a machine with other things to do.
func (w *rolledWorld) failOnce(p *plan.Plan) {
	p.Duration = 2 * time.Second
	well, first := w.script, make(chan struct{})
	w.first = first
	w.script = func(name string, q control.Prepare) (*sample.Observation, *control.Error) {
		if name == "canal/a" && first != nil {
			<-first
			first = nil
			return nil, &control.Error{Kind: "reset", Message: "gone"}
		}
		return well(name, q)
	}
}

func (w *rolledWorld) At(plan.Variant) env.Site { return w }

func (w *rolledWorld) Roll(ctx context.Context, b control.Backend, in bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rolls = append(w.rolls, fmt.Sprintf("%s %d/%d %v", b.Route.Variant, b.Index+1, b.Route.Servers, in))
	if w.out[b.Index] == !in {
		return fmt.Errorf("backend %d is there already", b.Index)
	}
	if w.do != nil {
		if err := w.do(b, in); err != nil {
			return err
		}
	}
	w.out[b.Index] = !in
	if w.first != nil {
		close(w.first)
		w.first = nil
	}
	return nil
}

func newRolledWorld() (*rolledWorld, plan.Plan) {
	w, p := &rolledWorld{world: newWorld("raw", "canal"), out: map[int]bool{}}, httpPlan()
	p.Workloads = []plan.Workload{plan.Workload{Spec: plan.HTTP{Backends: 3, Roll: true, Connection: "close"}}.Normalize()}
	p.Duration = time.Second
	w.script = func(name string, q control.Prepare) (*sample.Observation, *control.Error) {
		time.Sleep(q.Window)
		o, err := shared(name, q)
		if strings.HasPrefix(name, "raw/") {
			o.Errors = map[string]uint64{"connection refused": 12}
			return o, err
		}
		if q.Side == control.SideClient {
			o.Errors = map[string]uint64{"connection refused": 12}
		} else {
			o.Rolls = []sample.Roll{{DrainNs: 5, Returned: true, FirstNs: int64(len(name)) * 1000}}
		}
		return o, err
	}
	return w, p
}

// TestRoll: each backend is taken out and put back in its turn, and what came of it is in the numbers. The zero of the case
// has no Service and is left alone.
func TestRoll(t *testing.T) {
	t.Parallel()
	w, p := newRolledWorld()
	end, c, _ := perform(t, w, p, Options{})
	if end.Failed != 0 || end.Trials != 2 {
		t.Fatalf("end %+v: %v", end, trials(c)[0].Error)
	}
	want := []string{"canal 1/3 false", "canal 1/3 true", "canal 2/3 false", "canal 2/3 true", "canal 3/3 false", "canal 3/3 true"}
	if !slices.Equal(w.rolls, want) {
		t.Errorf("rolled %q, want %q", w.rolls, want)
	}
	for _, r := range trials(c) {
		got, ok := r.Metrics[metric.FailuresPerRoll]
		added, seen := r.Metrics[metric.NetworkProgramming+".added"]
		if mine := r.Trial.Profile == plan.VariantOf("canal"); ok != mine || mine && (got != 4 || added != float64(len("canal/b2"))*1000) || seen != mine {
			t.Errorf("%s: %v", r.Trial.Key(), r.Metrics)
		}
		if slices.ContainsFunc(r.Warnings, func(w sample.Warning) bool { return w.ID == "errors" }) == (r.Trial.Profile == plan.VariantOf("canal")) {
			t.Errorf("%s: warnings %v", r.Trial.Key(), r.Warnings)
		}
	}
}

// TestRollFails: a trial whose backends were not rolled as its workload says has failed with the reason, and has none of them
// out afterwards.
func TestRollFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		do    func(b control.Backend, in bool) error
		kind  string
		wants []string
	}{
		"not taken out": {func(b control.Backend, in bool) error {
			if b.Index == 1 && !in {
				return errors.New("pods is forbidden")
			}
			return nil
		}, kindRoll, []string{"1 of 3 backends", "pods is forbidden"}},
		"too slow": {func(b control.Backend, in bool) error {
			time.Sleep(500 * time.Millisecond)
			return nil
		}, kindRoll, []string{"of 3 backends", "longer"}},
		"a side fails": {nil, "reset", []string{"gone"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, p := newRolledWorld()
			w.do = c.do
			if c.do == nil {
				w.failOnce(&p)
			}
			end, got, _ := perform(t, w, p, Options{})
			if end.Failed != 1 {
				t.Fatalf("end %+v", end)
			}
			i := slices.IndexFunc(trials(got), func(r result.Record) bool { return r.Status == result.Failed })
			f := trials(got)[i].Error
			if f.Kind != c.kind || !slices.ContainsFunc(c.wants, func(s string) bool { return strings.Contains(f.Message, s) }) {
				t.Errorf("%+v, want %s with %q", f, c.kind, c.wants)
			}
			for n, out := range w.out {
				if out {
					t.Errorf("backend %d stays out: %q", n, w.rolls)
				}
			}
		})
	}
}

// TestRollPutsBackLater: what could not be put back when its trial had failed is said, and is back before the next one.
func TestRollPutsBackLater(t *testing.T) {
	t.Parallel()
	w, p := newRolledWorld()
	p.Repetitions = 2
	away := true
	w.do = func(_ control.Backend, in bool) error {
		if in && away {
			away = false
			return errors.New("the API server is away")
		}
		return nil
	}
	w.failOnce(&p)
	end, c, _ := perform(t, w, p, Options{})
	if end.Failed != 1 || end.Trials != 4 {
		t.Fatalf("end %+v", end)
	}
	all := trials(c)
	i := slices.IndexFunc(all, func(r result.Record) bool { return r.Status == result.Failed })
	if f := all[i].Error; f.Kind != "reset" || f.Side != control.SideClient || f.Message != "agent at canal/a: gone; put backend 1 back: the API server is away" {
		t.Errorf("%+v", f)
	}
	want := []string{"canal 1/3 false", "canal 1/3 true", "canal 1/3 true", "canal 1/3 false", "canal 1/3 true", "canal 2/3 false", "canal 2/3 true", "canal 3/3 false", "canal 3/3 true"}
	if !slices.Equal(w.rolls, want) {
		t.Errorf("rolled %q, want %q", w.rolls, want)
	}
}

// TestRollStaysOut: a trial that would begin with a backend too few has failed.
func TestRollStaysOut(t *testing.T) {
	t.Parallel()
	w, p := newRolledWorld()
	p.Repetitions = 2
	w.do = func(b control.Backend, in bool) error {
		if in && b.Index == 1 {
			return errors.New("pods is forbidden")
		}
		return nil
	}
	end, c, _ := perform(t, w, p, Options{})
	if end.Failed != 2 || end.Trials != 4 {
		t.Fatalf("end %+v", end)
	}
	var said []string
	for _, r := range trials(c) {
		if r.Status == result.Failed {
			said = append(said, r.Error.Kind+": "+r.Error.Message)
		}
	}
	for i, want := range []string{"roll: 1 of 3 backends", "roll: backend 2 may be out of the Service since an earlier trial: pods is forbidden"} {
		if !strings.HasPrefix(said[i], want) {
			t.Errorf("trial %d: %q, want %q", i, said[i], want)
		}
	}
}

// TestRollNotServed: where nothing can roll, the case is not measured, and says why.
func TestRollNotServed(t *testing.T) {
	w, p := newRolledWorld()
	p.Workloads = append(p.Workloads, plan.Workload{Spec: plan.HTTP{Backends: 3}}.Normalize())
	s, err := surveyPlan(t.Context(), w.world, p, nil)
	if err != nil {
		t.Fatal(err)
	}
	k := plan.Case{Profile: plan.VariantOf("canal"), Path: toService, Workload: p.Workloads[0]}
	if s.served[k] || absenceReason(s.profiles, k) != notRolled {
		t.Errorf("served %v, because %q", s.served[k], absenceReason(s.profiles, k))
	}
	k.Workload = p.Workloads[1]
	if !s.served[k] {
		t.Errorf("backends that stay are not served: %q", absenceReason(s.profiles, k))
	}
}
