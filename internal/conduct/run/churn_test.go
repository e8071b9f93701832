package run

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/env"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
)

// restless is a world whose objects change.
type restless struct {
	*world
	churn func(context.Context, control.Churning) (*sample.Churn, error)
}

func (r restless) At(plan.Variant) env.Site { return r }

func (r restless) Churn(ctx context.Context, c control.Churning) (*sample.Churn, error) {
	return r.churn(ctx, c)
}

func churnPlan(v plan.Variant) plan.Plan {
	p := testPlan(v.String())
	p.Baseline, p.Twin, p.Repetitions = v, false, 1
	p.Paths, p.Workloads = p.Paths[:1], p.Workloads[:1]
	return p
}

func TestChurnRunsBesideTheTrial(t *testing.T) {
	const v = "canal(churn=services=200/s)"
	var asked []control.Churning
	r := restless{newWorld(v), func(ctx context.Context, c control.Churning) (*sample.Churn, error) {
		asked = append(asked, c)
		return &sample.Churn{Due: 3, Made: 2, AppliedNs: 2000, CPUNs: 100}, ctx.Err()
	}}
	_, c, _ := perform(t, r, churnPlan(plan.VariantOf(v)), Options{})
	all := trials(c)
	if len(all) != 1 || all[0].Status != result.OK || all[0].Churn == nil || all[0].Churn.Made != 2 || all[0].Metrics["change_time"] != 1000 {
		t.Fatalf("%+v", all)
	}
	if len(asked) != 1 || asked[0].Variant != plan.VariantOf(v) || asked[0].Window != 10*time.Millisecond {
		t.Errorf("asked for %+v", asked)
	}
}

func TestNoChurnIsAskedForWithout(t *testing.T) {
	r := restless{newWorld("canal"), func(context.Context, control.Churning) (*sample.Churn, error) {
		t.Error("objects change")
		return nil, nil
	}}
	_, c, _ := perform(t, r, churnPlan(plan.VariantOf("canal")), Options{})
	if all := trials(c); len(all) != 1 || all[0].Status != result.OK || all[0].Churn != nil {
		t.Fatalf("%+v", all)
	}
}

func TestChurnThatFailsFailsTheTrial(t *testing.T) {
	const v = "canal(churn=200/s)"
	canonical, _ := plan.ParseVariant(v)
	for name, churn := range map[string]func(context.Context, control.Churning) (*sample.Churn, error){
		"table is full": func(context.Context, control.Churning) (*sample.Churn, error) {
			return nil, errors.New("table is full")
		},
		noChurn: nil,
	} {
		var r env.Environment = newWorld(canonical.String()) // where nothing can change
		if churn != nil {
			r = restless{newWorld(canonical.String()), churn}
		}
		_, c, _ := perform(t, r, churnPlan(canonical), Options{})
		all := trials(c)
		if len(all) != 1 || all[0].Status != result.Failed || all[0].Error.Kind != kindChurn || !strings.Contains(all[0].Error.Message, name) {
			t.Fatalf("%s: %+v", name, all)
		}
	}
}

// TestChurnEndsWithAFailedTrial: it does not go on for the rest of the window.
func TestChurnEndsWithAFailedTrial(t *testing.T) {
	const v = "canal(churn=endpoints=200/s)"
	w := newWorld(v)
	w.script = func(string, control.Prepare) (*sample.Observation, *control.Error) {
		return nil, &control.Error{Kind: "reset", Message: "cut"}
	}
	stopped := false
	r := restless{w, func(ctx context.Context, _ control.Churning) (*sample.Churn, error) {
		<-ctx.Done()
		stopped = true
		return nil, ctx.Err()
	}}
	_, c, _ := perform(t, r, churnPlan(plan.VariantOf(v)), Options{})
	if all := trials(c); len(all) != 1 || all[0].Status != result.Failed || all[0].Error.Kind != "reset" || !stopped {
		t.Fatalf("%v, %+v", stopped, all)
	}
}
