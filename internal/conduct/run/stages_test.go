package run

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/env"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
)

// turns is a world in which profiles stand one after the other.
type turns struct {
	*world
	stages  [][]plan.Variant
	entered []int
	// broken says what keeps a stage from standing; now is called as one is entered.
	broken map[int]error
	now    func(stage int)
	// renew is called for variants that are raised anew, all of the current stage and the baseline; nil cannot.
	renew func([]plan.Variant)
}

func (w *turns) Stages() [][]plan.Variant { return w.stages }

func (w *turns) At(plan.Variant) env.Site {
	if w.renew == nil {
		return w.world
	}
	return w
}

func (w *turns) Renews(v plan.Variant) []plan.Variant {
	return []plan.Variant{plan.VariantOf("host"), v}
}

func (w *turns) Renew(_ context.Context, names []plan.Variant) map[plan.Variant]error {
	w.renew(names)
	return nil
}

func (w *turns) Enter(_ context.Context, i int) error {
	w.entered = append(w.entered, i)
	if w.now != nil {
		w.now(i)
	}
	return w.broken[i]
}

func inTurn() *turns {
	return &turns{world: newWorld("host", "canal", "macvlan"), stages: [][]plan.Variant{{plan.VariantOf("host"), plan.VariantOf("host~twin"), plan.VariantOf("canal")}, {plan.VariantOf("macvlan")}}}
}

// misplaced returns the finished trials that were measured after those of a later stage.
func (w *turns) misplaced(c result.Contents) []string {
	var wrong []string
	at := 0
	for _, r := range trials(c) {
		stage := slices.IndexFunc(w.stages, func(names []plan.Variant) bool { return slices.Contains(names, r.Profile) })
		if stage < at {
			wrong = append(wrong, r.Key())
		}
		at = max(at, stage)
	}
	return wrong
}

// TestStages measures each profile while it stands, all repetitions of it, and keeps no agent from one stage to the next.
func TestStages(t *testing.T) {
	w, p := inTurn(), testPlan("canal", "macvlan")
	end, c, events := perform(t, w, p, Options{})
	if want := len(everyTrial(p)); end.Reason != result.Complete || end.Failed != 0 || end.Trials != want || len(trials(c)) != want {
		t.Errorf("%d trials, end %+v, want %d", len(trials(c)), end, want)
	}
	if wrong := w.misplaced(c); !slices.Equal(w.entered, []int{0, 1}) || wrong != nil {
		t.Errorf("entered %v; measured out of turn: %v", w.entered, wrong)
	}
	if last := events[len(events)-1]; last.Done != last.Total || last.Total != end.Trials {
		t.Errorf("the progress ends at %d of %d", last.Done, last.Total)
	}
}

// TestStageIsNotRaisedTwice: what stands since its stage was entered is not raised anew for its first repetition, although the
// baseline, whose pods are the same, was measured before.
func TestStageIsNotRaisedTwice(t *testing.T) {
	w, p := inTurn(), testPlan("canal", "macvlan")
	fresh := false
	w.now = func(int) { fresh = true }
	w.renew = func(names []plan.Variant) {
		if fresh && w.entered[len(w.entered)-1] == 1 && !slices.Contains(names, plan.VariantOf("macvlan")) {
			t.Errorf("%s raised anew, and macvlan, which shares its pods, was not", names)
		}
		fresh = false
	}
	if end, _, _ := perform(t, w, p, Options{}); end.Failed != 0 || fresh {
		t.Errorf("%+v, nothing was raised anew in the last stage: %v", end, fresh)
	}
}

// TestStageThatDoesNotStand leaves a failed record of each of its trials, with the reason, and the others are measured.
func TestStageThatDoesNotStand(t *testing.T) {
	for broken := range 2 {
		w, p := inTurn(), testPlan("canal", "macvlan")
		w.broken = map[int]error{broken: errors.New("the chart cannot be had")}
		end, c, _ := perform(t, w, p, Options{})
		failed := 0
		for _, r := range trials(c) {
			if slices.Contains(w.stages[broken], r.Profile) != (r.Status == result.Failed) {
				t.Errorf("%s: %s", r.Key(), r.Status)
			}
			if r.Status != result.Failed {
				continue
			}
			failed++
			if r.Error.Kind != kindNotRaised || !strings.Contains(r.Error.Message, "the chart cannot be had") {
				t.Errorf("%s: %+v", r.Key(), r.Error)
			}
		}
		if want := len(w.stages[broken]) * len(p.Paths) * len(p.Workloads) * p.Repetitions; failed != want || end.Failed != want || len(trials(c)) != len(everyTrial(p)) {
			t.Errorf("stage %d: %d failed records, end %+v, want %d", broken, failed, end, want)
		}
	}
}

// TestInterruptedStage ends the run as the stage is entered, and no record says that it failed; resumed, the run goes on
// with that stage and does not enter the one before.
func TestInterruptedStage(t *testing.T) {
	w, p := inTurn(), testPlan("canal", "macvlan")
	ctx, stop := context.WithCancel(t.Context())
	w.broken = map[int]error{1: context.Canceled}
	w.now = func(stage int) {
		if stage == 1 {
			stop()
		}
	}
	name, end, err := begin(t, ctx, w, p, Options{})
	if err != nil || end.Reason != result.Interrupted {
		t.Fatalf("%+v, %v", end, err)
	}
	for _, r := range trials(load(t, name)) {
		if r.Profile == plan.VariantOf("macvlan") || r.Status != result.OK {
			t.Errorf("%s: %s", r.Key(), r.Status)
		}
	}
	w.broken, w.now, w.entered = nil, nil, nil
	if end, err = goOn(t, w, name); err != nil {
		t.Fatal(err)
	}
	if got := len(trials(load(t, name))); got != len(everyTrial(p)) || !slices.Equal(w.entered, []int{1}) || end.Reason != result.Complete {
		t.Errorf("%d trials, entered %v, end %+v", got, w.entered, end)
	}
}

func TestPlanOfAStage(t *testing.T) {
	c := &conductor{plan: testPlan("canal", "macvlan")}
	for _, want := range [][]plan.Variant{{plan.VariantOf("host"), plan.VariantOf("host~twin"), plan.VariantOf("canal")}, {plan.VariantOf("macvlan")}} {
		if got := c.planOf(want).Measured(); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
