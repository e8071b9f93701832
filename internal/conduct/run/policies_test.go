package run

import (
	"context"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/control/controltest"
	"github.com/cnibench/cnibench/internal/env"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
)

// policed is a world in which policies select the ends of canal's paths between pods.
type policed struct{ *world }

func (w policed) At(plan.Variant) env.Site { return w }

func (policed) Policies(_ context.Context, profile plan.Variant, p plan.Path) []string {
	if profile == plan.VariantOf("canal") && p.To == plan.Pod {
		return []string{"x/deny", "x/quiet"}
	}
	return nil
}

// TestPoliciesAreNamed: a trial in which traffic failed names the policies of its own path, and one whose agent has gone
// names none.
func TestPoliciesAreNamed(t *testing.T) {
	const named = "; NetworkPolicies select its ends: x/deny, x/quiet"
	for _, tt := range []struct {
		kind, path string
		want       bool
	}{
		{"connection refused", "pod-to-pod/cross-node", true},
		{"timeout", "pod-to-pod/cross-node", true},
		{control.KindNoTraffic, "pod-to-pod/cross-node", true},
		{"connection refused", "pod-to-service/remote", false},
		{control.KindGone, "pod-to-pod/cross-node", false},
		{kindRoll, "pod-to-pod/cross-node", false},
	} {
		w, p := newWorld("host", "canal"), testPlan("canal")
		p.Paths = []plan.Path{path(t, tt.path)}
		w.use(func(name string, ask control.Prepare) (*sample.Observation, *control.Error) {
			switch {
			case name != "canal/a":
				return ordinary(ask)
			case tt.kind == control.KindGone:
				return nil, controltest.Die
			}
			return nil, &control.Error{Kind: tt.kind, Message: "it failed"}
		})
		_, c, _ := perform(t, policed{w}, p, Options{})
		failed := 0
		for _, r := range trials(c) {
			if r.Status == result.OK {
				continue
			}
			failed++
			if got := strings.HasSuffix(r.Error.Message, named); got != tt.want || r.Error.Kind != tt.kind {
				t.Errorf("%s on %s: %s: %q", tt.kind, tt.path, r.Error.Kind, r.Error.Message)
			}
		}
		if failed == 0 {
			t.Errorf("%s on %s: no trial failed", tt.kind, tt.path)
		}
	}
}

func path(t *testing.T, text string) plan.Path {
	t.Helper()
	p, err := plan.ParsePath(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
