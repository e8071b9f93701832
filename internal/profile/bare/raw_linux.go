package bare

import (
	"github.com/cnibench/cnibench/internal/env/lab/dataplane"
	"github.com/cnibench/cnibench/internal/plan"
)

// raw is two empty namespaces on a switch, the zero of every comparison:
//
//	node-1 eth0 ── switch ── eth0 node-2
type raw struct{ dataplane.Nothing }

func (raw) Arrange(*dataplane.Node, int, int) {}

func (raw) NotServed(p plan.Path) string {
	if p.From == plan.Host && p.To == plan.Host {
		return ""
	}
	return "raw has neither pods nor Services: it is two empty namespaces"
}
