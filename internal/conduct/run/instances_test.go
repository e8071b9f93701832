package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/env"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
)

// renewing is a world that raises profiles anew, except fixed.
type renewing struct {
	*world
	fixed plan.Variant
	// renewed has what each call was asked for; broken says by its number, from 1, what does not stand after it, and
	// mute which servers cannot be connected to.
	renewed [][]plan.Variant
	broken  map[int]map[plan.Variant]error
	mute    map[int]plan.Variant
	// now is called with the number of each call.
	now func(int)
	// shared are raised anew together.
	shared []plan.Variant
}

func (w *renewing) Renews(v plan.Variant) []plan.Variant {
	switch {
	case slices.Contains(w.shared, v):
		return w.shared
	case v == w.fixed:
		return nil
	}
	return []plan.Variant{v}
}

func (w *renewing) At(plan.Variant) env.Site { return w }

func (w *renewing) Renew(_ context.Context, names []plan.Variant) map[plan.Variant]error {
	w.renewed = append(w.renewed, names)
	if w.now != nil {
		w.now(len(w.renewed))
	}
	return w.broken[len(w.renewed)]
}

func (w *renewing) Endpoints(ctx context.Context, r plan.Route) (control.Ends, error) {
	e, err := w.world.Endpoints(ctx, r)
	if err == nil && len(w.renewed) > 0 && w.mute[len(w.renewed)] == r.Variant && r.Path.To == plan.Service {
		e.Servers[0].Name += " (mute)"
		e.Servers[0].Start = func(context.Context) (io.ReadWriteCloser, error) { return nil, errors.New("killed") }
	}
	return e, err
}

// instancesOf returns "profile:repetition:instance" of all trials, each once, in order.
func instancesOf(c result.Contents) []string {
	var list []string
	for _, r := range trials(c) {
		if s := fmt.Sprintf("%s:%d:%d", r.Profile, r.Repetition, r.Instance); !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return list
}

// TestInstances: each repetition has instances of its own, raised in the order in which they are measured first and
// measured by new agents; what cannot be raised anew has no number.
func TestInstances(t *testing.T) {
	w, p := &renewing{world: newWorld("host", "canal", "macvlan"), fixed: plan.VariantOf("macvlan")}, testPlan("canal", "macvlan")
	end, c, events := perform(t, w, p, Options{})
	if end.Failed != 0 || end.Trials != len(everyTrial(p)) {
		t.Errorf("end %+v", end)
	}
	var orders [][]plan.Variant
	for rep := 1; rep <= p.Repetitions; rep++ {
		var order []plan.Variant
		for _, k := range p.Order(rep) {
			if k.Profile != w.fixed && !slices.Contains(order, k.Profile) {
				order = append(order, k.Profile)
			}
		}
		orders = append(orders, order)
	}
	if len(w.renewed) != 2 || !slices.Equal(w.renewed[0], orders[1]) || !slices.Equal(w.renewed[1], orders[2]) {
		t.Errorf("raised %v, want %v", w.renewed, orders[1:])
	}
	for _, r := range trials(c) {
		if want := r.Repetition; r.Profile != w.fixed && r.Instance != want || r.Profile == w.fixed && r.Instance != 0 {
			t.Errorf("%s, repetition %d: instance %d", r.Key(), r.Repetition, r.Instance)
		}
	}
	if w.starts["canal/a"] != 3 || w.starts["host~twin/b"] != 3 || w.starts["macvlan/a"] != 1 {
		t.Errorf("agents were started so often: %v", w.starts)
	}
	steps := 0
	for _, e := range events {
		if e.Step != "" {
			steps++
		}
	}
	if steps != 2 {
		t.Errorf("%d steps are told", steps)
	}
}

// TestInstancesShared: variants that share what they run in are raised anew together, also where one of them has no trial in
// the repetition.
func TestInstancesShared(t *testing.T) {
	shared := plan.Variants("host", "host~twin", "canal", "ptp")
	w, p := &renewing{world: newWorld("host", "canal", "ptp"), shared: shared}, testPlan("canal", "ptp")
	w.notServed = map[plan.Route]string{plan.Single(plan.VariantOf("ptp"), p.Paths[0]): "no", plan.Single(plan.VariantOf("ptp"), p.Paths[1]): "no"}
	end, c, _ := perform(t, w, p, Options{})
	if end.Failed != 0 {
		t.Errorf("end %+v", end)
	}
	for i, names := range w.renewed {
		if !slices.Equal(names, shared) {
			t.Errorf("call %d raised %v", i+1, names)
		}
	}
	for _, r := range trials(c) {
		if r.Instance != r.Repetition {
			t.Errorf("%s, repetition %d: instance %d", r.Key(), r.Repetition, r.Instance)
		}
	}
	if len(w.renewed) != 2 || w.starts["canal/a"] != 3 || w.starts["host/b"] != 3 {
		t.Errorf("raised %d times, agents started %v", len(w.renewed), w.starts)
	}
}

// TestNotRaisedAnew: trials of a profile that does not stand, or does not answer on their path, fail with the cause;
// the run goes on, and the next instance is measured again.
func TestNotRaisedAnew(t *testing.T) {
	w, p := &renewing{world: newWorld("host", "canal")}, testPlan("canal")
	w.broken = map[int]map[plan.Variant]error{1: {plan.VariantOf("canal"): errors.New("no memory")}}
	w.mute = map[int]plan.Variant{2: plan.VariantOf("host")}
	p.Repetitions = 4
	end, c, _ := perform(t, w, p, Options{})
	want := map[string]int{"canal:2:no memory": 4, "host:3:killed": 2}
	got := map[string]int{}
	for _, r := range trials(c) {
		if r.Status == result.OK {
			continue
		}
		for _, cause := range []string{"no memory", "killed"} {
			if r.Error.Kind == kindNotRaised && r.Instance == 0 && strings.Contains(r.Error.Message, cause) {
				got[fmt.Sprintf("%s:%d:%s", r.Profile, r.Repetition, cause)]++
			}
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) || end.Failed != 6 || end.Reason != result.Complete || len(w.renewed) != 3 {
		t.Errorf("failed %v, want %v; end %+v", got, want, end)
	}
	if list := instancesOf(c); !slices.Contains(list, "canal:3:2") || !slices.Contains(list, "canal:4:3") || !slices.Contains(list, "host:4:4") {
		t.Errorf("instances %v", list)
	}
}

// TestInstancesResumed interrupts a run while it raises anew: nothing is recorded of that. Resumed and extended, it
// counts on.
func TestInstancesResumed(t *testing.T) {
	w, p := &renewing{world: newWorld("host", "canal")}, testPlan("canal")
	ctx, stop := context.WithCancel(t.Context())
	w.now = func(call int) {
		if call == 2 {
			stop()
		}
	}
	name, end, err := begin(t, ctx, w, p, Options{})
	if err != nil || end.Reason != result.Interrupted || end.Failed != 0 {
		t.Fatalf("%+v, %v", end, err)
	}
	w.now = nil
	if _, err := goOn(t, w, name); err != nil {
		t.Fatal(err)
	}
	for _, r := range trials(load(t, name)) {
		if r.Status != result.OK || r.Instance != r.Repetition {
			t.Errorf("%s, repetition %d: %s on instance %d", r.Key(), r.Repetition, r.Status, r.Instance)
		}
	}
	if len(w.renewed) != 2 {
		t.Errorf("raised anew: %v; the first instances of a resumed run are new", w.renewed)
	}
}

// TestBlocks: where raising takes too much of short repetitions, several share an instance.
func TestBlocks(t *testing.T) {
	w, p := &renewing{world: newWorld("host", "canal")}, testPlan("canal")
	p.Repetitions = 10
	_, c, _ := perform(t, w, p, Options{})
	for _, r := range trials(c) {
		if want := (r.Repetition + 1) / 2; r.Instance != want {
			t.Errorf("%s, repetition %d: instance %d, want %d", r.Key(), r.Repetition, r.Instance, want)
		}
	}
}
