package control_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/control/controltest"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
)

// TestApart: the ends are on two machines only where both say which one theirs is.
func TestApart(t *testing.T) {
	for _, c := range []struct {
		client string
		server []string
		want   bool
	}{
		{"a", []string{"b"}, true}, {"a", []string{"a"}, false}, {"", []string{""}, false}, {"a", []string{""}, false}, {"a", []string{"b", "a"}, false}, {"a", []string{"b", "c"}, true},
	} {
		on := func(machine string) *control.Client {
			return dial(t, controltest.Fake{Hello: &control.Hello{Version: control.Version, Machine: machine}}.Start)
		}
		s := control.Sides{Client: on(c.client)}
		for _, m := range c.server {
			s.Servers = append(s.Servers, on(m))
		}
		if got := s.Apart(); got != c.want {
			t.Errorf("%q and %q: %v", c.client, c.server, got)
		}
	}
}

// TestRunDeadline: the error of a trial that does not end is of the side that did not, and says what it had not done.
func TestRunDeadline(t *testing.T) {
	ended := make(chan struct{})
	defer close(ended)
	stuck := func(control.Prepare) (*sample.Observation, *control.Error) { <-ended; return nil, nil }
	done := func(control.Prepare) (*sample.Observation, *control.Error) { return &sample.Observation{}, nil }
	for side, scripts := range map[string][2]controltest.Script{control.SideClient: {stuck, done}, control.SideServer: {done, stuck}} {
		s := control.Sides{Client: dial(t, controltest.Agent(scripts[0])), Servers: []*control.Client{dial(t, controltest.Agent(scripts[1]))}}
		ctx, stop := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer stop()
		if err := s.Prepare(ctx, control.Ends{Servers: []control.Endpoint{{}}}, control.Prepare{Workload: plan.Workload{Spec: plan.RR{}}.Normalize(), Window: time.Second}); err != nil {
			t.Fatal(err)
		}
		_, _, err := s.Run(ctx, func() {})
		var of *control.SideError
		var late *control.LateError
		if !errors.As(err, &of) || of.Side != side || !errors.As(err, &late) || late.Want != control.TypeDone || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", side, err)
		}
	}
}
