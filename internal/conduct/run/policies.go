package run

import (
	"context"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/conduct/control"
	"github.com/cnibench/cnibench/internal/measure/result"
)

// ofAgents are the failures that say nothing about the traffic: of agents, of the environment.
var ofAgents = []string{control.KindGone, control.KindLost, control.KindProtocol, control.KindVersion, control.KindStart, control.KindBusy, control.KindCancelled, kindNoCapacity, kindTableFull, kindRoll, kindNotRaised}

// suspect adds the policies to what a failed trial says. Whether one of them is why, only their owner can tell.
func (c *conductor) suspect(ctx context.Context, rec *result.Record) {
	if c.can.Policies == nil || rec.Status == result.OK || slices.Contains(ofAgents, rec.Error.Kind) {
		return
	}
	if names := c.can.Policies(ctx, rec.Profile, rec.Path); len(names) > 0 {
		rec.Error.Message += "; NetworkPolicies select its ends: " + strings.Join(names, ", ")
	}
}
