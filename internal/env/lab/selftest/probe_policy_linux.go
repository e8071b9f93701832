package selftest

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/env/lab/expect"
	"github.com/cnibench/cnibench/internal/plan"
)

// deniedPaths returns the paths on which a server listens on the port that the policies deny. The "exchange" check proves
// that the path works otherwise.
func (x expectation) deniedPaths() []plan.Path {
	if x.policies == 0 || !x.policed && x.Programs == nil {
		return nil
	}
	return slices.DeleteFunc([]plan.Path{expect.PodPodSame, expect.PodPodCross}, func(p plan.Path) bool {
		_, served := x.Served[p]
		return !served
	})
}

// walked counts the policies that a new connection between pods of two nodes walks: all that select the pod, because
// the last one decides.
func walked(node int, chain string) inspection {
	return func(ctx context.Context, s *scene) finding {
		want := strconv.Itoa(s.want.policies)
		rules, err := s.counting(ctx, s.inst.Nodes[node:node+1], "filter", expect.PodPodCross)
		if err != nil {
			return failed(want, err)
		}
		asked := 0
		for _, c := range rules {
			if strings.HasSuffix(c.place, s.pod(node, 0).HostDevice) && strings.Contains(c.rule, chain) {
				asked++
			}
		}
		return finding{want: want, got: strconv.Itoa(asked)}
	}
}
