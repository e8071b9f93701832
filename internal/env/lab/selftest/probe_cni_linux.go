package selftest

import (
	"context"
	"strings"
)

// probePluginCheck requires that CHECK of the CNI plugins succeeds for every pod.
func probePluginCheck(ctx context.Context, s *scene) finding {
	if err := s.inst.CheckPods(ctx); err != nil {
		return failedFinding("no error", err)
	}
	return finding{want: "no error", got: "no error"}
}

// probePluginDel requires that DEL removes everything that ADD made.
func probePluginDel(ctx context.Context, s *scene) finding {
	left, err := s.inst.Rehearse(ctx)
	if err != nil {
		return failedFinding("nothing", err)
	}
	if len(left) == 0 {
		left = []string{"nothing"}
	}
	return finding{want: "nothing", got: strings.Join(left, ", ")}
}
