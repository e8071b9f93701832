package selftest

import (
	"context"
	"net/netip"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/env/lab/expect"
	"github.com/cnibench/cnibench/internal/env/lab/policy"
	"github.com/cnibench/cnibench/internal/plan"
)

// denied tries the denied port of a pod that listens on it. The "exchange" check proves that the path works otherwise.
func denied(path plan.Path) inspection {
	return func(ctx context.Context, s *scene) finding {
		e, err := s.ends(path)
		if err != nil {
			return unanswered(outcome{err: err})
		}
		e.listen, e.dial = policy.DeniedPort, netip.AddrPortFrom(e.dial.Addr(), policy.DeniedPort)
		return unanswered(s.exchange(e, question, impatience).tcp(ctx))
	}
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
