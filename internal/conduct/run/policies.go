package run

import (
	"context"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/conduct/control"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
)

// PolicyReader is an Environment in which policies may forbid traffic: a cluster. It is asked after a trial in which the
// traffic failed, and not the agents: a policy may have come since the paths were tried.
type PolicyReader interface {
	// Policies returns the names of the policies that select an end of a path under a profile.
	Policies(ctx context.Context, profile plan.Variant, p plan.Path) []string
}

// ofAgents are the failures that say nothing about the traffic: of agents, of the environment.
var ofAgents = []string{control.KindGone, control.KindLost, control.KindProtocol, control.KindVersion, control.KindStart, control.KindBusy, control.KindCancelled, kindNoCapacity, kindTableFull, kindRoll}

// suspect adds the policies to what a failed trial says. Whether one of them is why, only their owner can tell.
func (c *conductor) suspect(ctx context.Context, rec *result.Record) {
	env, ok := c.env.(PolicyReader)
	if !ok || rec.Status == result.OK || slices.Contains(ofAgents, rec.Error.Kind) {
		return
	}
	if names := env.Policies(ctx, rec.Profile, rec.Path); len(names) > 0 {
		rec.Error.Message += "; NetworkPolicies select its ends: " + strings.Join(names, ", ")
	}
}
