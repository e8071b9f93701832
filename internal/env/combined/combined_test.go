package combined

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/env"
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
	can     bool
}

func (h half) Facts(context.Context) (facts.Facts, error)         { return h.facts, nil }
func (h half) Profiles(context.Context) ([]result.Profile, error) { return nil, nil }
func (h half) Conditions() outcome.Conditions                     { return outcome.Conditions{CPUs: []int{len(h.name)}} }
func (h half) Close(context.Context) error                        { return h.closing }

func (h half) Endpoints(context.Context, plan.Route) (control.Ends, error) {
	return control.Ends{Client: control.Endpoint{Name: h.name}}, nil
}

func (h half) Capabilities() env.Capabilities {
	if !h.can {
		return env.Capabilities{}
	}
	return env.Capabilities{
		Drops:    func(plan.Variant, plan.Path) ([]sample.Drop, error) { return []sample.Drop{{Host: h.name}}, nil },
		Full:     func(plan.Variant) (map[string]uint64, error) { return map[string]uint64{h.name: 1}, nil },
		Recover:  func(context.Context) (string, error) { return h.name + " was away", nil },
		Policies: func(context.Context, plan.Variant, plan.Path) []string { return []string{h.name} },
		Roll:     func(context.Context, control.Backend, bool) error { return errors.New(h.name) },
	}
}

// TestCombined: a variant with a context belongs to the clusters, all others to the lab.
func TestCombined(t *testing.T) {
	lab := half{name: "lab", facts: facts.Facts{"x": "lab"}, closing: errors.New("lab stays"), can: true}
	clusters := half{name: "clusters", facts: facts.Facts{"x": "there", "y": "there"}, closing: errors.New("pods stay"), can: true}
	e := &environment{lab: lab, clusters: clusters, remove: func() error { return errors.New("groups stay") }}
	can := e.Capabilities()
	for name, want := range map[plan.Variant]string{"host": "lab", "canal": "lab", "host~twin": "lab", "host@a": "clusters", "canal@a": "clusters", "host@a~twin": "clusters"} {
		ends, err := e.Endpoints(t.Context(), plan.Single(name, plan.Path{}))
		drops, dropped := can.Drops(name, plan.Path{})
		full, filled := can.Full(name)
		rolled := can.Roll(t.Context(), control.Backend{Route: plan.Single(name, plan.Path{})}, true)
		policies := can.Policies(t.Context(), name, plan.Path{})
		if err := errors.Join(err, dropped, filled); err != nil || ends.Client.Name != want || drops[0].Host != want || full[want] != 1 || rolled.Error() != want || policies[0] != want {
			t.Errorf("%s: %s, %v, %v, %v, %v, %v", name, ends.Client.Name, drops, full, rolled, policies, err)
		}
	}
	if got := e.Conditions().CPUs; !slices.Equal(got, []int{len("lab")}) {
		t.Errorf("the conditions are not the lab's: %v", got)
	}
	if wrong, err := can.Recover(t.Context()); wrong != "clusters was away" || err != nil {
		t.Errorf("recover: %q, %v", wrong, err)
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

// TestIncapable: a half that cannot do something says so, and Recover is absent.
func TestIncapable(t *testing.T) {
	can := (&environment{lab: half{}, clusters: half{}}).Capabilities()
	if _, err := can.Drops("host", plan.Path{}); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("drops: %v", err)
	}
	if _, err := can.Full("host@a"); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("full: %v", err)
	}
	if can.Recover != nil || can.Policies(t.Context(), "host@a", plan.Path{}) != nil {
		t.Error("the clusters can recover, or have policies")
	}
	if err := can.Roll(t.Context(), control.Backend{Route: plan.Single("host", plan.Path{})}, true); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("roll: %v", err)
	}
}
