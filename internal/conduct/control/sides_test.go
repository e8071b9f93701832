package control_test

import (
	"testing"

	"github.com/cnibench/cnibench/internal/conduct/control"
	"github.com/cnibench/cnibench/internal/conduct/control/controltest"
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
