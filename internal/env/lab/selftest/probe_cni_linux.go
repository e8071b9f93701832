package selftest

import (
	"context"
	"strings"
)

// checkedPods requires that CHECK of the CNI plugins succeeds for every pod.
func checkedPods(ctx context.Context, s *scene) finding {
	if err := s.inst.CheckPods(ctx); err != nil {
		return failedFinding("no error", err)
	}
	return finding{want: "no error", got: "no error"}
}

// leftByDel requires that DEL removes everything that ADD made.
func leftByDel(ctx context.Context, s *scene) finding {
	left, err := s.inst.Rehearse(ctx)
	if err != nil {
		return failedFinding("nothing", err)
	}
	if len(left) == 0 {
		left = []string{"nothing"}
	}
	return finding{want: "nothing", got: strings.Join(left, ", ")}
}
