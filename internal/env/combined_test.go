package env

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/measure/outcome"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
)

// half is an environment that answers with its name.
type half struct {
	name    string
	facts   facts.Facts
	closing error
}

func (h half) Facts(context.Context) (facts.Facts, error)         { return h.facts, nil }
func (h half) Profiles(context.Context) ([]result.Profile, error) { return nil, nil }
func (h half) Conditions() outcome.Conditions                     { return outcome.Conditions{CPUs: []int{len(h.name)}} }
func (h half) Close(context.Context) error                        { return h.closing }
func (h half) At(plan.Variant) Site                               { return h }

func (h half) Endpoints(context.Context, plan.Route) (control.Ends, error) {
	return control.Ends{Client: control.Endpoint{Name: h.name}}, nil
}

// able is a half that changes objects, makes pods and knows what its variants cost.
type able struct{ half }

func (a able) At(plan.Variant) Site                                           { return a }
func (a able) Raised(plan.Variant) map[string]float64                         { return nil }
func (a able) Churn(context.Context, control.Churning) (*sample.Churn, error) { return nil, nil }
func (a able) NewPods(context.Context, control.Arrivals) (*sample.Observation, error) {
	return nil, nil
}
func (a able) LatePods() bool { return false }

// TestCombined: a variant with a context belongs to the clusters, all others to the lab, with all that either can do.
func TestCombined(t *testing.T) {
	lab := able{half{name: "lab", facts: facts.Facts{"x": "lab"}, closing: errors.New("lab stays")}}
	clusters := half{name: "clusters", facts: facts.Facts{"x": "there", "y": "there"}, closing: errors.New("pods stay")}
	e := &combined{lab: lab, clusters: clusters, remove: func() error { return errors.New("groups stay") }}
	for name, want := range map[plan.Variant]string{plan.VariantOf("host"): "lab", plan.VariantOf("canal"): "lab", plan.VariantOf("host~twin"): "lab", plan.VariantOf("host@a"): "clusters", plan.VariantOf("canal@a"): "clusters", plan.VariantOf("host@a~twin"): "clusters"} {
		ends, err := e.At(name).Endpoints(t.Context(), plan.Single(name, plan.Path{}))
		if err != nil || ends.Client.Name != want {
			t.Errorf("%s: %s, %v", name, ends.Client.Name, err)
		}
		_, churns := e.At(name).(Churner)
		_, makes := e.At(name).(PodMaker)
		_, priced := e.At(name).(Raiser)
		if can := want == "lab"; churns != can || makes != can || priced != can {
			t.Errorf("%s: churn %v, new pods %v, cost of raising %v", name, churns, makes, priced)
		}
	}
	if got := e.Conditions().CPUs; !slices.Equal(got, []int{len("lab")}) {
		t.Errorf("the conditions are not the lab's: %v", got)
	}
	f, err := e.Facts(t.Context())
	if err != nil || f["x"] != "lab" || f["y"] != "there" || f[factAgent] != "under seccomp" {
		t.Errorf("facts %v, %v", f, err)
	}
	err = e.Close(t.Context())
	for _, want := range []string{"lab stays", "groups stay", "pods stay"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
}
